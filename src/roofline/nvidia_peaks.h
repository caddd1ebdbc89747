// What a multiprocessor of an NVIDIA GPU can do in a cycle, by compute capability.
#pragma once

#include <string_view>

namespace tacho::roofline {

/// FLOP or operations (a fused multiply-add is two) a cycle and multiprocessor of "fp32", "fp64", "fp16",
/// "i32" (vector units) and "mma_f16", "mma_bf16", "mma_tf32", "mma_f8", "mma_i8", "mma_f64" (tensor cores,
/// dense, FP32 or INT32 accumulators); bytes a cycle of "l1" and "shared". NaN where NVIDIA's documents do
/// not tell. Sources: CUDA C++ Programming Guide, table "Throughput of Native Arithmetic Instructions"; the
/// architecture white papers of A100 (sm_80), H100 (sm_90) and the data sheets of B200 (sm_100): dense rate /
/// (multiprocessors x boost clock).
double nvidia_per_cycle(int major, int minor, std::string_view what);

}  // namespace tacho::roofline
