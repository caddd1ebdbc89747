// What devices and the host did at the same time: one sweep over a trace's API calls and device work gives, per device,
// how long it computed, copied, communicated and idled, and what the host did in every gap.
// analysis/findings/findings.h judges
// it.
//
// Memory is bounded: sums per device, thread, queue and kernel, and the newest half million calls.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/call_kind.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// A stretch of trace time, and on which tracks to look.
struct Stretch {
  int64_t from = 0, to = 0;           ///< ns
  int64_t cost = 0;                   ///< ns of it that count: of a stretch of many gaps, the gaps alone
  int64_t track = 0, host_track = 0;  ///< rows of table track; 0 = none
};

/// Keeps the stretches that cost the most, after joining neighbours.
class Worst {
 public:
  static constexpr size_t kKept = 5;
  static constexpr int64_t kJoined = 200'000;  ///< ns between two that become one
  /// In ascending order of `from`.
  void add(const Stretch& stretch);
  /// The costliest first.
  std::vector<Stretch> kept() const;

 private:
  void keep(const Stretch& stretch);
  Stretch open_;
  std::vector<Stretch> kept_;
};

/// Why a device had nothing to do: what the thread did that launched what ended the gap.
enum class Gap : uint8_t {
  kLaunch,    ///< it was launching: in the call, or for less than kShortCode in its own code before it
  kWait,      ///< it had waited for the device, and launched only then
  kCopy,      ///< it was in a copy that returned only when done
  kHost,      ///< it ran its own code, or waited for something that is no GPU call
  kAllocate,  ///< it was getting or freeing memory
  kLoad,      ///< it was compiling or loading code
  kCall,      ///< it was in other calls of the API
  kQueued,    ///< nothing of the above: the work had been asked for, and the device had not started it
  kUnknown,   ///< the work has no call in the trace
  kEnd,
};
inline constexpr size_t kGaps = static_cast<size_t>(Gap::kEnd);
/// Own code of the host that counts as a part of launching, ns.
inline constexpr int64_t kShortCode = 100'000;
/// A kernel that begins so soon after its call returned has waited for nothing else, ns.
inline constexpr int64_t kLaunchDelay = 20'000;

struct GapSum {
  int64_t count = 0, time = 0;  ///< ns
  /// kWait and kCopy: how much of the gaps would fit into the time that the host spent waiting before them, ns.
  int64_t hideable = 0;
  Worst worst;
};

/// Times are in ns. Unions: however many operations ran at once, time counts once.
struct DeviceActivity {
  int64_t row = 0;   ///< of table device
  std::string text;  ///< "GPU 0"
  bool cpu = false;  ///< shares its cores with the host
  int64_t first = 0, last = 0, busy = 0;
  /// When the work that repeats began (steady.h); `first` where there was no start-up. Gaps before it count by
  /// themselves, and launches before it are not among the tiny ones.
  int64_t steady = 0;
  std::array<int64_t, kGaps> start_gaps{};  ///< ns idle before it, by cause
  Worst start_worst;
  std::array<GapSum, kGaps> gaps;
  const GapSum& gap(Gap cause) const { return gaps[static_cast<size_t>(cause)]; }

  int64_t kernels = 0, kernel_sum = 0;  ///< durations added up, of kernels that are no collectives
  int64_t kernel_time = 0;              ///< union of kernels that are no collectives, fills and copies on the device
  /// Kernels whose launching call is in the trace, those shorter than it, and for the latter: calls' and own time, the
  /// gaps of Gap::kLaunch before them, the kernel with most of them (row of table kernel), and how many those are.
  int64_t launched = 0, launch_calls = 0, tiny = 0, tiny_calls = 0, tiny_time = 0, tiny_gaps = 0;
  int64_t tiny_kernel = 0, tiny_of_kernel = 0;
  Worst tiny_worst;
  /// Of `launched`, kernels of kLongKernel and more, and those whose call returned only when they had ended.
  int64_t long_launched = 0, waited_launches = 0;
  Worst waited_worst;

  /// Rows of four to eight elementwise kernels of PyTorch that ran one after the other on a queue, with nothing but
  /// copies between, and took similarly long: how many rows and kernels, their time, and that without one and a half
  /// times the longest of each row, about what one kernel with all of the row's work takes.
  int64_t elementwise_rows = 0, elementwise_kernels = 0, elementwise_time = 0, elementwise_saved = 0;
  Worst elementwise_worst;

