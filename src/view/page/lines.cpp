// Lines of a run as columns of a page (lines.h).
#include "view/page/lines.h"

#include <algorithm>
#include <limits>

#include "walk/names/names.h"

namespace tacho::view {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

constexpr int64_t kSummaryBins = 4096;       // over the run
constexpr int64_t kSlicesOfSummary = 5'000;  // a line with no more keeps its slices

}  // namespace

Status PageLines::pack(bool summary) {
  const auto& lines = run_.tree().lines();
  lines_.resize(lines.size());
  for (size_t line = 0; line < lines.size(); ++line) {
    lines_[line].line = line;
    TACHO_TRY(pack_line(lines_[line], summary));
  }
  for (const Table table : slice_tables()) {
    if (std::none_of(lines_.begin(), lines_.end(), [&](const PageLine& line) { return line.rows.contains(table); }))
      continue;
    TACHO_TRY(pack_shapes(table));
    const auto columns = static_cast<int>(event::table_info(table).columns.size());
    for (int each = column::Fact::correlation; each < columns; ++each) TACHO_TRY(pack_detail(table, each));
  }
  return {};
}

Status PageLines::pack_line(PageLine& line, bool summary) {
  TileIndex& index = run_.index();
  const Line& shown = run_.tree().lines()[line.line];
  if (shown.kind == LineKind::kCounter) {
    pack_readings(line);
    return {};
  }
  if (summary && (shown.group() || index.events(line.line) > kSlicesOfSummary)) {
    TACHO_ASSIGN(auto tiles, bins_of_summary(line.line));
    pack_tiles(line, std::move(tiles));
    return {};
  }
  unsigned top = 0;
  while ((index.length() >> top >> kTileBits) != 0) ++top;
  std::vector<TileBins> tiles;
  TACHO_TRY(bins_from(line.line, top, 0, tiles));
  pack_tiles(line, std::move(tiles));
  if (!shown.group()) return pack_slices(line);
  line.below = index.lines_below(line.line);
  return {};
}

// The tiles of bins from this one on down.
Status PageLines::bins_from(size_t line, unsigned level, int64_t index, std::vector<TileBins>& tiles) {
  TACHO_ASSIGN(Tile tile, run_.index().tile(line, level, index));
  if (tile.kind != Tile::Kind::kDensity) return {};
  tiles.push_back({level, index, std::move(tile.density)});
  if (level == 0) return {};
  TACHO_TRY(bins_from(line, level - 1, 2 * index, tiles));
  return bins_from(line, level - 1, 2 * index + 1, tiles);
}

Result<std::vector<PageLines::TileBins>> PageLines::bins_of_summary(size_t line) {
  const TileIndex& index = run_.index();
  unsigned level = index.base_level();
  while ((index.length() >> level) >= kSummaryBins) ++level;
  std::vector<TileBins> tiles;
  for (bool top = false; !top; ++level) {
    const int64_t last = index.length() >> level >> kTileBits;
    top = last == 0;
    for (int64_t tile = 0; tile <= last; ++tile) {
      TACHO_ASSIGN(auto bins, index.bins_of(line, level, tile));
      if (!bins.empty()) tiles.push_back({level, tile, std::move(bins)});
    }
  }
  return tiles;
}

void PageLines::pack_tiles(PageLine& line, std::vector<TileBins> tiles) {
  std::sort(tiles.begin(), tiles.end(), [](const TileBins& a, const TileBins& b) {
    return a.level != b.level ? a.level < b.level : a.index < b.index;
  });
  std::vector<Tile::Density> bins;
  for (const TileBins& tile : tiles) bins.insert(bins.end(), tile.bins.begin(), tile.bins.end());
  line.tiles = tiles.size();
  line.entries = bins.size();
  using Bin = Tile::Density;
  line.tile_columns = {
      {"level", packed_.integers(tiles, [](const TileBins& tile) { return uint64_t{tile.level}; })},
      {"index", packed_.integers(tiles, [](const TileBins& tile) { return static_cast<uint64_t>(tile.index); })},
      {"size", packed_.integers(tiles, [](const TileBins& tile) { return uint64_t{tile.bins.size()}; })},
      {"lane", packed_.integers(bins, [](const Bin& bin) { return uint64_t{bin.lane}; })},
      {"bin", packed_.differences(bins, [](const Bin& bin) { return int64_t{bin.entry.bin}; })},
      {"cover", packed_.integers(bins, [](const Bin& bin) { return uint64_t{bin.entry.cover}; })},
      {"events", packed_.integers(bins, [](const Bin& bin) { return uint64_t{bin.entry.events}; })},
      {"name", packed_.integers(bins, [](const Bin& bin) { return uint64_t{bin.entry.name}; })},
  };
}

