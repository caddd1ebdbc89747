// How the fields of tacho's own records are read: times, unknown numbers, enums that may be out of range.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "event/records.h"
#include "event/schema.h"
#include "event/times.h"

namespace tacho::decode {

/// The record at `at`: records are 8-byte aligned in blocks.
template <typename T>
const T& as(const std::byte* at) {
  return *reinterpret_cast<const T*>(at);
}

/// Bounds times, so that differences of two never overflow.
inline int64_t plausible(int64_t time) {
  return std::clamp(time, -event::kFarthestTime, event::kFarthestTime);
}

/// The duration of an interval on the host. In a virtual machine the clocks of two CPUs differ by up to a few
/// microseconds: a short range within which its thread moved may end before it began, and gets duration 0.
inline int64_t host_duration(int64_t start, int64_t end) {
  constexpr int64_t kBetweenCpus = 10'000;
  return end < start && start - end <= kBetweenCpus ? 0 : end - start;
}

inline int64_t known(uint32_t value) {
  return value == event::kUnknown32 ? event::kUnknown : static_cast<int64_t>(value);
}

/// `value` as an E; E's first if it is out of range.
template <typename E>
E checked(uint32_t value) {
  return value < static_cast<uint32_t>(E::kEnd) ? static_cast<E>(value) : E{};
}

/// Makes room for definition `number`. Numbers follow one another: a number far behind the last is wrong, or belongs to
/// a part of a dead run's pool that is gone. False for those.
template <typename Vector>
bool reach(Vector& vector, uint32_t number) {
  constexpr uint32_t kMostNumbers = 1u << 24;  // definitions of one kind in one process
  constexpr uint32_t kWidestGap = 1u << 12;
  if (number >= kMostNumbers || number > vector.size() + kWidestGap) return false;
  if (vector.size() <= number) vector.resize(number + 1);
  return true;
}

}  // namespace tacho::decode
