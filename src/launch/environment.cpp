// How sources get into a target (environment.h).
#include "launch/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "base/format.h"
#include "base/job_rank.h"
#include "vendor/vendor.h"

extern char** environ;

namespace tacho::launch {

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
  for (const vendor::Vendor* const vendor : vendor::vendors()) {
    for (const vendor::Injection& way : vendor->injections())
      if (way.kind == vendor::Injection::Kind::kSole)
        set_unless_taken(way.variable, way.source);
      else
        prepend(way.variable);
    vendor->prepare(variables, options.library);
  }
  for (const auto& [name, value] : options.extra) variables[name] = value;
  std::vector<std::string> block;
  block.reserve(variables.size());
  for (const auto& [name, value] : variables) block.push_back(name + "=" + value);
  return block;
}

std::vector<std::pair<std::string, std::string>> recorded_environment() {
  static constexpr const char* kAllowed[] = {"OMP_NUM_THREADS",      "OMP_PROC_BIND",
                                             "OMP_PLACES",           "MKL_NUM_THREADS",
                                             "OPENBLAS_NUM_THREADS", "OCL_ICD_VENDORS",
                                             "OCL_ICD_FILENAMES",    "OPENCL_LAYERS",
                                             "POCL_DEVICES",         "POCL_MAX_PTHREAD_COUNT",
                                             "SLURM_JOB_ID",         "SLURM_NODEID",
                                             "NCCL_DEBUG",           "LANG"};
  std::vector<std::pair<std::string, std::string>> found;
  const auto record = [&](std::span<const char* const> names) {
    for (const char* name : names)
      if (const char* value = std::getenv(name); value != nullptr) found.emplace_back(name, value);
  };
  for (const vendor::Vendor* const vendor : vendor::vendors()) record(vendor->recorded_variables());
  record(kAllowed);
  std::set<std::string_view> ranks;
  for (const JobLauncher& launcher : job_launchers())
    for (const std::span<const char* const> names :
         {std::span<const char* const>(launcher.rank), std::span<const char* const>(launcher.size),
          std::span<const char* const>(launcher.local_rank)})
      for (const char* name : names)
        if (name != nullptr && ranks.insert(name).second)
          if (const char* value = std::getenv(name); value != nullptr) found.emplace_back(name, value);
  return found;
}

}  // namespace tacho::launch
