// Tiles of slices and of bins (index.h).
#include <algorithm>

#include "view/index/index.h"

namespace tacho::view {

using event::Table;

namespace {

constexpr size_t kChunksForSlices = 24;  // a tile of few slices is not worth decoding more

}  // namespace

Result<std::vector<Tile::Density>> TileIndex::bins_of(size_t line, unsigned level, int64_t index) const {
  std::vector<Tile::Density> bins;
  const std::shared_lock held(lock_);
  TACHO_TRY(store_.read(line, level, index, [&](uint16_t lane, const std::vector<BinEntry>& entries) {
    for (const BinEntry& entry : entries) bins.push_back({lane, entry});
  }));
  std::sort(bins.begin(), bins.end(), [](const Tile::Density& a, const Tile::Density& b) {
    return a.lane != b.lane ? a.lane < b.lane : a.entry.bin < b.entry.bin;
  });
  return bins;
}

std::vector<size_t> TileIndex::lines_below(size_t group) const {
  std::vector<size_t> below;
  const auto& lines = tree_.lines();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].group() || lines[i].kind == LineKind::kSample || lines[i].kind == LineKind::kCounter ||
        lines[i].kind == LineKind::kMessage || lines[i].kind == LineKind::kStack)
      continue;
    if ((lines[i].kind == LineKind::kQueue) == group_of_threads_[group]) continue;
    for (int64_t at = lines[i].parent; at >= 0; at = lines[static_cast<size_t>(at)].parent)
      if (static_cast<size_t>(at) == group) below.push_back(i);
  }
  return below;
}

// The union of the lines below, from the slices themselves: each stretch belongs to the slice that began first.
Result<Tile> TileIndex::fine_group_tile(size_t group, unsigned level, int64_t index) {
  const int64_t first_bin = index << kTileBits, from = first_bin << level, to = from + (kTileBins << level);
  std::vector<Slice> all;
  for (const size_t below : lines_below(group)) {
    const bool queue = tree_.lines()[below].kind == LineKind::kQueue;
    TACHO_TRY(visit(below, from, to, [&](std::span<const Slice> slices) {
      for (const Slice& slice : slices)
        if (slice.overlaps(from, to) && (queue ? is_device_work(table_of_row(slice.row)) : slice.lane == 0))
          all.push_back(slice);
      return true;
    }));
  }
  std::sort(all.begin(), all.end(), earlier_or_longer);
  Tile tile;
  tile.lanes = 1;
  const bool few = all.size() <= limits_.slices;
  std::vector<BinSum> sums(few ? 0 : kTileBins);
  int64_t until = std::numeric_limits<int64_t>::min();
  for (const Slice& slice : all) {
    const int64_t start = std::max(slice.start, until), end = std::min(slice.end, length_);
    if (until > slice.start && end <= until) continue;
    until = std::max(until, end);
    if (few) {
      tile.slices.push_back({start, std::max(end, start), kNoRow, slice.name, 0, 0});
      continue;
    }
    for_bins(start, std::max(end, start), level, first_bin, first_bin + kTileBins,
             [&](int64_t bin, int64_t covered, bool) {
               BinSum& sum = sums[static_cast<size_t>(bin - first_bin)];
               sum.bin = bin;
               sum.add(covered, 1, false, slice.name, std::max<int64_t>(covered, 1));
             });
  }
  for (const BinSum& sum : sums)
    if (sum.bin >= 0) tile.density.push_back({0, sum.entry(level)});
  if (!all.empty()) tile.kind = few ? Tile::Kind::kSlices : Tile::Kind::kDensity;
  return tile;
}

// A tile at a level with bins, as the pass left it.
Status TileIndex::density_of_bins(size_t number, unsigned level, int64_t index, Tile& tile) const {
  const unsigned top = base_ + levels_ - 1, zoom = std::min(level, top);
  const auto add = [&](uint16_t lane, const std::vector<BinEntry>& entries) {
    for (BinEntry entry : entries) {
      if (level > zoom) {  // all of it is in one bin
        entry.cover = static_cast<uint16_t>(std::max(entry.cover >> (level - zoom), 1));
        entry.bin = 0;
      }
      tile.density.push_back({lane, entry});
    }
  };
  TACHO_TRY(store_.read(number, zoom, index, add));
  for (const LaneBins& lane : lines_[number].bins)
    if (const auto* open = lane.open_tile(zoom, index)) add(lane.lane(), *open);
  return {};
}

