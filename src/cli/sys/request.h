// The request in a command line of system profiling.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/options/device_counters.h"
#include "cli/sys/settings.h"
#include "launch/recording.h"

namespace tacho::cli::sys {

/// Whose command line and outputs to imitate.
enum class Face : uint8_t { kTacho, kRocprofSys };
enum class Verb : uint8_t { kRun, kSample };

struct Request {
  Face face = Face::kTacho;
  Verb verb = Verb::kRun;
  std::string called;  // "tacho sys run", "rocprof-sys-sample"
  Settings settings;
  std::vector<std::string> command;
  std::vector<std::string> config_files;
  std::vector<std::string> remarks;  // for the user, printed before the start
  std::string output;                // tacho: -o FILE.tacho
  std::string ranks;                 // --ranks; empty = all
  event::Sampler sampler = event::Sampler::kTimer;
  bool overwrite = false, quiet = false, help = false;
  bool launch_stacks = true, torch_trace = false, follow = false;
  launch::TorchShapes torch_shapes = launch::TorchShapes::kNone;
  uint32_t sample_stack = 16384;
  DeviceCounters device_counters;      // --device-counters: those that tacho samples
  event::Configuration device_target;  // and those that are read inside the program
};

/// Every category: its name, its meaning, and the trace tables that it covers (0 = telemetry so named).
struct Category {
  std::string_view name, text;
  uint64_t tables;
};
std::span<const Category> categories();

}  // namespace tacho::cli::sys
