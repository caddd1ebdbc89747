// Which of `tacho trace`'s options need another one, and which contradict each other (recording_options.h). An option
// without effect would be found out after the run, so it is refused before.
#include <algorithm>

#include "cli/options/recording_options.h"

namespace tacho::cli {
namespace {

namespace source = tape::source_bit;

struct Need {
  std::string_view option, needed;
  bool (*met)(const TraceRequest& request);
};

bool samples(const TraceRequest& r) {
  return r.launch.recording.target.sampler != event::Sampler::kOff;
}
template <uint64_t kSources>
bool records(const TraceRequest& r) {
  return (r.launch.recording.sources & kSources) != 0;
}

constexpr std::string_view kCalls = "API calls, which --runtime-trace and --sys-trace record",
                           kKernels = "kernels, which --kernel-trace, --runtime-trace and --sys-trace record";
constexpr Need kNeeds[] = {
    {"--sample-hz", "--sampler timer or perf", samples},
    {"--sample-clock", "--sampler timer or perf", samples},
    {"--sample-stack", "--sampler timer or perf", samples},
    {"--no-launch-stacks", "--sampler timer or perf", samples},
    {"--telemetry-hz", "--telemetry cpu, process or gpu",
     [](const TraceRequest& r) {
       const launch::TelemetryOptions& telemetry = r.launch.recording.telemetry;
       return telemetry.cpu || telemetry.process || telemetry.gpu;
     }},
    {"--device-counters-hz", "--device-counters",
     [](const TraceRequest& r) {
       return !r.launch.recording.target.device_counters.empty() || !r.device_counters.sampled.empty();
     }},
    {"--rpd-schema", "-f rpd",
     [](const TraceRequest& r) {
       return std::find(r.formats.begin(), r.formats.end(), "rpd") != r.formats.end() || r.output.ends_with(".rpd");
     }},
    {"--api-args", "API calls, kernels or copies among what is recorded",
     records<source::kApi | source::kDispatch | source::kCopy>},
    {"--sync-trace", "the waits that --runtime-trace and --sys-trace record", records<source::kSync>},
    {"--memory-keep", "--memory", [](const TraceRequest& r) { return r.launch.recording.target.memory; }},
    {"--graph-trace", kKernels, records<source::kDispatch>},
    {"--kernel-include", kKernels, records<source::kDispatch>},
    {"--kernel-exclude", kKernels, records<source::kDispatch>},
};

bool same_event(const launch::Trigger& a, const launch::Trigger& b) {
  return a.kind != launch::Trigger::Kind::kNone && a.kind == b.kind && a.marker == b.marker && a.signal == b.signal &&
         a.launch == b.launch;
}

}  // namespace

Status check_combination(const TraceRequest& request) {
  std::vector<Need> needs(std::begin(kNeeds), std::end(kNeeds));
  for (const std::string_view option : more_calls()) needs.push_back({option, kCalls, records<source::kApi>});
  for (const Need& need : needs)
    if (std::find(request.given.begin(), request.given.end(), need.option) != request.given.end() && !need.met(request))
      return fail("{} needs {}: add that or leave {} out", need.option, need.needed, need.option);
  const launch::Recording& recording = request.launch.recording;
  if (recording.writer.aggregate && recording.writer.max_size != 0)
    return fail("--aggregate keeps no events, so --max-size has nothing to limit: choose one");
  if (same_event(recording.start_trigger, recording.stop_trigger))
    return fail("--start-trigger and --stop-trigger name the same event, so recording would never be on: change one");
  return {};
}

}  // namespace tacho::cli