// The slices of a tile if they are at most `most`, else their bins.
Status TileIndex::slices_or_bins(size_t number, unsigned level, int64_t index, size_t most, Tile& tile) {
  const int64_t first_bin = index << kTileBits, from = first_bin << level, to = from + (kTileBins << level);
  if (level >= base_) {  // which has its bins already
    TACHO_ASSIGN(auto found, slices(number, from, to, most, kChunksForSlices));
    if (!found) return {};
    tile.slices = std::move(*found);
    tile.kind = Tile::Kind::kSlices;
    return {};
  }
  std::vector<Slice> few;
  std::vector<BinSum> sums;  // by lane, bin
  const auto count = [&](const Slice& slice) {
    const size_t lane = slice.lane;
    if (sums.size() < (lane + 1) * kTileBins) sums.resize((lane + 1) * kTileBins);
    const int64_t end = std::max(std::min(slice.end, length_), slice.start);
    for_bins(slice.start, end, level, first_bin, first_bin + kTileBins, [&](int64_t bin, int64_t covered, bool) {
      BinSum& sum = sums[lane * kTileBins + static_cast<size_t>(bin - first_bin)];
      sum.bin = bin;
      sum.add(covered, 1, false, slice.name, std::max<int64_t>(covered, 1));
    });
  };
  TACHO_TRY(visit(number, from, to, [&](std::span<const Slice> slices) {
    for (const Slice& slice : slices) {
      if (!slice.overlaps(from, to)) continue;
      if (sums.empty() && few.size() < most) {
        few.push_back(slice);
        continue;
      }
      if (sums.empty())
        for (const Slice& each : few) count(each);
      count(slice);
    }
    return true;
  }));
  if (sums.empty()) {
    tile.slices = std::move(few);
    tile.kind = Tile::Kind::kSlices;
  }
  for (size_t i = 0; i < sums.size(); ++i)
    if (sums[i].bin >= 0) tile.density.push_back({static_cast<uint16_t>(i / kTileBins), sums[i].entry(level)});
  return {};
}

Result<Tile> TileIndex::tile(size_t number, unsigned level, int64_t index) {
  Tile tile;
  if (number >= lines_.size() || index < 0) return tile;
  if (level > kMostLevel - kTileBits || index > (length_ >> level >> kTileBits)) return tile;
  const int64_t from = (index << kTileBits) << level, to = from + (kTileBins << level);
  const bool group = tree_.lines()[number].group();
  size_t most = 0;
  {
    const std::shared_lock held(lock_);
    TACHO_TRY(status_);
    const LineState& line = lines_[number];
    most = most_slices(line);
    if (line.counts) {
      tile = counter_tile(line, level, index);
      tile.provisional = !finished_ && line.values.empty();
      return tile;
    }
    tile.lanes = static_cast<uint16_t>(std::max<size_t>(group ? 1 : line.lanes.count(), 1));
    if (!finished_) {
      tile.provisional = frontier_ < to;
      for (const Segment& segment : line.segments)
        tile.provisional |= segment.min_start < to && segment.max_end >= from && !parts_[segment.part].done;
    }
    if (level >= base_) TACHO_TRY(density_of_bins(number, level, index, tile));
  }
  if (group && level < base_) {
    TACHO_ASSIGN(Tile fine, fine_group_tile(number, level, index));
    fine.provisional = tile.provisional;
    return fine;
  }
  size_t events = 0;
  for (const Tile::Density& each : tile.density) events += each.entry.events;
  // A slice counts once in each of its bins, so a tile with more may still hold few.
  if (!group && (level < base_ || events <= most * 4 || tile.provisional))
    TACHO_TRY(slices_or_bins(number, level, index, most, tile));
  if (tile.kind == Tile::Kind::kSlices) {
    tile.density.clear();
    std::sort(tile.slices.begin(), tile.slices.end(), [](const Slice& a, const Slice& b) {
      return a.lane != b.lane ? a.lane < b.lane : earlier_or_longer(a, b);
    });
    if (tile.slices.empty()) tile.kind = Tile::Kind::kEmpty;
  } else if (!tile.density.empty()) {
    tile.kind = Tile::Kind::kDensity;
    std::sort(tile.density.begin(), tile.density.end(), [](const Tile::Density& a, const Tile::Density& b) {
      return a.lane != b.lane ? a.lane < b.lane : a.entry.bin < b.entry.bin;
    });
  }
  return tile;
}

}  // namespace tacho::view
