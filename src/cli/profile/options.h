// The options of `tacho profile`: their table and where their values go.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options/bound_options.h"

namespace tacho::cli::profiling {

struct ProfileArguments {
  std::string name, path, subpath, output_directory, set, replay, cache_control, format = "csv", device, ids = "3.3";
  std::vector<std::string> blocks, kernels, dispatches, config_dirs;
  std::optional<std::string> multiplexing;
  std::string ranks;  // --ranks; empty = all
  std::string sampling_method;
  int sampling_interval = 0;  // 0 = by the method
  std::string arch, list_metrics_arch, list_blocks_arch;
  bool list_sets = false, list_metrics = false, list_blocks = false;
  bool no_roof = false, no_source = false, roof_only = false, bench_only = false, pc_sampling = false, quiet = false,
       specs = false, dry_run = false, overwrite = false, exact = false, instances = false;
  bool retain_rocpd = false, no_native_tool = false, torch_trace = false, experimental = false, verbose = false;
  int attach_pid = 0, attach_duration = 0;
  double max_time = 0;
  std::vector<std::string> command;
};

std::span<const options::OptionRow<ProfileArguments>> option_rows();

}  // namespace tacho::cli::profiling
