// Bins of lanes and the file of finished tiles (bins.h).
#include "view/index/bins.h"

#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tacho::view {

namespace {

constexpr size_t kWriteAt = size_t{1} << 20;
constexpr size_t kEntryBytes = 12;

}  // namespace

BinEntry BinSum::entry(unsigned level) const {
  BinEntry entry;
  entry.bin = static_cast<uint16_t>(bin & (kTileBins - 1));
  const int64_t width = int64_t{1} << level;
  // Doubles hold the product; only a full bin may get the largest value.
  const auto part = static_cast<int64_t>(static_cast<double>(cover) / static_cast<double>(width) * 65535.0);
  entry.cover = static_cast<uint16_t>(cover >= width ? 65535 : std::clamp<int64_t>(part, 1, 65534));
  entry.events =
      static_cast<uint32_t>(std::min<int64_t>(starts + (carried ? 1 : 0), std::numeric_limits<uint32_t>::max()));
  entry.name = name;
  return entry;
}

Status TileStore::open() {
  TACHO_ASSIGN(file_, TemporaryFile::create());
  return {};
}

void TileStore::write_out() {
  size_t at = 0;
  while (at < pending_.size() && status_) {
    const ssize_t put =
        pwrite(file_.descriptor(), pending_.data() + at, pending_.size() - at, static_cast<off_t>(written_ + at));
    if (put > 0)
      at += static_cast<size_t>(put);
    else if (put == 0 || errno != EINTR)
      status_ = fail("{}: the timeline's index cannot be written: {}; set TMPDIR to a folder with more room",
                     temporary_folder(), std::strerror(errno));
  }
  written_ += pending_.size();
  pending_.clear();
}

void TileStore::put(size_t line, unsigned level, int64_t tile, uint16_t lane, const std::vector<BinEntry>& entries) {
  if (entries.empty()) return;
  if (line >= refs_.size()) refs_.resize(line + 1);
  if (level >= refs_[line].size()) refs_[line].resize(level + 1);
  // Column by column: that is what compresses.
  raw_.resize(entries.size() * kEntryBytes);
  char* at = raw_.data();
  const auto column = [&](auto BinEntry::*member) {
    for (const BinEntry& entry : entries) {
      std::memcpy(at, &(entry.*member), sizeof(entry.*member));
      at += sizeof(entry.*member);
    }
  };
  column(&BinEntry::bin);
  column(&BinEntry::cover);
  column(&BinEntry::events);
  column(&BinEntry::name);
  const size_t before = pending_.size();
  pending_.resize(before + ZSTD_compressBound(raw_.size()));
  const size_t size = ZSTD_compress(pending_.data() + before, pending_.size() - before, raw_.data(), raw_.size(), 1);
  pending_.resize(before + (ZSTD_isError(size) != 0 ? 0 : size));
  refs_[line][level].push_back({tile, written_ + before, static_cast<uint32_t>(pending_.size() - before), lane,
                                static_cast<uint16_t>(entries.size())});
  if (pending_.size() >= kWriteAt) write_out();
}

Status TileStore::load(const Ref& ref, std::vector<BinEntry>& entries) const {
  TACHO_TRY(status_);
  std::vector<char> packed(ref.bytes), raw(ref.count * kEntryBytes);
  if (ref.offset >= written_) {
    std::memcpy(packed.data(), pending_.data() + (ref.offset - written_), packed.size());
  } else {
    for (size_t at = 0; at < packed.size();) {
      const ssize_t got =
          pread(file_.descriptor(), packed.data() + at, packed.size() - at, static_cast<off_t>(ref.offset + at));
      if (got <= 0) return fail("the timeline's index cannot be read: {}", std::strerror(errno));
      at += static_cast<size_t>(got);
    }
  }
  if (ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size()) != raw.size())
    return fail("the timeline's index is damaged: start tacho view again");
  entries.resize(ref.count);
  const char* at = raw.data();
  const auto column = [&](auto BinEntry::*member) {
    for (BinEntry& entry : entries) {
      std::memcpy(&(entry.*member), at, sizeof(entry.*member));
      at += sizeof(entry.*member);
    }
  };
  column(&BinEntry::bin);
  column(&BinEntry::cover);
  column(&BinEntry::events);
  column(&BinEntry::name);
  return {};
}

void LaneBins::add(int64_t start, int64_t end, uint32_t name, TileStore& store) {
  if (start < until_) {
    if (end <= until_) return;
    start = until_;
  }
  until_ = std::max(until_, end);
  const int64_t first = start >> base_;
  const int64_t last = end > start ? (end - 1) >> base_ : first;
  if (first == last) {  // by far the most
    touch(0, first, end - start, 1, false, name, std::max<int64_t>(end - start, 1), store);
    return;
  }
  for_bins(start, end, base_, first, last + 1, [&](int64_t bin, int64_t covered, bool is_first) {
    touch(0, bin, covered, is_first ? 1 : 0, !is_first, name, covered, store);
  });
}

void LaneBins::touch(size_t level, int64_t bin, int64_t covered, int64_t begun, bool open, uint32_t name, int64_t time,
                     TileStore& store) {
  BinSum& sum = sums_[level];
  if (sum.bin != bin) {
    if (sum.bin >= 0) flush(level, store);
    sum = BinSum();
    sum.bin = bin;
    sum.name = name;
  }
  sum.add(covered, begun, open, name, time);
}

void LaneBins::flush(size_t level, TileStore& store) {
  const BinSum sum = sums_[level];
  const auto zoom = static_cast<unsigned>(base_ + level);
  Tile& tile = tiles_[level];
  const int64_t number = sum.bin >> kTileBits;
  if (tile.number != number) {
    store.put(line_, zoom, tile.number, lane_, tile.entries);
    tile.number = number;
    tile.entries.clear();
  }
  tile.entries.push_back(sum.entry(zoom));
  // A slice that began before the right one of two bins began in the left one, or before that.
  if (level + 1 < sums_.size())
    touch(level + 1, sum.bin >> 1, sum.cover, sum.starts, sum.carried && (sum.bin & 1) == 0, sum.name, sum.weight,
          store);
}

void LaneBins::finish(TileStore& store) {
  for (size_t level = 0; level < sums_.size(); ++level) {
    if (sums_[level].bin >= 0) flush(level, store);
    sums_[level].bin = -1;
    store.put(line_, static_cast<unsigned>(base_ + level), tiles_[level].number, lane_, tiles_[level].entries);
    tiles_[level] = Tile();
  }
}

}  // namespace tacho::view
