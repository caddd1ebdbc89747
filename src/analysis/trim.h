// Cuts a span of time out of a trace, and merges several traces into one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/schema.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::analysis {

struct TrimCounts {
  int64_t kept = 0, dropped = 0;  // rows of facts
};

/// Copies the rows that began at `from` ... `to` (ns, both inclusive). Device work goes with the API call that caused
/// it, whenever it ran; without a call its own start decides. Counter values go with their dispatch; a link stays if
/// both of its ends do. Drops dimension rows and strings that nothing refers to.
Status trim_into(const trace::Trace& trace, trace::TraceWriter& writer, int64_t from, int64_t to, TrimCounts& counts);

struct MergeInput {
  std::shared_ptr<const trace::Trace> trace;
  std::string name;  // for messages
  /// Where it is known better than by real-time clocks: this trace's time on the first one's clock.
  std::function<int64_t(int64_t time)> time_map = {};
  bool related = false;  // its clock was compared with the first one's, by calls that both took part in
};

/// On which machine a trace was recorded, as far as it tells.
struct TracedMachine {
  std::string host;                  // of the first process that has one; "" if none has
  int64_t booted = event::kUnknown;  // when it was started, ns of CLOCK_REALTIME
  /// Whether this is surely the same machine: both hosts have one name, and no other start, as two nodes would have
  /// that share a name.
  bool is(const TracedMachine& other) const;
};
/// Errors: damaged data.
Result<TracedMachine> traced_machine(const trace::Trace& trace);

/// Copies all inputs. Each becomes its own run, so that processes with equal pids stay apart. Shifts traces of other
/// machines so that equal times of CLOCK_REALTIME coincide. A trace that does not say how its clock relates to the
/// first one's keeps its times; if the two lie more than an hour apart, it is shifted to begin with the first. A note
/// in the trace, also put into `notes`, says so. Property "clocks" of the whole trace begins with "unaligned" where
/// clocks of different hosts, or unknown ones, were put together without being `related`.
Status merge_into(const std::vector<MergeInput>& inputs, trace::TraceWriter& writer, std::vector<std::string>& notes);

/// What stands beside every answer about a trace into which clocks were put together that nothing ties to each other;
/// "" for any other trace.
std::string unaligned_sentence(const trace::Trace& trace);

/// Property of a whole trace: says that it, or a trace that it was made from, was cut off, and where.
inline constexpr std::string_view kCutOff = "cut_off";
/// What is missing of the trace that was read from `path`, in one sentence that names it; "" if nothing was cut off.
std::string cut_off_sentence(const trace::Trace& trace, const std::string& path);
/// True if no event is left: no timed record, no counter's value, no summary.
bool holds_no_event(const trace::Trace& trace);

}  // namespace tacho::analysis
