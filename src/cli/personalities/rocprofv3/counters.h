// rocprofv3 --pmc: collects counters through tacho's providers and puts them into a trace for the writers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/personalities/rocprofv3/options.h"
#include "counter/provider.h"

namespace tacho::cli::rocprofv3 {

struct CounterPlan {
  counter::Chosen chosen;
  counter::Plan plan;
  std::string include, exclude;                    // POSIX regular expressions over kernel names
  std::vector<counter::Filter::Range> iterations;  // of each kernel, from 1
};

/// What --pmc (or pmc_groups) asks for, on the device that is here; nothing when neither is given. Unknown counters, and
/// more than one pass holds, are errors.
Result<std::optional<CounterPlan>> plan_counters(const Given& given, const Job& job);

/// Runs the command and writes the trace. `say` gets sentences for the user.
tl::expected<int, launch::LaunchError> collect_counters(const CounterPlan& plan,
                                                        const std::vector<std::string>& command,
                                                        const std::string& trace,
                                                        const std::function<void(std::string_view)>& say);

/// The counters of the device here, one a line, for --list-avail.
std::string available_counters();

}  // namespace tacho::cli::rocprofv3
