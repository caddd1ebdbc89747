// The table of `tacho trace`'s options (recording_options.h).
#include "cli/options/recording_options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "cli/files/writer_names.h"
#include "cli/shared/chosen_ranks.h"
#include "cli/shared/command_line.h"
#include "cli/shared/suggest.h"

namespace tacho::cli {
namespace {

using options::Row;
using options::Shows;
using Request = TraceRequest;

constexpr std::string_view kWhat = "What to record (default: everything that is cheap)",
                           kStacks = "Call stacks of the host",
                           kMachine = "Telemetry of the machine, the program's processes and GPUs",
                           kWhen = "When to record", kKeep = "How much to keep";

launch::Recording& recording(Request& r) {
  return r.launch.recording;
}
event::Configuration& target(Request& r) {
  return r.launch.recording.target;
}

Status add_formats(Request& r, const std::string& list) {
  for (std::string& name : words_of(list)) r.formats.push_back(std::move(name));
  return {};
}

Status choose_sampler(Request& r, const std::string& name) {
  TACHO_ASSIGN(target(r).sampler, sampler_named(name));
  return {};
}

// As many as a process keeps names of (capture/source/rocm/device_counters.cpp).
Status choose_device_counters(Request& r, const std::string& list) {
  constexpr size_t kMostCounters = 64, kLongestName = 63;
  const std::vector<std::string> names = words_of(list);
  for (const std::string& name : names)
    if (name.empty() || name.size() > kLongestName || !std::all_of(name.begin(), name.end(), [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
        }))
      return fail("--device-counters {}: \"{}\" is not the name of a counter (letters, digits and _)", list, name);
  if (names.empty() || names.size() > kMostCounters)
    return fail("--device-counters {}: 1 to {} names of counters, separated by commas", list, kMostCounters);
  std::string& wanted = target(r).device_counters;
  wanted.clear();
  for (const std::string& name : names) wanted += (wanted.empty() ? "" : ",") + name;
  return {};
}

Status choose_counter_rate(Request& r, const std::string& text) {
  double hz = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hz);
  if (error != std::errc() || end != text.data() + text.size() || !(hz >= 0.02 && hz <= 1000))
    return fail("--device-counters-hz {}: a number from 0.02 to 1000", text);
  target(r).device_counter_ms = static_cast<uint32_t>(std::lround(1000 / hz));
  return {};
}

Status choose_telemetry(Request& r, const std::string& list) {
  launch::TelemetryOptions& telemetry = recording(r).telemetry;
  for (const std::string& word : words_of(list)) {
    if (word == "cpu" || word == "all") telemetry.cpu = true;
    if (word == "process" || word == "all") telemetry.process = true;
    if (word == "gpu" || word == "all") telemetry.gpu = true;
    if (word != "cpu" && word != "process" && word != "gpu" && word != "all" && word != "off")
      return fail("--telemetry {}: choose cpu, process, gpu (several with commas), all or off", word);
  }
  return {};
}

Status choose_pool_size(Request& r, const std::string& text) {
  launch::Recording& out = recording(r);
  TACHO_ASSIGN(out.pool_max, parse_size(text));
  out.pool_initial = std::min(out.pool_initial, out.pool_max);
  return {};
}

constexpr Row<Request> kOptions[] = {
    {.names = "-o,--output",
     .help = "trace file (default: <command>.tacho, with a number when that is taken)",
     .place = [](Request& r) -> std::string& { return r.output; }},
    {.names = "-f,--format",
     .help = "what to write: tacho (default), csv, json, pftrace, rpd, rocpd ... (several with commas)",
     .place = add_formats,
     .value_name = "FORMAT"},
    {.names = "--rpd-schema",
     .help = "-f rpd: schema version",
     .place = [](Request& r) -> uint32_t& { return r.rpd_schema; },
     .value_name = "INT",
     .choices = "2 3",
     .shows = Shows::kDefault},
    {.names = kRanksNames,
     .help = kRanksHelp,
     .place = [](Request& r) -> std::string& { return r.ranks; },
     .value_name = "LIST"},
    {.names = "--overwrite",
     .help = "replace existing outputs",
     .place = [](Request& r) -> bool& { return r.overwrite; }},
    {.names = "--view",
     .help = "show the run in a browser while it is recorded, and then (tacho view)",
     .place = [](Request& r) -> bool& { return r.view; }},
    {.names = "--quiet,-q", .help = "no summary", .place = [](Request& r) -> bool& { return r.quiet; }},

    {.names = "--kernel-trace",
     .group = kWhat,
     .help = "kernels",
     .place = [](Request& r) -> bool& { return r.kernels; }},
    {.names = "--memory-copy-trace",
     .group = kWhat,
     .help = "copies and fills",
     .place = [](Request& r) -> bool& { return r.copies; }},
    {.names = "--memory-allocation-trace",
     .group = kWhat,
     .help = "allocations",
     .place = [](Request& r) -> bool& { return r.allocations; }},
    {.names = "--runtime-trace",
     .group = kWhat,
     .help = "API calls, kernels, copies, allocations, markers",
     .place = [](Request& r) -> bool& { return r.runtime; }},
    {.names = "--marker-trace",
     .group = kWhat,
     .help = "markers: tacho.h, ROCTx, NVTX",
     .place = [](Request& r) -> bool& { return r.markers; }},
    {.names = "--sys-trace",
     .group = kWhat,
     .help = "everything",
     .place = [](Request& r) -> bool& { return r.system; }},
    {.names = "--api-args",
     .group = kWhat,
     .help = "arguments of calls, kernels and copies, as text",
     .place = [](Request& r) -> bool& { return target(r).api_args; }},
    {.names = "--torch-trace",
     .group = kWhat,
     .help = "PyTorch's operators and modules as ranges, of a Python program that stays as it is",
     .place = [](Request& r) -> bool& { return r.launch.torch_trace; }},
    {.names = "--kernel-include",
     .group = kWhat,
     .help = "only kernels whose name matches this regular expression",
     .place = [](Request& r) -> std::string& { return target(r).kernel_include; },
     .value_name = "REGEX"},
    {.names = "--kernel-exclude",
     .group = kWhat,
     .help = "no kernels whose name matches",
     .place = [](Request& r) -> std::string& { return target(r).kernel_exclude; },
     .value_name = "REGEX"},
    {.names = "--driver-trace",
     .group = kWhat,
     .help = "CUDA: every driver call, not only those that launch",
     .place = [](Request& r) -> bool& { return target(r).all_driver_calls; }},
    {.names = "--sync-trace",
     .group = kWhat,
     .help = "CUDA: waiting as records of its own, with stream and event; lengthens short steps by a fifth",
     .place = [](Request& r) -> bool& { return target(r).sync_trace; }},
    {.names = "--all-api-calls",
     .group = kWhat,
     .help = "CUDA, HIP: also calls that only ask, such as cudaGetDevice",
     .place = [](Request& r) -> bool& { return target(r).all_api_calls; }},
    {.names = "--hsa-trace",
     .group = kWhat,
     .help = "AMD: also calls of HSA, the layer below HIP (many: every look at a signal)",
     .place = [](Request& r) -> bool& { return target(r).hsa_calls; }},
    {.names = "--amd-source",
     .group = kWhat,
     .help = "AMD: trace through rocprofiler-sdk or through HSA's interface for tools "
             "(default: the SDK where the program's ROCm has one)",
     .place = [](Request& r, const std::string& text) -> Status {
       using event::AmdSource;
       target(r).amd_source = text == "sdk" ? AmdSource::kSdk : text == "hsa" ? AmdSource::kHsa : AmdSource::kAuto;
       return {};
     },
     .choices = "auto sdk hsa"},
    {.names = "--graph-trace",
     .group = kWhat,
     .help = "CUDA graphs: one span a launch, or every node",
     .place = [](Request& r, const std::string& text) -> Status {
       target(r).graph_nodes = text == "node";
       return {};
     },
     .choices = "graph node",
     .shows = Shows::kDefault,
     .default_text = "graph"},
    {.names = "--yield-to-app",
     .group = kWhat,
     .help = "CUDA: leave CUPTI to a program that uses it itself",
     .place = [](Request& r) -> bool& { return target(r).yield_to_app; }},
    {.names = "--cupti-clock",
     .group = kWhat,
     .help = "CUDA: times by CUPTI's own clock, converted afterwards",
     .place = [](Request& r) -> bool& { return target(r).cupti_clock; }},
    {.names = "--cupti-device-buffers",
     .group = kWhat,
     .help = "CUDA: most device buffers of CUPTI per context (default: CUPTI's, 250)",
     .place = [](Request& r) -> uint32_t& { return target(r).cupti_device_buffers; },
     .value_name = "N",
     .least = 1,
     .most = 1'000'000},

    {.names = "--sampler",
     .group = kStacks,
     .help = "timer: every thread's call stack, native and Python; perf: from outside, "
             "for programs that cannot load libtacho.so, native only",
     .place = choose_sampler,
     .choices = "off timer perf",
     .shows = Shows::kDefault,
     .default_text = "off"},
    {.names = "--sample-hz",
     .group = kStacks,
     .help = "samples a second and thread",
     .place = [](Request& r) -> uint32_t& { return target(r).sample_hz; },
     .shows = Shows::kDefault,
     .least = 1,
     .most = 10'000},
    {.names = "--sample-clock",
     .group = kStacks,
     .help = "cpu: while the thread runs; wall: also while it waits",
     .place = [](Request& r, const std::string& text) -> Status {
       target(r).sample_clock = text == "wall" ? event::SampleClock::kWall : event::SampleClock::kCpu;
       return {};
     },
     .choices = "cpu wall",
     .shows = Shows::kDefault,
     .default_text = "cpu"},
    {.names = "--sample-stack",
     .group = kStacks,
     .help = "bytes of stack copied per sample at most; deeper frames are cut",
     .place = [](Request& r) -> uint32_t& { return target(r).sample_stack; },
     .value_name = "BYTES",
     .shows = Shows::kDefault,
     .least = 512,
     .most = 57344},
    {.names = "!--no-launch-stacks",
     .group = kStacks,
     .help = "do not read the Python stack at every call that launches device work",
     .place = [](Request& r) -> bool& { return r.launch_stacks; }},

    {.names = "--telemetry",
     .group = kMachine,
     .help = "cpu, process, gpu (several with commas), all or off",
     .place = choose_telemetry,
     .shows = Shows::kDefault,
     .default_text = "off"},
    {.names = "--telemetry-hz",
     .group = kMachine,
     .help = "readings a second",
     .place = [](Request& r) -> double& { return recording(r).telemetry.hz; },
     .value_name = "N",
     .shows = Shows::kDefault,
     .least = 0.01,
     .most = 1000.0},

    {.names = "--device-counters",
     .group = kMachine,
     .help = "AMD: hardware counters of the GPUs by name, as rates: SQ_WAVES,GRBM_GUI_ACTIVE",
     .place = choose_device_counters,
     .value_name = "LIST"},
    {.names = "--device-counters-hz",
     .group = kMachine,
     .help = "readings of them a second",
     .place = choose_counter_rate,
     .value_name = "N",
     .shows = Shows::kDefault,
     .default_text = "10"},

    {.names = "--start-paused",
     .group = kWhen,
     .help = "record nothing until tacho_resume() or a trigger",
     .place = [](Request& r) -> bool& { return recording(r).start_paused; }},
    {.names = "--delay",
     .group = kWhen,
     .help = "start after so many seconds",
     .place = [](Request& r) -> double& { return recording(r).delay_s; },
     .value_name = "S",
     .check = [](const std::string& text) { return check_seconds(text); }},
    {.names = "--duration",
     .group = kWhen,
     .help = "record so many seconds",
     .place = [](Request& r) -> double& { return recording(r).duration_s; },
     .value_name = "S",
     .check = [](const std::string& text) { return check_seconds(text); }},
    {.names = "--start-trigger",
     .group = kWhen,
     .help = "marker:TEXT, signal:USR1 (sent to tacho) or launch:N",
     .place = [](Request& r, const std::string& text) -> Status {
       TACHO_ASSIGN(recording(r).start_trigger, launch::parse_trigger(text));
       return {};
     },
     .value_name = "WHAT"},
    {.names = "--stop-trigger",
     .group = kWhen,
     .help = "likewise",
     .place = [](Request& r, const std::string& text) -> Status {
       TACHO_ASSIGN(recording(r).stop_trigger, launch::parse_trigger(text));
       return {};
     },
     .value_name = "WHAT"},

    {.names = "--max-size",
     .group = kKeep,
     .help = "stop recording events at this file size (64M, 2G)",
     .place = [](Request& r, const std::string& text) -> Status {
       TACHO_ASSIGN(recording(r).writer.max_size, parse_size(text));
       return {};
     },
     .value_name = "SIZE"},
    {.names = "--ring",
     .group = kKeep,
     .help = "keep only the newest events, about so many bytes",
     .place = [](Request& r, const std::string& text) -> Status {
       TACHO_ASSIGN(recording(r).writer.ring_size, parse_size(text));
       return {};
     },
     .value_name = "SIZE"},
    {.names = "--aggregate",
     .group = kKeep,
     .help = "keep no events, only count, sum, min, max and histogram per name and shape",
     .place = [](Request& r) -> bool& { return recording(r).writer.aggregate; }},
    {.names = "--pool-size",
     .group = kKeep,
     .help = "most shared memory between program and tacho (default 256M)",
     .place = choose_pool_size,
     .value_name = "SIZE"},
};

}  // namespace

std::span<const Row<TraceRequest>> trace_options() {
  return kOptions;
}

Result<event::Sampler> sampler_named(const std::string& name) {
  uint8_t number = 0;
  for (const std::string_view known : event::kChoiceNames<event::Sampler>) {
    if (name == known) return static_cast<event::Sampler>(number);
    ++number;
  }
  return fail("--sampler {}: choose off, timer or perf", name);
}

Status complete(TraceRequest& r) {
  namespace source = tape::source_bit;
  launch::Recording& out = recording(r);
  uint64_t sources = 0;
  if (r.kernels) sources |= source::kDispatch;
  if (r.copies) sources |= source::kCopy;
  if (r.allocations) sources |= source::kAllocation;
  if (r.markers) sources |= source::kMarker;
  if (r.runtime)
    sources |= source::kApi | source::kDispatch | source::kCopy | source::kAllocation | source::kMarker | source::kSync;
  if (r.system || sources == 0) sources = source::kAll;
  // Operators are ranges and find their kernels by the calls that launched them.
  if (r.launch.torch_trace) sources |= source::kMarker | source::kApi;
  const bool stacks = out.target.sampler != event::Sampler::kOff;
  if (stacks) sources |= source::kSample;
  out.sources = sources;
  out.target.launch_stacks = stacks && r.launch_stacks;
  out.target.sync_trace = out.target.sync_trace || r.system;
  out.target.profiler_api = out.start_paused;
  out.writer.overwrite = r.overwrite;
  TACHO_TRY(launch::check(out));
  return {};
}

}  // namespace tacho::cli
