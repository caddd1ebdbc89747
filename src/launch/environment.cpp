// How sources get into a target (environment.h).
#include "launch/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <span>
#include <string_view>

#include "base/environment_block.h"
#include "base/format.h"
#include "base/job_rank.h"
#include "vendor/told_events.h"
#include "vendor/vendor.h"

extern char** environ;

namespace tacho::launch {
namespace {

// Puts `library` in front of a variable's list.
void prepend(EnvironmentBlock& variables, const char* name, const std::string& library) {
  const std::string value = variables.get(name);
  variables.set(name, value.empty() ? library : library + ":" + value);
}
void add_layer(EnvironmentBlock& variables, const std::string& library) {
  prepend(variables, "OPENCL_LAYERS", library);
}
// `done`: what is not done with the source's events then.
void set_unless_taken(EnvironmentBlock& variables, const vendor::Injection& way, const std::string& library,
                      std::string_view done, std::vector<std::string>& notes) {
  const std::string value = variables.get(way.variable);
  if (value.empty() || value == library)
    variables.set(way.variable, library);
  else
    notes.push_back(
        fmt::format("{} is already set to {}: left alone, so {} is not {}", way.variable, value, way.source, done));
}

}  // namespace

std::vector<std::string> target_environment(const EnvironmentOptions& options, std::vector<std::string>& notes) {
  EnvironmentBlock variables(environ);
  if (options.inject) {
    variables.set("TACHO_POOL", options.pool);
    variables.set("TACHO_LIBRARY", options.names.library);
    if (options.preload) prepend(variables, "LD_PRELOAD", options.names.preload);
    add_layer(variables, options.names.library);
    for (const vendor::Vendor* const vendor : vendor::vendors()) {
      for (const vendor::Injection& way : vendor->injections())
        if (way.kind == vendor::Injection::Kind::kSole)
          set_unless_taken(variables, way, options.names.library, "traced", notes);
        else
          prepend(variables, way.variable, options.names.library);
      vendor->prepare(variables, options.names.library);
    }
  }
  for (const auto& [name, value] : options.extra) variables.set(name, value);
  return variables.entries();
}

std::vector<std::string> watched_environment(const LibraryNames& names, std::string_view variable,
                                             std::string_view value, bool keeps, std::vector<std::string>& notes) {
  EnvironmentBlock variables(environ);
  prepend(variables, "LD_PRELOAD", names.preload);
  add_layer(variables, names.library);
  for (const vendor::Vendor* const vendor : vendor::vendors()) {
    for (const vendor::Injection& way : vendor->injections())
      if (keeps && vendor::tells_events(way)) set_unless_taken(variables, way, names.library, "kept", notes);
    vendor->prepare(variables, names.library);
  }
  variables.set(variable, value);
  return variables.entries();
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
