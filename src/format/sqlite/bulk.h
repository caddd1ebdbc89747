// Writes SQLite files at memory speed. SQLite creates the schema; this file lays the rows out as b-tree pages
// (https://www.sqlite.org/fileformat2.html), bottom up; at the end SQLite builds the indexes over them. Rows of one
// table must come in ascending order of rowid; callers may fill several tables at once.
//
// Why build pages by hand? CPU seconds (user + system) for writing a whole file from a trace of 3 M events
// (bench/export_data), compared with prepared INSERTs in one transaction with journal and synchronous off and 64 MiB of
// page cache; medians of three runs:
//
//                         .rpd, schema 2   .rpd, schema 3   rocpd
//   pages (this file)          0.73 s           1.01 s       1.23 s
//   prepared INSERTs           7.0 s            7.3 s       12.1 s       7 to 10 times as long
//   without AUTOINCREMENT      4.4 s            4.9 s        6.1 s       a schema that is not upstream's
//
// This file goes when INSERTs take less than 3 times as long.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/sqlite/database.h"
#include "format/sqlite/output.h"

namespace tacho::sqlite {

class BulkFile;

/// Appends rows to one table: for each row begin(), one value per column in stored order, end().
class BulkTable {
 public:
  void begin(int64_t rowid) {
    rowid_ = rowid;
    types_.clear();
    body_.clear();
  }
  BulkTable& integer(int64_t value) {
    const uint64_t bits = static_cast<uint64_t>(value);
    if (value >= -128 && value <= 127) {
      if (value == 0 || value == 1) {
        types_.push_back(static_cast<uint8_t>(8 + value));
        return *this;
      }
      return sized(1, 1, bits);
    }
    if (value >= -32768 && value <= 32767) return sized(2, 2, bits);
    if (value >= -8388608 && value <= 8388607) return sized(3, 3, bits);
    if (value >= -2147483648LL && value <= 2147483647LL) return sized(4, 4, bits);
    if (value >= -140737488355328LL && value <= 140737488355327LL) return sized(5, 6, bits);
    return sized(6, 8, bits);
  }
  BulkTable& real(double value);  // NaN becomes NULL, as in SQLite
  BulkTable& text(std::string_view value);
  BulkTable& null() {
    types_.push_back(0);
    return *this;
  }
  /// NULL for event::kUnknown, the integer otherwise.
  BulkTable& known(int64_t value) { return value == INT64_MIN ? null() : integer(value); }
  void end();

  /// Appends a whole record as another SQLite file stores it.
  void append_record(int64_t rowid, std::span<const uint8_t> record);

  int64_t rows() const { return rows_; }
  int64_t last_rowid() const { return last_rowid_; }
  const std::string& name() const { return name_; }

 private:
  friend class BulkFile;
  struct Entry {
    uint32_t page;
    int64_t key;
  };
  struct Level {
    std::vector<Entry> entries;
    size_t bytes = 0;  // of the cells of all entries but the last
  };
  BulkTable(BulkFile& file, std::string name, uint32_t root);
  BulkTable& sized(uint8_t type, unsigned bytes, uint64_t value) {
    types_.push_back(type);
    const uint64_t swapped = __builtin_bswap64(value << (64 - 8 * bytes));
    const size_t at = body_.size();
    body_.resize(at + bytes);
    __builtin_memcpy(body_.data() + at, &swapped, bytes);
    return *this;
  }
  void append(int64_t rowid, const uint8_t* head, size_t head_size, const uint8_t* body, size_t body_size);
  void start_leaf();
  void emit_leaf();
  void push(size_t level, Entry entry);
  /// How many of a level's first entries fit a page, leaving at least two for the next.
  size_t fitting(size_t level) const;
  void emit_interior(size_t level, size_t count);
  void write_interior(uint8_t* page, std::span<const Entry> entries);
  void finish();

  BulkFile& file_;
  std::string name_;
  uint32_t root_;
  int64_t rowid_ = 0, last_rowid_ = INT64_MIN, rows_ = 0;
  std::vector<uint8_t> types_, body_, head_;
  std::vector<uint8_t> leaf_;
  uint32_t content_ = 0, cells_ = 0;
  std::vector<Level> levels_;
};

class BulkFile {
 public:
  /// Creates `path`, which must not exist, with the tables of `schema`, an SQL script without indexes.
  /// Messages call it `shown_as`; empty = `path`.
  static Result<std::unique_ptr<BulkFile>> create(const std::string& path, const std::string& schema,
                                                  const std::string& shown_as = {});
  /// The same under the temporary name of `output`; messages have the name that it will get.
  static Result<std::unique_ptr<BulkFile>> create(const DatabaseOutput& output, const std::string& schema) {
    return create(output.temporary(), schema, output.path());
  }
  ~BulkFile();
  BulkFile(const BulkFile&) = delete;
  BulkFile& operator=(const BulkFile&) = delete;

  /// `name` must be a rowid table of the schema: aborts on an unknown name. The reference stays valid.
  BulkTable& table(std::string_view name);

  /// Writes pending pages, then lets SQLite run `script` (indexes, views, small inserts), fill sqlite_sequence and
  /// rebuild the constraints' indexes. Afterwards the file is complete and synced.
  Status finish(const std::string& script);

  /// The first write error, if any; rows that come after it are lost.
  Status status() const;
  uint64_t bytes() const { return static_cast<uint64_t>(next_page_ - 1) * kPage; }

 private:
  friend class BulkTable;
  static constexpr uint32_t kPage = 4096;
  static constexpr uint32_t kLockPage = 0x40000000 / kPage + 1;  // stays unused: SQLite locks bytes in it

  BulkFile() = default;
  uint32_t write_page(const uint8_t* page);  // appends the page to the file; returns its number
  uint32_t upcoming(uint32_t number) const { return number == kLockPage ? number + 1 : number; }
  void write_at(uint32_t number, const uint8_t* page);
  void flush();
  void fault(std::string message);
  void fault_of(int error);  // errno

  std::string path_, shown_as_;
  int descriptor_ = -1;
  uint32_t next_page_ = 1;  // number of the next page to append
  std::vector<uint8_t> buffer_;
  uint32_t buffer_first_ = 0;
  std::vector<std::unique_ptr<BulkTable>> tables_;
  std::string error_;
};

}  // namespace tacho::sqlite