Status PageLines::pack_slices(PageLine& line) {
  std::vector<Slice> slices;
  slices.reserve(static_cast<size_t>(run_.index().events(line.line)));
  TACHO_TRY(run_.index().visit(line.line, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
                               [&](std::span<const Slice> some) {
                                 slices.insert(slices.end(), some.begin(), some.end());
                                 return true;
                               }));
  std::sort(slices.begin(), slices.end(), earlier_or_longer);
  for (const Slice& slice : slices) line.rows[table_of_row(slice.row)].numbers.push_back(number_of_row(slice.row));
  line.slices = slices.size();
  line.slice_columns = {
      {"start", packed_.differences(slices, [](const Slice& slice) { return slice.start; })},
      {"duration", packed_.integers(slices,
                                    [](const Slice& slice) {
                                      return slice.end == kOpenEnd ? uint64_t{0}
                                                                   : static_cast<uint64_t>(slice.end - slice.start) + 1;
                                    })},
      {"name", packed_.integers(slices, [](const Slice& slice) { return uint64_t{slice.name}; })},
      {"lane", packed_.integers(slices, [](const Slice& slice) { return uint64_t{slice.lane}; })},
      {"flags", packed_.integers(slices, [](const Slice& slice) { return uint64_t{slice.flags}; })},
      {"table",
       packed_.integers(slices, [](const Slice& slice) { return static_cast<uint64_t>(table_of_row(slice.row)); })},
  };
  for (auto& [table, rows] : line.rows)
    rows.columns.emplace_back("row", packed_.differences(rows.numbers, [](int64_t row) { return row; }));
  return {};
}

void PageLines::pack_readings(PageLine& line) {
  const auto values = run_.index().values(line.line);
  line.readings = values.size();
  line.reading_columns = {{"start", packed_.differences(values, [](const auto& each) { return each.first; })},
                          {"value", packed_.doubles(values, [](const auto& each) { return each.second; })}};
}

