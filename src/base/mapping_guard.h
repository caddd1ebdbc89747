// Files that are mapped into memory and become shorter while they are read: the kernel raises SIGBUS then.
#pragma once

#include <cstddef>
#include <string>

namespace tacho {

/// While it lives, a SIGBUS in [begin, begin + bytes) ends the process with one sentence that names the file and exit code 1.
/// With `begin` nullptr, for a mapping of a library's: any SIGBUS of a file's end that no other guard knows.
class MappingGuard {
 public:
  MappingGuard() = default;
  MappingGuard(const void* begin, size_t bytes, const std::string& name);
  MappingGuard(MappingGuard&& other) noexcept;
  MappingGuard& operator=(MappingGuard&& other) noexcept;
  ~MappingGuard();

 private:
  int slot_ = -1;
};

}  // namespace tacho
