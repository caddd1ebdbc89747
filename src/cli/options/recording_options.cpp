// The table of `tacho trace`'s options (recording_options.h).
#include "cli/options/recording_options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/files/run_name.h"
#include "cli/files/writer_names.h"
#include "cli/shared/chosen_ranks.h"
#include "cli/shared/command_line.h"
#include "cli/shared/suggest.h"
#include "cli/shared/time_text.h"

namespace tacho::cli {
namespace {

using options::at;
using options::heading;
using options::optional_value;
using options::OptionRow;
using options::shows_default;
using options::within;
using Request = TraceRequest;
using Target = event::Configuration;
using launch::LaunchOptions;
using launch::Recording;

template <auto... Members>
constexpr auto* recording_at = at<&Request::launch, &LaunchOptions::recording, Members...>;
template <auto Member>
constexpr auto* target_at = recording_at<&Recording::target, Member>;

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

Status choose_counters(Request& r, const std::string& list) {
  return choose_device_counters(list, target(r), r.device_counters);
}
Status choose_rate(Request& r, const std::string& text) {
  return choose_counter_rate(text, target(r), r.device_counters);
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

constexpr OptionRow<Request> kOptions[] = {
    {"-o,--output", at<&Request::output>, "trace file (default: <command>.tacho, with a number when that is taken)"},
    {"-f,--format", add_formats,
     "what to write: tacho (default), csv, json, pftrace, rpd, rocpd ... (several with commas)", "FORMAT"},
    {"--rpd-schema", at<&Request::rpd_schema>, "-f rpd: schema version", "N", "2 3", shows_default()},
    {kRanksNames, at<&Request::ranks>, kRanksHelp, "LIST"},
    {"--overwrite", at<&Request::overwrite>, "replace existing outputs"},
    {"--view", at<&Request::view>, "show the run in a browser while it is recorded, and then (tacho view)"},
    {"--quiet,-q", at<&Request::quiet>, "no summary"},
    heading<Request>(kWhat),
    {"--kernel-trace", at<&Request::kernels>, "kernels"},
    {"--memory-copy-trace", at<&Request::copies>, "copies and fills"},
    {"--memory-allocation-trace", at<&Request::allocations>, "allocations"},
    {"--runtime-trace", at<&Request::runtime>, "API calls, kernels, copies, allocations, markers"},
    {"--marker-trace", at<&Request::markers>, "markers: tacho.h, ROCTx, NVTX"},
    {"--sys-trace", at<&Request::system>, "everything"},
    {"--api-args", target_at<&Target::api_args>, "arguments of calls, kernels and copies, as text"},
    {"--follow", at<&Request::launch, &LaunchOptions::follow>,
     "also record the processes that outlive the program (daemons), until the last of them or Ctrl-C ends it"},
    {"--torch-trace", at<&Request::launch, &LaunchOptions::torch_trace>,
     "PyTorch's operators and modules as ranges, of a Python program that stays as it is"},
    {"--torch-shapes",
     [](Request& r, const std::string& text) -> Status {
       r.launch.torch_shapes = text == "all" ? launch::TorchShapes::kAll : launch::TorchShapes::kSampled;
       return {};
     },
     "the same with the shapes of operators' inputs, where PyTorch runs on a GPU: in stretches of the run (sampled, "
     "default), or of all",
     "", "sampled all", optional_value()},
    {"--memory", target_at<&Target::memory>,
     "who holds memory: what PyTorch's allocators hand out and take back, with operators and modules; tacho memory "
     "shows it"},
    {"--kernel-include", target_at<&Target::kernel_include>, "only kernels whose name matches this regular expression",
     "REGEX"},
    {"--kernel-exclude", target_at<&Target::kernel_exclude>, "no kernels whose name matches", "REGEX"},
    {"--driver-trace", target_at<&Target::all_driver_calls>, "CUDA: every driver call, not only those that launch"},
    {"--sync-trace", target_at<&Target::sync_trace>,
     "CUDA: waiting as records of its own, with stream and event; lengthens short steps by a fifth"},
    {"--all-api-calls", target_at<&Target::all_api_calls>,
     "CUDA, HIP: also calls that only ask, such as cudaGetDevice"},
    {"--hsa-trace", target_at<&Target::hsa_calls>,
     "AMD: also calls of HSA, the layer below HIP (many: every look at a signal)"},
    {"--amd-source",
     [](Request& r, const std::string& text) -> Status {
       using event::AmdSource;
       target(r).amd_source = text == "sdk" ? AmdSource::kSdk : text == "hsa" ? AmdSource::kHsa : AmdSource::kAuto;
       return {};
     },
     "AMD: trace through rocprofiler-sdk or through HSA's interface for tools "
     "(default: the SDK where the program's ROCm has one)",
     "", "auto sdk hsa"},
    {"--graph-trace",
     [](Request& r, const std::string& text) -> Status {
       target(r).graph_nodes = text == "node";
       return {};
     },
     "CUDA graphs: one span a launch, or every node", "", "graph node", shows_default("graph")},
    {"--yield-to-app", target_at<&Target::yield_to_app>, "CUDA: leave CUPTI to a program that uses it itself"},
    {"--cupti-clock", target_at<&Target::cupti_clock>, "CUDA: times by CUPTI's own clock, converted afterwards"},
    {"--cupti-device-buffers", target_at<&Target::cupti_device_buffers>,
     "CUDA: most device buffers of CUPTI per context (default: CUPTI's, 250)", "N", "", within(1, 1'000'000)},
    heading<Request>(kStacks),
    {"--sampler", choose_sampler,
     "timer: every thread's call stack, native and Python; perf: from outside, "
     "for programs that cannot load libtacho.so, native only",
     "", "off timer perf", shows_default("off")},
    {"--sample-hz", target_at<&Target::sample_hz>, "samples a second and thread", "", "",
     shows_default().within(1, 10'000)},
    {"--sample-clock",
     [](Request& r, const std::string& text) -> Status {
       target(r).sample_clock = text == "wall" ? event::SampleClock::kWall : event::SampleClock::kCpu;
       return {};
     },
     "cpu: while the thread runs; wall: also while it waits", "", "cpu wall", shows_default("cpu")},
    {"--sample-stack", target_at<&Target::sample_stack>,
     "bytes of stack copied per sample at most; deeper frames are cut", "BYTES", "",
     shows_default().within(512, 57344)},
    {"!--no-launch-stacks", at<&Request::launch_stacks>,
     "do not read the Python stack at every call that launches device work"},
    heading<Request>(kMachine),
    {"--telemetry", choose_telemetry, "cpu, process, gpu (several with commas), all or off", "", "",
     shows_default("off")},
    {"--telemetry-hz", recording_at<&Recording::telemetry, &launch::TelemetryOptions::hz>, "readings a second", "N", "",
     shows_default().within(0.01, 1000.0)},
    {"--device-counters", choose_counters,
     "hardware counters of whole GPUs; AMD: as rates, SQ_WAVES,...; NVIDIA: dram__bytes_read.sum,...", "LIST"},
    {"--device-counters-hz", choose_rate, "readings of them a second", "N", "", shows_default("10")},
    heading<Request>(kWhen),
    {"--start-paused", recording_at<&Recording::start_paused>, "record nothing until tacho_resume() or a trigger"},
    {"--delay", recording_at<&Recording::delay_s>, "start after this many seconds", "S", "",
     options::checked(check_seconds)},
    {"--duration", recording_at<&Recording::duration_s>, "record for this many seconds", "S", "",
     options::checked(check_seconds)},
    {"--start-trigger",
     [](Request& r, const std::string& text) -> Status {
       TACHO_ASSIGN(recording(r).start_trigger, launch::parse_trigger(text));
       return {};
     },
     "marker:TEXT, signal:USR1 (sent to tacho) or launch:N", "WHAT"},
    {"--stop-trigger",
     [](Request& r, const std::string& text) -> Status {
       TACHO_ASSIGN(recording(r).stop_trigger, launch::parse_trigger(text));
       return {};
     },
     "likewise", "WHAT"},
    heading<Request>(kKeep),
    {"--max-size",
     [](Request& r, const std::string& text) -> Status {
       TACHO_ASSIGN(recording(r).writer.max_size, parse_size(text));
       return {};
     },
     "stop recording events at this file size (64M, 2G)", "SIZE"},
    {"--ring",
     [](Request& r, const std::string& text) -> Status {
       TACHO_ASSIGN(recording(r).writer.ring_size, parse_size(text));
       return {};
     },
     "keep only the newest events, about this many bytes", "SIZE"},
    {"--memory-keep",
     [](Request& r, const std::string& text) -> Status {
       const auto ns = parse_moment("+" + text, 0, 0, "--memory-keep");
       if (!ns || *ns <= 0) return fail("--memory-keep {}: write a time, such as 60s or 5min", text);
       recording(r).writer.memory_keep_ns = static_cast<uint64_t>(*ns);
       return {};
     },
     "with --memory: keep all allocations, and of everything else about this time before the end (60s)", "TIME"},
    {"--aggregate", recording_at<&Recording::writer, &trace::WriterOptions::aggregate>,
     "keep no events, only count, sum, min, max and histogram per name and shape"},
    {"--pool-size", choose_pool_size, "most shared memory between program and tacho (default 256M)", "SIZE"},
};

constexpr OptionRow<Request> kLateOptions[] = {
    {"--leave-cupti",
     [](Request& r, const std::string& text) -> Status {
       target(r).leave_cupti_idle = text == "idle";
       return {};
     },
     "CUDA: how to leave CUPTI: finalized, unless the program made or launched a graph meanwhile; or idle always",
     "HOW", "finalized idle", shows_default("finalized")},
};

}  // namespace

std::span<const OptionRow<TraceRequest>> trace_options() {
  return kOptions;
}

std::span<const OptionRow<TraceRequest>> late_options() {
  return kLateOptions;
}

std::span<const std::string_view> more_calls() {
  static constexpr std::string_view kNames[] = {"--driver-trace", "--all-api-calls", "--hsa-trace"};
  return kNames;
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
  // Who holds memory is an operator; programs without Python have the calls of the runtime.
  if (out.target.memory && may_run_python(r.launch.command)) r.launch.torch_trace = true;
  // Operators are ranges and find their kernels by the calls that launched them.
  r.launch.torch_trace = r.launch.torch_trace || r.launch.torch_shapes != launch::TorchShapes::kNone;
  if (r.launch.torch_trace) sources |= source::kMarker | source::kApi;
  if (out.target.memory) sources |= source::kAllocation | source::kMarker | source::kApi;
  const bool stacks = out.target.sampler != event::Sampler::kOff;
  if (stacks) sources |= source::kSample;
  out.sources = sources;
  out.target.launch_stacks = stacks && r.launch_stacks;
  out.target.sync_trace = out.target.sync_trace || r.system;
  out.target.profiler_api = out.start_paused;
  out.writer.overwrite = r.overwrite;
  TACHO_TRY(launch::check(out));
  return check_combination(r);
}

}  // namespace tacho::cli
