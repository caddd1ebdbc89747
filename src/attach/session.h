// A recording of programs that already run: from getting in to letting go.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attach/target.h"
#include "base/result.h"
#include "decode/decoder.h"
#include "launch/recording.h"
#include "launch/run/device_samples.h"

namespace tacho::attach {

struct SessionResult {
  std::vector<TargetFacts> targets;  ///< those that were recorded
  std::vector<std::string> warnings;
  std::vector<decode::ProcessFacts> recorded;
  double stopped_s = 0;   ///< the longest that threads of one process were stopped, one after the other
  uint32_t stops = 0;     ///< threads of all processes that were stopped
  double attached_s = 0;  ///< from the begin until tacho was in all processes
  double seconds = 0;     ///< of recording
  bool ended = false;     ///< all processes ended before tacho let go
  Status written = {};
};

struct SessionOptions {
  launch::Recording recording;
  std::vector<pid_t> processes;   ///< at least one
  std::vector<std::string> left;  ///< sentences about processes that were meant and are not among them
  uint64_t launches = 0;          ///< end after this many launches of kernels; 0 = no such end
  int64_t begin_at = 0;           ///< recording begins then, ns of CLOCK_REALTIME; 0 = at once
  int enter = -1;                 ///< a line from this terminal ends the recording, too
  /// Counters of the processes' devices, set up to begin with the recording; nullptr = none.
  launch::DeviceSamples* samples = nullptr;
  bool stay_out = false;  ///< nothing enters the processes: only the samples are recorded, and telemetry
  /// Called once, when tacho is in the processes and records.
  std::function<void(const SessionResult&)> begun;
};

/// Gets into the processes, records until the time or the launches are over, a signal asks for the end or the processes
/// end, and lets go. Of several processes those that refuse are left out with a warning. An error before that: no
/// process is changed. The calling process must be single-threaded.
Result<SessionResult> record(const SessionOptions& options);

}  // namespace tacho::attach
