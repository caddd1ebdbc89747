// Packing of dimension columns.
#include "trace/store/packed_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tacho::trace {

PackedTable::Block PackedTable::pack(std::span<const int64_t> values) {
  Block block;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  block.base = block.low = *low;
  block.high = *high;
  const uint64_t range = static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low);
  block.width = range == 0 ? 0 : std::bit_ceil((static_cast<unsigned>(std::bit_width(range)) + 7) / 8);
  if (block.width == 0) return block;
  block.cells.reset(new uint8_t[values.size() * block.width]);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t offset = static_cast<uint64_t>(values[i]) - static_cast<uint64_t>(block.base);
    std::memcpy(block.cells.get() + i * block.width, &offset, block.width);
  }
  return block;
}

void PackedTable::pack_staged() {
  for (size_t c = 0; c < columns_.size(); ++c) {
    columns_[c].push_back(pack(staged_[c]));
    memory_ += sizeof(Block) + staged_[c].size() * columns_[c].back().width;
    staged_[c].clear();
  }
}

void PackedTable::append(std::span<const std::vector<int64_t>> values, size_t rows) {
  size_t done = 0;
  while (done < rows) {
    const size_t part = std::min(rows - done, kBlockRows - staged_[0].size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      const auto from = values[c].begin() + static_cast<ptrdiff_t>(done);
      staged_[c].insert(staged_[c].end(), from, from + static_cast<ptrdiff_t>(part));
    }
    done += part;
    if (staged_[0].size() == kBlockRows) pack_staged();
  }
  rows_ += rows;
}

void PackedTable::seal() {
  if (!columns_.empty() && !staged_[0].empty()) pack_staged();
  for (auto& column : staged_) {
    column.clear();
    column.shrink_to_fit();
  }
}

void PackedTable::set(size_t row, size_t column, int64_t value) {
  Block& block = columns_[column][row / kBlockRows];
  const size_t at = row % kBlockRows;
  const size_t rows = std::min(kBlockRows, rows_ - row / kBlockRows * kBlockRows);
  const uint64_t offset = static_cast<uint64_t>(value) - static_cast<uint64_t>(block.base);
  block.low = std::min(block.low, value);
  block.high = std::max(block.high, value);
  if (block.width == 8 || (block.width > 0 && offset >> (block.width * 8) == 0) || offset == 0) {
    if (block.width > 0) std::memcpy(block.cells.get() + at * block.width, &offset, block.width);
    return;
  }
  std::vector<int64_t> values(rows);
  const size_t first = row / kBlockRows * kBlockRows;
  for (size_t i = 0; i < rows; ++i) values[i] = cell(first + i, column);
  values[at] = value;
  memory_ -= rows * block.width;
  block = pack(values);
  memory_ += rows * block.width;
}

std::pair<int64_t, int64_t> PackedTable::range(size_t column) const {
  std::pair<int64_t, int64_t> range{0, 0};
  bool first = true;
  for (const Block& block : columns_[column]) {
    range = {first ? block.low : std::min(range.first, block.low),
             first ? block.high : std::max(range.second, block.high)};
    first = false;
  }
  return range;
}

}  // namespace tacho::trace
