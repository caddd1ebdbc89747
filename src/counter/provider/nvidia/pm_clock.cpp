// Lines between moments of two clocks (pm_clock.h).
#include "counter/provider/nvidia/pm_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace tacho::counter::nvidia {

namespace {

constexpr int64_t kSlack = 1'000'000;  // ns: more than CUPTI errs by where it converts a GPU's time to its clock

int64_t difference(uint64_t later, uint64_t earlier) {
  return static_cast<int64_t>(later - earlier);
}

}  // namespace

void ClockPairs::add(uint64_t vendor, int64_t host, int64_t error) {
  if (fixed_) return;
  if (!pairs_.empty()) {
    const int64_t host_took = host - pairs_.back().host;
    if (host_took <= 0) return;
    // Clocks that run differ by millionths, one that is being corrected by a thousandth at most.
    const double off = static_cast<double>(difference(vendor, pairs_.back().vendor)) - static_cast<double>(host_took);
    if (std::abs(off) > static_cast<double>(host_took) / 100 + static_cast<double>(kSlack)) {
      earlier_ = std::exchange(pairs_, {});
      ++jumps_;
    } else if (vendor == pairs_.back().vendor) {
      return;
    }
  }
  if (pairs_.size() == kMost) pairs_.erase(pairs_.begin());
  pairs_.push_back({vendor, host});
  error_ = std::max(error_, error);
}

void ClockPairs::fix(uint64_t vendor, int64_t host, int64_t error) {
  earlier_.clear();
  pairs_.assign(1, {vendor, host});
  error_ = error;
  fixed_ = true;
}

// Before the first and after the last pair both clocks are taken to be equally fast.
int64_t ClockPairs::host_time(const std::vector<Pair>& pairs, uint64_t vendor) {
  const auto after = std::upper_bound(pairs.begin(), pairs.end(), vendor,
                                      [](uint64_t at, const Pair& pair) { return at < pair.vendor; });
  // Sums that no clock gives go around instead of being undefined.
  const auto moved = [&](const Pair& pair) {
    return static_cast<int64_t>(static_cast<uint64_t>(pair.host) + (vendor - pair.vendor));
  };
  if (after == pairs.begin()) return moved(*after);
  const Pair& before = *std::prev(after);
  if (after == pairs.end()) return moved(before);
  const double slope =
      static_cast<double>(after->host - before.host) / static_cast<double>(after->vendor - before.vendor);
  return before.host + std::llround(static_cast<double>(vendor - before.vendor) * slope);
}

std::optional<ClockPairs::Span> ClockPairs::placed_by(const std::vector<Pair>& pairs, uint64_t begin,
                                                      uint64_t end) const {
  if (pairs.empty() || begin > end) return {};
  const Span span{host_time(pairs, begin), host_time(pairs, end)};
  if (span.end < span.begin || (last_end_ && span.end <= *last_end_)) return {};
  if (!fixed_ && span.end > pairs_.back().host + kSlack) return {};
  return span;
}

std::optional<ClockPairs::Span> ClockPairs::place(uint64_t begin, uint64_t end) {
  std::optional<Span> span = placed_by(earlier_, begin, end);
  if (!span) {
    span = placed_by(pairs_, begin, end);
    if (span) earlier_.clear();
  }
  if (span) last_end_ = span->end;
  return span;
}

}  // namespace tacho::counter::nvidia
