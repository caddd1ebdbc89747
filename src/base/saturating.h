// Sums and products of numbers that come from files: at the ends of the range they stay there.
#pragma once

#include <cstdint>
#include <limits>

namespace tacho {

/// a + b, saturated to the range of int64.
constexpr int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    return b < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  return sum;
}

/// a * b, saturated to the range of int64.
constexpr int64_t saturating_multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    return (a < 0) != (b < 0) ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  return product;
}

/// Adds `more` to a sum, which stays at the ends of its range.
constexpr void add_saturating(int64_t& sum, int64_t more) {
  sum = saturating_add(sum, more);
}

}  // namespace tacho
