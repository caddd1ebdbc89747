// Peak rates per cycle and compute unit of a GPU, from the catalog's facts of its architecture.
#pragma once

#include <cstdint>
#include <string_view>

namespace tacho::roofline {

/// The fact "per_cycle.<what>" of catalog/<vendor>/architectures.yaml, per cycle and compute unit: FLOP or operations
/// (a fused multiply-add is two) for "fp32", "mma_bf16", ..., bytes for "l1" and "shared". NaN when unknown.
double per_cycle(std::string_view architecture, std::string_view what);

/// Data caches in bytes: of a compute unit, the L2 of a die, and the last level of all dies (Infinity Cache, or the
/// L2). All 0 if the catalog lacks them. AMD's OpenCL reports only the first, as CL_DEVICE_GLOBAL_MEM_CACHE_SIZE.
struct CacheSizes {
  uint64_t l1 = 0, l2 = 0, last = 0;
};
CacheSizes caches_of(std::string_view architecture);

/// True if the architecture has a kind of instruction: "wgmma", "mma_f64_k16", "tcgen05".
bool has_feature(std::string_view architecture, std::string_view feature);

}  // namespace tacho::roofline