  int64_t copies = 0, copy_sum = 0, copy_bytes = 0;  ///< between host and device
  int64_t exposed_copy = 0;                          ///< they ran, and nothing else did
  Worst exposed_worst;
  int64_t blocking = 0, exposed_blocking = 0;  ///< of these, whose call returned only when they were done
  Worst blocking_worst;
  int64_t memory_known = 0;  ///< copies of which is known whether the host's memory is pinned
  int64_t pageable = 0, pageable_bytes = 0, exposed_pageable = 0;
  Worst pageable_worst;
  /// Copies of at most kSmallCopy that followed each other with no kernel between, four or more of one direction: time
  /// of the rows without the longest copy of each and what the bytes take at the direction's best rate; and the least
  /// that a copy took.
  int64_t small = 0, small_rows = 0, small_bytes = 0, small_time = 0, small_saved = 0, small_least = 0;
  Worst small_worst;

  int64_t collectives = 0, collective_time = 0, exposed_collective = 0;
  Worst collective_worst;

  int64_t streams = 0;  ///< queues with a tenth of the kernels' time or more
  int64_t overlap = 0;  ///< kernel_sum of all kernels minus their union
  int64_t serial = 0,
          serial_kernels = 0;  ///< kernels that could have run beside the one before them on another queue
  Worst serial_worst;

  /// Of kernels with workgroups for half of the device's compute units at most: their time, and the part of it that the
  /// idle units stand for. -1 where the units or the workgroups are not known.
  int64_t units = 0;
  int64_t small_grid = -1, small_grid_idle = 0, small_grid_kernel = 0, small_grid_groups = 0;

  /// Of kernels whose registers, shared memory and workgroups leave less than a quarter of a multiprocessor's threads:
  int64_t low_occupancy = -1, low_occupancy_kernel = 0;
  double low_occupancy_percent = 0,
         low_occupancy_lost = 0;    ///< of that kernel; ns weighted by what is missing to a half
  std::string low_occupancy_limit;  ///< "registers", "shared memory", "workgroups"

  /// Idle while the host loaded data, compiled or collected garbage; compiling counts after the start-up only.
  struct IdleIn {
    int64_t time = 0, gaps = 0;
    Worst worst;
  };
  std::array<IdleIn, kHostWorks> idle_in;
  const IdleIn& idle_while(HostWork work) const { return idle_in[static_cast<size_t>(work)]; }
  int64_t host_gap_named = 0;    ///< ns of Gap::kHost that are in idle_in
  int64_t host_gap_waited = 0;   ///< ns of Gap::kHost that would fit into the waiting before each
  int64_t host_gaps_waited = 0;  ///< how many of them the thread had waited before
  /// Where the host was, in words; empty = the trace does not say: in gaps of Gap::kHost ("72 % of the time in
  /// aten::sort"), when it waited before gaps of Gap::kWait and Gap::kHost, and when it asked for copies that it waits
  /// for or that are of pageable memory or small ("aten::item, called in train.py(31): step").
  std::string host_was_in, waited_in, copied_in;

  /// Telemetry: readings of the compute units' clock while the device was busy, their mean, those under 85 % of the
  /// highest reading; and the most memory in use with the device's, in bytes. 0 where there are none.
  int64_t clock_readings = 0, slow_readings = 0;
  double clock_mean = 0, clock_highest = 0;  ///< MHz
  Worst slow_worst;
  double memory_used = 0, memory = 0;
};

inline constexpr int64_t kSmallCopy = 64 << 10;  ///< bytes
/// A launch that does not wait returns before such a kernel ends, ns.
inline constexpr int64_t kLongKernel = 10'000;

struct ProcessActivity {
  int64_t process = 0;  ///< row of table process
  int64_t calls = 0;
  int64_t load = 0,
          load_calls = 0;  ///< ns in calls that compile, load and start, of the thread with most of them
  Worst load_worst;
  /// What the first launches of kernels took longer than later ones, ns; and how many.
  int64_t first_launches = 0, first_excess = 0;
  /// Allocating and freeing between launches, after the first kSteady and before the last of them.
  int64_t allocations = 0, allocation_time = 0, launches = 0;
  int64_t frees = 0;             ///< of `allocations`: memory given back
  int64_t allocation_parts = 0;  ///< eighths of the trace's time in which they got memory
  Worst allocation_worst;
};
inline constexpr int64_t kSteady = 10;

struct Activity {
  std::vector<DeviceActivity> devices;  ///< that ran something, by row
  std::vector<ProcessActivity> processes;
  int64_t operations = 0, untied = 0;    ///< device work, and that without a call in the trace
  int64_t calls = 0;                     ///< of GPU APIs
  std::array<bool, kHostWorks> works{};  ///< some range or function is of this work
  bool queue_waits = false;              ///< a stream is made to wait for another's event
};

/// `near_peak`: by row of table kernel, those that no measure of launch shapes blames.
Result<Activity> activity(const trace::Trace& trace, const std::vector<bool>& near_peak = {});

}  // namespace tacho::analysis
