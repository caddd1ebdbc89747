// Clocks. Trace time is CLOCK_MONOTONIC_RAW in ns. Traced programs stamp their records with host ticks, the cheapest
// clock that is safe on this machine: the TSC if the kernel itself trusts it, else CLOCK_MONOTONIC_RAW through the
// vDSO. Everything here may run inside a traced program: it takes no lock, allocates nothing and has no static
// constructors.
#pragma once

#include <time.h>
#include <x86gprintrin.h>

#include <cstdint>

namespace tacho {

inline int64_t read_clock(clockid_t id) {
  timespec time{};
  clock_gettime(id, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}
/// CLOCK_MONOTONIC_RAW, ns.
inline int64_t raw_now() {
  return read_clock(CLOCK_MONOTONIC_RAW);
}

namespace clock_internal {
extern bool g_use_tsc;  // set once by choose_host_clock(), before any thread reads host ticks for a record
}

/// Reads the host clock: TSC ticks, or CLOCK_MONOTONIC_RAW in ns (see host_clock_is_tsc()). The read is not ordered
/// against other memory accesses.
inline uint64_t host_ticks() {
  return clock_internal::g_use_tsc ? __rdtsc() : static_cast<uint64_t>(raw_now());
}
inline bool host_clock_is_tsc() {
  return clock_internal::g_use_tsc;
}

/// Whether the TSC can stamp records, and if not, why not.
enum class TscState {
  kUsable,
  kNotInvariant,      // the CPU does not promise a constant rate
  kNotTrusted,        // the kernel itself keeps time with another clock
  kKernelDoesNotSay,  // the kernel's clocksource cannot be read, for example because /sys is not mounted
};
TscState tsc_state();

/// Chooses the host clock: the TSC if the CPU calls it invariant and the kernel's clocksource is tsc, else
/// CLOCK_MONOTONIC_RAW. Reads one sysfs file. Every process of a machine gets the same answer. Idempotent.
void choose_host_clock();

/// One moment in all clocks: the TSC in ticks, the others in ns. `uncertainty` is half the time between the two reads
/// of CLOCK_MONOTONIC_RAW that enclose all others, ns.
struct ClockTuple {
  uint64_t tsc = 0;
  int64_t raw = 0, monotonic = 0, boottime = 0, realtime = 0;
  int64_t uncertainty = 0;
};
/// Takes five samples and returns the one with the smallest uncertainty. Costs about 1 microsecond.
ClockTuple sample_clocks();

}  // namespace tacho
