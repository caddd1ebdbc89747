// The memory of another process, and the functions that its libraries export, read from that memory: so it does not
// matter whether their files still exist or where this tacho would find them. All of it is untrusted.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::attach {

/// What a process says, for a sentence: control characters, line breaks too, become blanks.
std::string one_line(std::string text);

/// A file that the process has mapped as a library or program.
struct RemoteModule {
  std::string path;  ///< as the process sees it; " (deleted)" removed
  uint64_t inode = 0;
  uint64_t device = 0;  ///< as /proc/PID/maps shows it: major << 32 | minor
  uint64_t begin = 0;   ///< of its first mapping, where its ELF header lies
  uint64_t end = 0;
  struct Part {
    uint64_t begin, end;
  };
  std::vector<Part> code;  ///< its executable parts

  bool holds(uint64_t address) const { return address >= begin && address < end; }
  std::string_view file_name() const;
};

class RemoteMemory {
 public:
  /// Opens the memory of a process; the kernel asks for the permission that ptrace needs, too.
  static Result<RemoteMemory> open(pid_t pid);
  RemoteMemory(RemoteMemory&& other) noexcept;
  RemoteMemory& operator=(RemoteMemory&& other) noexcept;
  ~RemoteMemory();

  /// False where not all of it can be read or written, and when the process has ended or runs another program. Writing
  /// needs no permission of the mapping: pages of code, too.
  bool read(uint64_t at, void* into, size_t bytes) const;
  bool write(uint64_t at, const void* from, size_t bytes) const;
  template <typename T>
  std::optional<T> value(uint64_t at) const {
    T result{};
    return read(at, &result, sizeof result) ? std::optional<T>(result) : std::nullopt;
  }
  /// The process has ended or runs another program (exec) since open().
  bool is_gone() const;
  /// A text that ends with a 0, of at most `most` bytes, as one_line(). "" where there is none.
  std::string text(uint64_t at, size_t most) const;

 private:
  RemoteMemory() = default;
  int file_ = -1;
};

/// False of a process that has ended, is ending, or does not show its memory.
bool has_memory(pid_t pid);

/// The libraries and programs that the process has mapped, by address.
std::vector<RemoteModule> modules_of(pid_t pid);

/// Where the module's function `name` is, with its size; nothing if it exports none of that name.
struct RemoteFunction {
  uint64_t begin, bytes;
};
std::optional<RemoteFunction> find_function(const RemoteMemory& memory, const RemoteModule& module,
                                            std::string_view name);

}  // namespace tacho::attach
