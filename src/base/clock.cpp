// Choice of the host clock and clock tuples (clock.h).
#include "base/clock.h"

#include <cpuid.h>
#include <fcntl.h>
#include <unistd.h>

#include <string_view>

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

constexpr const char* kClocksourceFile = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

// The clock that the kernel itself uses; empty if it cannot be read.
std::string_view kernel_clocksource(char (&text)[16]) {
  const int file = open(kClocksourceFile, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t size = read(file, text, sizeof text);
  close(file);
  const std::string_view line(text, size > 0 ? static_cast<size_t>(size) : 0);
  return line.substr(0, line.find('\n'));
}

}  // namespace

TscState tsc_state() {
  if (!cpu_has_invariant_tsc()) return TscState::kNotInvariant;
  char text[16];
  const std::string_view source = kernel_clocksource(text);
  return source == "tsc" ? TscState::kUsable : source.empty() ? TscState::kKernelDoesNotSay : TscState::kNotTrusted;
}

void choose_host_clock() {
  clock_internal::g_use_tsc = tsc_state() == TscState::kUsable;
}

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
