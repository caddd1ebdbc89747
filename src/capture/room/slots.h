// Pointers to functions that a running program has got already: in the tables by which its libraries call each other
// (GOT), and in their data, where CUDA's runtime and others keep what dlsym and cuGetProcAddress gave them. Words that
// hold exactly the address of a function that is watched lead to its hook while tacho stays, and back when it leaves.
#pragma once

#include <link.h>

#include <cstddef>

namespace tacho::capture {

struct SlotHook {
  void* found;           ///< the function
  void* hook;            ///< what stands in for it
  const char* symbol;    ///< by which libraries are linked to it; nullptr: by none, or it is not what they would get
  void* next = nullptr;  ///< the word by which the hook calls it
};
constexpr size_t kMostSlotHooks = 640;

struct SlotRules {
  /// Whether the words of an object stay as they are. Those of libc, of the loader and of what is called libtacho do.
  bool (*stays)(const dl_phdr_info& object, const char* file_name);
  /// The name under which hooks know the function that an object is linked to; nullptr: they know it by its own.
  const char* (*known_as)(const char* file_name, const char* symbol);
};

struct SlotCount {
  size_t led = 0;      ///< words that lead to hooks since
  size_t refused = 0;  ///< words whose pages may not be written
  bool looked = true;  ///< false: /proc/self/maps cannot be read, or there is no memory
};

/// Leads words of all loaded libraries to hooks. What was led before stays. For one thread at a time.
SlotCount lead_slots(const SlotHook* hooks, size_t count, const SlotRules& rules);
/// How many words lead_slots() would lead. 0 with `looked` false where they cannot be looked at.
SlotCount count_slots(const SlotHook* hooks, size_t count, const SlotRules& rules);
/// Leads all words back, also those that the program has got since. The hooks are those that were led to.
void lead_back(const SlotHook* hooks, size_t count, const SlotRules& rules);

/// Calls body(object, word, end, data) for the words of all loaded libraries that anything has been written into, but
/// for those that the loader has closed since (RELRO). From `word` to `end` all may be read. Under the loader's lock.
/// False: they cannot be looked at.
bool over_open_words(const SlotRules& rules,
                     void (*body)(const dl_phdr_info& object, void** word, void** end, void* data), void* data);

}  // namespace tacho::capture
