// The bytes of a tile (tile_bytes.h).
#include "view/index/tile_bytes.h"

#include <cstring>

namespace tacho::view {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kTileMagic = 0x4c495454;  // "TTIL"

template <typename T>
void append(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void pad(std::string& out) {
  out.append((8 - out.size() % 8) % 8, '\0');
}

template <typename List, typename Get>
void append_column(std::string& out, const List& list, Get get) {
  for (const auto& each : list) append(out, get(each));
  pad(out);
}

}  // namespace

void append_tile(std::string& out, size_t line, unsigned level, const Tile& tile) {
  const size_t begin = out.size();
  size_t count = 0;
  if (tile.kind == Tile::Kind::kDensity) count = tile.density.size();
  if (tile.kind == Tile::Kind::kSlices) count = tile.slices.size();
  if (tile.kind == Tile::Kind::kCounter) count = tile.readings.size();
  append(out, kTileMagic);
  append(out, static_cast<uint32_t>(line));
  append(out, static_cast<uint8_t>(tile.kind));
  append(out, static_cast<uint8_t>(level));
  append(out, tile.lanes);
  append(out, static_cast<uint32_t>(count));
  append(out, uint32_t{0});
  append(out, static_cast<uint32_t>(tile.provisional ? 1 : 0));
  append(out, uint64_t{0});
  switch (tile.kind) {
    case Tile::Kind::kEmpty:
      break;
    case Tile::Kind::kDensity:
      append_column(out, tile.density, [](const Tile::Density& each) { return each.lane; });
      append_column(out, tile.density, [](const Tile::Density& each) { return each.entry.bin; });
      append_column(out, tile.density, [](const Tile::Density& each) { return each.entry.cover; });
      append_column(out, tile.density, [](const Tile::Density& each) { return each.entry.events; });
      append_column(out, tile.density, [](const Tile::Density& each) { return each.entry.name; });
      break;
    case Tile::Kind::kSlices:
      append_column(out, tile.slices, [](const Slice& each) { return static_cast<double>(each.start); });
      append_column(out, tile.slices, [](const Slice& each) {
        return each.end == kOpenEnd ? -1.0 : static_cast<double>(each.end - each.start);
      });
      append_column(out, tile.slices, [](const Slice& each) { return each.row; });
      append_column(out, tile.slices, [](const Slice& each) { return each.name; });
      append_column(out, tile.slices, [](const Slice& each) { return each.lane; });
      append_column(out, tile.slices, [](const Slice& each) { return each.flags; });
      break;
    case Tile::Kind::kCounter:
      append(out, tile.before);
      append_column(out, tile.readings, [](const Tile::Reading& each) { return each.bin; });
      append_column(out, tile.readings, [](const Tile::Reading& each) { return each.min; });
      append_column(out, tile.readings, [](const Tile::Reading& each) { return each.max; });
      append_column(out, tile.readings, [](const Tile::Reading& each) { return each.last; });
      break;
  }
  const auto bytes = static_cast<uint32_t>(out.size() - begin);
  std::memcpy(out.data() + begin + 16, &bytes, sizeof bytes);
}

}  // namespace tacho::view
