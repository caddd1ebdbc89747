// Comma-separated values: the one reader, for files of any size (a fixed buffer, quoted fields with commas,
// quotes and newlines, gzip), the conversion of cells to numbers, and the quoting of fields that are written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho {

/// Reads one file (or one text) record by record. It holds one buffer, which grows with the longest record
/// only; a record may have at most kMaxRecord bytes. The first bytes of a file tell whether it is plain or
/// compressed with gzip.
class CsvReader {
 public:
  static constexpr size_t kMaxRecord = size_t{64} << 20;

  /// Fails when the file cannot be read.
  static Result<CsvReader> open(const std::string& path);
  /// Reads from memory; `name` stands for the file in messages.
  static CsvReader from_text(std::string text, std::string name);

  CsvReader(CsvReader&&) noexcept;
  CsvReader& operator=(CsvReader&&) noexcept;
  ~CsvReader();

  /// Reads the next record that is not an empty line; false at the end of the file. Lines may end in CR LF.
  /// The fields are unquoted, point into the reader's buffer and live until the next call. Errors (a quote
  /// that is never closed, a record that is too long, a damaged gzip file) name the file and the row.
  Result<bool> next(std::vector<std::string_view>& fields);

  /// Number of the record last read; the header is row 1.
  uint64_t row() const { return row_; }
  /// True when the record last read was not ended by a newline: the file may have been cut off there.
  bool unterminated() const { return unterminated_; }
  const std::string& name() const { return name_; }

  /// An upper bound of the records in a plain file (its number of newlines + 1); 0 = unknown (gzip).
  uint64_t row_bound();

 private:
  struct Source;
  CsvReader();
  Status refill();

  std::unique_ptr<Source> source_;
  std::string name_;
  std::vector<char> buffer_;
  size_t begin_ = 0;       // first unread byte
  size_t end_ = 0;         // end of the bytes read
  bool finished_ = false;  // nothing more to read behind end_
  uint64_t row_ = 0;
  bool unterminated_ = false;
};

/// A csv file on disk, or a text in its place.
struct CsvSource {
  std::string name;
  const std::string* text = nullptr;  ///< not owned; nullptr: the file `name`

  Result<CsvReader> open() const {
    if (text != nullptr) return CsvReader::from_text(*text, name);
    return CsvReader::open(name);
  }
};

/// The value of a numeric cell. An empty cell and "nan", "NA", "N/A", "None", "null" are NaN with ok = true;
/// any other cell that is not a number is NaN with ok = false. Integers below 2^53 are exact, other numbers
/// correctly rounded.
struct CellNumber {
  double value;
  bool ok;
};
CellNumber parse_number(std::string_view cell);

/// Splits a timestamp in nanoseconds into its whole and its fractional part, so that differences of large
/// times stay exact. Accepts "123", "123.5" and "1.23e15"; false when the cell is not a number within the
/// range of int64.
bool parse_timestamp(std::string_view cell, int64_t& whole, double& fraction);

/// A field to be written: in quotes only where a comma, a quote or a line end in it asks for them.
std::string csv_field(std::string_view text);
/// A field to be written, always in quotes.
std::string csv_quoted(std::string_view text);

}  // namespace tacho
