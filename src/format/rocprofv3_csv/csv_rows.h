// Rows of AMD's CSV files by column: cells are counted against the header, and numbers are read in the forms that
// spreadsheets and pandas give them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text/csv.h"
#include "event/schema.h"
#include "format/source/source.h"
#include "trace/write/writer.h"

namespace tacho::format::rocprofv3_csv {

/// A whole number: decimal, hexadecimal with 0x, or a floating-point number without a fraction ("1000001000.0",
/// "1.5e3"). Numbers above 2^63 wrap, like the ids of queues and memory. False for all else, as "1,000".
bool whole(std::string_view cell, int64_t& value);

/// So many lines of a log or of comments may stand in front of the header.
inline constexpr int64_t kMostLinesBefore = 20;

/// rocprofv3's name of a column that an older tool or version calls `name`.
std::string_view column_name(std::string_view name);

/// One file's rows. A row with another number of cells than the header is read where it is clear which cells it has: a
/// comma in the only name without quotes, an index in front of each row, or rocprof v2's times without DispatchNs and
/// CompleteNs. All other such rows are passed over and counted.
class CsvRows {
 public:
  static Result<CsvRows> open(const std::string& path);

  const std::vector<std::string>& columns() const { return columns_; }
  const std::string& name() const { return reader_.name(); }
  /// Index of a column; -1 if the file has none of that name.
  int column(std::string_view name) const;
  /// Fails with all the names that the header lacks; `what` is what needs them ("a kernel trace").
  Status require(std::string_view what, std::initializer_list<std::string_view> names) const;

  Result<bool> next();
  std::string_view text(int column) const;
  /// The cell as a whole number; `missing` if it is empty, no number, or unknown to the tool that wrote it ("nan").
  int64_t number(int column, int64_t missing = event::kUnknown) const;
  /// The same for a time. `known`: false if the cell is empty or "nan", true for all else.
  int64_t time(int column, bool& known);
  /// True if both times are written with so few digits ("1.76E+18", as spreadsheets save them) that nothing is left of
  /// the time between them.
  bool rounded_away(int start, int end) const;
  /// Counts a row whose time, in `column`, makes no sense.
  void refuse_time(int column);

  /// Counts and says what was not read, or not as it stands. Fails if not one row could be read.
  Status finish(trace::TraceWriter& writer, event::Table table) const;

 private:
  // Rows of one sort: how many, and the first ones.
  struct RowCount {
    int64_t rows = 0;
    std::string first;
    void add(uint64_t row);
  };

  explicit CsvRows(CsvReader reader) : reader_(std::move(reader)) {}
  Result<bool> next_record();
  Result<bool> header();
  bool is_header_again() const;
  bool fit();
  bool join_name();
  bool drop_index();
  bool without_two_times();
  bool numbers_parse(const std::vector<std::string_view>& cells) const;
  void say(trace::TraceWriter& writer) const;

  CsvReader reader_;
  std::shared_ptr<const source::SourceStream> stream_;  // that reader_ reads
  std::vector<std::string_view> fields_, cells_;        // as they stand, by column
  std::vector<std::string> columns_;
  std::vector<size_t> names_, numbers_;  // columns
  std::string joined_;
  int64_t read_ = 0, joined_rows_ = 0, lines_before_ = 0, headers_again_ = 0;
  RowCount refused_, bad_times_;
  size_t refused_cells_ = 0;  // of the first refused row
  bool cut_off_ = false;
  std::string bad_time_;
  double largest_float_ = 0;
  double finest_step_ = 0;  // of times with exponents, ns; 0 = there was none
};

}  // namespace tacho::format::rocprofv3_csv
