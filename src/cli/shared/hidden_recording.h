// A recording that exists only until its exports are written, and the messages when a recording could not be
// written.
#pragma once

#include <optional>
#include <string>

#include "base/removed_on_signal.h"
#include "launch/launcher.h"

namespace tacho::cli {

/// A hidden name beside `visible`. Its file is removed at the end, also when a signal ends the process.
class HiddenRecording {
 public:
  explicit HiddenRecording(const std::string& visible);
  HiddenRecording(const HiddenRecording&) = delete;
  HiddenRecording& operator=(const HiddenRecording&) = delete;

  const std::string& path() const { return path_; }
  const std::string& visible() const { return visible_; }
  /// Gives the file the visible name with the ending .tacho, or the first free one like it, because something went wrong; returns its name.
  std::string keep();

 private:
  std::string visible_, path_;
  RemovedOnSignal removed_;
};

/// Says that the recording is incomplete, why, and under which name there is what could be saved. Returns 125.
int complain_of_recording(const launch::RunResult& outcome, const std::string& path,
                          std::optional<HiddenRecording>& hidden);

}  // namespace tacho::cli
