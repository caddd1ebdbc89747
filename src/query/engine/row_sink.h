// Where every engine delivers the rows of its answer.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "report/table.h"

namespace tacho::query {

/// `columns` gets the column names once, then `row` gets every row; it returns false to end the query.
struct RowSink {
  std::function<void(std::span<const std::string> columns)> columns;
  std::function<bool(std::span<const report::Cell> row)> row;
};

}  // namespace tacho::query
