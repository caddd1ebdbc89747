// What the lists of the vendors (vendors.def and the vendor.def of each) say, as data: APIs, the words for them, paths
// and variables. The rest of tacho asks here and switches over no vendor. analysis/call_kind.h has the kinds of calls,
// vendor/collective_kernels.h the kernels of collectives.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "event/schema.h"

namespace tacho::vendor {

/// Which results of an API's functions say that the call failed.
enum class FailureRule : uint8_t { kNotZero, kNegative, kPositive };

struct ApiDefinition {
  event::Domain domain;
  std::string_view family;  ///< "cuda"; APIs of one family name their functions alike
  std::string_view kind;    ///< rocprofv3's word for its calls: "CUDA_RUNTIME_API"
  FailureRule failure;
};

/// nullptr for a domain that is no vendor's or runtime's API: markers, Python, MPI, operators, the host, kUnknown.
const ApiDefinition* api_definition(event::Domain domain);
/// "cuda", "hip", "opencl" ...; empty where api_definition() has nothing.
std::string_view api_family(event::Domain domain);
/// Whether `result`, a value of column result of table api, says that the call failed. False for event::kUnknown and
/// where api_definition() has nothing.
bool call_failed(event::Domain domain, int64_t result);
/// Whether it says that there was no memory for the call.
bool out_of_memory(event::Domain domain, int64_t result);

/// The domain that a function belongs to by its name: "hipMalloc", "cuMemAlloc", "hsa_init". kUnknown = no vendor's.
event::Domain domain_by_prefix(std::string_view function);
/// The domain that a word of another tool means, in capitals or not: "HIP_RUNTIME_API", "cuda_driver". kUnknown = none.
event::Domain domain_by_word(std::string_view word);

/// Whether column domain of table label has the name of a vendor's library of markers: "NVTX", "ROCTx".
bool is_marker_library(std::string_view domain);
/// Whether a file belongs to a vendor's software by its path: "/opt/rocm/lib/libamdhip64.so".
bool is_vendor_software(std::string_view path);
/// Whether a file is source code in a vendor's language by its name: "saxpy.cu".
bool is_vendor_source(std::string_view path);

/// Paths of files through which programs reach GPUs: "/dev/kfd".
std::span<const char* const> device_files();
/// Paths of files in which kernel drivers write their versions.
std::span<const char* const> version_files();
/// With what the names of environment variables begin that change what programs on GPUs do: "CUDA_".
std::span<const std::string_view> variable_prefixes();

}  // namespace tacho::vendor
