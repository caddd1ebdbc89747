// The activity of devices in a span of time (index.h).
#include <algorithm>

#include "view/index/index.h"

namespace tacho::view {

using event::Table;

std::vector<size_t> TileIndex::devices() const {
  std::vector<size_t> devices;
  for (const auto& [device, lines] : device_lines_) devices.push_back(device);
  std::sort(devices.begin(), devices.end());
  return devices;
}

Result<BusySums> TileIndex::activity(size_t device, int64_t from, int64_t to) {
  from = std::max<int64_t>(from, 0);
  const auto exact = [&](int64_t begin, int64_t end) -> Result<BusySums> {
    struct Piece {
      int64_t start, end;
      WorkKind work;
    };
    std::vector<Piece> pieces;
    const auto lines = device_lines_.find(device);
    if (begin >= end || lines == device_lines_.end()) return BusySums();
    for (const size_t line : lines->second)
      TACHO_TRY(visit(line, begin, end, [&](std::span<const Slice> slices) {
        for (const Slice& slice : slices) {
          const Table table = table_of_row(slice.row);
          if (!slice.overlaps(begin, end) || !is_device_work(table) || slice.end <= slice.start) continue;
          pieces.push_back(
              {std::max(slice.start, begin) - begin, std::min(slice.end, end) - begin, work_of(table, slice.name)});
        }
        return true;
      }));
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.start < b.start; });
    DeviceBins sum(1, end - begin);
    for (const Piece& piece : pieces) sum.add(piece.start, piece.end, piece.work);
    sum.advance(end - begin);
    return sum.sum(0, 1);
  };
  int64_t width = 1, first = 0, last = 0;
  BusySums middle;
  {
    const std::shared_lock held(lock_);
    const auto found = activity_.find(device);
    if (found == activity_.end()) return BusySums();
    width = found->second.width();
    first = (from + width - 1) / width;
    last = std::min(to / width, found->second.bins());
    // At the end of the run the last bin is whole although the run ends within it.
    if (first < last) middle = found->second.sum(first, last);
  }
  if (first >= last) return exact(from, to);
  TACHO_ASSIGN(BusySums sum, exact(from, first * width));
  sum.append(middle);
  TACHO_ASSIGN(const BusySums rest, exact(last * width, to));
  sum.append(rest);
  return sum;
}

walk::Span TileIndex::span_of(size_t device) const {
  const std::shared_lock held(lock_);
  return activity_.at(device).span();
}

BusySums TileIndex::bins(size_t device, int64_t from, int64_t to) const {
  const std::shared_lock held(lock_);
  const auto found = activity_.find(device);
  if (found == activity_.end()) return {};
  return found->second.sum(from / found->second.width(), to / found->second.width());
}

int64_t TileIndex::calls_open(int64_t from, int64_t to) const {
  const std::shared_lock held(lock_);
  return calls_->sum(from / calls_->width(), (to + calls_->width() - 1) / calls_->width()).busy;
}

}  // namespace tacho::view
