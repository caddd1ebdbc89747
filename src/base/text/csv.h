// Comma-separated values: the only reader (files of any size through one buffer; quoted fields with commas, quotes and
// newlines; other separators; gzip), the conversion of cells to numbers, and the quoting of written fields.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho {

/// What separates the cells below this header: a comma, or a semicolon, tab or bar where the header has no comma
/// outside of quotes. Spreadsheets take the semicolon where a comma is the decimal point. "sep=;", which they write in
/// front of the header, says it itself.
char csv_separator(std::string_view header);

/// Reads one file, or one text in memory, record by record. Its buffer grows only when a record needs it; a record may
/// have at most kMaxRecord bytes. The reader detects gzip by the first bytes of the file, and the separator by the
/// first line (csv_separator()).
class CsvReader {
 public:
  static constexpr size_t kMaxRecord = size_t{64} << 20;

  /// Fails if the file cannot be read or is a folder; the error names it.
  static Result<CsvReader> open(const std::string& path);
  /// Reads what `bytes` gives: called with a buffer and its size, it returns how many bytes it put there, 0 at the end.
  using ByteInput = std::function<Result<size_t>(char*, size_t)>;
  static CsvReader from_bytes(ByteInput bytes, std::string name);
  /// Reads from memory; messages call it `name`.
  static CsvReader from_text(std::string text, std::string name);

  CsvReader(CsvReader&&) noexcept;
  CsvReader& operator=(CsvReader&&) noexcept;
  ~CsvReader();

  /// Reads the next record and skips empty lines; false at the end of the file. Lines may end in CR LF. The fields are
  /// unquoted, point into the reader's buffer and live until the next call. Errors (a quote that is never closed, a
  /// record that is too long, a damaged gzip file) name the file and the row.
  Result<bool> next(std::vector<std::string_view>& fields);

  /// Number of the record last read, from 1 (the header). Empty lines count.
  uint64_t row() const { return row_; }
  /// True if no newline ended the record last read: the file may have been cut off there.
  bool unterminated() const { return unterminated_; }
  const std::string& name() const { return name_; }
  /// What separates cells; known once next() was called.
  char separator() const { return separator_; }

  /// At least the number of records in a plain file (its newlines + 1); 0 = unknown (gzip, from_bytes).
  uint64_t row_bound();

 private:
  struct Source;
  CsvReader();
  Status refill();
  Status first_line();

  std::unique_ptr<Source> source_;
  std::string name_;
  std::vector<char> buffer_;
  size_t begin_ = 0;       // first unread byte
  size_t end_ = 0;         // end of the bytes read
  bool finished_ = false;  // nothing more to read after end_
  uint64_t row_ = 0;
  bool unterminated_ = false;
  char separator_ = ',';
};

/// A csv file on disk, or a text that stands in for one.
struct CsvSource {
  std::string name;
  const std::string* text = nullptr;  ///< not owned; nullptr = read the file `name`

  Result<CsvReader> open() const {
    if (text != nullptr) return CsvReader::from_text(*text, name);
    return CsvReader::open(name);
  }
};

/// The value of a numeric cell. An empty cell, "nan", "NA", "N/A", "None" and "null" give NaN with ok = true; any other
/// cell that is not a number gives NaN with ok = false. Integers below 2^53 are exact, all other numbers correctly
/// rounded.
struct CellNumber {
  double value;
  bool ok;
};
CellNumber parse_number(std::string_view cell);

/// Splits a timestamp in ns into whole and fractional part, so that differences between large times stay exact. Accepts
/// "123", "123.5" and "1.23e15". False if the cell is not a number or is outside the range of int64.
bool parse_timestamp(std::string_view cell, int64_t& whole, double& fraction);

/// Returns `text` as a csv field of valid UTF-8, quoted only if it contains a comma, a quote or a line break.
std::string csv_field(std::string_view text);
/// Returns `text` as a csv field of valid UTF-8, always quoted.
std::string csv_quoted(std::string_view text);

}  // namespace tacho
