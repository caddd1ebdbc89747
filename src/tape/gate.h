// What opens and closes recording while a run goes on. Several things do, each for a reason of its own: time (--delay,
// --duration, collection periods), triggers, and the program (tacho_pause(), roctxProfilerResume(),
// cudaProfilerStart()). Recording is on while none of them keeps it closed, so that none reopens what another has
// closed.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "tape/layout.h"

namespace tacho::tape {

/// The sources that are on while `closed` (bits of gate) holds; 0 = paused.
inline uint64_t open_sources(uint32_t closed, uint64_t sources) {
  if ((closed & (gate::kTime | gate::kTrigger | gate::kProgram)) != 0) return 0;
  const uint64_t open = sources | source_bit::kRecording;
  return (closed & gate::kSampleTime) != 0 ? open & ~source_bit::kSample : open;
}

/// Opens or closes gates, from any thread of any process. Returns whether recording is now on where it was off, or off
/// where it was on; PoolHeader::enabled says which. Asked by the program, gate::kProgram stays as it is in runs that do
/// not obey the program.
inline bool set_gate(PoolHeader& header, uint32_t bits, bool open) {
  if (header.ignores_program != 0) bits &= ~gate::kProgram;
  const uint32_t was = open ? header.closed.fetch_and(~bits, std::memory_order_acq_rel)
                            : header.closed.fetch_or(bits, std::memory_order_acq_rel);
  const uint32_t wanted = open ? was & ~bits : was | bits;
  if (wanted == was) return false;
  // Another thread may change another gate meanwhile: the last word is that of the gates.
  for (;;) {
    const uint32_t closed = header.closed.load(std::memory_order_acquire);
    header.enabled.store(open_sources(closed, header.sources), std::memory_order_release);
    if (header.closed.load(std::memory_order_acquire) == closed) break;
  }
  const uint64_t before = open_sources(was, header.sources), now = open_sources(wanted, header.sources);
  if (before == now) return false;
  const uint64_t number = header.changed.fetch_add(1, std::memory_order_relaxed);
  GateChange& change = header.changes[number % kGateChanges];
  change.number.store(0, std::memory_order_relaxed);
  change.ticks.store(host_ticks(), std::memory_order_release);
  change.sources.store(now, std::memory_order_release);
  change.number.store(number + 1, std::memory_order_release);
  if (now != 0) header.ever_open.store(1, std::memory_order_relaxed);
  return (before == 0) != (now == 0);
}

/// What the launch that was counted does to recording.
struct LaunchTriggers {
  bool starts = false, stops = false;
};

/// Counts a launch of the run. `ahead` = 1: the caller counts when the launch has happened, so that a trigger concerns
/// the next one. The caller opens and closes gate::kTrigger.
inline LaunchTriggers count_run_launch(PoolHeader& header, uint64_t ahead) {
  const uint64_t launch = header.launches.fetch_add(1, std::memory_order_relaxed) + 1 + ahead;
  LaunchTriggers triggers{launch == header.start_launch, launch == header.stop_launch};
  if (__builtin_expect(triggers.starts, 0)) header.trigger_start.fetch_add(1, std::memory_order_relaxed);
  if (__builtin_expect(triggers.stops, 0)) header.trigger_stop.fetch_add(1, std::memory_order_relaxed);
  return triggers;
}

}  // namespace tacho::tape
