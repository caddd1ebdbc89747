// What `tacho trace` and the personalities share: options of a tracing run, the run itself, its outputs and summary.
#pragma once

#include <string>
#include <vector>

#include "launch/launcher.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tacho::cli {

struct TraceRequest {
  launch::LaunchOptions launch;
  std::string output;  // -o; empty = <command>.tacho with a suffix when taken
  bool overwrite = false;
  std::vector<std::string> formats;  // beside tacho: csv, json, pftrace ...
  int rpd_schema = 2;
  std::string shown_as;  // what the summary calls the written file; empty = its name
  bool kernels = false, copies = false, allocations = false, runtime = false, markers = false, system = false;
  std::string kernel_include, kernel_exclude;
  std::string start_trigger, stop_trigger;
  std::string max_size, ring, pool_size;
  bool aggregate = false;
  bool driver_trace = false;
  std::string graph_trace = "graph";
  bool yield_to_app = false;
  bool all_api_calls = false;
  bool sync_trace = false;
  bool cupti_clock = false;
  uint32_t cupti_device_buffers = 0;  // 0 = CUPTI's default
  std::string sampler = "off";        // call stacks: timer or off
  uint32_t sample_hz = 100;
  std::string sample_clock = "cpu";
  bool launch_stacks = true;      // with a sampler: Python stacks of launching calls
  std::string telemetry = "off";  // cpu, process, gpu (several with commas), all, off
  double telemetry_hz = 10;
  uint32_t sample_stack = 16384;  // bytes of stack a sample may hold
};

/// Declares the options on `app`, bound to `request`.
void add_trace_options(CLI::App& app, TraceRequest& request);
/// The words after `--` (or after the last option) of an app with prefix_command(); an error when there are none, or
/// when the first is an option that does not exist.
Result<std::vector<std::string>> target_command(const CLI::App& app);
/// One sentence for a parse error, with the nearest option's name when an option is unknown.
std::string option_error(const CLI::App& app, const CLI::ParseError& error);

/// For options that take seconds: "" for a number from 0 on, else what is wrong with `text`.
std::string check_seconds(const std::string& text);

/// "64M", "1.5G", "4096" -> bytes; units k, M, G, T are powers of 1024 as users of rings expect.
Result<uint64_t> parse_size(const std::string& text);

/// Runs it, writes the outputs, prints the summary to stderr; returns the exit code.
int run_target(TraceRequest& request);

/// `name` itself when free, else name with .1, .2 ... before its extension.
std::string free_name(const std::string& name);

}  // namespace tacho::cli
