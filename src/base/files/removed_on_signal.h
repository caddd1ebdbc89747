// Removes files that must not outlive this process, even if a signal ends it.
#pragma once

#include <signal.h>

#include <string>

namespace tacho {

/// While one exists, signals that would end this thread's process by default wait. So a file created and noted
/// meanwhile cannot be left behind.
class SignalsWait {
 public:
  SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  ~SignalsWait();

 private:
  sigset_t before_;
};

/// Removes the file `path` when destroyed, or when a signal ends the process by default; not for an ignored signal,
/// SIGKILL or a fault. Create and destroy these in one thread. At most 16 at a time have an effect.
class RemovedOnSignal {
 public:
  RemovedOnSignal() = default;
  explicit RemovedOnSignal(const std::string& path);
  RemovedOnSignal(RemovedOnSignal&& other) noexcept;
  RemovedOnSignal& operator=(RemovedOnSignal&& other) noexcept;
  /// Removes the file.
  ~RemovedOnSignal();
  /// Keeps the file.
  void release();

 private:
  std::string path_;  // "" = nothing to remove
  int slot_ = -1;     // of those that a signal finds; -1: none was free, or the path is too long
};

}  // namespace tacho
