// Drawing of the roofline as SVG (roofline_svg.h).
#include "metric/render/page/roofline_svg.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "metric/analysis/roofline_points.h"
#include "report/html.h"
#include "report/text.h"
#include "workload/ceilings.h"

namespace tacho::metric {
namespace {

constexpr double kWidth = 1000, kPlotHeight = 470;
constexpr double kLeft = 66, kRight = 18, kTop = 34, kBottom = 46;
constexpr size_t kMostDispatches = 2000, kNamed = 12;

// Colours as on the page (web/src/style.css).
constexpr std::string_view kStyle = R"(<style>
svg { font: 12px system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif; background: #fff; --back: #fff; --text: #1d2329; --muted: #5d6873;
  --line: #dfe3e8; --faint: #eceff2; --hbm: #1a5fb4; --l2: #2f8a4c; --l1: #c2620e; --lds: #8344a8; }
@media (prefers-color-scheme: dark) { svg { background: #15181c; --back: #15181c; --text: #dde2e8; --muted: #98a2ad; --line: #343a42;
  --faint: #262b31; --hbm: #6aa9f7; --l2: #6cc98a; --l1: #f0a35e; --lds: #c794e6; } }
@media print { svg { background: #fff; --back: #fff; --text: #000; --muted: #444; --line: #cfd4da; --faint: #e8ebee; --hbm: #1a5fb4;
  --l2: #2f8a4c; --l1: #c2620e; --lds: #8344a8; } }
text { fill: var(--text); } .tick, .axis, .note, .label { fill: var(--muted); } .tick, .note, .label { font-size: 11.5px; }
.grid { stroke: var(--line); } .minor { stroke: var(--faint); stroke-width: 0.7; }
.roof { stroke: var(--text); stroke-width: 1.6; fill: none; } .run1 .roof { stroke-dasharray: 6 3; } .run2 .roof { stroke-dasharray: 2 3; }
.run3 .roof { stroke-dasharray: 8 3 2 3; } .label { paint-order: stroke; stroke: var(--back); stroke-width: 3px; }
.point { stroke: var(--back); fill-opacity: 0.82; } .on-axis { fill: var(--back); fill-opacity: 1; stroke-width: 2; }
.number { font-size: 10.5px; paint-order: stroke; stroke: var(--back); stroke-width: 2.5px; }
.roof-hbm { stroke: var(--hbm); } .roof-l2 { stroke: var(--l2); } .roof-l1 { stroke: var(--l1); } .roof-lds { stroke: var(--lds); }
.level-hbm { fill: var(--hbm); } .level-l2 { fill: var(--l2); } .level-l1 { fill: var(--l1); } .level-lds { fill: var(--lds); }
.on-axis.level-hbm { fill: var(--back); stroke: var(--hbm); } .on-axis.level-l2 { fill: var(--back); stroke: var(--l2); }
.on-axis.level-l1 { fill: var(--back); stroke: var(--l1); } .on-axis.level-lds { fill: var(--back); stroke: var(--lds); }
</style>
)";

std::string escaped(std::string_view text) {
  // Lines stay lines, other control characters become visible.
  if (const size_t end = text.find('\n'); end != std::string_view::npos)
    return escaped(text.substr(0, end)) + "\n" + escaped(text.substr(end + 1));
  return report::markup_text(report::clean(text));
}

std::string time_text(double ns) {
  if (ns < 1e3) return fmt::format("{:.3g} ns", ns);
  if (ns < 1e6) return fmt::format("{:.4g} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.4g} ms", ns / 1e6);
  return fmt::format("{:.4g} s", ns / 1e9);
}

std::string rate_text(double gflops) {
  return gflops < 1000 ? fmt::format("{:.4g} GFLOP/s", gflops) : fmt::format("{:.4g} TFLOP/s", gflops / 1000);
}

struct Line {
  size_t run;
  Roof roof;
  std::string type;  // of compute roofs
};

struct Mark {
  size_t run;
  std::string_view level;
  double x, y;  // x is 0 for a kernel without FLOPs; y is then GB/s
  const IntensityPoint* point;
  double share;
  size_t number;  // of its kernel in the legend
};

class Drawing {
 public:
  Drawing(std::span<const Analysis> runs, const SvgOptions& options)
      : runs_(runs), options_(options), chosen_levels_(!options.memory_levels.empty()) {
    if (options_.memory_levels.empty()) options_.memory_levels = {"hbm", "l2", "l1"};
  }

  Result<std::string> draw() {
    collect();
    if (marks_.empty() && lines_.empty())
      return fail(
          "{}: no kernel has counts of FLOPs or bytes and a time, and there is no roofline.csv: nothing to draw",
          runs_.front().workload().path);
    find_range();
    std::string body = grid();
    for (size_t r = 0; r < runs_.size(); ++r) body += roofs_of(r);
    body += labels();
    for (const Mark& mark : marks_) body += point(mark);
    for (const Mark& mark : marks_)
      if (mark.level == "hbm" && is_named(mark.number)) body += number(mark);
    std::string below;
    double y = kPlotHeight + 16;
    const auto line = [&](const std::string& text, std::string_view type) {
      below += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{:.1f}\">{}</text>\n", type, kLeft, y, text);
      y += 16;
    };
    const auto note = [&](const std::string& text) {
      for (size_t from = 0; from < text.size();) {
        size_t to = std::min(from + 150, text.size());
        if (to < text.size() && text.rfind(' ', to) > from) to = text.rfind(' ', to);
        line(escaped(text.substr(from, to - from)), "note");
        from = to + 1;
      }
    };
    size_t named = 0;
    for (const auto& [number, name] : names_)
      if (named++ < kNamed) line(fmt::format("{}  {}", number, escaped(report::shortened(name, 140))), "kernel");
    if (names_.size() > kNamed) line(fmt::format("and {} more", names_.size() - kNamed), "note");
    y += 4;
    if (runs_.size() > 1)
      for (size_t r = 0; r < runs_.size(); ++r) {
        static constexpr std::array<std::string_view, 4> kShapes = {"●", "◆", "■", "▲"};
        line(fmt::format("[{}] {} {}", r + 1, kShapes[r % kShapes.size()], escaped(run_name(r))), "kernel");
      }
    if (std::any_of(marks_.begin(), marks_.end(), [](const Mark& mark) { return mark.x == 0; }))
      note("hollow marks on the left axis: kernels without FLOPs, as far below the "
           "roofs as their bytes a second are below the memory's");
    note(above_roof_text(above_));
    for (size_t r = 0; r < runs_.size(); ++r) {
      if (!runs_[r].uncounted_flops().empty()) {
        std::string all;
        for (const std::string& each : runs_[r].uncounted_flops()) all += (all.empty() ? "" : ", ") + each;
        note(fmt::format("FLOPs{} without {}, which the run does not have", of_run(r), all));
      }
      if (runs_[r].workload().ceilings.empty()) note(fmt::format("no roofline.csv{}: no measured roofs", of_run(r)));
      const std::string_view definition = runs_[r].intensity_definition();
      if (!definition.empty() && (r == 0 || definition != runs_[0].intensity_definition()))
        note(fmt::format("counted{} as: {}", of_run(r), definition));
    }
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\" "
        "role=\"img\" data-range=\"{2} {3} {4} {5}\" data-area=\"{6} {7} "
        "{8} {9}\">\n<title>Roofline: {10}</title>\n{11}",
        kWidth, y + 4, left_, right_, bottom_, top_, kLeft, kWidth - kRight, kTop, kPlotHeight - kBottom,
        escaped(title()), kStyle);
    out += "<rect width=\"100%\" height=\"100%\" style=\"fill: var(--back)\"/>\n";
    out += fmt::format("<text x=\"{}\" y=\"20\" font-weight=\"650\">Roofline: {}</text>\n", kLeft, escaped(title()));
    return out + body + below + "</svg>\n";
  }

 private:
  // Whether the legend has room for the kernel of this number.
  bool is_named(size_t number) const {
    const auto at = names_.find(number);
    return static_cast<size_t>(std::distance(names_.begin(), at)) < kNamed;
  }
  std::string run_name(size_t r) const {
    const workload::Workload& w = runs_[r].workload();
    std::string model(w.sysinfo.get("gpu_model"));
    // roofline.csv has the whole name, where it is of this device.
    if (!w.ceilings.empty() && !w.ceilings.front().text("DeviceName").empty() &&
        workload::foreign_ceilings(w.ceilings, w.sysinfo.get("gpu_arch"), model).empty())
      model = w.ceilings.front().text("DeviceName");
    return fmt::format("{}{}{}{}", w.path, model.empty() ? "" : " (", model, model.empty() ? "" : ")");
  }
  std::string title() const { return runs_.size() == 1 ? run_name(0) : fmt::format("{} runs", runs_.size()); }
  std::string of_run(size_t r) const {
    return runs_.size() == 1 ? std::string() : fmt::format(" of {}", runs_[r].workload().path);
  }
  bool wanted(std::string_view level) const {
    return std::find(options_.memory_levels.begin(), options_.memory_levels.end(), level) !=
           options_.memory_levels.end();
  }

  void collect() {
    for (size_t r = 0; r < runs_.size(); ++r) {
      const Analysis& run = runs_[r];
      std::map<std::string, std::vector<Roof>, std::less<>>& types = roofs_.emplace_back();
      if (!run.workload().ceilings.empty())
        for (const std::string& type : options_.data_types.empty() ? run.roofline_types() : options_.data_types) {
          std::vector<Roof> all = roofs(run.workload().ceilings.front(), type);
          if (chosen_levels_)
            std::erase_if(all, [&](const Roof& roof) { return !is_compute(roof) && !wanted(roof.name); });
          for (const Roof& roof : all) {
            if (!is_compute(roof) && !wanted(roof.name)) continue;
            const auto same = std::find_if(lines_.begin(), lines_.end(), [&](const Line& line) {
              return line.run == r && !is_compute(roof) && line.roof.name == roof.name;
            });
            if (same == lines_.end())
              lines_.push_back({r, roof, is_compute(roof) ? type : ""});
            else if (roof.x1 > same->roof.x1)
              same->roof = roof;
          }
          types.emplace(type, std::move(all));
        }
      const std::vector<IntensityPoint>& points = options_.dispatches ? run.dispatch_points() : run.kernel_points();
      double total = 0;
      for (const IntensityPoint& point : points) total += point.total_duration;
      for (size_t i = 0; i < points.size() && (!options_.dispatches || i < kMostDispatches); ++i) {
        const IntensityPoint& point = points[i];
        const std::string& name = run.workload().kernels[point.kernel];
        const size_t number = number_of(r, point.kernel);
        names_.emplace(number, name);
        const Bound bound = bound_of_point(r, point).second;
        above_ += bound.roof != nullptr && bound.reached > kAboveRoof ? 1 : 0;
        for (const std::string_view level : kRooflineLevels) {
          if (!wanted(level)) continue;
          const bool none = point.performance == 0;
          const double x = none ? 0 : intensity_at(point, level),
                       y = none ? bandwidth_at(point, level) : point.performance;
          if ((none || (x > 0 && std::isfinite(x))) && y > 0 && std::isfinite(y))
            marks_.push_back({r, level, x, y, &point, point.total_duration / total * 100, number});
        }
      }
    }
    // Small ones on top.
    std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) { return a.share > b.share; });
  }

  // The number of a kernel in the legend: that of table 0.1 and -k of the first run; kernels that only later runs have
  // follow behind those.
  size_t number_of(size_t r, uint32_t kernel) {
    const std::string& name = runs_[r].workload().kernels[kernel];
    const Analysis& first = runs_.front();
    for (const KernelStatistics& each : first.kernels())
      if (first.workload().kernels[each.kernel] == name) return first.kernel_id(each.kernel);
    return further_.try_emplace(name, first.kernels().size() + further_.size()).first->second;
  }

  // The data type under whose roofs a point is judged, and what binds it there.
  std::pair<std::string, Bound> bound_of_point(size_t r, const IntensityPoint& point) const {
    std::string type(runs_[r].data_type(point));
    auto of = roofs_[r].find(type);
    if (of == roofs_[r].end()) of = roofs_[r].begin();
    if (!options_.data_types.empty()) of = roofs_[r].find(options_.data_types.front());
    if (of == roofs_[r].end()) return {};
    return {of->first, bound_of(point, of->second)};
  }

  void find_range() {
    double x_low = std::numeric_limits<double>::infinity(), x_high = 0, y_low = x_low, y_high = 0;
    const auto include = [&](double x, double y) {
      if (x > 0 && std::isfinite(x)) x_low = std::min(x_low, x), x_high = std::max(x_high, x);
      if (y > 0 && std::isfinite(y)) y_low = std::min(y_low, y), y_high = std::max(y_high, y);
    };
    for (const Mark& mark : marks_) include(mark.x, mark.x > 0 ? mark.y : 0);
    const bool points = options_.axes == RooflineAxes::kPoints && x_high > 0;
    if (!points)
      for (const Line& line : lines_) {
        if (is_compute(line.roof)) {
          include(line.roof.x0 * 8, line.roof.y1);
        } else {
          include(line.roof.x1 * 2, 0);
          include(line.roof.x1 / 200, line.roof.y1 / 200);
        }
      }
    if (x_high == 0) include(0.01, 0), include(1, 0);
    if (options_.axes == RooflineAxes::kWhole) include(0.01, 0), include(1000, 0);
    left_ = std::floor(std::log10(x_low));
    right_ = std::max(std::ceil(std::log10(x_high)), left_ + 1);
    if (options_.axes == RooflineAxes::kWhole) {
      left_ = -2;
      right_ = 3;
      for (const Line& line : lines_)
        if (!is_compute(line.roof)) include(0, 0.01 * line.roof.peak);
    }
    for (const Mark& mark : marks_)
      if (mark.x == 0) include(0, mark.y * std::pow(10, left_));
    if (y_high == 0) include(0, 1);
    bottom_ = std::floor(std::log10(y_low));
    top_ = std::max(std::ceil(std::log10(y_high)), bottom_ + 1);
    if (top_ - std::log10(y_high) < 0.08) ++top_;
  }

  double px(double x) const { return kLeft + (std::log10(x) - left_) / (right_ - left_) * (kWidth - kLeft - kRight); }
  double py(double y) const {
    return kPlotHeight - kBottom - (std::log10(y) - bottom_) / (top_ - bottom_) * (kPlotHeight - kTop - kBottom);
  }

  static std::string tick(double power) {
    return power < 0 ? report::format_fixed(std::pow(10, power), static_cast<int>(-power))
                     : report::format_si(std::pow(10, power), 0);
  }

  std::string grid() const {
    std::string out;
    const double base = kPlotHeight - kBottom;
    const auto vertical = [&](double x, std::string_view type) {
      out += fmt::format("<line class=\"{0}\" x1=\"{1:.2f}\" x2=\"{1:.2f}\" y1=\"{2}\" y2=\"{3}\"/>\n", type, px(x),
                         kTop, base);
    };
    const auto horizontal = [&](double y, std::string_view type) {
      out += fmt::format("<line class=\"{0}\" x1=\"{2}\" x2=\"{3}\" y1=\"{1:.2f}\" y2=\"{1:.2f}\"/>\n", type, py(y),
                         kLeft, kWidth - kRight);
    };
    for (double p = left_; p < right_; ++p)
      for (int k = 2; k < 10; ++k) vertical(k * std::pow(10, p), "grid minor");
    for (double p = bottom_; p < top_; ++p)
      for (int k = 2; k < 10; ++k) horizontal(k * std::pow(10, p), "grid minor");
    for (double p = left_; p <= right_; ++p) {
      vertical(std::pow(10, p), "grid");
      out += fmt::format("<text class=\"tick\" x=\"{:.2f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                         px(std::pow(10, p)), base + 16, tick(p));
    }
    for (double p = bottom_; p <= top_; ++p) {
      horizontal(std::pow(10, p), "grid");
      out += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{:.2f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8,
                         py(std::pow(10, p)) + 4, tick(p));
    }
    out += fmt::format(
        "<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">Arithmetic intensity, FLOP/byte</text>\n",
        (kWidth + kLeft) / 2, kPlotHeight - 8);
    out += fmt::format("<text class=\"axis\" transform=\"translate(14 {}) rotate(-90)\" "
                       "text-anchor=\"middle\">Performance, GFLOP/s</text>\n",
                       (kPlotHeight - kBottom + kTop) / 2);
    out += fmt::format("<clipPath id=\"plot\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n", kLeft,
                       kTop, kWidth - kLeft - kRight, base - kTop);
    return out;
  }

  struct Segment {
    double x1, y1, x2, y2;
  };
  Segment segment(const Roof& roof) const {
    const double x_left = std::pow(10, left_), y_low = std::pow(10, bottom_);
    if (is_compute(roof)) return {px(std::max(roof.x0, x_left)), py(roof.y1), kWidth - kRight, py(roof.y1)};
    const double from = std::max(x_left, y_low / roof.peak);
    return {px(from), py(from * roof.peak), px(roof.y1 / roof.peak), py(roof.y1)};
  }

  std::string roofs_of(size_t r) const {
    std::string out = fmt::format("<g class=\"run{}\" clip-path=\"url(#plot)\">\n", r);
    for (const Line& line : lines_) {
      if (line.run != r) continue;
      const Segment s = segment(line.roof);
      out += fmt::format(
          "<line class=\"roof roof-{0}\" x1=\"{1:.2f}\" y1=\"{2:.2f}\" x2=\"{3:.2f}\" y2=\"{4:.2f}\" data-roof=\"{0}\" "
          "data-type=\"{5}\" data-run=\"{8}\" data-peak=\"{6}\"><title>{7}</title></line>\n",
          line.roof.name, s.x1, s.y1, s.x2, s.y2, line.type, line.roof.peak,
          escaped(fmt::format("{} {}\n{} {} measured\n{}", name_of(line.run, line.roof.name), line.type,
                              report::format_fixed(line.roof.peak, 2), is_compute(line.roof) ? "GFLOP/s" : "GB/s",
                              run_name(r))),
          r);
    }
    return out + "</g>\n";
  }

  std::string labels() const {
    std::string out;
    const double slope =
        std::atan2((kPlotHeight - kTop - kBottom) / (top_ - bottom_), (kWidth - kLeft - kRight) / (right_ - left_)) *
        -180 / 3.14159265358979323846;
    struct Place {
      double x, y;
    };
    std::vector<Place> taken;
    for (const Line& line : lines_) {
      const Segment s = segment(line.roof);
      const std::string who = runs_.size() == 1 ? "" : fmt::format(" [{}]", line.run + 1);
      if (is_compute(line.roof)) {
        const double y = s.y1 - 5;
        double x = kWidth - kRight - 6;  // left of another one that would be there
        while (std::any_of(taken.begin(), taken.end(), [&](const Place& other) {
          return std::abs(other.y - y) < 13 && std::abs(other.x - x) < 170;
        }))
          x -= 175;
        if (y < kTop || y > kPlotHeight - kBottom || x < kLeft + 175) continue;
        taken.push_back({x, y});
        out += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{} {} {}{}</text>\n", x,
                           y, name_of(line.run, line.roof.name), line.type, rate_text(line.roof.peak), who);
      } else if (s.x1 < s.x2 && s.y1 <= kPlotHeight - kBottom + 1) {
        const double at = line.run == 0 ? 0.3 : 0.55;
        out += fmt::format(
            "<text class=\"label\" transform=\"translate({:.1f} {:.1f}) rotate({:.2f})\">{} {} GB/s{}</text>\n",
            s.x1 + (s.x2 - s.x1) * at, s.y1 + (s.y2 - s.y1) * at - 5, slope, name_of(line.run, line.roof.name),
            report::format_fixed(line.roof.peak, 0), who);
      }
    }
    return out;
  }

  std::string_view name_of(size_t run, std::string_view roof) const {
    return roof_name(runs_[run].catalog().facts.roofline, roof);
  }

  double x_of(const Mark& mark) const { return mark.x > 0 ? px(mark.x) : kLeft; }
  double y_of(const Mark& mark) const { return py(mark.x > 0 ? mark.y : mark.y * std::pow(10, left_)); }

  std::string about(const Mark& mark) const {
    const IntensityPoint& point = *mark.point;
    const workload::Workload& w = runs_[mark.run].workload();
    std::string text = report::clean(w.kernels[point.kernel]) + "\n";
    if (runs_.size() > 1) text += run_name(mark.run) + "\n";
    if (options_.dispatches) text += fmt::format("dispatch {}\n", w.dispatches[point.row].id);
    if (mark.x > 0)
      text +=
          fmt::format("AI {} FLOP/byte at {}\n{} GFLOP/s{}{}\n", report::format_fixed(mark.x, 2),
                      name_of(mark.run, mark.level), report::format_fixed(mark.y, 2),
                      runs_[mark.run].data_type(point).empty() ? "" : ", mostly ", runs_[mark.run].data_type(point));
    else
      text += fmt::format("no FLOPs\n{} GB/s at {}\n", report::format_fixed(mark.y, 2), name_of(mark.run, mark.level));
    const auto [type, bound] = bound_of_point(mark.run, point);
    if (bound.roof == nullptr)
      text += "no measured roof\n";
    else
      text +=
          fmt::format("bound by {}: {:.1f} % of {} {}{}, headroom {:.3g}x\n", name_of(mark.run, bound.roof->name),
                      bound.reached, report::format_fixed(bound.attainable, 2), bound.bandwidth ? "GB/s" : "GFLOP/s",
                      bound.bandwidth ? "" : fmt::format(" ({})", type), bound.headroom);
    if (bound.roof != nullptr && bound.reached > kAboveRoof)
      text += "above the roof: what a benchmark sustains is no limit of physics\n";
    text += fmt::format("{:.2f} % of the time: {} in {} {}", mark.share, time_text(point.total_duration), point.calls,
                        point.calls == 1 ? "dispatch" : "dispatches");
    return text;
  }

  std::string point(const Mark& mark) const {
    const double x = x_of(mark), y = y_of(mark);
    const double r = mark.x == 0
                         ? 4.5
                         : 3.5 + 6 * std::sqrt(std::clamp(std::isnan(mark.share) ? 0.0 : mark.share, 0.0, 100.0) / 100);
    const std::string data =
        fmt::format("class=\"point level-{0}{1}\" data-kernel=\"{2}\" data-level=\"{0}\" "
                    "data-run=\"{3}\" data-x=\"{4}\" data-y=\"{5}\"",
                    mark.level, mark.x > 0 ? "" : " on-axis",
                    escaped(runs_[mark.run].workload().kernels[mark.point->kernel]), mark.run, mark.x, mark.y);
    const std::string title = fmt::format("<title>{}</title>", escaped(about(mark)));
    switch (mark.run % 4) {
      case 0:
        return fmt::format("<circle {} cx=\"{:.3f}\" cy=\"{:.3f}\" r=\"{:.2f}\">{}</circle>\n", data, x, y, r, title);
      case 1:
        return fmt::format("<path {0} d=\"M{1:.3f} {2:.3f}m0 {3:.2f}l{4:.2f} "
                           "{4:.2f}l-{4:.2f} {4:.2f}l-{4:.2f} -{4:.2f}z\">{5}</path>\n",
                           data, x, y, -1.2 * r, 1.2 * r, title);
      case 2:
        return fmt::format("<path {0} d=\"M{1:.3f} {2:.3f}m-{3:.2f} -{3:.2f}h{4:.2f}v{4:.2f}h-{4:.2f}z\">{5}</path>\n",
                           data, x, y, r * 0.9, r * 1.8, title);
      default:
        return fmt::format("<path {0} d=\"M{1:.3f} {2:.3f}m0 -{3:.2f}l{3:.2f} {4:.2f}h-{5:.2f}z\">{6}</path>\n", data,
                           x, y, 1.2 * r, 2.0 * r, 2.4 * r, title);
    }
  }

  std::string number(const Mark& mark) const {
    return fmt::format("<text class=\"number\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x_of(mark) + 9, y_of(mark) - 6,
                       mark.number);
  }

  std::span<const Analysis> runs_;
  SvgOptions options_;
  bool chosen_levels_;  // else all levels bind, and three are drawn
  std::vector<std::map<std::string, std::vector<Roof>, std::less<>>> roofs_;  // of each run, by data type
  std::vector<Line> lines_;
  std::vector<Mark> marks_;
  std::map<size_t, std::string> names_;    // of kernels that are drawn, by number
  std::map<std::string, size_t> further_;  // numbers of kernels that the first run does not have
  size_t above_ = 0;
  double left_ = 0, right_ = 0, bottom_ = 0, top_ = 0;
};

}  // namespace

Result<std::string> roofline_svg(std::span<const Analysis> runs, const SvgOptions& options) {
  return Drawing(runs, options).draw();
}

}  // namespace tacho::metric
