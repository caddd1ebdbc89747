// The quantities that catalog/trace/rules.yaml may name, and their values for the devices, processes and whole run of a
// trace.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/findings/rank_lateness.h"
#include "analysis/time/activity.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

enum class SubjectKind : uint8_t { kRun, kDevice, kProcess, kMemory };

struct Quantity {
  std::string_view slug;  ///< "launch-gap-time"
  std::string_view name;  ///< for people
  std::string_view unit;  ///< "ns", "count", "%", "bytes", "MHz", "word": text that sentences may hold
  SubjectKind of;
};
/// nullptr where there is none of that name.
const Quantity* quantity_named(std::string_view slug);

struct Measured {
  double value = 0;
  double off = 0;      ///< how far it may be off at least, in its own unit
  bool exact = false;  ///< no other error
  std::string needs;   ///< not empty: the trace does not have it; what to record
};

/// A device, a process, a memory (analysis/memory) or the run with its numbers, words and stretches of time.
struct Subject {
  SubjectKind kind = SubjectKind::kRun;
  std::string text;  ///< "GPU 0", "train (pid 71)"
  std::map<std::string_view, Measured> values;
  std::map<std::string_view, std::string> words;
  std::map<std::string_view, std::vector<Stretch>> spans;
  std::map<std::string_view, std::vector<std::string>> lines;  ///< of evidence, by the name of the spans
};

/// The run comes first. `remarks` gets sentences about what makes times doubtful.
Result<std::vector<Subject>> measure(const trace::Trace& trace, const FindOptions& options,
                                     std::vector<std::string>& remarks);

}  // namespace tacho::analysis
