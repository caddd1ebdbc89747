// Operands of matrix benchmarks (elements.h).
#include "roofline/elements.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "roofline/numbers.h"

namespace tacho::roofline {

std::string_view name_of(Element element) {
  static constexpr std::array<std::string_view, 8> kNames = {"F16", "BF16", "TF32", "F8", "I8", "F64", "F32", "F8"};
  return kNames[static_cast<size_t>(element)];
}

uint32_t size_of(Element element) {
  switch (element) {
    case Element::kHalf:
    case Element::kBfloat:
      return 2;
    case Element::kTf32:
    case Element::kFloat:
      return 4;
    case Element::kDouble:
      return 8;
    default:
      return 1;
  }
}

double value_of(Element element, const unsigned char* at) {
  uint16_t two = 0;
  uint32_t four = 0;
  double eight = 0;
  switch (element) {
    case Element::kHalf:
      std::memcpy(&two, at, 2);
      return from_half(two);
    case Element::kBfloat:
      std::memcpy(&two, at, 2);
      return from_bfloat(two);
    case Element::kTf32:
      std::memcpy(&four, at, 4);
      return from_tf32(four);
    case Element::kFloat:
      std::memcpy(&four, at, 4);
      return std::bit_cast<float>(four);
    case Element::kE4m3:
      return from_e4m3(*at);
    case Element::kE4m3Fnuz:
      return from_e4m3fnuz(*at);
    case Element::kInt8:
      return static_cast<signed char>(*at);
    case Element::kDouble:
      std::memcpy(&eight, at, 8);
      return eight;
  }
  return 0;
}

uint64_t random_word(Element element, uint64_t i) {
  const uint32_t bits = random_bits(i), more = random_bits(uint64_t{1} << 40 | i);
  const auto unit = [](uint32_t r) { return r / 2147483648.0 - 1; };
  switch (element) {
    case Element::kHalf:
      return to_half(unit(bits)) | static_cast<uint32_t>(to_half(unit(more))) << 16;
    case Element::kBfloat: {
      const auto upper = [&](uint32_t r) { return std::bit_cast<uint32_t>(static_cast<float>(unit(r))) & 0xFFFF0000U; };
      return upper(bits) | upper(more) >> 16;
    }
    case Element::kTf32:
      return std::bit_cast<uint32_t>(static_cast<float>(unit(bits))) & 0xFFFFE000U;
    case Element::kFloat:
      return std::bit_cast<uint32_t>(static_cast<float>(unit(bits)));
    case Element::kE4m3:
      return bits & 0xBFBFBFBFU;
    case Element::kE4m3Fnuz: {
      uint32_t word = bits & 0xBFBFBFBFU;
      for (uint32_t at = 0; at < 32; at += 8)  // 0x80 is NaN
        if ((word >> at & 0xFF) == 0x80) word &= ~(0x80U << at);
      return word;
    }
    case Element::kInt8:
      return bits;
    case Element::kDouble:
      return std::bit_cast<uint64_t>(unit(bits) + std::ldexp(more, -62));
  }
  return 0;
}

Status compare_product(Element element, std::string_view name, double product, double magnitude, double times,
                       const void* at, uint32_t row, uint32_t column) {
  double got = 0;
  bool good = false;
  if (element == Element::kInt8) {
    int32_t value = 0;
    std::memcpy(&value, at, 4);
    got = value;
    const auto expected =
        static_cast<uint32_t>(static_cast<int64_t>(product)) * static_cast<uint32_t>(static_cast<uint64_t>(times));
    good = static_cast<uint32_t>(value) == expected;
  } else if (element == Element::kDouble) {
    std::memcpy(&got, at, 8);
    good = std::fabs(got - product * times) <= 1e-9 * magnitude * times;
  } else {
    float value = 0;
    std::memcpy(&value, at, 4);
    got = value;
    good = std::fabs(got - product * times) <= 0.01 * magnitude * times;
  }
  if (good) return {};
  return fail("{}: element ({}, {}) of the product is {} after {} multiplications and must be {}", name, row, column,
              got, times, product * times);
}

}  // namespace tacho::roofline
