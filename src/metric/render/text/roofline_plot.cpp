// Drawing of the roofline.
#include "metric/render/text/roofline_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/text.h"

namespace tacho::metric {

namespace {

// A canvas of characters over logarithmic axes that hold all roofs and points.
class Plot {
 public:
  Plot(std::span<const Roof> roofs, std::span<const IntensityPoint> points, const RooflineModel& model, size_t width,
       size_t height)
      : model_(model),
        columns_(width > kLabels + 20 ? width - kLabels : 20),
        height_(height),
        cells_(height, std::vector<std::string>(columns_, " ")) {
    for (const IntensityPoint& point : points) include(intensity(point), point.performance);
    for (const Roof& roof : roofs) {
      if (is_compute(roof))
        include(std::max(roof.x0 * 8, 1.0), roof.y1);
      else
        include(std::max(roof.x1 / 300, 0.01), std::max(roof.x1 / 300, 0.01) * roof.peak);
      include(roof.x1 < 1000 ? roof.x1 * 3 : roof.x0, roof.y1);
    }
    if (empty()) return;
    left_ = std::floor(std::log10(x_low_));
    right_ = std::max(std::ceil(std::log10(x_high_)), left_ + 1);
    for (const IntensityPoint& point : points)
      if (on_axis(point) > 0) y_low_ = std::min(y_low_, on_axis(point));
    bottom_ = std::floor(std::log10(y_low_));
    top_ = std::max(std::ceil(std::log10(y_high_)), bottom_ + 1);
  }
  bool empty() const { return x_high_ == 0; }

  void draw(const Roof& roof) {
    const bool compute = is_compute(roof);
    size_t first = columns_;
    double first_row = 0;
    for (size_t c = 0; c < columns_; ++c) {
      const double x =
          std::pow(10, left_ + (right_ - left_) * (static_cast<double>(c) + 0.5) / static_cast<double>(columns_));
      if (compute ? x < roof.x0 : x > roof.x1) continue;
      const double row = row_of(compute ? roof.y1 : x * roof.peak);
      if (row < 0 || row >= static_cast<double>(height_)) continue;
      if (first == columns_) {
        first = c;
        first_row = row;
      }
      put(c, row, compute ? "─" : "╱");
    }
    if (first == columns_) return;
    // The name at the line: at its right end for compute roofs, in front of its lower end for memory.
    const std::string name = shown_roof(model_, roof.name), text = compute ? " " + name + " " : name;
    const size_t at = compute                    ? columns_ - std::min(columns_, text.size() + 1)
                      : first >= text.size() + 1 ? first - text.size() - 1
                                                 : first + 2;
    if (compute)
      labels_.push_back({at, first_row, text});
    else
      put_text(at, first_row, text);
  }

  // Names of compute roofs, when the points are there: they step aside for points on their line.
  void draw_labels() {
    for (const Label& label : labels_) {
      size_t at = label.at;
      while (at > 0 && hides_point(at, label.row, label.text.size())) --at;
      put_text(at, label.row, label.text);
    }
  }

  void draw(const IntensityPoint& point, size_t number) {
    const double x = intensity(point);
    const std::string text = std::to_string(number);
    const auto mark = [&](size_t column, double row) { put_text(std::min(column, columns_ - text.size()), row, text); };
    if (on_axis(point) > 0) mark(0, row_of(on_axis(point)));
    if (!(x > 0) || !(point.performance > 0)) return;
    const double column = (std::log10(x) - left_) / (right_ - left_) * static_cast<double>(columns_);
    if (column >= 0) mark(static_cast<size_t>(column), row_of(point.performance));
  }

