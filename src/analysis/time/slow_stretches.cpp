// Compares durations of equal launches over time (slow_stretches.h).
#include "analysis/time/slow_stretches.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <tuple>

#include "base/format.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "report/text.h"
#include "trace/read/rows.h"
#include "vendor/collective_kernels.h"
#include "walk/sweep.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

constexpr size_t kMostLaunches = 256;  // that are kept of a kind
constexpr size_t kMostKinds = 8192;    // further ones are not compared
constexpr size_t kParts = 48;          // of a device's kernels, by time
constexpr size_t kSearched = 48;       // kinds that tell where the stretch is
constexpr size_t kJudged = 256;        // kinds, the costliest
constexpr int64_t kShortest = 4'000;   // ns: shorter kernels are mostly latency
constexpr double kLeastFactor = 1.08, kMostFactor = 3;
constexpr int64_t kLeastKinds = 3;
constexpr int64_t kOften = 3;        // launches of a kind that say that the work is another one
constexpr int64_t kLeastPairs = 12;  // of launches of one kind, one inside and one outside of the stretch

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of values with weights.
double median(std::vector<std::pair<double, double>>& values) {
  std::sort(values.begin(), values.end());
  double all = 0, below = 0;
  for (const auto& [value, weight] : values) all += weight;
  for (const auto& [value, weight] : values)
    if ((below += weight) * 2 >= all) return value;
  return values.empty() ? 0 : values.back().first;
}

}  // namespace

void LaunchTimes::thin(Series& series) {
  for (size_t i = 0; 2 * i < series.launches.size(); ++i) series.launches[i] = series.launches[2 * i];
  series.launches.resize((series.launches.size() + 1) / 2);
  series.stride *= 2;
}

void LaunchTimes::add(int64_t track, int64_t kernel, uint32_t what, int64_t start, int64_t duration) {
  if (track < 0 || kernel <= 0 || duration < 0) return;
  if (static_cast<size_t>(track) >= device_of_track_.size())
    device_of_track_.resize(static_cast<size_t>(track) + 1, -2);
  int64_t& device = device_of_track_[static_cast<size_t>(track)];
  if (device == -2) {
    const int64_t row = trace_.cell(Table::kTrack, track, column::Track::device);
    const bool cpu = event::from_cell<event::DeviceKind>(trace_.cell(Table::kDevice, row, column::Device::kind)) ==
                     event::DeviceKind::kCpu;
    device = row <= 0 || cpu ? -1 : static_cast<int64_t>(numbers_.device(row));
  }
  if (device < 0) return;
  const Key key = {static_cast<size_t>(device), kernel, static_cast<int64_t>(what)};
  auto at = series_.find(key);
  if (at == series_.end()) {
    if (series_.size() >= kMostKinds) return;
    at = series_.try_emplace(key).first;
  }
  Series& series = at->second;
  if (series.seen++ % series.stride != 0) return;
  series.launches.emplace_back(start, duration);
  if (series.launches.size() > kMostLaunches) thin(series);
}

int64_t LaunchTimes::track_of(size_t device) const {
  const auto at = std::find(device_of_track_.begin(), device_of_track_.end(), static_cast<int64_t>(device));
  return at == device_of_track_.end() ? 0 : at - device_of_track_.begin();
}

void LaunchTimes::join(const std::function<int64_t(uint32_t)>& of) {
  std::unordered_map<Key, Series, Hash> joined;
  for (auto& [key, series] : series_) {
    Series& to = joined[{key.device, key.kernel, of(static_cast<uint32_t>(key.what))}];
    while (!to.launches.empty() && to.stride < series.stride) thin(to);
    while (!to.launches.empty() && to.stride > series.stride) thin(series);
    to.stride = std::max(to.stride, series.stride);
    to.launches.insert(to.launches.end(), series.launches.begin(), series.launches.end());
  }
  for (auto& [key, series] : joined) std::sort(series.launches.begin(), series.launches.end());
  series_ = std::move(joined);
}

// Looks for the stretch of one device.
class StretchSearch {
 public:
  StretchSearch(const LaunchTimes& times, size_t device) : times_(times), device_(device) {}

