// tacho's side of event/spool.h: the folder that a counting library in the target writes to.
#pragma once

#include <string>
#include <vector>

#include "base/temporary.h"
#include "counter/provider.h"
#include "event/spool.h"

namespace tacho::counter {

/// A record as it was read.
struct SpooledDispatch {
  Dispatch dispatch;  ///< start and end in the spool's clock, CLOCK_MONOTONIC_RAW
  uint64_t groups = 0, groups_run = 0;
  uint64_t pass = 0;
  bool selected = false;
  std::vector<double> values;
};

class Spool {
 public:
  /// Makes the folder under `parent`, writes the config (the filter and further lines) and the shared state.
  static Result<Spool> create(const std::string& parent, const Filter& filter,
                              const std::vector<std::pair<std::string, std::string>>& settings);
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&&) = delete;
  /// Removes the folder.
  ~Spool();

  const std::string& folder() const { return folder_.path(); }
  spool::SpoolState& state() const { return *state_; }
  /// All records of all processes by index. Cut-off ones at the end of a file are counted in `cut`.
  Result<std::vector<SpooledDispatch>> read(size_t& cut) const;

 private:
  Spool() = default;
  TemporaryFolder folder_;
  spool::SpoolState* state_ = nullptr;
};

/// Reads the records of one file's bytes; false when the last one is cut off or anything is wrong from some point on.
bool parse_records(std::string_view bytes, std::vector<SpooledDispatch>& out);

}  // namespace tacho::counter