  std::string text() const {
    std::string out = "  GFLOP/s over FLOP/byte\n";
    for (size_t r = 0; r < height_; ++r) {
      // A label where a power of ten begins.
      const double above = top_ - (top_ - bottom_) * static_cast<double>(r) / static_cast<double>(height_);
      const double below = top_ - (top_ - bottom_) * static_cast<double>(r + 1) / static_cast<double>(height_);
      const double power = std::floor(above + 1e-9);
      const std::string label = power > below + 1e-9 ? report::format_si(std::pow(10, power), power < 0 ? 2 : 0) : "";
      std::string line = report::padded_left(label, kLabels - 2) + (label.empty() ? " │" : " ┤");
      for (const std::string& cell : cells_[r]) line += cell;
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    out += std::string(kLabels - 1, ' ') + "└";
    for (size_t c = 0; c < columns_; ++c) out += "─";
    return out + "\n" + std::string(kLabels, ' ') + axis() + "\n";
  }

 private:
  static constexpr size_t kLabels = 9;  // columns in front of the y axis

  static double intensity(const IntensityPoint& point) {
    return point.hbm > 0 ? point.hbm : point.l2 > 0 ? point.l2 : point.l1;
  }
  void include(double x, double y) {
    if (!(x > 0) || !(y > 0) || !std::isfinite(x) || !std::isfinite(y)) return;
    x_low_ = std::min(x_low_, x);
    x_high_ = std::max(x_high_, x);
    y_low_ = std::min(y_low_, y);
    y_high_ = std::max(y_high_, y);
  }
  // Kernels without FLOPs stand on the left axis, as far below the memory's roof there as their bandwidth is.
  double on_axis(const IntensityPoint& point) const {
    return point.performance == 0 ? bandwidth_at(point, "hbm") * std::pow(10, left_) : 0;
  }
  bool hides_point(size_t column, double row, size_t size) const {
    if (row < 0 || row >= static_cast<double>(height_)) return false;
    const std::vector<std::string>& cells = cells_[static_cast<size_t>(row)];
    for (size_t i = column; i < std::min(columns_, column + size); ++i)
      if (cells[i].size() == 1 && cells[i][0] >= '0' && cells[i][0] <= '9') return true;
    return false;
  }
  double row_of(double y) const { return (top_ - std::log10(y)) / (top_ - bottom_) * static_cast<double>(height_); }
  void put(size_t column, double row, std::string_view mark) {
    if (row >= 0 && row < static_cast<double>(height_) && column < columns_)
      cells_[static_cast<size_t>(row)][column] = mark;
  }
  void put_text(size_t column, double row, std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) put(column + i, row, text.substr(i, 1));
  }
  std::string axis() const {
    std::string axis(columns_, ' ');
    for (double power = left_; power <= right_; ++power) {
      const auto at = static_cast<size_t>((power - left_) / (right_ - left_) * static_cast<double>(columns_ - 1));
      const std::string label = power < 0 ? report::format_fixed(std::pow(10, power), static_cast<int>(-power))
                                          : report::format_si(std::pow(10, power), 0);
      axis.replace(std::min(at, columns_ - label.size()), label.size(), label);
    }
    axis.erase(axis.find_last_not_of(' ') + 1);
    return axis;
  }

  struct Label {
    size_t at;
    double row;
    std::string text;
  };
  const RooflineModel& model_;
  std::vector<Label> labels_;
  size_t columns_, height_;
  std::vector<std::vector<std::string>> cells_;
  double x_low_ = std::numeric_limits<double>::infinity(), x_high_ = 0, y_low_ = x_low_, y_high_ = 0;
  double left_ = 0, right_ = 1, bottom_ = 0, top_ = 1;  // powers of ten
};

}  // namespace

std::string shown_roof(const RooflineModel& model, const std::string& slug) {
  // A compute roof's may have its type behind it: "valu FP32".
  const size_t end = std::min(slug.find(' '), slug.size());
  for (const auto& [roof, name] : model.names)
    if (roof == std::string_view(slug).substr(0, end)) return std::string(name) + slug.substr(end);
  return slug;
}

std::string roofline_plot(std::span<const Roof> roofs, std::span<const IntensityPoint> points,
                          std::span<const size_t> numbers, const RooflineModel& model, size_t width, size_t height) {
  Plot plot(roofs, points, model, width, height);
  if (plot.empty()) return {};
  for (const Roof& roof : roofs) plot.draw(roof);
  for (size_t p = points.size(); p-- > 0;) plot.draw(points[p], numbers[p]);
  plot.draw_labels();
  return plot.text();
}

}  // namespace tacho::metric
