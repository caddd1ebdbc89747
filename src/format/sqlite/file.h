// Reads SQLite database files directly, without the SQL engine: walks the pages of a table's b-tree in the mapped file,
// row by row. Layout: https://www.sqlite.org/fileformat2.html. Checks all bounds, since the file is untrusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/mapping_guard.h"
#include "base/result.h"

namespace tacho::sqlite {

/// What a cell says that holds no number: NULL, text where a number belongs, or a column that the table lacks. Never 0.
/// event::kUnknown is the same.
inline constexpr int64_t kNoNumber = INT64_MIN;

/// A mapped database file with a valid header.
class File {
 public:
  /// Fails if the file is unreadable, not SQLite, empty, cut off or UTF-16, or if unfinished changes lie beside it
  /// (-wal, -journal). Unpacks a compressed database first (unpack.h).
  static Result<File> open(const std::string& path);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  uint32_t page_size() const { return page_size_; }
  uint32_t usable_size() const { return usable_size_; }  // bytes per page that b-trees may use
  uint32_t page_count() const { return page_count_; }
  uint64_t size() const { return size_; }
  /// Whether the pages lie in a temporary file, because the file itself is compressed.
  bool unpacked() const { return unpacked_; }
  /// One sentence about that, for the user.
  std::string unpacked_sentence() const;
  /// Lets go of the memory of pages that were read; they are mapped again where they are needed.
  void let_go() const;
  /// All of its bytes, as long as this object lives.
  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  /// The bytes of page `number` (from 1); nullptr if there is no such page.
  const uint8_t* page(uint32_t number) const {
    return number == 0 || number > page_count_ ? nullptr : data_ + static_cast<uint64_t>(number - 1) * page_size_;
  }

 private:
  File() = default;
  Status open_descriptor();
  Status refuse_unfinished() const;
  Status read_header();
  std::string path_;
  const uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  MappingGuard guard_;
  int descriptor_ = -1;
  bool unpacked_ = false;
  uint32_t page_size_ = 0, usable_size_ = 0, page_count_ = 0;
};

/// Iterates forward over the rows of a rowid table in rowid order and gives access to the columns of the current row.
class TableScan {
 public:
  static constexpr int kMaxColumns = 40;

  /// `columns`: how many leading columns the caller will read. Reads nothing yet.
  TableScan(const File& file, uint32_t root_page, int columns);

  /// Moves to the next row (at first, to the first). False at the end and after an error: see status().
  bool next() {
    while (cell_ >= cells_) {
      if (!next_leaf()) return false;
    }
    return parse_cell();
  }
  /// Numbers of the table's leaf pages, in the order of their rows. Stops at damage: see status().
  std::vector<uint32_t> leaves();
  /// Makes next() walk over the rows of these leaf pages. `pages` must stay valid.
  void scan_leaves(std::span<const uint32_t> pages);
  /// Number of rows that a leaf page claims to have; 0 if it is no leaf.
  static uint32_t rows_of_leaf(const File& file, uint32_t page);
  /// Moves to the row with this rowid. False if there is none (next() then continues after its place) or after an
  /// error.
  bool seek(int64_t rowid);

  int64_t rowid() const { return rowid_; }
  /// The integer in `column`, or the truncated real; `missing` for NULL, text, blobs and columns that the row lacks.
  int64_t integer(int column, int64_t missing = kNoNumber) const {
    const uint32_t type = types_[column];
    const uint8_t* at = row_ + offsets_[column];
    switch (type) {
      case 1:
        return static_cast<int8_t>(at[0]);
      case 2:
        return static_cast<int16_t>(at[0] << 8 | at[1]);
      case 3:
        return static_cast<int32_t>(static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 |
                                    static_cast<uint32_t>(at[2]) << 8) >>
               8;
      case 4:
        return static_cast<int32_t>(big32(at));
      case 5:
        return static_cast<int64_t>(big16(at)) << 32 | big32(at + 2);
      case 6:
        return static_cast<int64_t>(big64(at));
      case 8:
        return 0;
      case 9:
        return 1;
      default:
        return other_integer(column, missing);
    }
  }
  double real(int column, double missing = 0) const;
  /// The text or blob in `column`; "" for anything else. Valid until next() or seek() is called.
  std::string_view text(int column) const {
    const uint32_t type = types_[column];
    if (type < 12) return {};
    return {reinterpret_cast<const char*>(row_ + offsets_[column]), (type - 12) / 2};
  }
  bool is_null(int column) const { return types_[column] == 0; }
  bool is_whole(int column) const {
    return is_number(column) && types_[column] != 7;  // 7 is a real
  }
  bool is_number(int column) const { return types_[column] >= 1 && types_[column] <= 9; }
  bool is_text(int column) const { return types_[column] >= 13 && types_[column] % 2 == 1; }

  /// The current row's record as stored (header and values), for copying it unchanged.
  std::span<const uint8_t> record() const { return {row_, row_size_}; }

  /// The error, if the file is malformed.
  Status status() const;
  uint64_t rows() const { return rows_; }  // visited so far

 private:
  static uint32_t big32(const uint8_t* at) { return __builtin_bswap32(load<uint32_t>(at)); }
  static int16_t big16(const uint8_t* at) { return static_cast<int16_t>(at[0] << 8 | at[1]); }
  static uint64_t big64(const uint8_t* at) { return __builtin_bswap64(load<uint64_t>(at)); }
  template <typename T>
  static T load(const uint8_t* at) {
    T value;
    __builtin_memcpy(&value, at, sizeof value);
    return value;
  }
  struct Level {
    uint32_t page;
    uint32_t cell;   // next child to visit
    uint32_t cells;  // the right-most child counts as one
  };

  bool open_page(uint32_t number);  // descends to the left-most leaf below it
  bool next_leaf();
  bool parse_cell();
  bool parse_record();
  bool gather(uint64_t payload, const uint8_t* local, uint64_t local_size, const uint8_t* overflow);
  int64_t other_integer(int column, int64_t missing) const;
  bool bad(const char* what);
  bool set_leaf(uint32_t number, const uint8_t* page);
  std::span<const uint32_t> listed_;  // leaves to visit, instead of the tree's
  size_t next_listed_ = 0;
  bool by_list_ = false;

  const File* file_;
  uint32_t root_;
  int wanted_;
  std::vector<Level> stack_;
  bool started_ = false;
  uint32_t pages_visited_ = 0;
  uint32_t overflow_pages_ = 0;    // of the rows since the last seek()
  const uint8_t* leaf_ = nullptr;  // the page
  uint32_t leaf_number_ = 0;
  const uint8_t* pointers_ = nullptr;
  uint32_t cell_ = 0, cells_ = 0;
  uint32_t leaves_held_ = 0;  // since the file let go of its pages
  int64_t rowid_ = 0;
  const uint8_t* row_ = nullptr;  // record
  uint64_t row_size_ = 0;
  std::vector<uint8_t> scratch_;  // a record assembled from overflow pages
  uint64_t rows_ = 0;
  const char* error_ = nullptr;
  uint32_t error_page_ = 0;
  uint32_t types_[kMaxColumns] = {};
  uint32_t offsets_[kMaxColumns] = {};
};

}  // namespace tacho::sqlite
