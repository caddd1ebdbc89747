// Benchmarks of the matrix cores of AMD's GPUs, in OpenCL C with the builtins of AMD's compiler (mfma.h).
#pragma once

#include <memory>

#include "base/result.h"
#include "roofline/backend.h"
#include "roofline/mfma.h"
#include "roofline/opencl/driver.h"

namespace tacho::roofline {

/// Compiles the benchmark and fills its memory. An error if the device's compiler does not know the builtin.
Result<std::unique_ptr<Benchmark>> prepare_matrix(std::shared_ptr<ClSession> session, const MfmaKind& kind);

}  // namespace tacho::roofline
