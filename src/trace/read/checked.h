// The one place where cells that were decoded from a file are judged. Readers of a trace index arrays with rows and add
// times up without looking again: what gets past here is a row or a text that exists, a time, or a duration that is not
// negative. (Codes of enumerations are translated by description.h's CodeMap before, and unknown ones become
// `unknown`.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "event/schema.h"

namespace tacho::trace {

/// What the cells of a column may be: low to high, both included.
struct CellBounds {
  int64_t low = std::numeric_limits<int64_t>::min();
  int64_t high = std::numeric_limits<int64_t>::max();
  bool unknown = true;  // kUnknown, too
  int64_t instead = 0;  // of another cell, where it may stand for one
  bool damage = false;  // another cell is damage; else `instead` is read

  bool anything() const {
    return low == std::numeric_limits<int64_t>::min() && high == std::numeric_limits<int64_t>::max();
  }
  bool holds(int64_t cell) const { return (cell >= low && cell <= high) || (unknown && cell == event::kUnknown); }
};

/// The bounds of a column; `rows` is the number of rows, with row 0, of the table that a row or a text refers to, else
/// 0.
CellBounds bounds_of(event::Table table, size_t column, int64_t rows);

/// Number of the first cell that does not hold; cells.size() when all do.
size_t first_outside(std::span<const int64_t> cells, const CellBounds& bounds);

/// Puts bounds.instead in place of every cell that does not hold.
void replace_outside(std::span<int64_t> cells, const CellBounds& bounds);

}  // namespace tacho::trace
