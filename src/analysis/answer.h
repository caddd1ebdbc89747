// The answer to a question about a trace: a table of exact values with the unit of each column, for people
// and for programs.
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
  /// Rows that follow `rows`, one at a time, where there may be millions; false when there are no more.
  /// Empty: none.
  std::function<bool(std::vector<report::Cell>&)> next;
  std::vector<std::string> remarks;  // sentences: what is left out, what to beware of
};

/// Exact values under programs' names: for csv, JSON and SQL. Takes `rows` only, not `next`.
report::Table exact_table(const Answer& answer);
/// Durations and sizes in units that suit them, under people's titles. Takes `rows` only.
report::Table readable_table(const Answer& answer);

}  // namespace tacho::analysis
