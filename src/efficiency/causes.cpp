// Looks for causes in shapes, grids and names (causes.h).
#include "efficiency/causes.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/format.h"
#include "efficiency/kernel_names.h"
#include "report/text.h"
#include "trace/read/rows.h"

namespace tacho::efficiency {

namespace {

namespace column = event::column;
using event::Table;

std::string percent_text(double percent) {
  return report::format_fixed(percent, percent < 10 ? 1 : 0) + " %";
}
// Shapes without the empty lists of values behind the last tensor.
std::string short_shapes(std::string_view shapes) {
  std::string out(shapes);
  while (out.ends_with(", []]")) out = out.substr(0, out.size() - 5) + "]";
  return out;
}
std::string time_text(double ns) {
  return report::format_duration(ns);
}

std::string_view name_of(const trace::Trace& trace, int64_t kernel) {
  return trace.text(Table::kKernel, kernel, column::Kernel::name);
}

// Workgroups of a launch; 0 = unknown.
int64_t workgroups(const trace::Trace& trace, int64_t kernel) {
  using K = column::Kernel;
  int64_t groups = 1;
  for (const auto& [grid, group] :
       {std::pair(K::grid_x, K::group_x), std::pair(K::grid_y, K::group_y), std::pair(K::grid_z, K::group_z)}) {
    const int64_t items = trace.cell(Table::kKernel, kernel, grid),
                  of_group = trace.cell(Table::kKernel, kernel, group);
    if (items <= 0 || of_group <= 0) return 0;
    groups *= (items + of_group - 1) / of_group;
  }
  return groups;
}

// The last dimension of the first input in "[[16, 559, 16, 72], ...": of attention the elements of a head; 0 = unknown.
int64_t last_dimension(std::string_view shapes) {
  if (!shapes.starts_with("[[")) return 0;
  const size_t end = shapes.find(']'), begin = shapes.find_last_of("[ ", end);
  int64_t value = 0;
  if (end == std::string_view::npos) return 0;
  const auto [stop, error] = std::from_chars(shapes.data() + begin + 1, shapes.data() + end, value);
  return error == std::errc() && stop == shapes.data() + end ? value : 0;
}

double ceiling(double value, double step) {
  return std::ceil(value / step) * step;
}

}  // namespace

std::vector<std::string> causes_of(const trace::Trace& trace, const OperatorWork& work, int64_t units) {
  std::vector<std::string> out;
  if (work.of_kernels.empty()) return out;
  int64_t all = 0, moving = 0;
  for (const OperatorsKernel& each : work.of_kernels) {
    add_saturating(all, each.ns);
    if (moves_layout(name_of(trace, each.kernel))) add_saturating(moving, each.ns);
  }
  if (all > 0 && moving * 10 > all)
    out.push_back(fmt::format("{} of its time moves data to another layout",
                              percent_text(100 * static_cast<double>(moving) / static_cast<double>(all))));
  const int64_t kernel = work.of_kernels.front().kernel;
  const int64_t groups = workgroups(trace, kernel);
  if (units > 0 && groups > 0) {
    const double waves = static_cast<double>(groups) / static_cast<double>(units);
    if (groups < units)
      out.push_back(fmt::format("its longest kernel has {} workgroups for {} compute units", groups, units));
    else if (waves < 4 && waves / std::ceil(waves) < 0.8)
      out.push_back(fmt::format("its longest kernel has {} workgroups, {} times as many as compute units: in the last "
                                "round {} of the units have work",
                                groups, report::format_fixed(waves, 2),
                                percent_text(100 * (waves - std::floor(waves)))));
  }
  // FlashAttention pads heads to a multiple of 32 elements (its csrc/flash_attn rounds the head size up).
  constexpr int64_t kHeads = 32;
  if (const int64_t head = last_dimension(work.shapes);
      work.name.find("flash_attention") != std::string::npos && head > 0 && head % kHeads != 0)
    out.push_back(fmt::format("its heads have {} elements, and its kernels compute with {}", head,
                              (head + kHeads - 1) / kHeads * kHeads));
  if (!work.matrix && work.call.strided) out.emplace_back("an input is not contiguous in memory");
  const double rows = work.call.output[0], columns = work.call.output[1], length = work.call.output[3];
  if (rows > 0 && columns > 0) {
    if (const auto tile = tile_of(name_of(trace, kernel))) {
      // Which side is the result's rows differs between libraries: the better fit counts.
      const auto useful = [&](double a, double b) { return rows * columns / (ceiling(rows, a) * ceiling(columns, b)); };
      const double part = std::max(useful(tile->rows, tile->columns), useful(tile->columns, tile->rows));
      if (part < 0.75)
        out.push_back(
            fmt::format("of its kernel's tiles of {:.0f} x {:.0f} only {} is part of a result of {:.0f} x {:.0f}",
                        tile->rows, tile->columns, percent_text(100 * part), rows, columns));
    }
    if (!work.compute_bound && std::min(rows, columns) < 64)
      out.push_back(
          fmt::format("with only {:.0f} {} each byte of the larger input serves few operations: a larger batch "
                      "costs little",
                      std::min(rows, columns), rows <= columns ? "rows" : "columns"));
    const int bytes = work.precision == Precision::kF8 || work.precision == Precision::kI8      ? 1
                      : work.precision == Precision::kF16 || work.precision == Precision::kBF16 ? 2
                                                                                                : 4;
    for (const double side : {columns, length})
      if (side > 0 && std::fmod(side * bytes, 16) != 0) {
        out.push_back(fmt::format("rows of {:.0f} elements of {} bytes do not begin on 16 bytes", side, bytes));
        break;
      }
  }
  return out;
}

Result<std::optional<analysis::OperatorRoofs>> operator_roofs(const trace::Trace& trace) {
  if (trace.aggregated() || trace.rows(Table::kOperatorInput) <= 1) return std::nullopt;
  TACHO_ASSIGN(const Efficiency efficiency, efficiency_of(trace));
  if (!efficiency.any()) return std::nullopt;
  analysis::OperatorRoofs out;
  out.gpu = efficiency.whole_ns;
  out.near_peak.resize(static_cast<size_t>(trace.rows(Table::kKernel)));
  std::vector<std::pair<double, const OperatorWork*>> low;
  double lost = 0, least = 0;
  for (const OperatorWork& row : efficiency.rows) {
    if (row.why != RoofDoubt::kJudged) continue;
    add_saturating(out.modelled, row.ns);
    const double below = row.compute_bound ? kLowCompute : kLowMemory,
                 healthy = row.compute_bound ? kHealthyCompute : kHealthyMemory;
    if (*row.percent >= healthy)
      for (const OperatorsKernel& each : row.of_kernels) out.near_peak[static_cast<size_t>(each.kernel)] = true;
    if (*row.percent >= below) continue;
    low.emplace_back(*row.lost_ns, &row);
    lost += *row.lost_ns;
    least += static_cast<double>(row.ns) * (1 - *row.percent / healthy);
  }
  if (out.modelled == 0) return std::nullopt;
  out.lost = std::llround(lost);
  out.lost_least = std::llround(least);
  out.operators = static_cast<int64_t>(low.size());
  std::sort(low.begin(), low.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr size_t kLines = 6;
  for (size_t i = 0; i < std::min(low.size(), kLines); ++i) {
    const OperatorWork& row = *low[i].second;
    std::string line = fmt::format("{} {}: {} at {} of the {} roof, {} lost", row.name, short_shapes(row.shapes),
                                   time_text(static_cast<double>(row.ns)), percent_text(*row.percent),
                                   row.compute_bound ? "compute" : "memory", time_text(*row.lost_ns));
    for (const std::string& cause : causes_of(trace, row, efficiency.units)) line += "; " + cause;
    out.lines.push_back(std::move(line));
  }
  if (low.size() > kLines)
    out.lines.push_back(fmt::format("and {} more: tacho stats --by operator --input-shapes", low.size() - kLines));
  if (!low.empty()) {
    const OperatorWork& row = *low.front().second;
    out.worst = fmt::format("{} {}", row.name, short_shapes(row.shapes));
    out.percent = *row.percent;
    out.bound = row.compute_bound ? "compute" : "memory";
  }
  return out;
}

}  // namespace tacho::efficiency
