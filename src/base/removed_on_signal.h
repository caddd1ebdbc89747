// Removes files that must not outlive this process, even if a signal ends it.
#pragma once

#include <string>

namespace tacho {

/// Removes the file `path` at its end, and when one of the signals that end a process by default comes before. Not when the
/// program ignores that signal, nor after SIGKILL or a fault. Make and destroy these in one thread.
class RemovedOnSignal {
 public:
  RemovedOnSignal() = default;
  explicit RemovedOnSignal(const std::string& path);
  RemovedOnSignal(RemovedOnSignal&& other) noexcept;
  RemovedOnSignal& operator=(RemovedOnSignal&& other) noexcept;
  /// Removes the file.
  ~RemovedOnSignal();
  /// The file stays.
  void release();

 private:
  int slot_ = -1;
};

}  // namespace tacho
