// A recording that exists only until its exports are written, and the messages about recordings that could not be
// written.
#pragma once

#include <optional>
#include <string>

#include "base/files/removed_on_signal.h"
#include "launch/launcher.h"

namespace tacho::cli {

/// A hidden name beside `visible`. The destructor removes the file, and so does a signal that ends tacho.
class HiddenRecording {
 public:
  explicit HiddenRecording(const std::string& visible);
  HiddenRecording(const HiddenRecording&) = delete;
  HiddenRecording& operator=(const HiddenRecording&) = delete;

  const std::string& path() const { return path_; }
  const std::string& visible() const { return visible_; }
  /// After a failure, gives the file a free visible name like `visible` with .tacho; returns that name.
  std::string keep();

 private:
  std::string visible_, path_;
  RemovedOnSignal removed_;
};

/// Prints that the recording is incomplete, why, and where the saved part is. Returns 125.
int complain_of_recording(const launch::RunResult& outcome, const std::string& path,
                          std::optional<HiddenRecording>& hidden);

}  // namespace tacho::cli
