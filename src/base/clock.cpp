// Choice of the host clock and clock tuples (clock.h).
#include "base/clock.h"

#include <cpuid.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace tacho {
namespace clock_internal {
bool g_use_tsc = false;
}

namespace {

bool cpu_has_invariant_tsc() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) == 0) return false;
  return (d & (1U << 8)) != 0;
}

bool kernel_trusts_tsc() {
  const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[16] = {};
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  return size >= 3 && std::strncmp(text, "tsc", 3) == 0 && (text[3] == '\n' || text[3] == '\0');
}

}  // namespace

void choose_host_clock() { clock_internal::g_use_tsc = cpu_has_invariant_tsc() && kernel_trusts_tsc(); }

ClockTuple sample_clocks() {
  ClockTuple best;
  best.uncertainty = INT64_MAX;
  for (int attempt = 0; attempt < 5; ++attempt) {
    ClockTuple tuple;
    const int64_t raw_before = raw_now();
    const uint64_t tsc_before = __rdtsc();
    tuple.monotonic = read_clock(CLOCK_MONOTONIC);
    tuple.boottime = read_clock(CLOCK_BOOTTIME);
    tuple.realtime = read_clock(CLOCK_REALTIME);
    const uint64_t tsc_after = __rdtsc();
    const int64_t raw_after = raw_now();
    tuple.tsc = tsc_before + (tsc_after - tsc_before) / 2;
    tuple.raw = raw_before + (raw_after - raw_before) / 2;
    tuple.uncertainty = (raw_after - raw_before + 1) / 2;
    if (tuple.uncertainty < best.uncertainty) best = tuple;
  }
  return best;
}

}  // namespace tacho
