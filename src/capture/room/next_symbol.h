// Finds the libc functions that libtacho.so interposes.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace tacho::capture {

/// The next function `name` after libtacho.so in the order of symbols, looked up once for each `slot`.
template <typename Signature>
Signature* next_symbol(std::atomic<void*>& slot, const char* name) {
  void* at = slot.load(std::memory_order_relaxed);
  if (__builtin_expect(at == nullptr, 0)) {
    at = dlsym(RTLD_NEXT, name);
    slot.store(at, std::memory_order_relaxed);
  }
  return reinterpret_cast<Signature*>(at);
}

}  // namespace tacho::capture

/// Declares `next`, the program's function `name` of this signature.
#define TACHO_NEXT(name, ...)                        \
  static constinit std::atomic<void*> slot{nullptr}; \
  auto* const next = tacho::capture::next_symbol<__VA_ARGS__>(slot, #name)
