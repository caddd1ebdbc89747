// Summary tables as rocprofv3 prints them (rocprofv3_summary.h).
#include "cli/personalities/rocprofv3_summary.h"

#include <algorithm>
#include <array>
#include <regex>

#include "format/csv/statistics.h"
#include "report/text.h"

namespace tacho::cli::rocprofv3 {

namespace {

struct Line {
  std::string name, domain;
  analysis::Sums sums;
};

struct Unit {
  const char* name;
  double nanoseconds;
};
constexpr Unit kUnits[] = {{"sec", 1e9}, {"msec", 1e6}, {"usec", 1e3}, {"nsec", 1}};

std::string table(const std::string& label, std::vector<Line> lines, const Unit& unit) {
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.sums.total != b.sums.total ? a.sums.total > b.sums.total : a.name < b.name;
  });
  double total = 0;
  for (const Line& line : lines) total += static_cast<double>(line.sums.total);
  const auto duration = [&](int64_t value) {
    return unit.nanoseconds == 1 ? fmt::format("{}", value)
                                 : fmt::format("{:.6f}", static_cast<double>(value) / unit.nanoseconds);
  };
  std::vector<std::array<std::string, 9>> cells;
  cells.push_back({"NAME", "DOMAIN", "CALLS", fmt::format("DURATION ({})", unit.name),
                   fmt::format("AVERAGE ({})", unit.name), "PERCENT (INC)",
                   fmt::format("MIN ({})", unit.name), fmt::format("MAX ({})", unit.name), "STDDEV"});
  for (const Line& line : lines) {
    const auto& sums = line.sums;
    const bool timed = sums.count > 0;
    const auto shown = [&](std::string text) { return timed ? std::move(text) : std::string(); };
    cells.push_back(
        {report::clean(line.name), line.domain, fmt::format("{}", sums.count + sums.unknown),
         shown(duration(sums.total)), shown(fmt::format("{:.3e}", sums.mean / unit.nanoseconds)),
         shown(fmt::format("{:.6f}", total > 0 ? static_cast<double>(sums.total) / total * 100 : 0.0)),
         shown(duration(sums.min)), shown(duration(sums.max)),
         shown(fmt::format("{:.3e}", sums.stddev() / unit.nanoseconds))});
  }
  std::array<size_t, 9> widths{};
  for (const auto& row : cells)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], report::display_width(row[i]));
  std::string out =
      label.empty() ? "ROCPROFV3 SUMMARY:\n\n" : fmt::format("ROCPROFV3 {} SUMMARY:\n\n", label);
  for (size_t r = 0; r < cells.size(); ++r) {
    for (size_t i = 0; i < cells[r].size(); ++i)
      out += "| " +
             (i < 2 ? report::padded_right(cells[r][i], widths[i])
                    : report::padded_left(cells[r][i], widths[i])) +
             " ";
    out += "|\n";
    if (r == 0) {
      for (const size_t width : widths) out += "|" + std::string(width + 2, '-');
      out += "|\n";
    }
  }
  return out + "\n";
}

}  // namespace

Status check_groups(const std::vector<std::string>& groups) {
  for (const std::string& group : groups) try {
      const std::regex unused(group);
    } catch (const std::regex_error& error) {
      return fail("--summary-groups '{}': {}", group, error.what());
    }
  return {};
}

Result<std::string> summary_tables(const trace::Trace& trace, const SummaryRequest& request,
                                   const format::ExportOptions& options) {
  format::KernelNames kernels(trace, options);
  TACHO_ASSIGN(const auto domains, format::csv::domain_sums(trace, options, kernels));
  const Unit& unit = *std::find_if(std::begin(kUnits), std::end(kUnits) - 1,
                                   [&](const Unit& known) { return request.unit == known.name; });
  const auto lines_of = [](const format::csv::DomainSums& domain) {
    std::vector<Line> lines;
    for (const auto& row : domain.rows) lines.push_back({row.name, domain.domain, row.sums});
    return lines;
  };
  std::string out;
  if (request.per_domain)
    for (const auto& domain : domains) out += table(domain.domain, lines_of(domain), unit);
  for (const std::string& group : request.groups) {
    const std::regex pattern(group);
    std::vector<Line> lines;
    for (const auto& domain : domains)
      if (std::regex_match(domain.domain, pattern))
        for (Line& line : lines_of(domain)) lines.push_back(std::move(line));
    out += table(group, std::move(lines), unit);
  }
  if (request.all) {
    std::vector<Line> lines;
    for (const auto& domain : domains)
      for (Line& line : lines_of(domain)) lines.push_back(std::move(line));
    out += table("", std::move(lines), unit);
  }
  return out;
}

}  // namespace tacho::cli::rocprofv3
