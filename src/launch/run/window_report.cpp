// Sentences about windows that never opened (window_report.h).
#include "launch/run/window_report.h"

#include <fmt/format.h>
#include <string.h>

#include "base/format.h"

namespace tacho::launch {
namespace {

std::string awaited_trigger(const Recording& recording, const tape::PoolHeader& header) {
  const Trigger& trigger = recording.start_trigger;
  switch (trigger.kind) {
    case Trigger::Kind::kMarker:
      return fmt::format("the program set no marker '{}' (--start-trigger)", trigger.marker);
    case Trigger::Kind::kSignal:
      return fmt::format("tacho got no SIG{} (--start-trigger)", sigabbrev_np(trigger.signal));
    case Trigger::Kind::kLaunch: {
      const uint64_t launches = header.launches.load(std::memory_order_relaxed);
      return fmt::format("the program launched {} kernel{}, and --start-trigger launch:{} waits for number {}",
                         launches, launches == 1 ? "" : "s", trigger.launch, trigger.launch);
    }
    case Trigger::Kind::kNone:
      break;
  }
  return "no trigger fired";
}

}  // namespace

std::string never_began(const Recording& recording, const tape::PoolHeader& header, double seconds) {
  if (header.ever_open.load(std::memory_order_relaxed) != 0) return {};
  const uint32_t closed = header.closed.load(std::memory_order_relaxed);
  const std::string begin = "recording never began: ";
  if ((closed & tape::gate::kTime) != 0 && recording.periods.empty() && seconds < recording.delay_s)
    return begin + fmt::format("the program ended after {:.3g} s, before {} of {:.6g} s was over", seconds,
                               recording.delay_option, recording.delay_s);
  if ((closed & tape::gate::kTime) != 0 && !recording.periods.empty() && seconds < recording.periods.front().delay_s)
    return begin + fmt::format("the program ended after {:.3g} s, before its first collection period at {:.6g} s",
                               seconds, recording.periods.front().delay_s);
  if ((closed & tape::gate::kTrigger) != 0 && header.trigger_start.load(std::memory_order_relaxed) == 0 &&
      recording.start_trigger.kind != Trigger::Kind::kNone)
    return begin + awaited_trigger(recording, header);
  if ((closed & tape::gate::kProgram) != 0 && recording.start_paused)
    return begin + fmt::format("the program called {} ({})", recording.resume_calls, recording.paused_option);
  if ((closed & tape::gate::kProgram) != 0) return begin + "the program had paused it while the time for it passed";
  return begin + "the times and triggers that were asked for left no moment for it";
}

}  // namespace tacho::launch