Result<std::vector<int64_t>> PageLines::cells(Table table, int column) const {
  std::vector<int64_t> all, some;
  all.reserve(static_cast<size_t>(run_.trace().rows(table)));
  for (size_t chunk = 0; chunk < run_.trace().chunks(table).size(); ++chunk) {
    TACHO_TRY(run_.trace().decode(table, chunk, column, some));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// Packs the details from each row's dimension, which few rows have alone.
Status PageLines::pack_shapes(Table table) {
  TACHO_ASSIGN(const auto dims, cells(table, column::Fact::dim));
  std::vector<uint64_t> shapes(static_cast<size_t>(run_.trace().rows(walk::dimension_of(table))) + 1, UINT64_MAX);
  for (PageLine& line : lines_) {
    const auto rows = line.rows.find(table);
    if (rows == line.rows.end()) continue;
    const auto shape_of = [&](int64_t row) {
      const int64_t dim = dims[static_cast<size_t>(row)];
      uint64_t& number = shapes[static_cast<size_t>(dim)];
      if (number == UINT64_MAX) {
        const auto [text, fresh] =
            shape_numbers_.try_emplace(shape_texts(run_.trace(), devices_, table, dim), shapes_.size());
        if (fresh) shapes_.push_back(&text->first);
        number = text->second;
      }
      return number;
    };
    rows->second.columns.emplace_back("shape", packed_.integers(rows->second.numbers, shape_of));
  }
  return {};
}

Status PageLines::pack_detail(Table table, int of) {
  const event::Column& info = event::table_info(table).columns[static_cast<size_t>(of)];
  TACHO_ASSIGN(auto values, cells(table, of));
  constexpr int64_t kExact = int64_t{1} << 53;  // a page's numbers are doubles
  const bool plain = info.type == event::Type::kId || info.type == event::Type::kInteger ||
                     info.type == event::Type::kTime || info.type == event::Type::kDuration;
  const bool numbers = plain && std::all_of(values.begin(), values.end(), [](int64_t value) {
                         return value == kUnknown || (value >= 0 && value < kExact);
                       });
  Detail detail{info.name, {}, {}};
  if (numbers) {
    for (int64_t& value : values)
      value = value == kUnknown || (value == 0 && info.type == event::Type::kId) ? 0 : value + 1;
  } else {
    std::unordered_map<int64_t, int64_t> known;
    for (int64_t& value : values) {
      const auto [place, fresh] = known.try_emplace(value, 0);
      if (fresh) {
        std::string text = readable_cell(run_.trace(), devices_, info, value);
        if (!text.empty()) {
          detail.texts.push_back(std::move(text));
          if (info.type == event::Type::kBytes) detail.numbers.push_back(value);
          place->second = static_cast<int64_t>(detail.texts.size());
        }
      }
      value = place->second;
    }
  }
  if (std::all_of(values.begin(), values.end(), [](int64_t value) { return value == 0; })) return {};
  details_[table].push_back(std::move(detail));
  for (PageLine& line : lines_) {
    const auto rows = line.rows.find(table);
    if (rows == line.rows.end()) continue;
    const auto value_of = [&](int64_t row) { return values[static_cast<size_t>(row)]; };
    rows->second.columns.emplace_back(info.name, numbers ? packed_.differences(rows->second.numbers, value_of)
                                                         : packed_.integers(rows->second.numbers, [&](int64_t row) {
                                                             return static_cast<uint64_t>(value_of(row));
                                                           }));
  }
  return {};
}

void PageLines::put_line(JsonWriter& json, const PageLine& line) {
  json.newline().begin_object().member("line", line.line);
  if (line.tiles > 0) {
    json.name("tiles").begin_object().member("count", line.tiles).member("entries", line.entries).name("columns");
    put_columns(json, line.tile_columns);
    json.end_object();
  }
  if (line.slices > 0) {
    json.name("slices").begin_object().member("count", line.slices).name("columns");
    put_columns(json, line.slice_columns);
    json.name("rows").begin_object();
    for (const auto& [table, rows] : line.rows) {
      json.key(fmt::format("{}", static_cast<unsigned>(table))).begin_object().member("count", rows.numbers.size());
      json.name("columns");
      put_columns(json, rows.columns);
      json.end_object();
    }
    json.end_object().end_object();
  }
  if (line.readings > 0) {
    json.name("readings").begin_object().member("count", line.readings).name("columns");
    put_columns(json, line.reading_columns);
    json.end_object();
  }
  if (const Line& shown = run_.tree().lines()[line.line]; shown.kind == LineKind::kQueue)
    json.member("device", shown.device_number);
  if (!line.below.empty()) {
    json.name("below").begin_array();
    for (const size_t below : line.below) json.value(below);
    json.end_array();
  }
  json.end_object();
  packed_.written();
}

void PageLines::put(JsonWriter& json) {
  json.name("lines").begin_array();
  for (const PageLine& line : lines_)
    if (line.tiles + line.slices + line.readings > 0) put_line(json, line);
  json.end_array().name("details").begin_object();
  for (const auto& [table, details] : details_) {
    json.key(fmt::format("{}", static_cast<unsigned>(table))).begin_array();
    for (const Detail& detail : details) {
      json.begin_object().member("title", detail.title);
      const auto list = [&](JsonLiteral name, const auto& values) {
        if (values.empty()) return;
        json.name(name).begin_array();
        for (const auto& each : values) {
          json.value(each);
          packed_.written();
        }
        json.end_array();
      };
      list("texts", detail.texts);
      list("numbers", detail.numbers);
      json.end_object();
    }
    json.end_array();
  }
  json.end_object().name("shapes").begin_array();
  for (const Texts* shape : shapes_) {
    json.begin_array();
    for (const auto& [title, text] : *shape) json.begin_array().value(title).value(text).end_array();
    json.end_array();
    packed_.written();
  }
  json.end_array();
}

}  // namespace tacho::view
