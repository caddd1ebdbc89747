// What plugins that count inside a target hand to tacho: a folder that the environment variable TACHO_COUNTER_SPOOL
// names. tacho writes `config` (lines key=value) and `state` (one mapped SpoolState, shared by all processes of the
// target); every process appends one SpoolRecord per dispatch to `<pid>.records` with a single write(), so a killed
// target loses at most the dispatch it was in. Plain data only: it is included by libraries with other C++ runtimes.
#pragma once

#include <atomic>
#include <cstdint>

namespace tacho::spool {

inline constexpr char kSpoolVariable[] = "TACHO_COUNTER_SPOOL";
inline constexpr uint32_t kSpoolMagic = 0x31735443;  // "CTs1"

/// Shared by the processes of a target and tacho. Written with relaxed atomics: the numbers are independent.
struct SpoolState {
  std::atomic<uint64_t> dispatches;       ///< begun so far: the next one's 0-based index
  std::atomic<uint64_t> dispatches_done;  ///< measured and written
  std::atomic<uint64_t> groups_total;     ///< work-groups of the dispatch that runs
  std::atomic<uint64_t> groups_done;
  std::atomic<uint64_t> attached;  ///< processes in which the plugin was loaded
  std::atomic<uint64_t> failures;  ///< records that could not be written
  std::atomic<uint64_t> refused;   ///< processes in which nothing can be counted; they have said why
  std::atomic<uint64_t> failures_of_replay;  ///< batches of launches that could not be run again
};

/// Head of a record; then `name_bytes` bytes of kernel name, then `values` doubles at the next multiple of 8.
struct SpoolRecord {
  uint32_t magic, bytes;  ///< of the whole record, a multiple of 8
  uint32_t pid, tid;
  uint64_t index;  ///< over all dispatches of all processes, from 0
  uint64_t queue;
  int64_t start, end;  ///< ns, CLOCK_MONOTONIC_RAW, of the interpretation or the measured call
  uint64_t grid[3], workgroup[3];
  uint64_t lds;  ///< bytes
  uint64_t groups, groups_run;
  uint32_t name_bytes, values;
  uint64_t pass;      ///< which group of counters was on
  uint64_t selected;  ///< 0: the filter left it out, there are no values
};

}  // namespace tacho::spool
