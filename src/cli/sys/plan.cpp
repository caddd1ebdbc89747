// Turns settings into a plan (plan.h).
#include "cli/sys/plan.h"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/cpu_events.h"
#include "cli/files/writer_names.h"
#include "cli/shared/suggest.h"
#include "event/records.h"

namespace tacho::cli::sys {

namespace {

Result<launch::Recording::Period> parse_period(const std::string& word, std::string& clock) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= word.size();) {
    const size_t end = std::min(word.find(':', at), word.size());
    parts.push_back(word.substr(at, end - at));
    at = end + 1;
  }
  launch::Recording::Period period{0, 0, 1};
  const auto number = [](const std::string& text, double& out) {
    char* end = nullptr;
    out = std::strtod(text.c_str(), &end);
    return !text.empty() && *end == '\0' && std::isfinite(out) && out >= 0;
  };
  double repeat = 1;
  if (parts.size() < 2 || parts.size() > 4 || !number(parts[0], period.delay_s) ||
      !number(parts[1], period.duration_s) ||
      (parts.size() > 2 && (!number(parts[2], repeat) || repeat < 1 || repeat > 1e9)))
    return fail("period '{}' is not DELAY:DURATION[:REPEAT[:CLOCK]], in seconds", word);
  period.repeat = static_cast<uint64_t>(repeat);
  if (parts.size() > 3) clock = parts[3];
  return period;
}

// The words of a setting, which commas, spaces or semicolons separate.
std::vector<std::string> words_in(std::string list) {
  for (char& c : list)
    if (c == ' ' || c == ';') c = ',';
  return words_of(list);
}

