// Converts small floating-point formats bit by bit, to check the results of half-precision and 8-bit benchmarks.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tacho::roofline {

/// IEEE binary16.
inline double from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double magnitude = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// Rounds to nearest, ties to even. `value` must be finite and below 65504 in magnitude.
inline uint16_t to_half(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  value = std::fabs(value);
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);                           // value = f * 2^exponent, f in [0.5, 1)
  const int scale = exponent < -13 ? 24 : 11 - exponent;  // a multiple of 2^-scale is what fits
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(value, scale)));
  if (exponent < -13) return static_cast<uint16_t>(sign | units);
  // Rounding up to the next power of two carries into the exponent.
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 13) << 10) + units));
}

inline double from_bfloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// TF32: a float without its lowest 13 bits.
inline double from_tf32(uint32_t bits) {
  return std::bit_cast<float>(bits & 0xFFFFE000U);
}

/// E4M3 (no infinities; 0x7F and 0xFF are NaN).
inline double from_e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15;
  const double fraction = bits & 7;
  const double magnitude = (bits & 0x7F) == 0x7F ? NAN
                           : exponent == 0       ? std::ldexp(fraction, -9)
                                                 : std::ldexp(8 + fraction, exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

/// E4M3 with a bias of 8 (FNUZ, of gfx942): no infinities, 0x80 is the only NaN.
inline double from_e4m3fnuz(uint8_t bits) {
  const int exponent = bits >> 3 & 15;
  const double fraction = bits & 7;
  if (bits == 0x80) return NAN;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -10) : std::ldexp(8 + fraction, exponent - 11);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

/// Turns a counter into 32 random-looking bits (the finaliser of SplitMix64).
inline uint32_t random_bits(uint64_t counter) {
  uint64_t z = (counter + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
  z = (z ^ z >> 27) * 0x94D049BB133111EBU;
  return static_cast<uint32_t>((z ^ z >> 31) >> 16);
}

}  // namespace tacho::roofline
