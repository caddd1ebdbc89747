// PackedTable: the columns of a dimension in memory. Each block of 64 Ki rows takes as few bytes per cell (0, 1, 2, 4,
// 8) as its range needs, so that millions of marker labels cost tens of megabytes, not hundreds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tacho::trace {

class PackedTable {
 public:
  explicit PackedTable(size_t columns) : columns_(columns), staged_(columns) {}

  /// Appends rows: one vector of `rows` values per column.
  void append(std::span<const std::vector<int64_t>> values, size_t rows);
  /// Packs the remaining rows. Call before the first cell() and after the last append().
  void seal();
  size_t rows() const { return rows_; }
  size_t columns() const { return columns_.size(); }
  /// Bytes of memory held.
  size_t memory() const { return memory_; }

  /// Contract: row < rows(), column < columns().
  int64_t cell(size_t row, size_t column) const {
    const Block& block = columns_[column][row / kBlockRows];
    const size_t at = row % kBlockRows;
    switch (block.width) {
      case 0:
        return block.base;
      case 1:
        return plus(block.base, block.cells[at]);
      case 2:
        return plus(block.base, load<uint16_t>(block, at));
      case 4:
        return plus(block.base, load<uint32_t>(block, at));
      default:
        return plus(block.base, load<uint64_t>(block, at));
    }
  }
  void set(size_t row, size_t column, int64_t value);
  /// No cell of the column is below the first or above the second; {0, 0} for a table without rows. Looks at no cell.
  std::pair<int64_t, int64_t> range(size_t column) const;

 private:
  static constexpr size_t kBlockRows = 65536;
  struct Block {
    int64_t base = 0;
    int64_t low = 0, high = 0;  // no cell is below the one or above the other
    unsigned width = 0;         // bytes per cell
    std::unique_ptr<uint8_t[]> cells;
  };
  static int64_t plus(int64_t base, uint64_t offset) {
    return static_cast<int64_t>(static_cast<uint64_t>(base) + offset);
  }
  template <typename T>
  static T load(const Block& block, size_t at) {
    T value;
    __builtin_memcpy(&value, block.cells.get() + at * sizeof value, sizeof value);
    return value;
  }
  static Block pack(std::span<const int64_t> values);
  void pack_staged();

  size_t rows_ = 0;
  size_t memory_ = 0;
  std::vector<std::vector<Block>> columns_;
  std::vector<std::vector<int64_t>> staged_;  // rows of the incomplete block
};

}  // namespace tacho::trace
