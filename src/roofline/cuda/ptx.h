// The PTX of the NVIDIA microbenchmarks, as text that the driver compiles for the device it finds. Every
// kernel has the same parameters:
//
//   table   u64  random data that the host knows too (kernel-specific, see below)
//   target  u64  what memory kernels write
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

// --- vector units: a_k = a_k * b + c in kChains independent chains a thread, kVectorUnroll times a trip.
// fp64 is a_k = a_k * b + a_k: three different 64-bit sources are more than the registers can deliver at the
// full rate.
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

// --- memory: 16 bytes a thread and access. The dram kernels take pieces of kDramThreads x kMemoryUnroll
// vectors a block: block b the pieces b, b + blocks, ...
inline constexpr uint32_t kMemoryUnroll = 4, kDramThreads = 256;
/// "dram_read", "dram_write", "dram_copy", "dram_triad", "l2", "l1", "shared"
std::string memory_ptx(std::string_view name);
/// Bytes of one block's working set in the l1 and shared kernels, whose blocks have kSmallThreads threads.
inline constexpr uint32_t kSmallSet = 32 * 1024, kSmallThreads = 512;
inline constexpr float kTriadFactor = 0.75F;

// --- matrix units
/// mma.sync: warps keep all operands in registers. Registers of a thread for one of the operands a, b and c
/// (= d).
struct MmaKind {
  std::string_view name;         ///< "mma_bf16"
  std::string_view instruction;  ///< without "mma.sync.aligned."
  std::string_view version, target;
  Element element;
  uint32_t m, n, k;
  uint32_t a, b, c;  ///< registers
  uint32_t tiles;    ///< independent accumulators, each with a b of its own
};
inline constexpr uint32_t kMmaUnroll = 4;
std::span<const MmaKind> mma_kinds();
std::string mma_ptx(const MmaKind& kind);

/// wgmma (sm_90a): two warpgroups a block, each 64 rows of A by 256 columns of B, operands in shared memory
/// without swizzle. Per step of K (32 bytes of it) a tile of A is 2 KiB and one of B 8 KiB; a set is
/// kWgmmaSteps tiles of A of warpgroup 0, of warpgroup 1, then of B: 48 KiB. A tile is rows / 8 core matrices
/// of 8 rows x 16 bytes for the first 16 bytes of K, then those for the second. The table has kWgmmaSets
/// sets.
///
/// Resident: block b multiplies set b % kWgmmaSets again and again, which no real program can do. Streamed:
/// while a set is multiplied (kWgmmaUnroll times) the next one comes from the L2 (cp.async) into the other
/// half of 96 KiB; block b begins with set b % kWgmmaSets.
struct WgmmaKind {
  std::string_view name;  ///< "wgmma_bf16"
  std::string_view instruction;
  Element element;
  uint32_t k;
};
inline constexpr uint32_t kWgmmaSteps = 4, kWgmmaUnroll = 2, kWgmmaSet = 48 * 1024, kWgmmaSets = 16;
std::span<const WgmmaKind> wgmma_kinds();
std::string wgmma_ptx(const WgmmaKind& kind, bool streamed);

/// The kernel's name in every text above.
inline constexpr const char* kEntry = "tacho_roofline";

}  // namespace tacho::roofline
