// Shields tacho during a run: it answers signals instead of dying of them, and limits and timers reach only the target.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <optional>

#include "base/result.h"

namespace tacho::launch {

/// While it lives, no signal ends this process but SIGKILL and its own faults (SIGSEGV, SIGBUS, ...): they wait to be
/// read. Make it before the first thread. At its end, waiting signals are dropped, because their run is over.
class SignalInbox {
 public:
  SignalInbox();
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  /// Readable when a signal waits; -1 if the kernel gave none.
  int descriptor() const { return descriptor_; }
  /// The next waiting signal: its number, and whether to pass it to the target. The target has already received the
  /// signals that the terminal's driver sends.
  struct Signal {
    int number;
    bool from_terminal;
    bool for_target;
  };
  std::optional<Signal> next();
  /// The mask from before, for the target.
  const sigset_t& original() const { return original_; }

 private:
  sigset_t original_{};
  int descriptor_ = -1;
};

/// Limits and the alarm that the target inherits, and that tacho lifts or takes from itself meanwhile: RLIMIT_FSIZE,
/// RLIMIT_AS and ITIMER_REAL. Limits stay lifted for what tacho does afterwards (exports).
class TargetLimits {
 public:
  TargetLimits();
  ~TargetLimits();
  TargetLimits(const TargetLimits&) = delete;
  TargetLimits& operator=(const TargetLimits&) = delete;

  /// In the forked child.
  void apply() const;
  /// Bytes of address space that the target may have, and this process; RLIM_INFINITY without a limit.
  rlim_t target_space() const { return space_.rlim_cur; }
  rlim_t own_space() const;

 private:
  rlimit file_{}, space_{};
  itimerval alarm_{};
  struct sigaction file_signal_ {
  }, pipe_signal_{};
};

}  // namespace tacho::launch
