// The words and numbers of rocprofv3's files, which several formats and SQL's rocpd schema use.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "event/schema.h"

namespace tacho::format {

/// rocprofv3's dispatch ids count from 1, a trace's ordinals from 0; kUnknown for none, and for the last number there
/// is.
inline int64_t dispatch_id(int64_t ordinal) {
  return ordinal == event::kUnknown || ordinal == std::numeric_limits<int64_t>::max() ? event::kUnknown : ordinal + 1;
}

/// "MEMORY_COPY_HOST_TO_DEVICE" and so on.
std::string_view copy_direction_name(int64_t direction);
/// "MEMORY_ALLOCATION_ALLOCATE" or "MEMORY_ALLOCATION_FREE", for a cell of AllocationOperation.
std::string_view allocation_name(int64_t operation);
bool is_free(int64_t operation);
/// The API of a domain as it appears in rocprofv3's file names ("hip", "opencl", "cuda"); "" for kUnknown.
std::string_view api_of(event::Domain domain);
/// The text in column Domain of an API trace: "HIP_RUNTIME_API_EXT", "OPENCL_API", "CUDA_DRIVER_API" ...
std::string_view api_domain_name(event::Domain domain);
/// The domain for a kind of calls in rocprofv3's files: the names of api_domain_name() and rocprofv3's other kinds
/// ("HIP_COMPILER_API", "HSA_AMD_EXT_API"); kHost for calls of other libraries.
event::Domain domain_of_kind(std::string_view kind);

}  // namespace tacho::format
