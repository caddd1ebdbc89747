// The answer to a question about a trace: a table of exact values with a unit for each column, for people and programs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "report/table.h"

namespace tacho::analysis {

enum class Unit : uint8_t { kText, kCount, kNs, kBytes, kPercent, kNumber, kProbability };

struct Answer {
  struct Column {
    std::string name;   // for programs: "total_ns"
    std::string title;  // for people: "Time"
    Unit unit;
  };
  std::vector<Column> columns;
  std::vector<std::vector<report::Cell>> rows;
  /// Gives the rows after `rows` one at a time, since there may be millions; false when there are no more. Empty =
  /// none.
  std::function<bool(std::vector<report::Cell>&)> next;
  std::vector<std::string> remarks;              // sentences: omissions and caveats
  std::string when_empty = "no GPU operations";  // shown in place of a table without rows
};

/// Exact values under names for programs: for csv, JSON and SQL. Uses `rows` only, not `next`.
report::Table exact_table(const Answer& answer);
/// Durations and sizes in readable units, under titles for people. Uses `rows` only, not `next`.
report::Table readable_table(const Answer& answer);

}  // namespace tacho::analysis
