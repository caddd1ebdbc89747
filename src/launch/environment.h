// Builds the environment of a target, which loads tacho's sources into it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/library_names.h"

namespace tacho::launch {

struct EnvironmentOptions {
  LibraryNames names;
  std::string pool;
  bool preload = true;
  bool inject = true;  // false: add only `extra`, none of our libraries
  std::vector<std::pair<std::string, std::string>> extra;
};

/// This process's environment as it is, in its order, with what sources need. Keeps existing OPENCL_LAYERS, LD_PRELOAD
/// and injection paths: adds ours, or keeps theirs if only one is possible and says so in `notes`.
std::vector<std::string> target_environment(const EnvironmentOptions& options, std::vector<std::string>& notes);

/// This process's environment, in which another library than libtacho.so is preloaded and is a layer of compute APIs
/// whose loader has layers; and `variable` with its value, by which that library finds tacho. `keeps`: it also records
/// single events, so that markers lead to it; `notes` says which do not.
std::vector<std::string> watched_environment(const LibraryNames& names, std::string_view variable,
                                             std::string_view value, bool keeps, std::vector<std::string>& notes);

/// Names and values of the variables that a trace records: an allow-list without secrets, including launchers' ranks.
std::vector<std::pair<std::string, std::string>> recorded_environment();

}  // namespace tacho::launch
