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

namespace tacho::attach {

struct SessionOptions {
  launch::Recording recording;
  std::vector<pid_t> processes;  ///< at least one
  uint64_t launches = 0;         ///< end after this many launches of kernels; 0 = no such end
  /// Called once, when tacho is in the processes and records.
  std::function<void()> begun;
};

struct SessionResult {
  std::vector<TargetFacts> targets;  ///< those that were recorded
  std::vector<std::string> warnings;
  std::vector<decode::ProcessFacts> recorded;
  double stopped_s = 0;   ///< the longest that a thread of a process was stopped
  double attached_s = 0;  ///< from the begin to the moment at which the first process was recorded
  double seconds = 0;     ///< of recording
  bool ended = false;     ///< all processes ended before tacho let go
  Status written = {};
};

/// Gets into the processes, records until the time or the launches are over, a signal asks for the end or the processes
/// end, and lets go. An error before that: no process is changed. The calling process must be single-threaded.
Result<SessionResult> record(const SessionOptions& options);

}  // namespace tacho::attach
