// A tracing run from options to summary (run_target.h).
#include "cli/shared/run_target.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "cli/command.h"
#include "cli/export.h"
#include "cli/shared/suggest.h"
#include "cli/shared/summary.h"
#include "trace/trace.h"

namespace tacho::cli {

void add_trace_options(CLI::App& app, TraceRequest& r) {
  app.add_option("-o,--output", r.output,
                 "trace file (default: <command>.tacho, with a number when that is taken)");
  app.add_option_function<std::string>(
         "-f,--format",
         [&r](const std::string& list) {
           for (std::string& name : words_of(list)) r.formats.push_back(std::move(name));
         },
         "what to write: tacho (default), csv, json, pftrace, rpd, rocpd ... (several with commas)")
      ->type_name("FORMAT");
  app.add_option("--rpd-schema", r.rpd_schema, "-f rpd: schema version")
      ->check(CLI::IsMember({2, 3}))
      ->capture_default_str();
  app.add_flag("--overwrite", r.overwrite, "replace existing outputs");
  app.add_flag("--quiet,-q", r.launch.quiet, "no status line and no summary");
  auto* what = app.add_option_group("What to record (default: everything that is cheap)");
  what->add_flag("--kernel-trace", r.kernels, "kernels");
  what->add_flag("--memory-copy-trace", r.copies, "copies and fills");
  what->add_flag("--memory-allocation-trace", r.allocations, "allocations");
  what->add_flag("--runtime-trace", r.runtime, "API calls, kernels, copies, allocations, markers");
  what->add_flag("--marker-trace", r.markers, "markers: tacho.h, ROCTx, NVTX");
  what->add_flag("--sys-trace", r.system, "everything");
  what->add_option("--kernel-include", r.kernel_include,
                   "only kernels whose name matches this regular expression")
      ->type_name("REGEX");
  what->add_option("--kernel-exclude", r.kernel_exclude, "no kernels whose name matches")->type_name("REGEX");
  what->add_flag("--driver-trace", r.driver_trace, "CUDA: every driver call, not only those that launch");
  what->add_flag(
      "--sync-trace", r.sync_trace,
      "CUDA: waiting as records of its own, with stream and event; lengthens short steps by a fifth");
  what->add_flag("--all-api-calls", r.all_api_calls, "CUDA: also calls that only ask, such as cudaGetDevice");
  what->add_option("--graph-trace", r.graph_trace, "CUDA graphs: one span a launch, or every node")
      ->check(CLI::IsMember({"graph", "node"}))
      ->capture_default_str();
  what->add_flag("--yield-to-app", r.yield_to_app, "CUDA: leave CUPTI to a program that uses it itself");
  what->add_flag("--cupti-clock", r.cupti_clock, "CUDA: times by CUPTI's own clock, converted afterwards");
  what->add_option("--cupti-device-buffers", r.cupti_device_buffers,
                   "CUDA: most device buffers of CUPTI per context (default: CUPTI's, 250)")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  auto* stacks = app.add_option_group("Call stacks of the host");
  stacks
      ->add_option("--sampler", r.sampler,
                   "timer: every thread's call stack, native and Python; perf: from outside, for programs "
                   "that cannot load libtacho.so, native only")
      ->check(CLI::IsMember({"off", "timer", "perf"}))
      ->capture_default_str();
  stacks->add_option("--sample-hz", r.sample_hz, "samples a second and thread")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  stacks
      ->add_option("--sample-clock", r.sample_clock, "cpu: while the thread runs; wall: also while it waits")
      ->check(CLI::IsMember({"cpu", "wall"}))
      ->capture_default_str();
  stacks
      ->add_option("--sample-stack", r.sample_stack,
                   "bytes of stack copied per sample at most; deeper frames are cut")
      ->check(CLI::Range(512, 57344))
      ->capture_default_str()
      ->type_name("BYTES");
  stacks->add_flag("!--no-launch-stacks", r.launch_stacks,
                   "do not read the Python stack at every call that launches device work");
  auto* machine = app.add_option_group("Telemetry of the machine, the program's processes and GPUs");
  machine->add_option("--telemetry", r.telemetry, "cpu, process, gpu (several with commas), all or off")
      ->capture_default_str();
  machine->add_option("--telemetry-hz", r.telemetry_hz, "readings a second")
      ->check(CLI::Range(0.01, 1000.0))
      ->capture_default_str()
      ->type_name("N");
  auto* when = app.add_option_group("When to record");
  when->add_flag("--start-paused", r.launch.start_paused, "record nothing until tacho_resume() or a trigger");
  when->add_option("--delay", r.launch.delay_s, "start after so many seconds")
      ->check(check_seconds)
      ->type_name("S");
  when->add_option("--duration", r.launch.duration_s, "record so many seconds")
      ->check(check_seconds)
      ->type_name("S");
  when->add_option("--start-trigger", r.start_trigger, "marker:TEXT, signal:USR1 (sent to tacho) or launch:N")
      ->type_name("WHAT");
  when->add_option("--stop-trigger", r.stop_trigger, "likewise")->type_name("WHAT");
  auto* keep = app.add_option_group("How much to keep");
  keep->add_option("--max-size", r.max_size, "stop recording events at this file size (64M, 2G)")
      ->type_name("SIZE");
  keep->add_option("--ring", r.ring, "keep only the newest events, about so many bytes")->type_name("SIZE");
  keep->add_flag("--aggregate", r.aggregate,
                 "keep no events, only count, sum, min, max and histogram per name and shape");
  keep->add_option("--pool-size", r.pool_size, "most shared memory between program and tacho (default 256M)")
      ->type_name("SIZE");
}

Result<std::vector<std::string>> target_command(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  if (!words.empty() && words.front() == "--") {
    words.erase(words.begin());
  } else if (!words.empty() && words.front().starts_with("-")) {
    return fail("there is no option {}{}; see {} --help", words.front(), suggestion(app, words.front()),
                app.get_name());
  }
  if (words.empty()) return fail("no command to run; write it after --, as in: {} -- ./app", app.get_name());
  return words;
}

std::string option_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  if (!message.empty() && message.back() == '\n') message.pop_back();
  if (const size_t at = message.find("--");
      at != std::string::npos && message.find("not expected") != std::string::npos) {
    const std::string word = message.substr(at, message.find_first_of(" =", at) - at);
    message += suggestion(app, word);
  }
  return message + "; see " + app.get_name() + " --help";
}

