// Memory for use inside other people's processes, which never comes from the program's malloc.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace tacho::capture {

/// Maps zeroed pages; nullptr when there is no memory. munmap() gives them back.
inline void* map_pages(size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

}  // namespace tacho::capture
