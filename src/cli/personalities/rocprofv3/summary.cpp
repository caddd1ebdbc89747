// Formats summary tables like rocprofv3 (summary.h).
#include "cli/personalities/rocprofv3/summary.h"

#include <algorithm>
#include <array>

#include "cli/shared/regular_expression.h"
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

// The layout is rocprofv3's (generateStats.cpp of ROCm 7.0): minimal widths, centred headings, averages and deviations
// in scientific notation, times in units other than ns with as many digits as they need.
std::string table(const std::string& label, std::vector<Line> lines, const Unit& unit, std::string_view indent) {
  if (lines.empty()) return {};
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.sums.total != b.sums.total ? a.sums.total > b.sums.total : a.name < b.name;
  });
  double total = 0;
  for (const Line& line : lines) total += static_cast<double>(line.sums.total);
  const auto duration = [&](int64_t value) {
    return unit.nanoseconds == 1 ? fmt::format("{}", value)
                                 : fmt::format("{}", static_cast<double>(value) / unit.nanoseconds);
  };
  using Cells = std::array<std::string, 9>;
  const Cells head = {"NAME",
                      "DOMAIN",
                      "CALLS",
                      fmt::format("DURATION ({})", unit.name),
                      fmt::format("AVERAGE ({})", unit.name),
                      "PERCENT (INC)",
                      fmt::format("MIN ({})", unit.name),
                      fmt::format("MAX ({})", unit.name),
                      "STDDEV"};
  std::vector<Cells> rows;
  for (const Line& line : lines) {
    const auto& sums = line.sums;
    const bool timed = sums.count > 0;
    const auto shown = [&](std::string text) { return timed ? std::move(text) : std::string(); };
    rows.push_back({report::clean(line.name), line.domain, fmt::format("{}", sums.count + sums.unknown),
                    shown(duration(sums.total)), shown(fmt::format("{:.3e}", sums.mean / unit.nanoseconds)),
                    shown(fmt::format("{:.6f}", total > 0 ? static_cast<double>(sums.total) / total * 100 : 0.0)),
                    shown(duration(sums.min)), shown(duration(sums.max)),
                    shown(fmt::format("{:.3e}", sums.stddev() / unit.nanoseconds))});
  }
  std::array<size_t, 9> widths = {40, 12, 15, 15, 15, 13, 15, 15, 15};
  for (const Cells& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], report::display_width(row[i]));
  std::string out = fmt::format("\n{}ROCPROFV3 {}SUMMARY:\n\n{}", indent, label.empty() ? "" : label + " ", indent);
  for (size_t i = 0; i < head.size(); ++i) out += fmt::format("| {:^{}} ", head[i], widths[i]);
  out += fmt::format("|\n{}", indent);
  for (const size_t width : widths) out += fmt::format("|-{:-^{}}-", "", width);
  out += "|\n";
  for (const Cells& row : rows) {
    out += indent;
    for (size_t i = 0; i < row.size(); ++i)
      out += "| " + (i < 2 ? report::padded_right(row[i], widths[i]) : report::padded_left(row[i], widths[i])) + " ";
    out += "|\n";
  }
  return out + "\n";
}

// rocprofv3's order of domains; domains that it does not know come last.
size_t rank_of(std::string_view domain) {
  static constexpr std::string_view kOrder[] = {"HSA_API",     "HIP_API",  "MARKER_API",       "KERNEL_DISPATCH",
                                                "MEMORY_COPY", "RCCL_API", "MEMORY_ALLOCATION"};
  return static_cast<size_t>(std::find(std::begin(kOrder), std::end(kOrder), domain) - std::begin(kOrder));
}

}  // namespace

Status check_groups(const std::vector<std::string>& groups) {
  for (const std::string& group : groups)
    if (const auto pattern = RegularExpression::make(group); !pattern)
      return fail("--summary-groups '{}': {}", group, pattern.error().message);
  return {};
}

Result<std::string> summary_tables(const trace::Trace& trace, const SummaryRequest& request,
                                   const format::ExportOptions& options, std::vector<std::string>& unmatched) {
  walk::KernelNames kernels(trace, options);
  TACHO_ASSIGN(auto domains, format::csv::domain_sums(trace, options, kernels));
  std::stable_sort(domains.begin(), domains.end(),
                   [](const auto& a, const auto& b) { return rank_of(a.domain) < rank_of(b.domain); });
  const Unit& unit = *std::find_if(std::begin(kUnits), std::end(kUnits) - 1,
                                   [&](const Unit& known) { return request.unit == known.name; });
  const std::string_view indent = request.indented ? "    " : "";
  const auto add_lines = [](const format::csv::DomainSums& domain, std::vector<Line>& lines) {
    for (const auto& row : domain.rows) lines.push_back({row.name, domain.domain, row.sums});
  };
  std::string out;
  if (request.per_domain)
    for (const auto& domain : domains) {
      std::vector<Line> lines;
      add_lines(domain, lines);
      out += table(domain.domain, std::move(lines), unit, indent);
    }
  for (const std::string& group : request.groups) {
    TACHO_ASSIGN(const RegularExpression pattern, RegularExpression::make(group));
    std::vector<Line> lines;
    std::string label;
    for (const auto& domain : domains)
      if (pattern.matches(domain.domain)) {
        add_lines(domain, lines);
        label += (label.empty() ? "" : " + ") + domain.domain;
      }
    if (lines.empty()) unmatched.push_back(group);
    out += table(label, std::move(lines), unit, indent);
  }
  if (request.all) {
    std::vector<Line> lines;
    for (const auto& domain : domains) add_lines(domain, lines);
    out += table("", std::move(lines), unit, indent);
  }
  return out;
}

}  // namespace tacho::cli::rocprofv3
