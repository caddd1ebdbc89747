// How sources get into a target (environment.h).
#include "launch/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "base/format.h"

extern char** environ;

namespace tacho::launch {
namespace {

// AMD's own ROCTx is where the loader would find it.
bool rocm_roctx_installed(const std::string& library_path) {
  std::string folders = library_path;
  if (const char* rocm = std::getenv("ROCM_PATH"); rocm != nullptr)
    folders += std::string(":") + rocm + "/lib";
  folders += ":/opt/rocm/lib:/usr/lib/x86_64-linux-gnu:/usr/lib64:/lib64";
  for (size_t begin = 0; begin < folders.size();) {
    size_t end = folders.find(':', begin);
    if (end == std::string::npos) end = folders.size();
    const std::string folder = folders.substr(begin, end - begin);
    for (const char* name :
         {"libroctx64.so", "libroctx64.so.4", "librocprofiler-sdk-roctx.so", "librocprofiler-sdk-roctx.so.1"})
      if (!folder.empty() && access((folder + "/" + name).c_str(), R_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::vector<std::string> target_environment(const EnvironmentOptions& options,
                                            std::vector<std::string>& notes) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* const equals = std::strchr(*entry, '=');
    if (equals != nullptr)
      variables.emplace(std::string(*entry, static_cast<size_t>(equals - *entry)), equals + 1);
  }
  const auto prepend = [&](const char* name) {
    std::string& value = variables[name];
    value = value.empty() ? options.library : options.library + ":" + value;
  };
  const auto set_unless_taken = [&](const char* name, std::string_view source) {
    std::string& value = variables[name];
    if (value.empty() || value == options.library) {
      value = options.library;
    } else {
      notes.push_back(
          fmt::format("{} is already set to {}: left alone, so {} is not traced", name, value, source));
    }
  };
  if (!options.inject) {
    for (const auto& [name, value] : options.extra) variables[name] = value;
    std::vector<std::string> block;
    for (const auto& [name, value] : variables) block.push_back(name + "=" + value);
    return block;
  }
  variables["TACHO_POOL"] = options.pool;
  variables["TACHO_LIBRARY"] = options.library;
  if (options.preload) prepend("LD_PRELOAD");
  prepend("OPENCL_LAYERS");
  set_unless_taken("CUDA_INJECTION64_PATH", "CUDA");
  set_unless_taken("NVTX_INJECTION64_PATH", "NVTX");
  prepend("ROCP_TOOL_LIBRARIES");
  // Programs that open ROCTx by name on a machine without ROCm find stand-ins that pass on to libtacho.so.
  const std::string stand_ins = options.library.substr(0, options.library.rfind('/')) + "/roctx";
  if (access((stand_ins + "/libroctx64.so").c_str(), R_OK) == 0 &&
      !rocm_roctx_installed(variables["LD_LIBRARY_PATH"])) {
    std::string& path = variables["LD_LIBRARY_PATH"];
    path = path.empty() ? stand_ins : path + ":" + stand_ins;
  }
  for (const auto& [name, value] : options.extra) variables[name] = value;
  std::vector<std::string> block;
  block.reserve(variables.size());
  for (const auto& [name, value] : variables) block.push_back(name + "=" + value);
  return block;
}

std::vector<std::pair<std::string, std::string>> recorded_environment() {
  static constexpr const char* kAllowed[] = {"CUDA_VISIBLE_DEVICES",
                                             "CUDA_LAUNCH_BLOCKING",
                                             "CUDA_DEVICE_ORDER",
                                             "CUDA_DEVICE_MAX_CONNECTIONS",
                                             "HIP_VISIBLE_DEVICES",
                                             "ROCR_VISIBLE_DEVICES",
                                             "GPU_MAX_HW_QUEUES",
                                             "HSA_XNACK",
                                             "AMD_SERIALIZE_KERNEL",
                                             "OMP_NUM_THREADS",
                                             "OMP_PROC_BIND",
                                             "OMP_PLACES",
                                             "MKL_NUM_THREADS",
                                             "OPENBLAS_NUM_THREADS",
                                             "OCL_ICD_VENDORS",
                                             "OCL_ICD_FILENAMES",
                                             "OPENCL_LAYERS",
                                             "POCL_DEVICES",
                                             "POCL_MAX_PTHREAD_COUNT",
                                             "SLURM_JOB_ID",
                                             "SLURM_PROCID",
                                             "SLURM_NTASKS",
                                             "SLURM_NODEID",
                                             "OMPI_COMM_WORLD_RANK",
                                             "OMPI_COMM_WORLD_SIZE",
                                             "PMI_RANK",
                                             "RANK",
                                             "WORLD_SIZE",
                                             "LOCAL_RANK",
                                             "NCCL_DEBUG",
                                             "PYTORCH_CUDA_ALLOC_CONF",
                                             "LANG"};
  std::vector<std::pair<std::string, std::string>> found;
  for (const char* name : kAllowed)
    if (const char* value = std::getenv(name); value != nullptr) found.emplace_back(name, value);
  return found;
}

}  // namespace tacho::launch
