// What `tacho watch` says: tables for people, one line or one JSON object for a moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/answer.h"
#include "vendor/gpu_monitor.h"
#include "watch/governor.h"
#include "watch/graph_shares.h"
#include "watch/metrics/push.h"
#include "watch/segment.h"

namespace tacho::watch {

/// A moment, with all that is said about it.
struct WatchMoment {
  WatchSnapshot snapshot;
  double budget = 0;  ///< as Governor's
  WatchSetting setting;
  std::optional<WatchCost> cost;
  bool counts_only = false;  ///< as the user asked
  KernelTimes graph_times;   ///< what the user gave for kernels inside graphs
  bool gave_up = false;
  size_t still_running = 0;               ///< at the end: watched processes that outlive the program
  std::vector<vendor::GpuReading> gpus;   ///< of all GPUs of the machine, where its libraries tell
  std::vector<std::string> gpu_problems;  ///< sentences about GPUs and libraries that tell nothing
  std::optional<PushCounts> pushes;       ///< with --otlp
  std::string pushes_to;                  ///< its address
  std::string sums_problem;               ///< at the end: why the file of sums was not written
};

/// Kernels and graphs by their estimated time, longest first; rows without a time stand at the end.
report::Answer kernel_answer(const WatchSnapshot& snapshot);
/// Copies, fills, waits and allocations.
report::Answer other_answer(const WatchSnapshot& snapshot);
/// A row for each process that used a device, by its time on them.
report::Answer process_answer(const WatchSnapshot& snapshot);
/// Processes that used a device, the one with the most time on them first.
std::vector<const WatchedProcess*> by_device_time(const WatchSnapshot& snapshot);
/// What it cost, and everything that is missing from the tables, a sentence each.
std::vector<std::string> watch_sentences(const WatchMoment& moment, bool at_the_end);

/// One line: launches and bytes a second since `before`, and the kernels that took the most time in it.
std::string watch_line(const WatchSnapshot& before, const WatchSnapshot& now);
/// One JSON object without newlines.
std::string watch_json(const WatchMoment& moment, bool at_the_end);

}  // namespace tacho::watch
