// The perf_event counters of the cpu device, shared by the layer in the target, which opens them, and tacho, which
// offers them.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>

namespace tacho::vendor {

struct PerfEvent {
  const char* name;
  uint32_t type;
  uint64_t config;
  const char* text;
};

inline constexpr PerfEvent kPerfEvents[] = {
    {"CPU_TASK_CLOCK", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "CPU time of all threads, ns."},
    {"CPU_CONTEXT_SWITCHES", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "Times a thread lost its CPU."},
    {"CPU_MIGRATIONS", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, "Times a thread went to another CPU."},
    {"CPU_MINOR_FAULTS", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, "Page faults served from memory."},
    {"CPU_MAJOR_FAULTS", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, "Page faults that read from disk."},
    {"CPU_ALIGNMENT_FAULTS", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS,
     "Unaligned accesses that the kernel had to serve."},
    {"CPU_CYCLES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "Cycles of all threads."},
    {"CPU_INSTRUCTIONS", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "Instructions that were completed."},
    {"CPU_BRANCHES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "Branches that were completed."},
    {"CPU_BRANCH_MISSES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, "Branches that were predicted wrongly."},
    {"CPU_CACHE_REFERENCES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, "Accesses to the last-level cache."},
    {"CPU_CACHE_MISSES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES,
     "Accesses that the last-level cache did not have."},
    {"CPU_STALLED_FRONTEND", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
     "Cycles in which no instruction came from the front end."},
    {"CPU_STALLED_BACKEND", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
     "Cycles in which the back end took no instruction."},
};
inline constexpr unsigned kTaskClockIndex = 0;
inline constexpr unsigned kPerfEventCount = sizeof kPerfEvents / sizeof kPerfEvents[0];
/// Counters beside them, measured by the layer itself: wall time of the call in ns, threads of the process.
inline constexpr char kPerfWall[] = "CPU_WALL_TIME";
inline constexpr char kPerfThreads[] = "CPU_THREADS";
/// Index of those two in config lines and records.
inline constexpr unsigned kPerfWallIndex = kPerfEventCount, kPerfThreadsIndex = kPerfEventCount + 1;

}  // namespace tacho::vendor
