// Triggers, and options that exclude each other (recording.h).
#include "launch/recording.h"

#include <signal.h>

#include <charconv>
#include <tuple>

#include "base/text/name_filter.h"

namespace tacho::launch {

Result<Trigger> parse_trigger(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon != std::string::npos) {
    const std::string kind = text.substr(0, colon), value = text.substr(colon + 1);
    Trigger trigger;
    if (kind == "marker" && !value.empty()) {
      trigger.kind = Trigger::Kind::kMarker;
      trigger.marker = value;
      return trigger;
    }
    if (kind == "launch") {
      trigger.kind = Trigger::Kind::kLaunch;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), trigger.launch);
      if (error == std::errc() && end == value.data() + value.size() && trigger.launch > 0) return trigger;
    }
    if (kind == "signal") {
      trigger.kind = Trigger::Kind::kSignal;
      static constexpr std::pair<const char*, int> kSignals[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}};
      for (const auto& [name, number] : kSignals)
        if (value == name || value == std::string("SIG") + name) {
          trigger.signal = number;
          return trigger;
        }
    }
  }
  return fail("trigger '{}' is none of marker:TEXT, signal:USR1|USR2|HUP, launch:N (N from 1)", text);
}

uint32_t Recording::closed_gates() const {
  uint32_t closed = 0;
  if ((periods.empty() ? delay_s : periods.front().delay_s) > 0) closed |= tape::gate::kTime;
  // The first launch alone: recording begins with the program. A trigger is what --start-paused waits for.
  const bool triggered = start_trigger.kind != Trigger::Kind::kNone;
  if (triggered && (start_paused || start_trigger.launch != 1)) closed |= tape::gate::kTrigger;
  if (start_paused && !triggered) closed |= tape::gate::kProgram;
  if (sample_delay_s > 0) closed |= tape::gate::kSampleTime;
  return closed;
}

Status check(const Recording& recording) {
  OwnNameFilter filter;
  char reason[256];
  for (const auto& [side, option, text] :
       {std::tuple(NameFilter::Side::kInclude, "--kernel-include", &recording.target.kernel_include),
        std::tuple(NameFilter::Side::kExclude, "--kernel-exclude", &recording.target.kernel_exclude)})
    if (!filter.set(side, text->c_str(), reason, sizeof reason))
      return fail("{} '{}' is not a regular expression: {}", option, *text, reason);
  if (recording.writer.aggregate && recording.writer.ring_size != 0)
    return fail("--aggregate keeps no events, so --ring has nothing to keep: choose one");
  if (recording.writer.memory_keep_ns != 0 && (recording.writer.aggregate || recording.writer.ring_size != 0))
    return fail("--memory-keep is a ring by time of everything but memory: leave {} out",
                recording.writer.aggregate ? "--aggregate" : "--ring");
  if (recording.target.sampler == event::Sampler::kPerf && recording.target.sample_clock == event::SampleClock::kWall)
    return fail("--sampler perf samples CPU time; for wall time use --sampler timer");
  return {};
}

}  // namespace tacho::launch
