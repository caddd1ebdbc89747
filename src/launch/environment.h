// Builds the environment of a target, which loads tacho's sources into it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tacho::launch {

struct EnvironmentOptions {
  std::string library;  // libtacho.so
  std::string pool;
  bool preload = true;
  bool inject = true;  // false: add only `extra`, none of our libraries
  std::vector<std::pair<std::string, std::string>> extra;
};

/// Returns a copy of this process's environment with the variables that the sources need. Adds ours to
/// existing values of OPENCL_LAYERS, LD_PRELOAD and injection paths; where only one value is possible it
/// keeps theirs and says so in `notes`.
std::vector<std::string> target_environment(const EnvironmentOptions& options,
                                            std::vector<std::string>& notes);

/// Names and values of the variables that a trace records: an allow-list without secrets, including
/// launchers' ranks.
std::vector<std::pair<std::string, std::string>> recorded_environment();

}  // namespace tacho::launch
