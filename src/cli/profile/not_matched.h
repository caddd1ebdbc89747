// Filters of a profile run that matched no launch of the program.
#pragma once

#include <string>
#include <vector>

#include "cli/profile/options.h"
#include "counter/provider.h"

namespace tacho::cli::profiling {

/// Sentences for the user; if nothing was measured, they say what the program launched. `ranges` are those of -d.
std::vector<std::string> not_matched(const ProfileArguments& a, const std::vector<counter::Filter::Range>& ranges,
                                     const counter::Outcome& outcome);

}  // namespace tacho::cli::profiling
