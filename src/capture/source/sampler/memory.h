// Reading of memory that may not be there, inside a signal handler: asks the kernel page by page, without
// faults.
#pragma once

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace tacho::capture::sampler {

/// Remembers pages that were found readable; made anew for every sample, since pages come and go.
class Prober {
 public:
  bool readable(uintptr_t at, size_t bytes) {
    if (at < kPage || at + bytes < at) return false;
    for (uintptr_t page = at & ~(kPage - 1); page < at + bytes; page += kPage)
      if (!page_readable(page)) return false;
    return true;
  }
  /// Copies; false, and nothing usable in `out`, when not all of it is readable.
  bool read(uintptr_t at, void* out, size_t bytes) {
    if (!readable(at, bytes)) return false;
    memcpy(out, reinterpret_cast<const void*>(at), bytes);
    return true;
  }
  template <typename T>
  bool load(uintptr_t at, T& out) {
    return read(at, &out, sizeof out);
  }

 private:
  static constexpr uintptr_t kPage = 4096;
  bool page_readable(uintptr_t page) {
    uintptr_t& slot = known_[(page >> 12) % kSlots];
    if (slot == page) return true;
    // The kernel reads 8 bytes from the address before it looks at the first argument, which is wrong on
    // purpose.
    const long result = syscall(SYS_rt_sigprocmask, ~0L, page, nullptr, 8);
    if (result == 0 || errno != EFAULT) {
      slot = page;
      return true;
    }
    return false;
  }
  static constexpr size_t kSlots = 32;
  uintptr_t known_[kSlots] = {};
};

}  // namespace tacho::capture::sampler
