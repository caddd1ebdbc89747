// AMD's libraries of this machine (runtime.h).
#include "vendor/amd/runtime.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/format.h"

namespace tacho::vendor {

AmdRuntime find_amd_runtime() {
  AmdRuntime found;
  std::vector<std::string> folders;
  if (void* const runtime = dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_LOCAL); runtime != nullptr) {
    Dl_info at{};
    if (dladdr(dlsym(runtime, "hsa_init"), &at) != 0 && at.dli_fname != nullptr) found.hsa = at.dli_fname;
    found.registers = dlsym(runtime, "rocprofiler_register_library_api_table") != nullptr;
  }
  if (const size_t slash = found.hsa.rfind('/'); slash != std::string::npos)
    folders.push_back(found.hsa.substr(0, slash));
  if (const char* const rocm = std::getenv("ROCM_PATH"); rocm != nullptr && *rocm != '\0')
    folders.push_back(std::string(rocm) + "/lib");
  folders.emplace_back("/opt/rocm/lib");
  for (const std::string& folder : folders)
    for (const char* const name : {"librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0"}) {
      const std::string path = folder + "/" + name;
      if (!found.sdk.empty() || access(path.c_str(), R_OK) != 0) continue;
      found.sdk = path;
      std::error_code failed;
      const std::string real = std::filesystem::canonical(path, failed).filename().string();
      if (const size_t number = real.find(".so."); !failed && number != std::string::npos)
        found.sdk_version = real.substr(number + 4);
      if (found.sdk_version.find('.') == std::string::npos) found.sdk_version.clear();
    }
  return found;
}

std::string describe_road(const AmdRuntime& runtime) {
  const std::string sdk = "rocprofiler-sdk" + (runtime.sdk_version.empty() ? std::string() : " " + runtime.sdk_version);
  if (!runtime.sdk.empty() && runtime.registers)
    return fmt::format("kernels, copies and HIP calls through {} ({})", sdk, runtime.sdk);
  return fmt::format("kernels, copies and HIP calls through HSA's interface for tools ({}): {}", runtime.hsa,
                     runtime.registers ? "there is no rocprofiler-sdk beside it, in ROCM_PATH or in /opt/rocm"
                                       : "this ROCm is built without rocprofiler-register, so that "
                                         "AMD's profiling library cannot be used");
}

}  // namespace tacho::vendor
