// Piecewise lines through noisy differences of clocks (clock_fit.h).
#include "ranks/read/clock_fit.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tacho::ranks {
namespace {

struct Point {
  double x, y;  // ns since the first sample's time and from its offset
};

struct Line {
  double slope = 0, intercept = 0;
  double at(double x) const { return slope * x + intercept; }
};

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const auto at = values.begin() + std::lround(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

constexpr size_t kFewest = 8;  // samples of a piece with a slope of its own

Line line_through(std::span<const Point> points, size_t most_for_slope) {
  Line line;
  std::vector<double> values;
  if (points.size() >= kFewest) {
    const size_t stride = std::max<size_t>(1, points.size() / most_for_slope);
    for (size_t i = 0; i < points.size(); i += stride)
      for (size_t k = i + stride; k < points.size(); k += stride)
        if (points[k].x > points[i].x) values.push_back((points[k].y - points[i].y) / (points[k].x - points[i].x));
    line.slope = median(values);
  }
  values.clear();
  for (const Point& point : points) values.push_back(point.y - line.slope * point.x);
  line.intercept = median(values);
  return line;
}

double cost(std::span<const Point> points, const Line& line) {
  double sum = 0;
  for (const Point& point : points) sum += std::abs(point.y - line.at(point.x));
  return sum;
}

// The noise of the samples: how much neighbours differ beyond the line, whatever the clock does in the long run.
double noise_of(std::span<const Point> points, const Line& line) {
  std::vector<double> differences;
  for (size_t i = 1; i < points.size(); ++i)
    differences.push_back(
        std::abs((points[i].y - line.at(points[i].x)) - (points[i - 1].y - line.at(points[i - 1].x))));
  return median(differences);
}

struct Segment {
  size_t from, to;
  Line line;
};

void fit_pieces(std::span<const Point> all, size_t from, size_t to, int depth, std::vector<Segment>& out) {
  const std::span<const Point> points = all.subspan(from, to - from);
  const Line whole = line_through(points, 160);
  std::vector<double> residuals;
  for (const Point& point : points) residuals.push_back(std::abs(point.y - whole.at(point.x)));
  const double noise = noise_of(points, whole) + 200;  // ns; below that no split is worth it
  if (depth == 0 || points.size() < 2 * kFewest || quantile(residuals, 0.8) <= 2.5 * noise) {
    out.push_back({from, to, whole});
    return;
  }
  // The best place to split, by ever finer steps.
  size_t low = kFewest, high = points.size() - kFewest, best = low;
  double least = -1;
  while (true) {
    const size_t step = std::max<size_t>(1, (high - low) / 16);
    for (size_t at = low; at <= high; at += step) {
      const auto left = points.first(at), right = points.subspan(at);
      const double sum = cost(left, line_through(left, 40)) + cost(right, line_through(right, 40));
      if (least < 0 || sum < least) {
        least = sum;
        best = at;
      }
    }
    if (step == 1) break;
    low = std::max(kFewest, best > step ? best - step : 0);
    high = std::min(points.size() - kFewest, best + step);
  }
  if (least > 0.7 * cost(points, whole)) {
    out.push_back({from, to, whole});
    return;
  }
  fit_pieces(all, from, from + best, depth - 1, out);
  fit_pieces(all, from + best, to, depth - 1, out);
}

}  // namespace

int64_t ClockFit::offset(int64_t time) const {
  if (pieces.empty()) return 0;
  size_t at = pieces.size() - 1;
  while (at > 0 && time < pieces[at].from) --at;
  const Piece& piece = pieces[at];
  return piece.offset + static_cast<int64_t>(std::llround(piece.drift * static_cast<double>(time - piece.at)));
}

ClockFit fit_clock(std::vector<ClockSample> samples) {
  ClockFit fit;
  fit.samples = samples.size();
  if (samples.empty()) return fit;
  std::sort(samples.begin(), samples.end(),
            [](const ClockSample& a, const ClockSample& b) { return a.reference < b.reference; });
  const int64_t time = samples[0].time, offset = samples[0].time - samples[0].reference;
  std::vector<Point> points;
  points.reserve(samples.size());
  for (const ClockSample& sample : samples)
    points.push_back(
        {static_cast<double>(sample.time - time), static_cast<double>(sample.time - sample.reference - offset)});
  std::vector<Segment> segments;
  fit_pieces(points, 0, points.size(), 5, segments);
  std::vector<double> residuals;
  for (const Segment& segment : segments) {
    const double x = points[segment.from].x;
    const int64_t at = samples[segment.from].time;
    // A clock may have jumped anywhere between two samples: assume halfway.
    const int64_t from = segment.from == 0 ? at : at - (at - samples[segment.from - 1].time) / 2;
    fit.pieces.push_back({from, at, samples[segment.to - 1].time,
                          offset + static_cast<int64_t>(std::llround(segment.line.at(x))), segment.line.slope});
    for (size_t i = segment.from; i < segment.to; ++i)
      residuals.push_back(std::abs(points[i].y - segment.line.at(points[i].x)));
  }
  const double limit = 6 * 1.4826 * quantile(residuals, 0.5) + 100;
  std::vector<double> near;
  for (const double residual : residuals)
    if (residual <= limit) near.push_back(residual);
  fit.outliers = residuals.size() - near.size();
  fit.residual = quantile(near, 0.95);
  return fit;
}

}  // namespace tacho::ranks
