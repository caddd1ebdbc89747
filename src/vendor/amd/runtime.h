// Which of AMD's libraries a program started from here would get (docs/amd.md).
#pragma once

#include <string>

namespace tacho::vendor {

struct AmdRuntime {
  std::string hsa;          // path of the HSA runtime; empty = the loader finds none
  bool registers = false;   // it announces itself to rocprofiler-register: rocprofiler-sdk can be used
  std::string sdk;          // path of rocprofiler-sdk; empty = none beside the runtime, in ROCM_PATH or in /opt/rocm
  std::string sdk_version;  // as the file's name says it ("1.0.0"); empty = it does not
};
/// Loads the HSA runtime, but does not start it.
AmdRuntime find_amd_runtime();

/// How tacho traces with that runtime, and why that way; for `tacho avail`.
std::string describe_road(const AmdRuntime& runtime);

}  // namespace tacho::vendor