  std::optional<SlowStretch> find() {
    if (!take_kinds()) return std::nullopt;
    divide();
    double best = 0;
    std::pair<size_t, size_t> at;
    for (size_t from = 1; from < kParts; ++from)
      for (size_t to = from + 1; to <= kParts; ++to)
        if (const double score = compare(from, to); score > best || (score == best && from == at.first))
          best = score, at = {from, to};
    if (best <= 0) return std::nullopt;
    return judge(at.first, at.second);
  }

 private:
  struct Kind {
    int64_t kernel = 0, what = 0;
    const LaunchTimes::Series* series = nullptr;
    double time = 0;                         // ns of all launches
    bool varies = false;                     // between parts, by kLeastFactor
    std::array<double, kParts> median{};     // duration; 0 = no launch in this part
    std::array<int64_t, kParts> launches{};  // that were kept
    std::array<double, kParts> spent{};      // ns of them
    // In and out of the stretch that was compared last:
    double inside = 0, outside = 0, spent_inside = 0;
    bool fresh = false;  // it was launched inside alone
    int64_t pairs = 0;   // of launches on both sides
    bool known = false;  // there are launches on both sides
    bool clear = false;  // nearly all launches inside take longer than nearly all outside
    double factor() const { return inside / outside; }
  };

  // The costliest kinds of the device; false if there are too few of their launches.
  bool take_kinds() {
    for (const auto& [key, series] : times_.series_) {
      if (key.device != device_ || series.launches.size() < 2) continue;
      if (vendor::is_collective_kernel(times_.trace_.text(Table::kKernel, key.kernel, column::Kernel::name))) continue;
      Kind kind;
      kind.kernel = key.kernel;
      kind.what = key.what;
      kind.series = &series;
      std::vector<double> durations;
      for (const auto& [start, duration] : series.launches) {
        durations.push_back(static_cast<double>(duration));
        kind.time += static_cast<double>(duration) * static_cast<double>(series.stride);
      }
      if (median(durations) < static_cast<double>(kShortest)) continue;
      kinds_.push_back(kind);
    }
    std::sort(kinds_.begin(), kinds_.end(), [](const Kind& a, const Kind& b) {
      return std::tuple(-a.time, a.kernel, a.what) < std::tuple(-b.time, b.kernel, b.what);
    });
    if (kinds_.size() > kJudged) kinds_.resize(kJudged);
    for (const Kind& kind : kinds_)
      for (const auto& [start, duration] : kind.series->launches) starts_.push_back(start);
    std::sort(starts_.begin(), starts_.end());
    return kinds_.size() >= static_cast<size_t>(kLeastKinds) && starts_.size() >= kParts;
  }

  // Parts with as many launches each.
  void divide() {
    for (size_t i = 0; i < kParts; ++i) edges_[i] = starts_[i * starts_.size() / kParts];
    std::array<std::vector<double>, kParts> of_part;
    for (Kind& kind : kinds_) {
      for (auto& durations : of_part) durations.clear();
      double least = HUGE_VAL, most = 0;
      for (const auto& [start, duration] : kind.series->launches)
        of_part[part_of(start)].push_back(static_cast<double>(duration));
      for (size_t i = 0; i < kParts; ++i) {
        kind.launches[i] = static_cast<int64_t>(of_part[i].size());
        if (of_part[i].empty()) continue;
        for (const double duration : of_part[i]) kind.spent[i] += duration * static_cast<double>(kind.series->stride);
        kind.median[i] = median(of_part[i]);
        least = std::min(least, kind.median[i]);
        most = std::max(most, kind.median[i]);
      }
      kind.varies = most >= kLeastFactor * least;
    }
  }
  size_t part_of(int64_t start) const {
    const auto above = std::upper_bound(edges_.begin(), edges_.end(), start);
    return above == edges_.begin() ? 0 : static_cast<size_t>(above - edges_.begin()) - 1;
  }

