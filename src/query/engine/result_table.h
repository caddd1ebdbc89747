// Tables that are computed as a whole, such as the reports top and busy.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "query/engine/relation.h"
#include "report/table.h"

namespace tacho::query {

/// Rows that are computed one by one, on request.
class ResultRows {
 public:
  virtual ~ResultRows() = default;
  virtual size_t size() const = 0;
  virtual void row(size_t index, std::vector<report::Cell>& cells) const = 0;
};

/// A table, such as a report, that is computed as a whole when it is first read.
struct QueryTable {
  std::string name;
  struct Column {
    std::string name;
    ValueType type;
  };
  std::vector<Column> columns;
  std::function<Result<std::vector<std::vector<report::Cell>>>()> rows;
  std::function<Result<std::shared_ptr<const ResultRows>>()> many = {};  // instead of `rows`, if there may be millions
};

}  // namespace tacho::query