std::string check_seconds(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value >= 0)
    return {};
  return fmt::format("'{}': expected seconds, a number from 0 on", text);
}

Result<uint64_t> parse_size(const std::string& text) {
  size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used > 0 && std::isfinite(value) && value > 0) {
    std::string unit = text.substr(used);
    if (unit.size() > 1 && (unit.back() == 'B' || unit.back() == 'b')) unit.pop_back();
    if (unit.size() > 1 && unit.back() == 'i') unit.pop_back();
    static constexpr const char* kUnits = "kmgt";
    double factor = 1;
    bool known = unit.empty() || unit == "B";
    for (int i = 0; i < 4 && unit.size() == 1; ++i)
      if (std::tolower(static_cast<unsigned char>(unit[0])) == kUnits[i]) {
        factor = std::pow(1024.0, i + 1);
        known = true;
      }
    if (known && value * factor < 9e18) return static_cast<uint64_t>(value * factor);
  }
  return fail("'{}' is not a size; write bytes or a number with k, M, G or T, as in 64M", text);
}

std::string free_name(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(name, ignored)) return name;
  const fs::path path(name);
  for (int i = 1;; ++i) {
    fs::path candidate =
        path.parent_path() / fmt::format("{}.{}{}", path.stem().string(), i, path.extension().string());
    if (!fs::exists(candidate, ignored)) return candidate.string();
  }
}

