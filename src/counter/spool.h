// tacho's side of event/spool/spool.h: creates the folder that a counting library in the target writes to, and reads
// it.
#pragma once

#include <string>
#include <vector>

#include "base/files/scratch_folder.h"
#include "counter/provider.h"
#include "event/spool/spool.h"

namespace tacho::counter {

struct SpooledDispatch {
  ObservedDispatch dispatch;  ///< start and end in the spool's clock, CLOCK_MONOTONIC_RAW
  uint64_t groups = 0, groups_run = 0;
  uint64_t pass = 0;
  bool selected = false;
  std::vector<double> values;
};

class SpoolFolder {
 public:
  /// Creates the folder under `parent` and writes the config (the filter, then `settings`) and the shared state.
  static Result<SpoolFolder> create(const std::string& parent, const Filter& filter,
                                    const std::vector<std::pair<std::string, std::string>>& settings);
  SpoolFolder(SpoolFolder&& other) noexcept;
  SpoolFolder& operator=(SpoolFolder&&) = delete;
  /// Removes the folder.
  ~SpoolFolder();

  const std::string& folder() const { return folder_.path(); }
  spool::SpoolState& state() const { return *state_; }
  /// All records of all processes, ordered by index. `cut` counts files with a truncated or malformed record.
  Result<std::vector<SpooledDispatch>> read(size_t& cut) const;

 private:
  SpoolFolder() = default;
  ScratchFolder folder_;  // the state is its locked file
  spool::SpoolState* state_ = nullptr;
};

/// Appends the records in one file's bytes to `out`, up to the first truncated or malformed one. False when there is
/// one.
bool parse_records(std::string_view bytes, std::vector<SpooledDispatch>& out);

}  // namespace tacho::counter
