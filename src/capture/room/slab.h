// Objects for use inside other people's processes.
#pragma once

#include <cstddef>
#include <cstring>

#include "capture/room/pages.h"

namespace tacho::capture {

/// Objects of one type, never unmapped: a stale pointer reads a recycled object, never bad memory. The
/// caller locks.
template <typename T>
class Slab {
 public:
  /// A zeroed object, or nullptr without memory.
  T* take() {
    if (free_ == nullptr && !refill()) return nullptr;
    Node* const node = free_;
    free_ = node->next;
    memset(static_cast<void*>(node), 0, sizeof(Node));
    return reinterpret_cast<T*>(node);
  }
  void give(T* object) {
    Node* const node = reinterpret_cast<Node*>(object);
    node->next = free_;
    free_ = node;
  }

 private:
  union Node {
    Node* next;
    alignas(T) std::byte bytes[sizeof(T)];
  };
  bool refill() {
    constexpr size_t kBytes = 64 * 1024;
    auto* const nodes = static_cast<Node*>(map_pages(kBytes));
    if (nodes == nullptr) return false;
    for (size_t i = 0; i < kBytes / sizeof(Node); ++i) {
      nodes[i].next = free_;
      free_ = nodes + i;
    }
    return true;
  }
  Node* free_ = nullptr;
};

}  // namespace tacho::capture
