// All threads of a process, stopped for a moment (ptrace) so that nothing runs in code that is being changed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"

namespace tacho::watch {

class StoppedProcess {
 public:
  /// Stops every thread. One that waits in the kernel for what nothing interrupts counts as stopped: it stops before it
  /// comes back into the program. The calling thread must be the one that calls release_late().
  static Result<StoppedProcess> stop(pid_t pid);
  StoppedProcess(StoppedProcess&& other) noexcept;
  StoppedProcess& operator=(StoppedProcess&&) = delete;
  /// Lets all go on, their system calls as the kernel goes on with them after a stop.
  ~StoppedProcess();

  /// Where each thread is, and where its stack ends.
  struct Place {
    uint64_t instruction, stack;
  };
  const std::vector<Place>& places() const { return places_; }

 private:
  StoppedProcess() = default;
  static Result<bool> interrupt(pid_t thread);
  Status take(pid_t thread);
  std::vector<pid_t> threads_;
  std::vector<Place> places_;
};

/// Lets threads go on that stopped later. Call it now and then.
void release_late();

}  // namespace tacho::watch
