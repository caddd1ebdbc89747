// The table that watched programs fill (event/watch_table.h), on tacho's side: made, read, removed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/watch_table.h"
#include "watch/estimate.h"
#include "watch/governor.h"

namespace tacho::watch {

/// A kernel inside a graph.
struct GraphKernel {
  std::string name, title;       ///< title: with its shape
  uint64_t nodes = 0;            ///< in each launch of the graph
  std::optional<double> own_ns;  ///< the average of its launches outside of graphs; nothing without times
};

/// "kernel", "graph", ...: as JSON has it.
std::string_view kind_name(event::WatchKind kind);
/// What the table holds of the row's name. The program may change the row meanwhile.
std::string stored_name(const event::WatchRow& row);

/// The sums of one row at a moment.
struct RowSums {
  event::WatchKind kind = event::WatchKind::kNone;
  std::string name;        ///< of a kernel: demangled; cut names end in "…"
  uint32_t grid[3] = {};   ///< all 0: of any other shape, or no kernel
  uint32_t group[3] = {};  ///< all 0: the runtime chose it, or as above
  uint64_t count = 0, bytes = 0;
  uint32_t level = 0;                        ///< 1 of 2^level is timed now
  uint64_t shortest_ns = 0, longest_ns = 0;  ///< timed; meaningless without times
  AllLevels levels = {};
  AllBuckets buckets = {};  ///< operations for which the timed ones stand
  uint64_t stood_ns = 0;    ///< timed, each for as many operations as it stands for
  double each_ns = 0;       ///< as estimate_time() takes it
  /// Of a graph whose nodes are known: its kernels, and how many other nodes it has.
  std::vector<GraphKernel> kernels;
  uint64_t other_nodes = 0;
  /// Of several watches (live/hosts.h): how many have the row, and the sum of their estimates.
  uint64_t hosts = 0;
  std::optional<TimeEstimate> together = std::nullopt;

  /// The estimate of the time of all operations.
  std::optional<TimeEstimate> time() const { return together ? together : estimate_time(levels, each_ns); }
  /// A sum of times, ns, that only grows: an estimate of the whole may fall from one moment to the next. Of a row that
  /// has only bounds, theirs.
  double weighted_time() const;
  /// The estimated time, ns, of the operations since an earlier moment: their number by the mean of those that were
  /// timed meanwhile, or where there are none, of all before. `before`: nullptr if it had no such row.
  double time_since(const RowSums* before) const;
  bool any_shape() const { return grid[0] == 0; }
  /// "4096/256", with all dimensions that are not 1; "" for any_shape().
  std::string shape() const;
  /// "vecCopy 4096/256"; the name alone for any_shape().
  std::string title() const;
};

/// The name of the row of kernels that have none of their own.
inline constexpr const char* kOtherKernels = "(other kernels)";

struct WatchedProcess {
  uint32_t pid = 0;
  std::string name;
  bool uses_devices = false, ended = false;
  bool foreign_markers = false;  ///< another tool takes what it sets through NVTX
  bool unseen_runtime = false;   ///< it uses one that is watched only in programs that tacho starts
  uint64_t launches = 0, copied_bytes = 0;
  uint64_t time_ns = 0;  ///< on devices, an estimate
  uint32_t forks = 0, watched_children = 0, untimed_queues = 0, closed_words = 0,
           unseen_queues = 0;  ///< as event::WatchProcess
};

struct WatchSnapshot {
  double seconds = 0;  ///< since the program was started
  std::vector<RowSums> rows;
  std::vector<WatchedProcess> processes;
  uint64_t failed = 0, lost_rows = 0, lost_times = 0, pending = 0, refused_processes = 0;
  uint64_t operations = 0;  ///< in all rows
  /// Host time that the library in the programs took itself, ns; nothing known before 256 operations.
  std::optional<double> own_ns;
  double timing_ns = 0;     ///< of it for timing
  double device_ns = 0;     ///< that events took on devices that had work, at most
  uint64_t generation = 0;  ///< of several watches: another one than before if one of them came or began anew
};

/// Removes its file at its end. Programs that outlive it keep their mapping and go on counting for nobody.
class WatchSegment {
 public:
  /// In /dev/shm, or in $TACHO_POOL_DIR, 0600, with a random name. Room for it is taken at once. Removes there what
  /// killed tachos left.
  static Result<WatchSegment> create() { return create_in({}); }
  /// In the first of `folders` that has room; where there are none, as create().
  static Result<WatchSegment> create_in(const std::vector<std::string>& folders);
  WatchSegment(WatchSegment&& other) noexcept;
  WatchSegment& operator=(WatchSegment&&) = delete;
  ~WatchSegment();

  const std::string& path() const { return path_; }
  event::WatchHeader& header() { return table_->header; }
  /// Makes another user the owner of the file. False if the kernel does not let tacho.
  bool give_to(uint32_t user, uint32_t group) const;
  /// A process has entered itself by its number in its own namespace: it gets the one that tacho knows it by.
  void set_pid(uint32_t own, uint32_t pid);
  /// A child of that process came while it was watched, and is watched as well. By the numbers that tacho knows.
  void note_child_of(uint32_t pid);
  /// Notes which programs have ended without saying so: killed, or by _exit, as forked workers end.
  void note_ends();
  /// Where a process says that its event::WatchPatches are; 0: nowhere. By the number that tacho knows it by.
  uint64_t patches_of(uint32_t pid) const;
  const event::WatchTable& table() const { return *table_; }
  /// The numbers of processes that use a device and have not ended.
  std::vector<uint32_t> users() const;
  /// Operations in all rows: what a governor needs often, on one thread.
  uint64_t operations();
  /// What programs have done `now`, seconds after they began. On the same thread.
  WatchLoad load(double now);
  /// Tells programs what to do from now on.
  void set(const WatchSetting& setting);
  WatchSnapshot snapshot(double seconds) const;

 private:
  WatchSegment() = default;
  static Result<WatchSegment> create_at(const std::string& folder);
  // Programs that use a device now, at least 1.
  uint32_t active() const;
  std::string path_;
  int file_ = -1;  // locked: this table is in use
  event::WatchTable* table_ = nullptr;
  // Rows that were ready when so many were said to be made: all rows lie on as many pages as there are rows.
  std::vector<uint32_t> ready_;
  uint32_t made_ = 0, looks_ = 0;
  // Those that ran under the number that they gave: it may be one of another namespace.
  std::array<bool, event::kWatchProcesses> seen_running_ = {};
};

}  // namespace tacho::watch
