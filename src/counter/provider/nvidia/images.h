// Reading what the in-process half of counter collection left (event/spool_ranges.h).
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

/// One launch; where it was measured, `image` and `range` say in which counter data.
struct Launch {
  Dispatch dispatch;  ///< start only; end comes from the counters
  uint32_t process = 0, image = 0, range = 0, samples = 0;
  bool selected = false, measured = false;
  /// What multiplexing counts by beside the kernel: grid, block and shared memory in words.
  std::string shape;

  /// Launches of the program that the record stands for.
  size_t samples_seen() const { return dispatch.index == ~uint64_t{0} ? samples : 1; }
};

/// All records of all processes by index, those that stand for launches without one at the end. Records cut off at the end of a
/// file are counted in `cut`.
Result<std::vector<Launch>> read_launches(const std::string& folder, size_t& cut);
/// The records in one file's bytes; false when something is wrong from some point on.
bool parse_launches(std::string_view bytes, std::vector<Launch>& out);

/// Evaluates images as they become complete and removes them, so that a long run needs little disk.
class Evaluator {
 public:
  Evaluator(const Host& host, std::vector<std::string> metrics, std::string folder)
      : host_(host), metrics_(std::move(metrics)), folder_(std::move(folder)) {}
  /// Takes the images that are there now. `keep`: they are needed again (application replay, not the last pass).
  Status take(bool keep = false);
  /// The values of a range, nullptr when its image is missing or has no such range.
  const std::vector<double>* values(const Launch& launch) const;

 private:
  const Host& host_;
  std::vector<std::string> metrics_;
  std::string folder_;
  using Gpu = std::pair<uint32_t, uint32_t>;                                     // of a process
  std::map<std::pair<Gpu, uint32_t>, std::vector<std::vector<double>>> values_;  // by image
  std::map<Gpu, std::unique_ptr<Host>> hosts_;
};

}  // namespace tacho::counter::nvidia
