// Statistics per name, computed from the chunks' summaries without decoding a row. `tacho stats`, the summary after a
// run and the rocprofv3 *_stats.csv files show them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

struct StatRow {
  std::string name;
  std::string group;         // domain of an API function, launch shape of a kernel; empty otherwise
  int64_t count = 0;         // rows, including those of unknown duration
  int64_t unknown = 0;       // rows of unknown duration, which no time below includes
  int64_t total = 0;         // ns
  int64_t min = 0, max = 0;  // ns
  double mean = 0;           // ns
  double stddev = 0;         // ns, sample standard deviation (n - 1); 0 for one call
  double percent = 0;        // of the sum of `total` over all rows of this answer; NaN = no part of the whole
  int64_t bytes = 0;         // copies and fills: over the `sized` rows, whose size is known
  int64_t sized = 0;
  int64_t sized_ns = 0;  // time of the sized rows

  /// Bytes per nanosecond, which is GB/s, of the rows that have a size; nullopt where none has.
  std::optional<double> rate() const {
    if (sized == 0 || sized_ns == 0) return std::nullopt;
    return static_cast<double>(bytes) / static_cast<double>(sized_ns);
  }
};
/// "184 of 550 have no size: bytes and GB/s are those of the others", or "" when all have one.
std::string unsized_sentence(std::span<const StatRow> rows);

enum class By { kKernel, kApi, kCopy, kFill, kMarker, kDomain, kSync, kOverhead, kAllocation };
Result<By> parse_by(std::string_view text);

struct StatOptions {
  bool groups = true;                        // rows of one name in several groups (a marker's domain) stay apart
  bool mangled = false;                      // keep kernel names as the runtime gives them
  bool truncate = false;                     // kernels by short_name()
  bool per_shape = false;                    // kernels: one row per launch shape, "grid 132x1x1 blocks, block ..."
  bool blocks = false;                       // set by StatTable: grids_in_blocks()
  std::optional<int64_t> process = {};       // row of table process
  std::optional<event::Domain> domain = {};  // kApi only
  bool runtime_calls = false;  // kApi: without operators, functions of Python, MPI and the like (call_kind.h)
  bool nested = true;          // kApi: also functions that call each other, whose times overlap (functions_nest())
  /// kMarker: leaves out what a profiler wrote about itself, and ranges of devices that repeat a range of the host by
  /// name. kDomain: adds up own times of what nests (analysis/host/own_time.h) instead of times that overlap.
  bool of_program = false;
  bool sizes = true;  // copies and fills: reads their rows for StatRow::bytes and sized, else these are 0
};

/// Statistics of any number of names in bounded memory: row() makes texts on request, and the numbers of many names lie
/// in temporary files. The trace must outlive it.
class StatTable {
 public:
  static Result<StatTable> make(const trace::Trace& trace, By by, const StatOptions& options = {});
  StatTable(StatTable&&) noexcept;
  StatTable& operator=(StatTable&&) noexcept;
  ~StatTable();

  size_t size() const;
  /// Rows by total time, longest first; ties by name up to kSortedByName names. Contract: index < size().
  StatRow row(size_t index) const;
  int64_t calls() const;  // over all rows
  int64_t total() const;  // ns, over all rows
  /// True if any row has a group.
  bool grouped() const;
  /// Calls or ranges that StatOptions::nested or of_program left out.
  int64_t left_out() const;

 private:
  struct State;
  explicit StatTable(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// All rows of a StatTable at once.
Result<std::vector<StatRow>> statistics(const trace::Trace& trace, By by, const StatOptions& options = {});

struct DeviceBusy {
  int64_t device = 0;  // row of one of the processes that use it; 0 = not known
  std::string number;  // "GPU 0" (places.h)
  std::string name;
  int64_t processes = 0;  // that ran something on it
  int64_t busy = 0;       // ns in which at least one dispatch, copy or fill ran (union over its queues)
  int64_t span = 0;       // ns from the first start to the last end on this device
};
/// Busy time per physical device, by a sweep over its dispatches, copies and fills; those of all processes together.
Result<std::vector<DeviceBusy>> device_busy(const trace::Trace& trace);

/// One sentence for each kind of loss; empty when the trace is complete.
std::vector<std::string> loss_sentences(const trace::Trace& trace);
/// Rows of a table that the recording lost, as far as that was counted; what filters and pauses left out is no loss.
int64_t lost_rows(const trace::Trace& trace, event::Table table);
/// One sentence for each table whose rows the user's filters or pauses excluded, which is no loss.
std::vector<std::string> filter_sentences(const trace::Trace& trace);

}  // namespace tacho::analysis
