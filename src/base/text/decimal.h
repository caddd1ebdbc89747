// Fast conversion of whole numbers to text, for exporters that write tens of millions of them.
#pragma once

#include <cstdint>
#include <cstring>

namespace tacho {

inline constexpr int kMostDigits = 20;  // in a 64-bit number, sign included

namespace decimal_internal {
inline constexpr char kPairs[201] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"
    "";
}

/// Writes `value` in decimal at `at`, which must have room for kMostDigits, and returns the place after it.
inline char* write_unsigned(char* at, uint64_t value) {
  char digits[kMostDigits];
  int first = kMostDigits;
  while (value >= 100) {
    first -= 2;
    std::memcpy(digits + first, decimal_internal::kPairs + value % 100 * 2, 2);
    value /= 100;
  }
  if (value >= 10) {
    first -= 2;
    std::memcpy(digits + first, decimal_internal::kPairs + value * 2, 2);
  } else {
    digits[--first] = static_cast<char>('0' + value);
  }
  const auto length = static_cast<size_t>(kMostDigits - first);
  std::memcpy(at, digits + first, length);
  return at + length;
}
inline char* write_signed(char* at, int64_t value) {
  if (value >= 0) return write_unsigned(at, static_cast<uint64_t>(value));
  *at = '-';
  return write_unsigned(at + 1, ~static_cast<uint64_t>(value) + 1);
}
/// Writes ns as microseconds with three decimals: 1234 -> "1.234". `at` needs room for kMostDigits + 2.
inline char* write_microseconds(char* at, int64_t nanoseconds) {
  uint64_t value = static_cast<uint64_t>(nanoseconds);
  if (nanoseconds < 0) {
    *at++ = '-';
    value = ~value + 1;
  }
  at = write_unsigned(at, value / 1000);
  const uint64_t rest = value % 1000;
  at[0] = '.';
  at[1] = static_cast<char>('0' + rest / 100);
  std::memcpy(at + 2, decimal_internal::kPairs + rest % 100 * 2, 2);
  return at + 4;
}

}  // namespace tacho
