// Answers as tables (answer.h).
#include "analysis/answer.h"

namespace tacho::analysis {

report::Table exact_table(const Answer& answer) {
  report::Table table;
  for (const Answer::Column& column : answer.columns) table.columns.push_back({column.name});
  table.rows = answer.rows;
  return table;
}

report::Table readable_table(const Answer& answer) {
  report::Table table;
  for (const Answer::Column& column : answer.columns) {
    const bool text = column.unit == Unit::kText;
    table.columns.push_back({column.title, text ? report::Align::kLeft : report::Align::kRight,
                             column.unit == Unit::kPercent ? 1 : 2, text});
  }
  for (const auto& row : answer.rows) {
    std::vector<report::Cell> cells;
    for (size_t i = 0; i < row.size(); ++i) {
      const Unit unit = answer.columns[i].unit;
      if (unit == Unit::kProbability && std::holds_alternative<double>(row[i])) {
        const double p = std::get<double>(row[i]);
        cells.emplace_back(p < 0.001 ? std::string("< 0.001") : report::format_fixed(p, 3));
        continue;
      }
      if ((unit != Unit::kNs && unit != Unit::kBytes) || std::holds_alternative<std::monostate>(row[i]) ||
          std::holds_alternative<std::string>(row[i])) {
        cells.push_back(row[i]);
        continue;
      }
      const double value = std::holds_alternative<int64_t>(row[i]) ? static_cast<double>(std::get<int64_t>(row[i]))
                                                                   : std::get<double>(row[i]);
      std::string text =
          unit == Unit::kNs ? report::format_duration(value < 0 ? -value : value) : report::format_bytes(value);
      cells.emplace_back(value < 0 ? "-" + text : text);
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace tacho::analysis
