// Finds a frame by what it is, without keeping its texts a second time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>
#include <vector>

namespace tacho::analysis {

/// A set of numbers of things that the caller keeps: 8 bytes each.
class NumberSet {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// The number of what was added before and is equal; kNone if nothing is, and then `next` is added. `hash`: of what
  /// is sought; `hash_of(number)`: of what was added; `equal(number)`: whether that is what is sought.
  template <typename HashOf, typename Equal>
  uint32_t find_or_add(size_t hash, uint32_t next, HashOf hash_of, Equal equal) {
    if ((used_ + 1) * 2 > places_.size()) grow(hash_of);
    size_t at = hash & (places_.size() - 1);
    for (; places_[at] != kNone; at = (at + 1) & (places_.size() - 1))
      if (equal(places_[at])) return places_[at];
    places_[at] = next;
    ++used_;
    return kNone;
  }

 private:
  template <typename HashOf>
  void grow(HashOf hash_of) {
    std::vector<uint32_t> old(std::max<size_t>(places_.size() * 2, 64), kNone);
    old.swap(places_);
    for (const uint32_t number : old) {
      if (number == kNone) continue;
      size_t at = hash_of(number) & (places_.size() - 1);
      while (places_[at] != kNone) at = (at + 1) & (places_.size() - 1);
      places_[at] = number;
    }
  }

  size_t used_ = 0;
  std::vector<uint32_t> places_;  // a power of two of them
};

inline size_t hash_of_pair(uint32_t a, uint32_t b) {
  const uint64_t value = (uint64_t{a} << 32 | b) * 0x9e3779b97f4a7c15ULL;
  return value ^ value >> 32;
}

/// What frames are told apart by.
struct FrameIdentity {
  uint8_t part;  // StackPart
  std::string_view name, file, module;
  int64_t line;
  bool operator==(const FrameIdentity&) const = default;
  size_t hash() const {
    const std::hash<std::string_view> text;
    size_t value = static_cast<size_t>(part) + static_cast<size_t>(line) * 256;
    for (const std::string_view each : {name, file, module}) value = (value ^ text(each)) * 0x9e3779b97f4a7c15ULL;
    return value ^ value >> 32;
  }
};

/// Numbers frames in a deque that the caller keeps, by what identity(frame) tells of them.
template <typename Frame, typename Identity>
class FrameIndex {
 public:
  FrameIndex(const std::deque<Frame>& frames, Identity identity) : frames_(frames), identity_(identity) {}
  /// The number of an equal frame; NumberSet::kNone if there is none, and then `next` is added.
  uint32_t find_or_add(const FrameIdentity& sought, uint32_t next) {
    const auto of = [&](uint32_t number) { return identity_(frames_[number]); };
    return set_.find_or_add(
        sought.hash(), next, [&](uint32_t number) { return of(number).hash(); },
        [&](uint32_t number) { return of(number) == sought; });
  }

 private:
  const std::deque<Frame>& frames_;
  Identity identity_;
  NumberSet set_;
};

}  // namespace tacho::analysis
