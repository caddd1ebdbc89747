// Reader of comma-separated files of any size: a fixed buffer, quoted fields with commas, quotes and
// newlines, gzip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::workload {

/// Reads one file (or one text) record by record. Memory: one buffer, which grows only with the longest
/// record, and a record may have at most kMaxRecord bytes. Plain and gzip-compressed files are told apart by
/// their first bytes.
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

  /// The next record that is not an empty line. false at the end of the file. The fields are unquoted, point
  /// into the reader's buffer and live until the next call. Errors (a quote never closed, a record too long,
  /// a damaged gzip file) name the file and the row.
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

/// A csv file on disk, or a text that stands for one.
struct CsvSource {
  std::string name;
  const std::string* text = nullptr;  ///< not owned; nullptr: the file `name`

  Result<CsvReader> open() const {
    if (text != nullptr) return CsvReader::from_text(*text, name);
    return CsvReader::open(name);
  }
};

/// The value of a numeric cell. An empty cell and "nan", "NA", "N/A", "None", "null" are NaN with ok = true;
/// anything that is not a number is NaN with ok = false. Exact for integers below 2^53 and correctly rounded
/// otherwise.
struct CellNumber {
  double value;
  bool ok;
};
CellNumber parse_number(std::string_view cell);

/// A timestamp in nanoseconds, split into whole and fractional part so that differences of large times stay
/// exact. Accepts "123", "123.5" and "1.23e15". false when the cell is not a number within the range of
/// int64.
bool parse_timestamp(std::string_view cell, int64_t& whole, double& fraction);

}  // namespace tacho::workload
