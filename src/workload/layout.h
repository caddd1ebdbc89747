// How counter values stand in files: wide (one row a dispatch), long (one row a dispatch and counter), one
// file or one a pass. Internal to the workload folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "workload/workload.h"

namespace tacho::workload {

/// Names seen once, numbered in order of appearance.
class NameTable {
 public:
  uint32_t add(std::string_view name);
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  StringMap<uint32_t> index_;
};

/// Counts the faults of one file by kind, so that ten thousand bad cells give one sentence.
class FaultLog {
 public:
  explicit FaultLog(std::string file) : file_(std::move(file)) {}
  /// `consequence` says what happened to what was wrong ("they were left out").
  void add(std::string_view kind, std::string_view consequence, uint64_t row, std::string detail);
  void report(std::vector<std::string>& warnings) const;

 private:
  struct Fault {
    std::string kind, consequence, detail;
    uint64_t first_row, count;
  };
  std::string file_;
  std::vector<Fault> faults_;
};

/// Counter values of one file or of several joined ones, with what identifies their rows.
struct RawTable {
  std::string file;  // for messages
  std::vector<Dispatch> dispatches;
  CounterTable counters;
};

/// The name of a column as today's files call it ("KernelName" -> "Kernel_Name", "BeginNs" ->
/// "Start_Timestamp").
std::string_view canonical_column(std::string_view name);

/// "SQ_LEVEL_WAVES_2" -> "SQ_LEVEL_WAVES": the level of a pass whose name was taken by an earlier run.
std::string_view level_name(std::string_view stem);

/// True when the file's header has Counter_Name and Counter_Value.
Result<bool> is_long_form(const std::string& path);

/// One row a dispatch. Rows that do not fit the header are left out and logged.
Result<RawTable> read_wide(const CsvSource& source, const ReadOptions& options, NameTable& kernels,
                           std::vector<std::string>& warnings);

/// One row a dispatch and counter, in one or several files; pivoted. Duration of a dispatch = median over its
/// rows.
Result<RawTable> read_long(const std::vector<CsvSource>& sources, const ReadOptions& options,
                           NameTable& kernels, std::vector<std::string>& warnings);

/// Joins passes of the same program by kernel, grid size and running number among those: dispatches that are
/// not in every pass are left out and logged; timestamps are the mean over the passes that have them; of a counter
/// in several passes the first counts.
Result<RawTable> join_passes(std::vector<RawTable> passes, const NameTable& kernels,
                             std::vector<std::string>& warnings);

/// For every dispatch of `main` the row of `other` that is the same dispatch, or CounterTable::kNoRow.
std::vector<uint32_t> match_rows(const RawTable& main, const RawTable& other, const NameTable& kernels);

}  // namespace tacho::workload
