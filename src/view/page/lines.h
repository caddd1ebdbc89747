// The lines of a run in a self-contained page, as the server would answer for them: tiles of bins down to its finest
// level of bins, and below them the slices, with their details.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/operators/places.h"
#include "view/answers/details.h"
#include "view/page/packed.h"
#include "view/run.h"

namespace tacho::view {

class PageLines {
 public:
  PageLines(Run& run, Packed& packed) : run_(run), packed_(packed), devices_(run.trace()) {}

  /// Packs all lines; the index is complete. `summary`: of lines with many slices only bins.
  Status pack(bool summary);
  /// The members "lines", "details" and "shapes" of the page's JSON.
  void put(JsonWriter& json);

 private:
  struct Rows {
    std::vector<int64_t> numbers;  // of slices in order of start
    Columns columns;
  };
  struct PageLine {
    size_t line = 0, tiles = 0, entries = 0, slices = 0, readings = 0;
    Columns tile_columns, slice_columns, reading_columns;
    std::map<event::Table, Rows> rows;
    std::vector<size_t> below;
  };
  struct TileBins {
    unsigned level;
    int64_t index;
    std::vector<Tile::Density> bins;
  };
  // A column of a table's rows: 1 + a number, or 1 + an index into `texts`; 0 = nothing to say.
  struct Detail {
    std::string_view title;
    std::vector<std::string> texts;
    std::vector<int64_t> numbers;  // that the texts of bytes say
  };

  Status pack_line(PageLine& line, bool summary);
  Status bins_from(size_t line, unsigned level, int64_t index, std::vector<TileBins>& tiles);
  Result<std::vector<TileBins>> bins_of_summary(size_t line);
  void pack_tiles(PageLine& line, std::vector<TileBins> tiles);
  Status pack_slices(PageLine& line);
  void pack_readings(PageLine& line);
  Status pack_shapes(event::Table table);
  Status pack_detail(event::Table table, int column);
  Result<std::vector<int64_t>> cells(event::Table table, int column) const;
  void put_line(JsonWriter& json, const PageLine& line);

  Run& run_;
  Packed& packed_;
  analysis::DeviceNumbers devices_;
  std::vector<PageLine> lines_;
  std::map<event::Table, std::vector<Detail>> details_;
  std::map<Texts, uint64_t> shape_numbers_ = {{Texts(), 0}};
  std::vector<const Texts*> shapes_ = {&shape_numbers_.begin()->first};
};

}  // namespace tacho::view
