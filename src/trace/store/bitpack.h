// Packs 64-bit integers into w bits each, 0 <= w <= 64, without branches. The compiler makes one straight-line function
// per width from one template. Bits are contiguous and little-endian: value i of width w occupies bits [i*w, (i+1)*w)
// of the stream, so that n values take ceil(n*w/8) bytes:
//
//      byte 0        byte 1        byte 2
//   |76543210|    |76543210|    |76543210|
//    22211111      43333322      ...            (w = 5: digits name the values, from 1)
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace tacho::trace {

static_assert(std::endian::native == std::endian::little, "the trace file is little-endian, and so is this code");

/// Number of values that one straight-line step packs or unpacks; they fill exactly w words of 64 bits.
inline constexpr size_t kPackGroup = 64;

constexpr size_t packed_bytes(size_t count, unsigned width) {
  return (count * width + 7) / 8;
}

constexpr uint64_t low_mask(unsigned width) {
  return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
}

namespace bitpack_detail {

inline uint64_t load_word(const uint8_t* in, size_t word) {
  uint64_t value = 0;
  std::memcpy(&value, in + word * 8, 8);
  return value;
}

template <unsigned W, size_t I>
inline uint64_t extract(const uint8_t* in) {
  if constexpr (W == 0) {
    return 0;
  } else {
    constexpr size_t kWord = I * W / 64;
    constexpr unsigned kShift = I * W % 64;
    uint64_t value = load_word(in, kWord) >> kShift;
    if constexpr (kShift + W > 64) value |= load_word(in, kWord + 1) << (64 - kShift);
    return value & low_mask(W);
  }
}

template <unsigned W, size_t... I>
inline void unpack_group(const uint8_t* in, uint64_t base, uint64_t* out, std::index_sequence<I...>) {
  ((out[I] = base + extract<W, I>(in)), ...);
}

template <unsigned W>
void unpack_groups(const uint8_t* in, uint64_t base, uint64_t* out, size_t groups) {
  for (size_t group = 0; group < groups; ++group) {
    unpack_group<W>(in, base, out, std::make_index_sequence<kPackGroup>());
    in += size_t{W} * 8;
    out += kPackGroup;
  }
}

template <unsigned W, size_t I>
inline void deposit(uint64_t value, uint64_t* words) {
  constexpr size_t kWord = I * W / 64;
  constexpr unsigned kShift = I * W % 64;
  value &= low_mask(W);
  words[kWord] |= value << kShift;
  if constexpr (kShift + W > 64) words[kWord + 1] |= value >> (64 - kShift);
}

template <unsigned W, size_t... I>
inline void pack_group(const uint64_t* in, uint64_t base, uint8_t* out, std::index_sequence<I...>) {
  if constexpr (W > 0) {
    uint64_t words[W] = {};
    (deposit<W, I>(in[I] - base, words), ...);
    std::memcpy(out, words, sizeof words);
  }
}

template <unsigned W>
void pack_groups(const uint64_t* in, uint64_t base, uint8_t* out, size_t groups) {
  for (size_t group = 0; group < groups; ++group) {
    pack_group<W>(in, base, out, std::make_index_sequence<kPackGroup>());
    in += kPackGroup;
    out += size_t{W} * 8;
  }
}

using Unpack = void (*)(const uint8_t*, uint64_t, uint64_t*, size_t);
using Pack = void (*)(const uint64_t*, uint64_t, uint8_t*, size_t);

template <unsigned... W>
constexpr std::array<Unpack, 65> unpackers(std::integer_sequence<unsigned, W...>) {
  return {{unpack_groups<W>...}};
}
template <unsigned... W>
constexpr std::array<Pack, 65> packers(std::integer_sequence<unsigned, W...>) {
  return {{pack_groups<W>...}};
}

}  // namespace bitpack_detail

/// Unpacks `count` values of `width` bits from exactly packed_bytes(count, width) bytes and adds `base` (modulo 2^64).
inline void unpack_bits(const uint8_t* in, unsigned width, uint64_t base, uint64_t* out, size_t count) {
  static constexpr auto kUnpack = bitpack_detail::unpackers(std::make_integer_sequence<unsigned, 65>());
  const size_t groups = count / kPackGroup;
  kUnpack[width](in, base, out, groups);
  const size_t done = groups * kPackGroup;
  if (done == count) return;
  uint8_t tail[kPackGroup * 8];  // the stream holds only part of the last group
  const size_t tail_bytes = packed_bytes(count - done, width);
  std::memset(tail + tail_bytes, 0, size_t{width} * 8 - tail_bytes);
  if (tail_bytes > 0) std::memcpy(tail, in + groups * width * 8, tail_bytes);
  uint64_t values[kPackGroup];
  kUnpack[width](tail, base, values, 1);
  std::memcpy(out + done, values, (count - done) * sizeof(uint64_t));
}

/// Packs the low `width` bits of in[i] - base; writes exactly packed_bytes(count, width) bytes.
inline void pack_bits(const uint64_t* in, unsigned width, uint64_t base, uint8_t* out, size_t count) {
  static constexpr auto kPack = bitpack_detail::packers(std::make_integer_sequence<unsigned, 65>());
  const size_t groups = count / kPackGroup;
  kPack[width](in, base, out, groups);
  const size_t done = groups * kPackGroup;
  if (done == count) return;
  uint64_t values[kPackGroup] = {};
  for (size_t i = done; i < count; ++i) values[i - done] = in[i] - base;
  uint8_t tail[kPackGroup * 8];
  kPack[width](values, 0, tail, 1);
  const size_t tail_bytes = packed_bytes(count - done, width);
  if (tail_bytes > 0) std::memcpy(out + groups * width * 8, tail, tail_bytes);
}

}  // namespace tacho::trace