  // How well "slower from part `from` to part `to`, and as before in all others" tells kinds that clearly are, in ns.
  double compare(size_t from, size_t to) {
    double score = 0;
    for (Kind& kind : std::span(kinds_).first(std::min(kinds_.size(), kSearched))) {
      if (!kind.varies) continue;
      compare(kind, from, to);
      if (!kind.clear) continue;
      const double middle = std::sqrt(kind.inside * kind.outside);
      for (size_t i = 0; i < kParts; ++i) {
        if (kind.launches[i] == 0) continue;
        const bool slow = kind.median[i] > middle, in = i >= from && i < to;
        if (in) score += slow ? kind.spent[i] : -kind.spent[i];
        if (!in && slow) score -= kind.spent[i];
      }
    }
    return score;
  }

  void compare(Kind& kind, size_t from, size_t to) {
    inside_.clear();
    outside_.clear();
    int64_t launches_inside = 0, launches_outside = 0;
    kind.spent_inside = 0;
    for (size_t i = 0; i < kParts; ++i) {
      if (kind.launches[i] == 0) continue;
      const bool in = i >= from && i < to;
      (in ? inside_ : outside_).push_back(kind.median[i]);
      (in ? launches_inside : launches_outside) += kind.launches[i];
      if (in) kind.spent_inside += kind.spent[i];
    }
    kind.pairs = std::min(launches_inside, launches_outside);
    kind.fresh = launches_outside == 0 && launches_inside >= kOften;
    kind.known = kind.pairs > 0;
    kind.clear = false;
    if (!kind.known) return;
    kind.inside = median(inside_);
    kind.outside = median(outside_);
    if (kind.inside < kLeastFactor * kind.outside) return;
    // All but a sixth.
    const auto low = inside_.begin() + static_cast<ptrdiff_t>(inside_.size() / 6);
    std::nth_element(inside_.begin(), low, inside_.end());
    const auto high = outside_.end() - 1 - static_cast<ptrdiff_t>(outside_.size() / 6);
    std::nth_element(outside_.begin(), high, outside_.end());
    kind.clear = *low > *high * 1.02;
  }

  std::optional<SlowStretch> judge(size_t from, size_t to) {
    for (Kind& kind : kinds_) compare(kind, from, to);
    std::vector<std::pair<double, double>> factors;
    double compared = 0, whole = 0, between = 0, with_shapes = 0;
    int64_t known = 0, fresh = 0;
    for (const Kind& kind : kinds_) {
      whole += kind.spent_inside;
      if (kind.known) compared += kind.spent_inside;
      known += kind.known ? 1 : 0;
      fresh += kind.fresh ? 1 : 0;
      if (kind.clear) factors.emplace_back(kind.factor(), kind.spent_inside);
    }
    if (factors.empty()) return std::nullopt;
    SlowStretch out;
    out.device = device_;
    out.track = times_.track_of(device_);
    out.factor = median(factors);
    double slower = 0, same = 0, against = 0, lost = 0;
    int64_t pairs = 0, fast_before = 0, slow_before = 0;
    std::set<std::string_view> names;
    for (const Kind& kind : kinds_) {
      if (!kind.known) continue;
      const double off = kind.factor() - out.factor, tolerance = 0.2 * (out.factor - 1) + 0.02;
      if (kind.clear && std::abs(off) <= tolerance) {
        ++out.kinds;
        names.insert(name_of(kind));
        slower += kind.spent_inside;
        lost += kind.spent_inside * (1 - 1 / kind.factor());
        pairs += kind.pairs;
        const double middle = std::sqrt(kind.inside * kind.outside);
        for (size_t i = 0; i < from; ++i)
          if (kind.launches[i] > 0) (kind.median[i] > middle ? slow_before : fast_before) += kind.launches[i];
        if (kind.what != 0) with_shapes += kind.spent_inside;
        agreeing_.push_back(&kind);
      } else if (std::abs(kind.factor() - 1) <= tolerance) {
        ++out.same;
        same += kind.spent_inside;
      } else if (off > 0 || kind.factor() < 1) {
        against += kind.spent_inside;  // slower by far, or faster
      } else {
        between += kind.spent_inside;  // bound by both, or partly inside
      }
    }
    const bool together = out.kinds >= kLeastKinds && pairs >= kLeastPairs && names.size() >= 2 &&
                          out.factor <= kMostFactor && slower >= 0.25 * compared && slower >= 2 * between &&
                          against <= 0.15 * compared && compared >= 0.7 * whole && 8 * fresh <= known &&
                          fast_before >= kLeastPairs && fast_before >= 4 * slow_before;
    if (!together) return std::nullopt;
    out.shapes = 2 * with_shapes > slower;
    out.time = std::llround(slower);
    out.lost = std::llround(lost);
    out.compared = std::llround(compared);
    place(from, to, out);
    describe(out);
    return out;
  }

