// Operators that caused device work themselves: some files tie work to operators and have no calls of a runtime.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "event/schema.h"
#include "trace/trace.h"

namespace tacho::trace {

/// A process's property: its work may have the correlation of an operator.
inline constexpr std::string_view kCausedByOperators = "work_caused_by_operators";

/// By row of table process: whether it has the property.
inline std::vector<bool> caused_by_operators(const Trace& trace) {
  std::vector<bool> caused(static_cast<size_t>(std::max<int64_t>(trace.rows(event::Table::kProcess), 1)));
  for (size_t row = 1; row < caused.size(); ++row)
    caused[row] = trace.property(event::Table::kProcess, static_cast<int64_t>(row), kCausedByOperators).has_value();
  return caused;
}

}  // namespace tacho::trace