namespace {

// Files beside the trace, in -f's order; the names were found free, or were asked for, before the start.
struct Extra {
  const format::Writer* writer;
  ExportPlace place;
};

// The output itself is always recorded; without "tacho" in -f it is a file that goes away after the exports.
Status prepare_formats(const TraceRequest& r, std::vector<Extra>& extras) {
  namespace fs = std::filesystem;
  for (const std::string& name : r.formats) {
    if (name == "tacho") continue;
    TACHO_ASSIGN(const format::Writer* const writer, writer_of(name));
    Extra extra{writer, {r.launch.output, "", fs::path(r.launch.output).parent_path().string()}};
    if (!writer->folder) {
      extra.place.file = fs::path(r.launch.output).replace_extension(writer->extension).string();
      std::error_code ignored;
      if (!r.overwrite && fs::exists(extra.place.file, ignored)) {
        if (!r.output.empty())
          return fail("{} exists; give another -o, or --overwrite to replace it", extra.place.file);
        extra.place.file = free_name(extra.place.file);
      }
      extra.place.folder.clear();
    }
    extras.push_back(std::move(extra));
  }
  return {};
}

bool keeps_trace(const TraceRequest& r) {
  return r.formats.empty() || std::find(r.formats.begin(), r.formats.end(), "tacho") != r.formats.end();
}

Status choose_telemetry(TraceRequest& r) {
  launch::TelemetryOptions& telemetry = r.launch.telemetry;
  for (const std::string& word : words_of(r.telemetry)) {
    if (word == "cpu" || word == "all") telemetry.cpu = true;
    if (word == "process" || word == "all") telemetry.process = true;
    if (word == "gpu" || word == "all") telemetry.gpu = true;
    if (word != "cpu" && word != "process" && word != "gpu" && word != "all" && word != "off")
      return fail("--telemetry {}: choose cpu, process, gpu (several with commas), all or off", word);
  }
  if (telemetry.any()) telemetry.hz = r.telemetry_hz;
  return {};
}

Status prepare(TraceRequest& r) {
  namespace source = tape::source_bit;
  uint64_t sources = 0;
  if (r.kernels) sources |= source::kDispatch;
  if (r.copies) sources |= source::kCopy;
  if (r.allocations) sources |= source::kAllocation;
  if (r.markers) sources |= source::kMarker;
  if (r.runtime)
    sources |= source::kApi | source::kDispatch | source::kCopy | source::kAllocation | source::kMarker |
               source::kSync;
  if (r.system || sources == 0) sources = source::kAll;
  if (r.sampler != "off") sources |= source::kSample;
  r.launch.sources = sources;
  if (!r.max_size.empty()) {
    TACHO_ASSIGN(r.launch.writer.max_size, parse_size(r.max_size));
  }
  if (!r.ring.empty()) {
    TACHO_ASSIGN(r.launch.writer.ring_size, parse_size(r.ring));
  }
  if (!r.pool_size.empty()) {
    TACHO_ASSIGN(r.launch.pool_max, parse_size(r.pool_size));
    r.launch.pool_initial = std::min(r.launch.pool_initial, r.launch.pool_max);
  }
  if (r.aggregate && !r.ring.empty())
    return fail("--aggregate keeps no events, so --ring has nothing to keep: choose one");
  r.launch.writer.aggregate = r.aggregate;
  r.launch.writer.overwrite = r.overwrite;
  if (!r.start_trigger.empty()) {
    TACHO_ASSIGN(r.launch.start_trigger, launch::parse_trigger(r.start_trigger));
  }
  if (!r.stop_trigger.empty()) {
    TACHO_ASSIGN(r.launch.stop_trigger, launch::parse_trigger(r.stop_trigger));
  }
  auto& config = r.launch.config;
  if (!r.kernel_include.empty()) config.emplace_back("kernel_include", r.kernel_include);
  if (!r.kernel_exclude.empty()) config.emplace_back("kernel_exclude", r.kernel_exclude);
  config.emplace_back("driver_trace", r.driver_trace ? "all" : "launch");
  config.emplace_back("graph_trace", r.graph_trace);
  if (r.sync_trace || r.system) config.emplace_back("sync_trace", "1");
  if (r.all_api_calls) config.emplace_back("api_calls", "all");
  if (r.yield_to_app) config.emplace_back("yield_to_app", "1");
  if (r.cupti_clock) config.emplace_back("cupti_clock", "cupti");
  if (r.cupti_device_buffers != 0)
    config.emplace_back("cupti_device_pool", std::to_string(r.cupti_device_buffers));
  if (r.launch.start_paused) config.emplace_back("profiler_api", "1");
  if (r.sampler != "off") {
    config.emplace_back("sampler", r.sampler);
    config.emplace_back("sample_hz", std::to_string(r.sample_hz));
    config.emplace_back("sample_clock", r.sample_clock);
    config.emplace_back("sample_stack", std::to_string(r.sample_stack));
    config.emplace_back("launch_stacks", r.launch_stacks ? "1" : "0");
    if (r.sampler == "perf") {
      if (r.sample_clock == "wall")
        return fail("--sampler perf samples CPU time; for --sample-clock wall use --sampler timer");
      r.launch.perf_hz = r.sample_hz;
      r.launch.perf_stack = r.sample_stack;
    }
  }
  TACHO_TRY(choose_telemetry(r));
  for (const auto& [key, value] : config)
    if (value.find('\n') != std::string::npos) return fail("--{}: a line break cannot be in it", key);
  if (r.output.empty()) {
    std::string base = std::filesystem::path(r.launch.command[0]).filename().string();
    if (base.empty()) base = "trace";
    r.launch.output = r.overwrite ? base + ".tacho" : free_name(base + ".tacho");
  } else {
    r.launch.output = r.output;
    std::error_code ignored;
    if (!r.overwrite && std::filesystem::exists(r.output, ignored))
      return fail("{} exists; give another -o, or --overwrite to replace it", r.output);
    const auto folder = std::filesystem::path(r.output).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
      return fail("{}: the folder {} does not exist", r.output, folder.string());
  }
  return {};
}

}  // namespace

