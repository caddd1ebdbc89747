// Pointers to functions that a running program has got already: in the tables by which its libraries call each other
// (GOT), and in their data, where CUDA's runtime and others keep what dlsym and cuGetProcAddress gave them. Words that
// hold exactly the address of a function that is watched lead to its hook while tacho stays, and back when it leaves.
#pragma once

#include <cstddef>

namespace tacho::capture::watch {

struct SlotHook {
  void* found;         ///< the function
  void* hook;          ///< what stands in for it
  const char* symbol;  ///< by which libraries are linked to it; nullptr: by none, or it is not what they would get
};
constexpr size_t kMostSlotHooks = 512;

struct SlotCount {
  size_t led = 0;      ///< words that lead to hooks since
  size_t refused = 0;  ///< words whose pages may not be written
  bool looked = true;  ///< false: /proc/self/maps cannot be read, or there is no memory
};

/// Leads words of all loaded libraries to hooks: not those of tacho, of libc, of the driver and of tools for it. What
/// was led before stays. For one thread at a time.
SlotCount lead_slots(const SlotHook* hooks, size_t count);
/// Leads all words back, also those that the program has got since. The hooks are those that were led to.
void lead_back(const SlotHook* hooks, size_t count);

}  // namespace tacho::capture::watch