  // The edges, between the launches on both sides.
  void place(size_t from, size_t to, SlowStretch& out) const {
    std::vector<std::pair<int64_t, bool>> launches;  // start, slow
    int64_t end = 0;
    for (const Kind* const kind : agreeing_) {
      const double middle = std::sqrt(kind->inside * kind->outside);
      for (const auto& [start, duration] : kind->series->launches) {
        launches.emplace_back(start, static_cast<double>(duration) > middle);
        end = std::max(end, saturating_add(start, duration));
      }
    }
    std::sort(launches.begin(), launches.end());
    // Where fewest launches are on the wrong side, near an edge of parts.
    const auto edge = [&](size_t part, bool slow_behind) {
      const int64_t low = edges_[part > 1 ? part - 1 : 0], high = part + 1 < kParts ? edges_[part + 1] : INT64_MAX;
      int64_t best = edges_[part], wrong = 0, fewest = INT64_MAX;
      for (const auto& [start, slow] : launches)
        if (start >= low && start < high && slow != slow_behind) ++wrong;
      for (const auto& [start, slow] : launches) {
        if (start < low || start >= high) continue;
        if (wrong < fewest) fewest = wrong, best = start;
        wrong += slow == slow_behind ? 1 : -1;
      }
      return best;
    };
    out.from = edge(from, true);
    out.to_the_end = to == kParts;
    out.to = out.to_the_end ? end : edge(to, false);
  }

  std::string_view name_of(const Kind& kind) const {
    return times_.trace_.text(Table::kKernel, kind.kernel, column::Kernel::name);
  }

  void describe(SlowStretch& out) const {
    constexpr size_t kLines = 4;
    std::vector<const Kind*> costliest = agreeing_;
    std::stable_sort(costliest.begin(), costliest.end(),
                     [](const Kind* a, const Kind* b) { return a->spent_inside > b->spent_inside; });
    for (size_t i = 0; i < std::min(costliest.size(), kLines); ++i) {
      const Kind& kind = *costliest[i];
      out.lines.push_back(fmt::format("{}: {} in this stretch, {} else ({:.2f} times)",
                                      short_name(demangle(name_of(kind))), report::format_duration(kind.inside),
                                      report::format_duration(kind.outside), kind.factor()));
    }
    if (costliest.size() > kLines) out.lines.push_back(fmt::format("and {} more kernels", costliest.size() - kLines));
  }

  const LaunchTimes& times_;
  const size_t device_;
  std::vector<Kind> kinds_;
  std::vector<const Kind*> agreeing_;
  std::vector<int64_t> starts_;
  std::array<int64_t, kParts> edges_{};  // where each part begins
  std::vector<double> inside_, outside_;
};

std::vector<SlowStretch> LaunchTimes::find() const {
  std::set<size_t> devices;
  for (const auto& [key, series] : series_) devices.insert(key.device);
  std::vector<SlowStretch> out;
  for (const size_t device : devices)
    if (auto stretch = StretchSearch(*this, device).find()) out.push_back(std::move(*stretch));
  return out;
}

Result<std::vector<SlowStretch>> slow_stretches(const trace::Trace& trace) {
  LaunchTimes times(trace);
  const std::array<Table, 1> tables = {Table::kDispatch};
  walk::Sweep sweep(trace, tables, walk::kSweepDim);
  walk::RowSlice slice;
  while (sweep.next(slice))
    for (size_t i = 0; i < slice.rows; ++i)
      if (slice.duration[i] != kUnknown) times.add(slice.track, slice.dim[i], 0, slice.start[i], slice.duration[i]);
  TACHO_TRY(Status(sweep.status()));
  return times.find();
}

}  // namespace tacho::analysis
