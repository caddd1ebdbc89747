// Drawing of the roofline.
#include "metric/render/text/roofline_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/text.h"

namespace tacho::metric {

std::string roofline_plot(std::span<const Roof> roofs, std::span<const IntensityPoint> points,
                          std::span<const size_t> numbers, size_t width, size_t height) {
  constexpr size_t kLabels = 9;  // of the y axis
  const size_t columns = width > kLabels + 20 ? width - kLabels : 20;
  double x_low = std::numeric_limits<double>::infinity(), x_high = 0, y_low = x_low, y_high = 0;
  const auto include = [&](double x, double y) {
    if (!(x > 0) || !(y > 0) || !std::isfinite(x) || !std::isfinite(y)) return;
    x_low = std::min(x_low, x);
    x_high = std::max(x_high, x);
    y_low = std::min(y_low, y);
    y_high = std::max(y_high, y);
  };
  const auto intensity = [](const IntensityPoint& point) {
    return point.hbm > 0 ? point.hbm : point.l2 > 0 ? point.l2 : point.l1;
  };
  for (const IntensityPoint& point : points) include(intensity(point), point.performance);

  for (const Roof& roof : roofs) {
    if (is_compute(roof))
      include(std::max(roof.x0 * 8, 1.0), roof.y1);
    else
      include(std::max(roof.x1 / 300, 0.01), std::max(roof.x1 / 300, 0.01) * roof.peak);
    include(roof.x1 < 1000 ? roof.x1 * 3 : roof.x0, roof.y1);
  }
  if (x_high == 0) return {};
  const double left = std::floor(std::log10(x_low)), right = std::max(std::ceil(std::log10(x_high)), left + 1);
  // Kernels without FLOPs stand on the left axis, as far below the memory's roof there as their bandwidth is.
  const auto on_axis = [&](const IntensityPoint& point) {
    return point.performance == 0 ? bandwidth_at(point, "hbm") * std::pow(10, left) : 0;
  };
  for (const IntensityPoint& point : points)
    if (on_axis(point) > 0) y_low = std::min(y_low, on_axis(point));
  const double bottom = std::floor(std::log10(y_low)), top = std::max(std::ceil(std::log10(y_high)), bottom + 1);
  std::vector<std::vector<std::string>> cells(height, std::vector<std::string>(columns, " "));
  const auto x_of = [&](size_t column) {
    return std::pow(10, left + (right - left) * (static_cast<double>(column) + 0.5) / static_cast<double>(columns));
  };
  const auto row_of = [&](double y) { return (top - std::log10(y)) / (top - bottom) * static_cast<double>(height); };
  const auto put = [&](size_t column, double row, std::string_view mark) {
    if (row >= 0 && row < static_cast<double>(height) && column < columns)
      cells[static_cast<size_t>(row)][column] = mark;
  };
  for (const Roof& roof : roofs) {
    const bool compute = is_compute(roof);
    size_t first = columns;
    double first_row = 0;
    for (size_t c = 0; c < columns; ++c) {
      const double x = x_of(c);
      if (compute ? x < roof.x0 : x > roof.x1) continue;
      const double row = row_of(compute ? roof.y1 : x * roof.peak);
      if (row < 0 || row >= static_cast<double>(height)) continue;
      if (first == columns) {
        first = c;
        first_row = row;
      }
      put(c, row, compute ? "─" : "╱");
    }
    if (first == columns) continue;
    // The name at the line: at its right end for compute roofs, in front of its lower end for memory.
    const std::string label = compute ? " " + roof.name + " " : roof.name;
    const size_t from =
        compute ? columns - label.size() - 1 : (first >= label.size() + 1 ? first - label.size() - 1 : first + 2);
    for (size_t i = 0; i < label.size(); ++i) put(from + i, first_row, label.substr(i, 1));
  }
  for (size_t p = points.size(); p-- > 0;) {
    const double x = intensity(points[p]);
    const auto number = [&](size_t column, double row) {
      const std::string text = std::to_string(numbers[p]);
      const size_t begin = std::min(column, columns - text.size());
      for (size_t i = 0; i < text.size(); ++i) put(begin + i, row, text.substr(i, 1));
    };
    if (on_axis(points[p]) > 0) number(0, row_of(on_axis(points[p])));
    if (!(x > 0) || !(points[p].performance > 0)) continue;
    const double column = (std::log10(x) - left) / (right - left) * static_cast<double>(columns);
    if (column >= 0) number(static_cast<size_t>(column), row_of(points[p].performance));
  }
  std::string out = "  GFLOP/s over FLOP/byte\n";
  for (size_t r = 0; r < height; ++r) {
    // A label where a power of ten begins.
    const double above = top - (top - bottom) * static_cast<double>(r) / static_cast<double>(height);
    const double below = top - (top - bottom) * static_cast<double>(r + 1) / static_cast<double>(height);
    const double power = std::floor(above + 1e-9);
    const std::string label = power > below + 1e-9 ? report::format_si(std::pow(10, power), power < 0 ? 2 : 0) : "";
    std::string line = report::padded_left(label, kLabels - 2) + (label.empty() ? " │" : " ┤");
    for (const std::string& cell : cells[r]) line += cell;
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  out += std::string(kLabels - 1, ' ') + "└";
  std::string axis(columns, ' ');
  for (size_t c = 0; c < columns; ++c) out += "─";
  for (double power = left; power <= right; ++power) {
    const auto at = static_cast<size_t>((power - left) / (right - left) * static_cast<double>(columns - 1));
    const std::string label = power < 0 ? report::format_fixed(std::pow(10, power), static_cast<int>(-power))
                                        : report::format_si(std::pow(10, power), 0);
    const size_t begin = std::min(at, columns - label.size());
    axis.replace(begin, label.size(), label);
  }
  axis.erase(axis.find_last_not_of(' ') + 1);
  out += "\n" + std::string(kLabels, ' ') + axis + "\n";
  return out;
}

}  // namespace tacho::metric
