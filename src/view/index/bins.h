// The bins of a line of the timeline, for slices thinner than a bin: covered time, number of slices and a name per bin
// and lane, at every level of zoom. One pass over slices in order of time makes all levels; tiles lie compressed in a
// temporary file.
//
// A bin at level l is 2^l ns wide and begins at a multiple of that; a tile is 512 bins.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/files/temporary.h"
#include "base/result.h"

namespace tacho::view {

inline constexpr unsigned kTileBits = 9;
inline constexpr int64_t kTileBins = int64_t{1} << kTileBits;
/// Levels end here: times fit in 61 bits.
inline constexpr unsigned kMostLevel = 60;
/// End of a slice that never ended.
inline constexpr int64_t kOpenEnd = std::numeric_limits<int64_t>::max();

/// One bin of a lane. `cover`: 1 to 65535 parts of the bin, 65535 only when all of it is covered. `events`: slices that
/// overlap the bin. `name`: certain when one name has more than half of the covered time, else one of them.
struct BinEntry {
  uint16_t bin = 0;  // within the tile
  uint16_t cover = 0;
  uint32_t events = 0;
  uint32_t name = 0;
};

/// The sums of one bin.
struct BinSum {
  int64_t bin = -1;
  int64_t cover = 0;     // ns
  int64_t starts = 0;    // slices that begin in it
  bool carried = false;  // one began before it: slices of a lane do not overlap, so it is one at most
  uint32_t name = 0;     // majority vote of Boyer and Moore, by time
  int64_t weight = 0;

  void add(int64_t covered, int64_t begun, bool open, uint32_t what, int64_t time) {
    cover += covered;
    starts += begun;
    carried |= open;
    if (what == name)
      weight += time;
    else if (time > weight) {
      name = what;
      weight = time - weight;
    } else
      weight -= time;
  }
  BinEntry entry(unsigned level) const;
};

/// Splits a slice into the bins of one level that it touches: visit(bin, covered ns, is the first). A point touches
/// one. Bins of [from, to) only.
template <typename Visit>
void for_bins(int64_t start, int64_t end, unsigned level, int64_t from, int64_t to, Visit visit) {
  const int64_t first = start >> level;
  const int64_t last = end > start ? (end - 1) >> level : first;
  for (int64_t bin = first < from ? from : first; bin <= last && bin < to; ++bin) {
    const int64_t begin = bin << level, limit = begin + (int64_t{1} << level);
    const int64_t covered = (end < limit ? end : limit) - (start > begin ? start : begin);
    visit(bin, covered > 0 ? covered : 0, bin == first);
  }
}

/// Finished tiles: appended by one thread, read by others under the owner's lock.
class TileStore {
 public:
  Status open();
  /// A tile of one lane; entries in order of bins.
  void put(size_t line, unsigned level, int64_t tile, uint16_t lane, const std::vector<BinEntry>& entries);
  /// Appends the lanes of a tile: get(lane, entries) for each.
  template <typename Get>
  Status read(size_t line, unsigned level, int64_t tile, Get get) const {
    if (line >= refs_.size() || level >= refs_[line].size()) return {};
    std::vector<BinEntry> entries;
    for (const Ref& ref : refs_[line][level])
      if (ref.tile == tile) {
        TACHO_TRY(load(ref, entries));
        get(ref.lane, entries);
      }
    return {};
  }
  Status status() const { return status_; }
  uint64_t bytes() const { return written_ + pending_.size(); }

 private:
  struct Ref {
    int64_t tile;
    uint64_t offset;
    uint32_t bytes;
    uint16_t lane, count;
  };
  Status load(const Ref& ref, std::vector<BinEntry>& entries) const;
  void write_out();

  TemporaryFile file_;
  std::vector<std::vector<std::vector<Ref>>> refs_;  // by line, level
  std::vector<char> pending_;                        // the bytes after `written_`
  std::vector<char> raw_;
  uint64_t written_ = 0;
  Status status_;
};

/// The levels of one lane, fed with slices in order of start.
class LaneBins {
 public:
  LaneBins(size_t line, uint16_t lane, unsigned base, unsigned levels)
      : line_(line), lane_(lane), base_(base), sums_(levels), tiles_(levels) {}
  /// Slices that overlap an earlier one count from its end on.
  void add(int64_t start, int64_t end, uint32_t name, TileStore& store);
  void finish(TileStore& store);
  uint16_t lane() const { return lane_; }
  /// The tile at `level` that is not in the store yet, as far as its bins are finished; nullptr when it is another one.
  const std::vector<BinEntry>* open_tile(unsigned level, int64_t tile) const {
    const Tile& open = tiles_[level - base_];
    return open.number == tile ? &open.entries : nullptr;
  }

 private:
  struct Tile {
    int64_t number = -1;
    std::vector<BinEntry> entries;
  };
  void touch(size_t level, int64_t bin, int64_t covered, int64_t begun, bool open, uint32_t name, int64_t time,
             TileStore& store);
  void flush(size_t level, TileStore& store);

  size_t line_;
  uint16_t lane_;
  unsigned base_;
  int64_t until_ = std::numeric_limits<int64_t>::min();
  std::vector<BinSum> sums_;
  std::vector<Tile> tiles_;
};

}  // namespace tacho::view
