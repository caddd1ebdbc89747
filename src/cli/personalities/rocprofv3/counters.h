// rocprofv3 --pmc and --pc-sampling-...: collects counters and PC samples through tacho's providers. Counters and
// kernels go to a trace for exports.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/personalities/rocprofv3/options.h"
#include "counter/sampled_run.h"

namespace tacho::cli::rocprofv3 {

struct CounterPlan {
  counter::Chosen chosen;
  counter::PassPlan plan;
  counter::Replay replay = counter::Replay::kDefault;
  std::string include, exclude;                    // POSIX regular expressions over kernel names
  std::vector<counter::Filter::Range> iterations;  // for each kernel, counted from 1
  std::string iterations_text;                     // as the user gave them
  bool regions = false;                            // --selected-regions
};

/// What --pmc (or pmc_groups) asks for, planned for this machine's device; nothing if neither is given. Fails on
/// unknown counters, if the counters of a --pmc need more than one pass, and where --replay-mode kernel contradicts
/// other options or the device cannot do it, as with --selected-regions on most; --collection-period never goes along.
Result<std::optional<CounterPlan>> plan_counters(const InputJob& job);

/// Runs the command, writes its dispatches and, of those that the filters let pass, the counters to `trace`, and
/// returns its exit code. `say` gets messages.
tl::expected<int, launch::LaunchError> collect_counters(const CounterPlan& plan,
                                                        const std::vector<std::string>& command,
                                                        const std::string& trace,
                                                        const std::function<void(std::string_view)>& say);

struct SamplingPlan {
  counter::Chosen chosen;
  counter::PcSampling how;
};
/// What --pc-sampling-... ask for; nothing where none of them is given. Fails where they are incomplete or contradict
/// each other, and where the device takes no PC samples.
Result<std::optional<SamplingPlan>> plan_sampling(const Given& given);

/// Runs the command with PC samples taken, writes its kernels to `trace`, and returns the samples, or none, and its
/// exit code.
tl::expected<std::pair<std::shared_ptr<const counter::SampledRun>, int>, launch::LaunchError> collect_samples(
    const SamplingPlan& plan, const std::vector<std::string>& command, const std::string& trace,
    const std::function<void(std::string_view)>& say);

/// The counters of this machine's device, one per line, for --list-avail.
std::string available_counters();

}  // namespace tacho::cli::rocprofv3
