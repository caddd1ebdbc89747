// Reads the launch records and counter data images that the in-process half leaves (event/spool/spool_ranges.h).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "counter/provider.h"
#include "counter/provider/nvidia/host.h"

namespace tacho::counter::nvidia {

/// One launch. If it was measured, `image` and `range` locate its counter data.
struct MeasuredLaunch {
  ObservedDispatch dispatch;  ///< start only; end comes from the counters
  uint32_t process = 0, image = 0, range = 0, samples = 0;
  bool selected = false, measured = false;
  /// Launch parameters that multiplexing groups by besides the kernel: grid, block and shared memory, as text.
  std::string shape;

  /// Launches of the program behind the record.
  size_t samples_seen() const { return dispatch.index == ~uint64_t{0} ? samples : 1; }
};

/// All records of all processes, ordered by index; records of launches without an index come last. `cut` counts files
/// with a truncated or malformed record.
Result<std::vector<MeasuredLaunch>> read_launches(const std::string& folder, size_t& cut);
/// Appends the records in one file's bytes to `out`, up to the first malformed one. False when there is one.
bool parse_launches(std::string_view bytes, std::vector<MeasuredLaunch>& out);

/// Evaluates images as they become complete and removes them, so that a long run needs little disk.
class Evaluator {
 public:
  Evaluator(const Host& host, std::vector<std::string> metrics, std::string folder)
      : host_(host), metrics_(std::move(metrics)), folder_(std::move(folder)) {}
  /// Takes the images present now. With `keep` they stay: later passes need them (application replay).
  Status take(bool keep = false);
  /// The values of a range, nullptr when its image is missing or has no such range.
  const std::vector<double>* values(const MeasuredLaunch& launch) const;

 private:
  const Host& host_;
  std::vector<std::string> metrics_;
  std::string folder_;
  using Gpu = std::pair<uint32_t, uint32_t>;                                     // of a process
  std::map<std::pair<Gpu, uint32_t>, std::vector<std::vector<double>>> values_;  // by image
  std::map<Gpu, std::unique_ptr<Host>> hosts_;
};

}  // namespace tacho::counter::nvidia
