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
  std::string path_;  // "" = nothing to remove
  int slot_ = -1;     // of those that a signal finds; -1: none was free, or the path is too long
};

}  // namespace tacho
