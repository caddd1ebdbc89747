// The PTX of the NVIDIA microbenchmarks, which the driver compiles for its device. Every kernel has the same
// parameters:
//
//   table   u64  random data that the host knows too (kernel-specific, see below)
//   target  u64  output of memory kernels
//   out     u64  results for the check
//   clock   u64  two u64: SM cycles and ns of block 0
//   count   u32  trips of the loop: the work is proportional to it
//   extra   u32  bytes - 1 of the working set of the L2 kernel
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "roofline/elements.h"

namespace tacho::roofline {

// Vector units: a_k = a_k * b + c in kChains independent chains per thread, kVectorUnroll times per trip. fp64 uses a_k
// = a_k * b + a_k, since the registers cannot deliver three different 64-bit sources at the full rate.
inline constexpr uint32_t kChains = 8, kVectorUnroll = 32;
/// Elements of the table: kStarts values for a, then kFactors for b, then kFactors for c.
inline constexpr uint32_t kStarts = 1U << 16, kFactors = 1024;

struct VectorKind {
  std::string_view name;         ///< "fp32"
  std::string_view instruction;  ///< "fma.rn.f32"
  std::string_view type;         ///< of the registers: "f32"
  uint32_t bytes;                ///< of an element
  uint32_t operations;           ///< of one instruction in one thread
};
/// fp32, fp64, fp16 (two halves), i32, i64, i8 (dot product of four)
std::span<const VectorKind> vector_kinds();
std::string vector_ptx(const VectorKind& kind);

// Memory: 16 bytes per thread and access. In the dram kernels, block b takes the pieces b, b + blocks, ... of
// kDramThreads x kMemoryUnroll vectors each.
inline constexpr uint32_t kMemoryUnroll = 4, kDramThreads = 256;
/// "dram_read", "dram_write", "dram_copy", "dram_triad", "l2", "l1", "shared"
std::string memory_ptx(std::string_view name);
/// Bytes of one block's working set in the l1 and shared kernels, whose blocks have kSmallThreads threads.
inline constexpr uint32_t kSmallSet = 32 * 1024, kSmallThreads = 512;
inline constexpr float kTriadFactor = 0.75F;

// Matrix units
/// mma.sync: warps keep all operands in registers. `a`, `b`, `c`: registers per thread of each operand (d is c).
struct MmaKind {
  std::string_view name;         ///< "mma_bf16"
  std::string_view instruction;  ///< without "mma.sync.aligned."
  std::string_view version, target;
  Element element;
  uint32_t m, n, k;
  uint32_t a, b, c;  ///< registers
  uint32_t tiles;    ///< independent accumulators, each with its own b
};
inline constexpr uint32_t kMmaUnroll = 4;
std::span<const MmaKind> mma_kinds();
std::string mma_ptx(const MmaKind& kind);

/// wgmma (sm_90a): two warpgroups per block, each 64 rows of A by 256 columns of B, with operands in shared memory
/// without swizzle. Per step of K (32 bytes of it) a tile of A is 2 KiB and one of B 8 KiB. A set is kWgmmaSteps tiles
/// of A of warpgroup 0, the same of warpgroup 1, then those of B: 48 KiB. A tile is rows / 8 core matrices of 8 rows x
/// 16 bytes for the first 16 bytes of K, then those for the second. The table has kWgmmaSets sets.
///
/// Resident: block b multiplies set b % kWgmmaSets again and again, which no real program can do. Streamed: while the
/// block multiplies a set (kWgmmaUnroll times), the next one comes from the L2 (cp.async) into the other half of 96
/// KiB; block b begins with set b % kWgmmaSets.
struct WgmmaKind {
  std::string_view name;  ///< "wgmma_bf16"
  std::string_view instruction;
  Element element;
  uint32_t k;
};
inline constexpr uint32_t kWgmmaSteps = 4, kWgmmaUnroll = 2, kWgmmaSet = 48 * 1024, kWgmmaSets = 16;
std::span<const WgmmaKind> wgmma_kinds();
std::string wgmma_ptx(const WgmmaKind& kind, bool streamed);

/// The kernel's name in all of these texts.
inline constexpr const char* kEntry = "tacho_roofline";

}  // namespace tacho::roofline
