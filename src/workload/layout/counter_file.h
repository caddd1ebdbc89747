// The common part of the layouts of counter files: today's names of headers, cells, and faults. Internal to the
// workload folder.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/csv.h"
#include "workload/counter_table.h"
#include "workload/dispatch.h"
#include "workload/fault_log.h"

namespace tacho::workload {

/// Distinct names, numbered in order of appearance.
class NameTable {
 public:
  uint32_t add(std::string_view name);
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  StringMap<uint32_t> index_;
};

/// Counter values of one file or of several joined ones, with the columns that identify their rows.
struct RawTable {
  std::string file;  // for messages
  std::vector<Dispatch> dispatches;
  CounterTable counters;
};

/// The current name of a column ("KernelName" -> "Kernel_Name", "BeginNs" -> "Start_Timestamp").
std::string_view canonical_column(std::string_view name);

/// The level of a pass that an earlier run's file forced to take a number: "SQ_LEVEL_WAVES_2" -> "SQ_LEVEL_WAVES".
std::string_view level_name(std::string_view stem);

/// True if the file's header has Counter_Name and Counter_Value.
Result<bool> is_long_form(const std::string& path);

/// Positions in a header; npos if the file has no such column.
struct CounterHeader {
  static constexpr size_t npos = static_cast<size_t>(-1);
  std::vector<std::string> names;
  size_t find(std::string_view name) const {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return i;
    return npos;
  }
};

/// Reads the first row, with columns under their names of today. `fields` is the reader's buffer.
Result<CounterHeader> read_header(CsvReader& reader, std::vector<std::string_view>& fields);

/// An upper bound of the rows; of a compressed file it takes reading them all.
Result<uint64_t> count_rows(const CsvSource& source);

/// The whole number in a cell; 0 with `ok` false for anything else.
int64_t integer_cell(std::string_view cell, bool& ok);

/// A cell for messages: at most 40 characters, control characters as "?".
std::string shown(std::string_view cell);

/// Reactions of readers to a fault.
inline constexpr std::string_view kLeftOut = "left out";
inline constexpr std::string_view kTreatedAsMissing = "treated as missing";

/// Whether the row has as many fields as the header; logs one that has not, and a last row without an end.
bool fits_header(const CsvReader& reader, size_t fields, size_t expected, FaultLog& log);

/// `end - begin` of times as the file has them; wraps as the hardware would: hostile times must not be undefined
/// behaviour.
inline int64_t time_between(int64_t begin, int64_t end) {
  return static_cast<int64_t>(static_cast<uint64_t>(end) - static_cast<uint64_t>(begin));
}

}  // namespace tacho::workload
