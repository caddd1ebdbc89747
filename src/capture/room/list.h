// A list for use inside other people's processes.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "capture/room/pages.h"

namespace tacho::capture {

/// Grows by mapping and needs no C++ run time in the program. Never gives memory back; constant-initialised.
template <typename T>
struct List {
  static_assert(std::is_trivially_copyable_v<T>);
  T* data = nullptr;
  size_t count = 0, capacity = 0;

  /// Room for `want` elements in all; false without memory.
  bool reserve(size_t want) {
    if (want <= capacity) return true;
    auto* const fresh = static_cast<T*>(map_pages(want * sizeof(T)));
    if (fresh == nullptr) return false;
    if (count != 0) memcpy(static_cast<void*>(fresh), data, count * sizeof(T));
    if (data != nullptr) munmap(data, capacity * sizeof(T));
    data = fresh;
    capacity = want;
    return true;
  }
  /// `more` elements at the end, not set; nullptr without memory.
  T* grow(size_t more) {
    if (count + more > capacity) {
      size_t want = capacity == 0 ? 4096 / sizeof(T) + 1 : capacity * 2;
      while (want < count + more) want *= 2;
      if (!reserve(want)) return nullptr;
    }
    T* const at = data + count;
    count += more;
    return at;
  }
  bool add(const T& value) {
    T* const at = grow(1);
    if (at != nullptr) *at = value;
    return at != nullptr;
  }
  /// Removes element `i`; the last one takes its place.
  void drop(size_t i) { data[i] = data[--count]; }
};

}  // namespace tacho::capture
