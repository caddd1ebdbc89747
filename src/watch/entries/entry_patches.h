// Changing the first instructions of a driver's functions in a process that runs (event/watch_patches.h), and changing
// them back.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attach/remote_memory.h"
#include "base/result.h"

namespace tacho::watch {

class EntryPatches {
 public:
  /// `block`: where the process has its event::WatchPatches.
  static Result<EntryPatches> open(pid_t pid, uint64_t block);

  /// Writes what the process has asked for since. All threads are stopped for it. What cannot be written is refused,
  /// and named by refused(). An error: the process cannot be read or stopped.
  Status serve();
  /// Whether the process's side has seen all answers: calls are counted from then on.
  bool is_settled() const;
  /// Whether the process waits for take_out().
  bool leaves() const;
  /// Makes the functions what they were, those that an earlier tacho left changed, too, and says so to the process.
  Status take_out();

  size_t patched() const { return patched_; }
  /// "cuMemcpy: it has a short jump among its first instructions"
  const std::vector<std::string>& refused() const { return refused_; }
  /// For how long all threads were stopped at most.
  double stopped_s() const { return stopped_s_; }

 private:
  EntryPatches(pid_t pid, uint64_t block, attach::RemoteMemory memory)
      : pid_(pid), block_(block), memory_(std::move(memory)) {}
  struct Prepared;
  Result<Prepared> prepare(uint32_t index) const;
  void refuse(uint32_t index, const std::string& why);
  Status write_all(const std::vector<Prepared>& prepared);
  template <typename T>
  bool put(uint64_t at, T value) {
    return memory_.write(at, &value, sizeof value);
  }
  uint64_t place_of(uint32_t index) const;

  pid_t pid_;
  uint64_t block_;
  attach::RemoteMemory memory_;
  size_t patched_ = 0;
  std::vector<std::string> refused_;
  double stopped_s_ = 0;
};

}  // namespace tacho::watch
