// The benchmarks in OpenCL C 1.2, built once for each element type. Build options define the names in capitals.
#pragma once

#include <cstdint>
#include <string_view>

namespace tacho::roofline {

inline constexpr uint32_t kClChains = 10, kClVectorUnroll = 8, kClMemoryUnroll = 8;

/// All kernels take the tables, target, out, count, first, stride, mask and region; local_set takes its memory as tenth
/// argument. `region` is the start of the dram kernels, in vectors.
inline constexpr std::string_view kOpenClSource = R"(
#pragma OPENCL FP_CONTRACT OFF
#ifdef HALF
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
#ifdef DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define ARGUMENTS(type) global const type* restrict table, global const type* restrict second, \
  global type* restrict target, global uint* restrict out, \
  uint count, uint first, uint stride, uint mask, uint region

#ifdef VECTOR

#ifdef FLOATING
#define STEP(a) a = fma(a, b, c)
#else
#define STEP(a) a = a * b + c
#endif

// a_k = a_k * b + c in CHAINS chains that do not wait for each other.
kernel void vector_units(global const V* restrict table, global const V* restrict second, global V* restrict target,
                         global V* restrict out, uint count, uint first, uint stride, uint mask, uint region) {
  const uint item = (uint)get_global_id(0);
  global const V* from = table + (item % 1024) * CHAINS;
  const V b = table[1024 * CHAINS], c = table[1024 * CHAINS + 1];
  V a0 = from[0], a1 = from[1], a2 = from[2], a3 = from[3], a4 = from[4];
  V a5 = from[5], a6 = from[6], a7 = from[7], a8 = from[8], a9 = from[9];
  for (uint i = 0; i < count; ++i) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      STEP(a0); STEP(a1); STEP(a2); STEP(a3); STEP(a4);
      STEP(a5); STEP(a6); STEP(a7); STEP(a8); STEP(a9);
    }
  }
  global V* to = out + item * CHAINS;
  to[0] = a0; to[1] = a1; to[2] = a2; to[3] = a3; to[4] = a4;
  to[5] = a5; to[6] = a6; to[7] = a7; to[8] = a8; to[9] = a9;
}

#else

#ifdef TRIAD
kernel void dram_triad(ARGUMENTS(V)) {
  size_t at = (size_t)get_global_id(0) * first + region;
  for (uint i = 0; i < count; ++i) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      target[at] = fma(second[at], (V)(0.75f), table[at]);
      at += stride;
    }
  }
}

#else
uint sum_of(V v) {
  union { V v; uint w[LANES]; } all;
  all.v = v;
  uint sum = 0;
  for (int i = 0; i < LANES; ++i) sum += all.w[i];
  return sum;
}

kernel void dram_read(ARGUMENTS(V)) {
  size_t at = (size_t)get_global_id(0) * first + region;
  V s0 = (V)(0), s1 = s0, s2 = s0, s3 = s0;
  for (uint i = 0; i < count; ++i) {
#pragma unroll
    for (int u = 0; u < UNROLL; u += 4) {
      s0 += table[at];
      s1 += table[at + stride];
      s2 += table[at + 2 * (size_t)stride];
      s3 += table[at + 3 * (size_t)stride];
      at += 4 * (size_t)stride;
    }
  }
  out[get_global_id(0)] = sum_of(s0 + s1 + s2 + s3);
}

kernel void dram_write(ARGUMENTS(V)) {
  size_t at = (size_t)get_global_id(0) * first + region;
  const V value = table[get_global_id(0)];
  for (uint i = 0; i < count; ++i) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      target[at] = value;
      at += stride;
    }
  }
}

kernel void dram_copy(ARGUMENTS(V)) {
  size_t at = (size_t)get_global_id(0) * first + region;
  for (uint i = 0; i < count; ++i) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      target[at] = table[at];
      at += stride;
    }
  }
}

#define READ_SET(set, at)                                   \
  V s0 = (V)(0), s1 = s0, s2 = s0, s3 = s0;                 \
  for (uint i = 0; i < count; ++i) {                        \
    const uint here = at & mask;                            \
    _Pragma("unroll")                                       \
    for (int u = 0; u < UNROLL; u += 4) {                   \
      s0 += set[here + u * stride];                         \
      s1 += set[here + (u + 1) * stride];                   \
      s2 += set[here + (u + 2) * stride];                   \
      s3 += set[here + (u + 3) * stride];                   \
    }                                                       \
    at += UNROLL * stride;                                  \
  }                                                         \
  out[get_global_id(0)] = sum_of(s0 + s1 + s2 + s3);

// A set of mask + 1 vectors again and again: each work-group its own, or (region = 0) all the same from other places.
kernel void cached(ARGUMENTS(V)) {
  global const V* set = table + (size_t)get_group_id(0) * region;
  uint at = (uint)get_local_id(0) + (region == 0 ? (uint)get_group_id(0) * 37 * UNROLL * stride : 0);
  READ_SET(set, at)
}

kernel void local_set(ARGUMENTS(V), local V* set) {
  for (uint i = (uint)get_local_id(0); i <= mask; i += (uint)get_local_size(0)) set[i] = table[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  uint at = (uint)get_local_id(0);
  READ_SET(set, at)
}

#endif
#endif
)";

/// Runs kClChainCycles dependent operations of one cycle each, `rounds` times.
inline constexpr double kClChainCycles = 6;
inline constexpr std::string_view kOpenClClock = R"(
kernel void chain(global uint* out, uint rounds) {
  uint x = (uint)get_global_id(0) + 1;
  for (uint i = 0; i < rounds; ++i) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  out[get_global_id(0)] = x;
}
)";

}  // namespace tacho::roofline
