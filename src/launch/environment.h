// The environment of a target: how each source gets into it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tacho::launch {

struct EnvironmentOptions {
  std::string library;  // libtacho.so
  std::string pool;
  bool preload = true;
  bool inject = true;  // false: none of our libraries, only `extra`
  std::vector<std::pair<std::string, std::string>> extra;
};

/// A copy of this process's environment with what sources need; existing OPENCL_LAYERS, LD_PRELOAD and injection paths
/// are kept (ours is added, or theirs wins where there can be only one; `notes` then says so).
std::vector<std::string> target_environment(const EnvironmentOptions& options,
                                            std::vector<std::string>& notes);

/// Names and values of the variables that are worth recording (an allow-list: no secrets).
std::vector<std::pair<std::string, std::string>> recorded_environment();

}  // namespace tacho::launch
