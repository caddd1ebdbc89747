// What `tacho watch` says: tables for people, one line or one JSON object for a moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/answer.h"
#include "report/value.h"
#include "vendor/gpu_monitor.h"
#include "watch/governor.h"
#include "watch/graph_shares.h"
#include "watch/host/host_lines.h"
#include "watch/metrics/push.h"
#include "watch/segment.h"

namespace tacho::watch {

/// A watch elsewhere, of which this one tells.
struct WatchHost {
  std::string address;           ///< HOST:PORT, as the user gave it
  std::string name, title;       ///< of the machine, and what it watches; empty before the first answer
  std::optional<double> ago_s;   ///< since its last answer; nothing: it never answered
  std::string problem;           ///< why it does not answer, as a clause; empty: it does
  double seconds = 0;            ///< its watch goes on so long
  uint64_t launches = 0;         ///< of kernels and graphs
  double time_ns = 0;            ///< of them, which only grows, as RowSums::weighted_time()
  size_t processes = 0;          ///< that use a device and run
  std::optional<double> own_ns;  ///< as WatchSnapshot's
  std::optional<WatchCost> cost;
  bool timing = true;
  std::vector<vendor::GpuReading> gpus;
  std::vector<std::string> notes;  ///< its sentences
};

/// A moment, with all that is said about it.
struct WatchMoment {
  WatchSnapshot snapshot;
  double budget = 0;  ///< as Governor's
  WatchSetting setting;
  std::optional<WatchCost> cost;
  bool counts_only = false;  ///< as the user asked
  bool keeps = false;        ///< single operations, as the user asked
  KernelTimes graph_times;   ///< what the user gave for kernels inside graphs
  bool gave_up = false;
  size_t still_running = 0;               ///< at the end: watched processes that outlive the program
  std::vector<vendor::GpuReading> gpus;   ///< of all GPUs of the machine, where its libraries tell
  std::vector<std::string> gpu_problems;  ///< sentences about GPUs and libraries that tell nothing
  std::optional<PushCounts> pushes;       ///< with --otlp
  std::string pushes_to;                  ///< its address
  std::string sums_problem;               ///< at the end: why the file of sums was not written
  std::vector<WatchHost> hosts;           ///< if the moment is a sum of theirs
  std::optional<HostLines> host_code;     ///< where the programs' threads are sampled
};

/// Kernels and graphs by their estimated time, longest first; rows without a time stand at the end.
report::Answer kernel_answer(const WatchSnapshot& snapshot);
/// Copies, fills, waits and allocations.
report::Answer other_answer(const WatchSnapshot& snapshot);
/// A row for each process that used a device, by its time on them.
report::Answer process_answer(const WatchSnapshot& snapshot);
/// A row for each watch elsewhere.
report::Answer host_answer(const WatchMoment& moment);
/// A sentence about a host that does not answer; "" for one that does.
std::string silence(const WatchHost& host);
/// Processes that used a device, the one with the most time on them first.
std::vector<const WatchedProcess*> by_device_time(const WatchSnapshot& snapshot);
/// What it cost, and everything that is missing from the tables, a sentence each.
std::vector<std::string> watch_sentences(const WatchMoment& moment, bool at_the_end);

/// One line: launches and bytes a second since `before`, and the kernels that took the most time in it.
std::string watch_line(const WatchSnapshot& before, const WatchSnapshot& now);
/// One JSON object without newlines.
std::string watch_json(const WatchMoment& moment, bool at_the_end);
/// The same as a document; `sums`: with the sums behind each row.
report::JsonValue watch_document(const WatchMoment& moment, bool at_the_end, bool sums);

}  // namespace tacho::watch
