// Guards mapped files that become shorter while tacho reads them: the kernel raises SIGBUS then.
#pragma once

#include <cstddef>
#include <string>

namespace tacho {

/// While it lives, a SIGBUS in [begin, begin + bytes) ends the process with exit code 1 and a sentence naming the file.
/// `begin` nullptr, for a mapping made by a library: covers all addresses without another guard. At most 64.
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
