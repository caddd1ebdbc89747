// Formats numbers and statistics files (parts.h).
#include "format/csv/parts.h"

#include <algorithm>
#include <cmath>

#include "base/text/csv.h"

namespace tacho::format::csv {

std::string statistic(double value) {
  return value > 0.01 ? fmt::format("{:.6f}", value) : fmt::format("{:.8e}", value);
}

std::string percentage(double value) {
  if (value >= 1.0) return fmt::format("{:.2f}", value);
  return value > 0.01 ? fmt::format("{:.4f}", value) : fmt::format("{:.3e}", value);
}

std::string counter_value(double value) {
  return value >= 1.0 ? fmt::format("{:.6f}", value) : fmt::format("{:.8e}", value);
}

void add_statistics(std::string& out, std::string_view name, const analysis::Sums& sums, double stddev, double total) {
  out += fmt::format("{},{},", csv_quoted(name), sums.count + sums.unknown);
  if (sums.count == 0) {
    out += ",,,,,\n";
    return;
  }
  const double share = total > 0 ? static_cast<double>(sums.total) / total * 100.0 : 0.0;
  out += fmt::format("{},{},{},{},{},{}\n", sums.total, statistic(sums.mean), percentage(share), sums.min, sums.max,
                     statistic(stddev));
}

std::string statistics(std::vector<StatisticsRow> rows) {
  std::sort(rows.begin(), rows.end(), [](const StatisticsRow& a, const StatisticsRow& b) {
    return a.sums.total != b.sums.total ? a.sums.total > b.sums.total : a.name < b.name;
  });
  double total = 0;
  for (const StatisticsRow& row : rows) total += static_cast<double>(row.sums.total);
  std::string out(kStatisticsHeader);
  for (const auto& [name, sums] : rows) add_statistics(out, name, sums, sums.stddev(), total);
  return out;
}

}  // namespace tacho::format::csv
