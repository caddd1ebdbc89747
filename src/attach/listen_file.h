// The file in memory by which a process listens for tacho (tacho_listen in include/tacho/tacho.h). What it holds is
// untrusted.
#pragma once

#include <sys/types.h>

#include <optional>

#include "tape/attach_block.h"

namespace tacho::attach {

/// The file, mapped here.
class ListenFile {
 public:
  /// Nothing where the descriptor, in the process, is none of such a file, or where the kernel does not show it.
  static std::optional<ListenFile> open(pid_t pid, int descriptor);
  ListenFile(ListenFile&& other) noexcept;
  ListenFile& operator=(ListenFile&&) = delete;
  ListenFile(const ListenFile&) = delete;
  ~ListenFile();

  tape::ListenBlock& block() const { return *block_; }
  /// Until the destructor no other tacho asks.
  bool lock() const;

 private:
  ListenFile() = default;
  int file_ = -1;
  tape::ListenBlock* block_ = nullptr;
};

/// The descriptor of the file by which the process listens; nothing where it does not. `inner_pid`: its number in its
/// own pid namespace.
std::optional<int> listener_of(pid_t pid, pid_t inner_pid);

}  // namespace tacho::attach
