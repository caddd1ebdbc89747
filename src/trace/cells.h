// Adds whole rows as bare cells, for code that moves rows of any table without looking at them (the copier, tests with
// random rows). Code that makes rows names their columns instead: see event::row and TraceWriter::add().
#pragma once

#include <cstdint>
#include <span>

#include "trace/write/writer.h"

namespace tacho::trace {

class Cells {
 public:
  /// Appends a fact with these cells: all columns in the schema's order.
  static void add(TraceWriter& writer, event::Table table, std::span<const int64_t> cells) {
    writer.add_cells(table, cells);
  }
  /// Returns the number of the dimension row with these cells: all columns in the schema's order.
  static int64_t dimension(TraceWriter& writer, event::Table table, std::span<const int64_t> cells) {
    return writer.dimension_cells(table, cells);
  }
};

}  // namespace tacho::trace
