// Watches programs that already run (`tacho watch PID`): brings libtacho-watch.so into them, and leaves them again.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "watch/session.h"

namespace tacho::watch {

struct RunningOptions {
  WatchOptions watch;            ///< without a command
  std::vector<pid_t> processes;  ///< at least one
  double duration_s = 0;         ///< 0: until a signal or the processes' end
  bool patch_entries = false;    ///< change the first instructions of the drivers' functions instead of words
  /// Asked now and then: all that are meant at this moment. Those that have come are entered, too, once they have lived
  /// for a while. Empty: none are.
  std::function<std::vector<pid_t>()> meant = {};
  /// Called when tacho is in the processes, and in each that comes later, with a sentence each of what is to be said.
  std::function<void(const std::vector<std::string>& sentences)> entered;
};

struct RunningResult {
  WatchMoment last;
  std::vector<std::string> warnings;  ///< of processes that tacho could not leave, and the like
};

/// Enters the processes, watches them until the time is over, a signal asks for the end or all of them have ended, and
/// leaves them. Of several processes those that refuse are left out with a sentence. An error: no process is changed.
/// The calling process must be single-threaded.
Result<RunningResult> watch_running(const RunningOptions& options);

}  // namespace tacho::watch
