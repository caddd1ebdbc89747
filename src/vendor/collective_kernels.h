// Which kernels carry out collectives of NCCL, RCCL and MSCCL, by their names: they wait for other GPUs or ranks.
#pragma once

#include <algorithm>
#include <string_view>

namespace tacho::vendor {

/// A kernel of these libraries, by its name, mangled or not: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)",
/// "ncclKernel_AllReduce_RING_LL_Sum_float(...)", "ncclAllReduceRingLLKernel_sum_f32(...)" (NCCL before 2.10),
/// "rccl_main_kernel", "mscclKernel_...".
constexpr bool is_collective_kernel(std::string_view kernel) {
  std::string_view plain = kernel;
  if (plain.starts_with("_Z")) plain.remove_prefix(std::min(plain.find_first_not_of("0123456789", 2), plain.size()));
  for (const std::string_view begin : {
#define TACHO_COLLECTIVE_PREFIX(text) std::string_view(text),
#include "vendor/vendors.def"
       })
    if (plain.starts_with(begin)) return true;
  for (const std::string_view part : {
#define TACHO_COLLECTIVE(part) std::string_view(part),
#include "vendor/vendors.def"
       })
    if (kernel.find(part) != std::string_view::npos) return true;
  return false;
}

}  // namespace tacho::vendor
