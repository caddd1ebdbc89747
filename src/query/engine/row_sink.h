// Receives the rows of an answer from any engine.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "report/table.h"

namespace tacho::query {

/// Gets the column names once, then every row; returning false ends the query.
struct RowSink {
  std::function<void(std::span<const std::string> columns)> columns;
  std::function<bool(std::span<const report::Cell> row)> row;
};

}  // namespace tacho::query
