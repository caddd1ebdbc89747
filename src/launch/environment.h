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

/// A copy of this process's environment with what sources need. Keeps existing OPENCL_LAYERS, LD_PRELOAD and injection
/// paths: adds ours, or leaves theirs where there can be only one and says so in `notes`.
std::vector<std::string> target_environment(const EnvironmentOptions& options,
                                            std::vector<std::string>& notes);

/// Names and values of the variables that a trace records (an allow-list: no secrets), launchers' ranks among them.
std::vector<std::pair<std::string, std::string>> recorded_environment();

}  // namespace tacho::launch