int run_target(TraceRequest& request) {
  if (const Status ready = prepare(request); !ready) return complain(kOwnError, ready.error().message);
  std::vector<Extra> extras;
  if (const Status ready = prepare_formats(request, extras); !ready)
    return complain(kOwnError, ready.error().message);
  const bool keep = keeps_trace(request);
  if (!keep) {
    // The exports take their names from the output; the recording itself lies hidden beside it and goes at the end.
    const auto path = std::filesystem::path(request.launch.output);
    request.launch.output =
        (path.parent_path() / fmt::format(".{}.{}.tacho", path.stem().string(), getpid())).string();
    request.launch.writer.durable = false;
  }
  const auto outcome = launch::run(request.launch);
  if (!outcome) return complain(outcome.error().exit_code, outcome.error().message);
  if (!outcome->written) {
    complain(kOwnError, outcome->written.error().message);
    return outcome->exit_code;
  }
  const auto trace = trace::Trace::open(request.launch.output);
  if (!trace) {
    complain(kOwnError, trace.error().message);
    return outcome->exit_code;
  }
  SummaryOptions options;
  options.kept = keep;
  ignore_file_size_signal();
  for (const Extra& extra : extras) {
    format::ExportOptions export_options;
    export_options.overwrite = request.overwrite;
    export_options.statistics = true;
    export_options.rpd_schema = request.rpd_schema;
    if (const Status done =
            export_trace(**trace, *extra.writer, extra.place, export_options, options.written);
        !done)
      return complain(kOwnError, fmt::format("{}; the recording is kept in {} (tacho export writes it anew)",
                                             done.error().message, request.launch.output));
  }
  if (!request.shown_as.empty()) options.written = {request.shown_as};
  if (!request.launch.quiet) {
    const std::string text = summary_text(**trace, report::screen_of(STDERR_FILENO), options);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  if (!keep) unlink(request.launch.output.c_str());
  return outcome->exit_code;
}

}  // namespace tacho::cli