void choose_categories(const Settings& settings, Plan& plan) {
  uint64_t covered = 0, hidden = 0;
  const std::vector<std::string> enabled = words_in(settings.text("ENABLE_CATEGORIES")),
                                 disabled = words_in(settings.text("DISABLE_CATEGORIES"));
  const auto in = [](const std::vector<std::string>& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  // Telemetry belongs to its own category and to that of all processes or GPUs.
  const auto group = [](std::string_view name) {
    return name.starts_with("device_") ? std::string_view("amd_smi") : std::string_view("process_sampling");
  };
  for (const Category& category : categories()) {
    const bool telemetry = category.tables == 0;
    const bool on = enabled.empty() || in(enabled, category.name) || (telemetry && in(enabled, group(category.name)));
    const bool off = in(disabled, category.name) || (telemetry && in(disabled, group(category.name)));
    if (telemetry) {
      if (!on || off) plan.launch.recording.telemetry.hidden.insert(std::string(category.name));
    } else {
      if (on) covered |= category.tables;
      if (off) hidden |= category.tables;
    }
  }
  uint64_t all = 0;
  for (const Category& category : categories()) all |= category.tables;
  // Tables without a category stay.
  plan.exports.tables = ~all | (covered & ~hidden);
}

// CPU counters: an unknown name is a mistake; a counter that only this machine lacks causes a remark.
Status choose_cpu_events(Request& request, launch::Recording& recording) {
  std::string events, names, missing;
  size_t count = 0;
  for (const std::string& word : words_in(request.settings.text("PAPI_EVENTS"))) {
    if (word.empty()) continue;
    const CpuEvent* const event = find_cpu_event(word);
    const std::string sees = request.face == Face::kTacho ? "tacho sys avail -H" : "rocprof-sys-avail -H";
    if (event == nullptr) {
      std::vector<std::string> known;
      for (const CpuEvent& each : cpu_events())
        for (const std::string_view name : {each.perf, each.preset})
          if (!name.empty()) known.emplace_back(name);
      const std::string best = nearest(word, known);
      return fail("-C {}: there is no such CPU counter{}; {} lists them", word,
                  best.empty() ? "" : ", did you mean " + best, sees);
    }
    if (const int error = cpu_event_error(*event); error != 0) {
      const std::string sentence = fmt::format(
          "-C {}: this machine cannot count {} ({}); software events such as "
          "page-faults can be counted everywhere ({})",
          word, event->perf,
          error == ENOENT || error == ENODEV || error == EOPNOTSUPP ? "its CPU has, or shows, no such counter"
          : error == EACCES || error == EPERM ? "not permitted: sysctl kernel.perf_event_paranoid=2"
                                              : strerror(error),
          sees);
      if (request.settings.on("PAPI_FAIL_ON_ERROR")) return fail("{}", sentence);
      if (!request.settings.on("PAPI_QUIET")) request.remarks.push_back(sentence);
      continue;
    }
    if (++count > event::kMostCpuEvents) return fail("-C: {} CPU counters at most at once", event::kMostCpuEvents);
    events += fmt::format("{}{}:{}", events.empty() ? "" : ",", event->type, event->config);
    names += fmt::format("{}{}", names.empty() ? "" : ",", event->perf);
  }
  if (events.empty()) return {};
  recording.target.cpu_events = events;
  recording.target.cpu_event_names = names;
  recording.sources |= tape::source_bit::kCounter;
  return {};
}

// Which presets the mode and the outputs imply.
void choose_mode(Request& request, Plan& plan) {
  const Settings& settings = request.settings;
  if (const std::string mode = settings.text("MODE"); mode == "sampling" && !settings.given("USE_SAMPLING")) {
    request.settings.preset("USE_SAMPLING", "true");
  } else if (mode != "sampling" && mode != "trace") {
    request.remarks.push_back(fmt::format("ROCPROFSYS_MODE={}: tacho has trace and sampling", mode));
  }
  plan.profile = settings.on("PROFILE");
  plan.trace = settings.given("TRACE") || !plan.profile ? settings.on("TRACE") : false;
  if (!settings.given("PROFILE") && settings.given("TRACE") && !plan.trace) plan.profile = true;
  if (request.face == Face::kTacho && !settings.given("TRACE")) plan.trace = false;
  if (request.face == Face::kTacho && !settings.given("PROFILE")) plan.profile = false;
  plan.rocpd = settings.on("USE_ROCPD");
  plan.sampling = settings.on("USE_SAMPLING");
}

Status choose_sources(const Request& request, Plan& plan) {
  namespace source = tape::source_bit;
  const Settings& settings = request.settings;
  uint64_t sources = 0;
  if (settings.on("USE_ROCM")) {
    for (const std::string& raw : words_in(settings.text("ROCM_DOMAINS"))) {
      if (raw == "hip_runtime_api" || raw == "hip_api" || raw == "hip_compiler_api" || raw == "hsa_api" ||
          raw == "rccl_api")
        sources |= source::kApi | source::kSync | source::kOverhead;
      else if (raw == "marker_api" || raw == "roctx")
        sources |= source::kMarker;
      else if (raw == "kernel_dispatch")
        sources |= source::kDispatch;
      else if (raw == "memory_copy")
        sources |= source::kCopy;
      else if (raw == "memory_allocation")
        sources |= source::kAllocation;
      else if (raw != "scratch_memory" && raw != "page_migration" && raw != "rocdecode_api" && raw != "rocjpeg_api")
        return fail("ROCPROFSYS_ROCM_DOMAINS: there is no domain '{}'; choose hip_runtime_api, hsa_api, marker_api, "
                    "kernel_dispatch, memory_copy, memory_allocation, scratch_memory",
                    raw);
    }
    if (request.face == Face::kTacho && !settings.given("ROCM_DOMAINS")) sources |= source::kAll & ~source::kSample;
  }
  if (plan.sampling) sources |= source::kSample;
  plan.launch.torch_trace = request.torch_trace;
  plan.launch.torch_shapes = request.torch_shapes;
  plan.launch.follow = request.follow;
  const DeviceCounters& counters = request.device_counters;
  if (counters.hz != DeviceCounters().hz && counters.sampled.empty() && request.device_target.device_counters.empty())
    return fail("--device-counters-hz needs --device-counters: add that or leave --device-counters-hz out");
  plan.launch.recording.target.device_counters = request.device_target.device_counters;
  plan.launch.recording.target.device_counter_ms = request.device_target.device_counter_ms;
  if (request.torch_trace) sources |= source::kMarker | source::kApi;
  plan.launch.recording.sources = sources;
  return {};
}

Status choose_stacks(Request& request, launch::Recording& recording) {
  const Settings& settings = request.settings;
  event::Configuration& target = recording.target;
  const bool wall = settings.on("SAMPLING_REALTIME");
  if (wall && settings.on("SAMPLING_CPUTIME"))
    request.remarks.push_back(
        "CPU-time and wall-time sampling were both asked for: wall time is sampled, which holds the CPU "
        "time too");
  const std::string kind = wall ? "SAMPLING_REALTIME_" : "SAMPLING_CPUTIME_";
  double hz = settings.number(kind + "FREQ");
  if (hz <= 0) hz = settings.number("SAMPLING_FREQ");
  if (hz < 1 || hz > 10'000)
    return fail("{:g} samples a second: choose from 1 to 10000 (ROCPROFSYS_SAMPLING_FREQ)", hz);
  double delay = settings.number(kind + "DELAY");
  if (delay <= 0) delay = std::max(0.0, settings.number("SAMPLING_DELAY"));
  recording.sample_delay_s = delay;
  recording.sample_duration_s = std::max(0.0, settings.number("SAMPLING_DURATION"));
  std::string threads = settings.text(kind + "TIDS");
  if (threads.empty()) threads = settings.text("SAMPLING_TIDS");
  TACHO_ASSIGN(const std::set<int> numbers, parse_ranges(threads, "ROCPROFSYS_SAMPLING_TIDS"));
  target.sampler = request.sampler;
  target.sample_hz = static_cast<uint32_t>(std::nearbyint(hz));
  target.sample_clock = wall ? event::SampleClock::kWall : event::SampleClock::kCpu;
  target.sample_stack = request.sample_stack;
  target.launch_stacks = request.launch_stacks;
  std::replace(threads.begin(), threads.end(), ' ', ',');
  if (!numbers.empty()) target.sample_threads = threads;
  return {};
}

Status choose_telemetry(const Request& request, launch::TelemetryOptions& telemetry) {
  const Settings& settings = request.settings;
  telemetry.cpu = telemetry.process = settings.on("CPU_FREQ_ENABLED");
  telemetry.gpu = settings.on("USE_AMD_SMI");
  const auto numbers = [&](const char* name, std::optional<std::set<int>>& out) -> Status {
    const std::string list = settings.text(name);
    if (list == "all" || list.empty()) return {};
    if (list == "none") {
      out = std::set<int>{};
      return {};
    }
    TACHO_ASSIGN(out, parse_ranges(list, std::string(kPrefix) + name));
    return {};
  };
  // -H alone asks for every core.
  if (settings.given("SAMPLING_CPUS")) TACHO_TRY(numbers("SAMPLING_CPUS", telemetry.cpus));
  TACHO_TRY(numbers("SAMPLING_GPUS", telemetry.gpus));
  const std::string metrics = settings.text("AMD_SMI_METRICS");
  if (metrics != "all" && !metrics.empty() &&
      (request.face == Face::kRocprofSys || settings.given("AMD_SMI_METRICS"))) {
    std::set<std::string> chosen;
    for (const std::string& word : words_in(metrics)) {
      if (word == "none" || word == "vcn_activity" || word == "jpeg_activity") continue;
      if (std::find(std::begin(launch::kGpuMetrics), std::end(launch::kGpuMetrics), word) ==
          std::end(launch::kGpuMetrics))
        return fail("ROCPROFSYS_AMD_SMI_METRICS: there is no metric '{}'; choose busy, "
                    "temp, power, mem_usage, clock, pcie, link, energy",
                    word);
      chosen.insert(word);
    }
    telemetry.gpu_metrics = chosen;
  }
  telemetry.hz = settings.number("PROCESS_SAMPLING_FREQ");
  if (telemetry.hz <= 0) telemetry.hz = std::min(50.0, std::max(1.0, settings.number("SAMPLING_FREQ")));
  telemetry.hz = std::min(telemetry.hz, 1000.0);
  const double duration = settings.number("PROCESS_SAMPLING_DURATION");
  telemetry.duration_s = duration >= 0 ? duration : std::max(0.0, settings.number("SAMPLING_DURATION"));
  return {};
}

Status choose_periods(const Settings& settings, launch::Recording& recording) {
  recording.delay_s = std::max(0.0, settings.number("TRACE_DELAY"));
  recording.delay_option = "the trace delay";
  recording.duration_s = std::max(0.0, settings.number("TRACE_DURATION"));
  std::string clock = settings.text("TRACE_PERIOD_CLOCK_ID");
  for (const std::string& word : words_in(settings.text("TRACE_PERIODS"))) {
    TACHO_ASSIGN(const auto period, parse_period(word, clock));
    recording.periods.push_back(period);
  }
  std::string clock_name = clock;
  for (char& c : clock_name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (clock_name.find("cpu") != std::string::npos)
    return fail("ROCPROFSYS_TRACE_PERIOD_CLOCK_ID={}: periods by CPU time are not possible; use realtime or monotonic",
                clock);
  return {};
}

Status choose_size(const Settings& settings, trace::WriterOptions& writer) {
  const std::string policy = settings.text("PERFETTO_FILL_POLICY");
  if (policy != "discard" && policy != "fill" && policy != "ring_buffer")
    return fail("ROCPROFSYS_PERFETTO_FILL_POLICY={}: choose discard or ring_buffer", policy);
  const double kilobytes = settings.number("PERFETTO_BUFFER_SIZE_KB");
  if (kilobytes <= 0) return fail("ROCPROFSYS_PERFETTO_BUFFER_SIZE_KB={:g}: must be positive", kilobytes);
  if (policy == "ring_buffer")
    writer.ring_size = static_cast<uint64_t>(kilobytes * 1024);
  else if (settings.given("PERFETTO_BUFFER_SIZE_KB"))
    writer.max_size = static_cast<uint64_t>(kilobytes * 1024);
  return {};
}

Status choose_tables(Request& request, Plan& plan) {
  const Settings& settings = request.settings;
  plan.exports.rocprof_sys = true;
  plan.exports.annotations = settings.on("PERFETTO_ANNOTATIONS");
  plan.exports.group_by_queue = settings.on("ROCM_GROUP_BY_QUEUE");
  plan.exports.overwrite = true;
  format::timemory::Options& tables = plan.tables;
  tables.collapse_threads = settings.on("COLLAPSE_THREADS");
  tables.flat = settings.on("FLAT_PROFILE");
  tables.timeline = settings.on("TIMELINE_PROFILE");
  tables.max_depth = static_cast<int64_t>(settings.number("MAX_DEPTH"));
  tables.max_width = static_cast<int64_t>(settings.number("MAX_WIDTH"));
  double precision = settings.number("TIMING_PRECISION");
  if (precision < 0) precision = settings.number("PRECISION");
  tables.precision = precision < 0 ? 6 : static_cast<int>(std::min(precision, 15.0));
  tables.scientific = settings.on("TIMING_SCIENTIFIC");
  tables.tree = settings.on("TREE_OUTPUT");
  tables.time_unit = settings.text("TIMING_UNITS");
  tables.tables = plan.exports.tables;
  if (!format::timemory::unit_seconds(tables.time_unit))
    return fail("ROCPROFSYS_TIMING_UNITS={}: choose sec, msec, usec, nsec or min", tables.time_unit);
  for (const std::string& component : words_in(settings.text("TIMEMORY_COMPONENTS"))) {
    if (component == "wall_clock" || component == "trip_count")
      plan.components.push_back(component);
    else
      request.remarks.push_back(fmt::format(
          "ROCPROFSYS_TIMEMORY_COMPONENTS: {} is not one that tacho has (wall_clock, trip_count)", component));
  }
  return {};
}

}  // namespace

Result<Plan> make_plan(Request& request) {
  const Settings& settings = request.settings;
  Plan plan;
  launch::Recording& recording = plan.launch.recording;
  plan.launch.command = request.command;
  for (const auto& variable : settings.program_environment()) plan.launch.environment.push_back(variable);
  choose_mode(request, plan);
  TACHO_TRY(choose_sources(request, plan));
  TACHO_TRY(choose_cpu_events(request, recording));
  choose_categories(settings, plan);
  if (plan.sampling) TACHO_TRY(choose_stacks(request, recording));
  if (settings.on("USE_PROCESS_SAMPLING")) TACHO_TRY(choose_telemetry(request, recording.telemetry));
  TACHO_TRY(choose_periods(settings, recording));
  TACHO_TRY(choose_size(settings, recording.writer));
  TACHO_TRY(choose_tables(request, plan));
  TACHO_TRY(launch::check(recording));
  return plan;
}

}  // namespace tacho::cli::sys
