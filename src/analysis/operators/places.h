// Sums a trace up by place: `tacho stats --by process|rank|thread|device|stream`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

enum class Place : uint8_t {
  kProcess,
  kRank,    // processes of one rank together; those without a rank each by itself
  kThread,  // host threads: calls, markers, samples
  kDevice,  // one physical device whatever processes use it
  kStream,  // queues and streams
};
/// nullopt when `text` is none of process, rank, thread, device, stream.
std::optional<Place> parse_place(std::string_view text);

struct PlaceRow {
  std::string name;     // "train.py (pid 71, rank 3)", "GPU 0: NVIDIA H200", "stream 7 of GPU 0"
  int64_t kernels = 0;  // dispatches
  int64_t kernel_ns = 0;
  int64_t copies = 0;  // and fills
  int64_t copy_ns = 0;
  int64_t bytes = 0;
  int64_t calls = 0;  // of APIs
  int64_t call_ns = 0;
  int64_t samples = 0;
  int64_t sample_ns = 0;
};

/// Rows of which nothing was recorded are left out; by device time, then host time, longest first. Sums come from the
/// chunks' summaries; times of rows that overlap are added up.
Result<std::vector<PlaceRow>> by_place(const trace::Trace& trace, Place place);

/// The program of a process, for people: "train" for a script or module of Python (base/files/run_name.h), else its
/// executable.
std::string process_name(const trace::Trace& trace, int64_t process);

/// Devices as people tell them apart: one number for a physical device, whichever processes report it.
class DeviceNumbers {
 public:
  explicit DeviceNumbers(const trace::Trace& trace);
  /// "GPU 0", "CPU 0" for a row of table device; "device" for row 0. The number is the vendor's where that is unique
  /// among devices of the kind, else devices count from 0 in the order in which they appeared.
  const std::string& text(int64_t row) const { return texts_[at(row)]; }
  /// The same number for rows that are the same device.
  size_t device(int64_t row) const { return devices_[at(row)]; }

 private:
  size_t at(int64_t row) const {
    return row > 0 && static_cast<size_t>(row) < texts_.size() ? static_cast<size_t>(row) : 0;
  }
  std::vector<std::string> texts_;
  std::vector<size_t> devices_;
};

}  // namespace tacho::analysis
