// Where every engine delivers the rows of its answer.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "report/table.h"

namespace tacho::query {

/// How an answer goes out: row by row, or as columns, which those of one table can do without SQLite.
enum class Answers : uint8_t { kRows, kColumns };

/// `columns` gets the column names once, then `row` gets every row; it returns false to end the query. `declared`, if
/// it is there, gets the types that SQL declares of columns that stand in the statement as they are, "" for others;
/// only SQLite knows them.
struct RowSink {
  std::function<void(std::span<const std::string> columns)> columns;
  std::function<bool(std::span<const report::Cell> row)> row;
  std::function<void(std::span<const std::string> declared)> declared = {};
};

}  // namespace tacho::query
