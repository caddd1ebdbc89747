// Unions of intervals in bins (device_bins.h).
#include "view/index/device_bins.h"

#include <algorithm>
#include <cstddef>

namespace tacho::view {

using Spans = std::vector<std::pair<int64_t, int64_t>>;

void BusySums::append(const BusySums& next) {
  const bool idle = busy == 0, next_idle = next.busy == 0;
  const int64_t between = trail + next.lead;
  if (idle && next_idle) {
    lead = trail = width + next.width;
  } else if (idle) {
    lead = width + next.lead;
    longest = next.longest;
    trail = next.trail;
  } else if (next_idle) {
    trail += next.width;
  } else {
    longest = std::max({longest, next.longest, between});
    trail = next.trail;
  }
  width += next.width;
  busy += next.busy;
  kernels += next.kernels;
  copies += next.copies;
  exposed += next.exposed;
  collectives += next.collectives;
}

Spans Union::take(int64_t limit) {
  Spans taken;
  size_t whole = 0;
  while (whole < spans_.size() && spans_[whole].first < limit) {
    auto& [start, end] = spans_[whole];
    if (end > limit) {
      taken.emplace_back(start, limit);
      start = limit;
      break;
    }
    taken.emplace_back(start, end);
    ++whole;
  }
  spans_.erase(spans_.begin(), spans_.begin() + static_cast<ptrdiff_t>(whole));
  return taken;
}

Spans without(const Spans& a, const Spans& b) {
  Spans rest;
  size_t at = 0;
  for (auto [start, end] : a) {
    while (at < b.size() && b[at].second <= start) ++at;
    for (size_t i = at; i < b.size() && b[i].first < end; ++i) {
      if (b[i].first > start) rest.emplace_back(start, b[i].first);
      start = std::max(start, b[i].second);
    }
    if (start < end) rest.emplace_back(start, end);
  }
  return rest;
}

DeviceBins::DeviceBins(int64_t bins, int64_t width)
    : width_(width), bins_(static_cast<size_t>(std::max<int64_t>(bins, 1))) {}

void DeviceBins::add(int64_t start, int64_t end, WorkKind work) {
  span_ = {std::min(span_.first, start), std::max(span_.last, end)};
  all_.add(start, end);
  if (work == WorkKind::kKernel || work == WorkKind::kCollective) kernels_.add(start, end);
  if (work == WorkKind::kCopy || work == WorkKind::kFill) copies_.add(start, end);
  if (work == WorkKind::kCollective) collectives_.add(start, end);
}

void DeviceBins::spread(const Spans& spans, int64_t Bin::*member) {
  for (const auto& [start, end] : spans)
    for (int64_t bin = start / width_; bin < bins() && bin * width_ < end; ++bin)
      bins_[static_cast<size_t>(bin)].*member += std::min(end, (bin + 1) * width_) - std::max(start, bin * width_);
}

void DeviceBins::advance(int64_t time) {
  const Spans all = all_.take(time), kernels = kernels_.take(time), copies = copies_.take(time);
  spread(all, &Bin::busy);
  spread(kernels, &Bin::kernels);
  spread(copies, &Bin::copies);
  spread(without(copies, kernels), &Bin::exposed);
  spread(collectives_.take(time), &Bin::collectives);
  for (const auto& [start, end] : all)
    for (int64_t at = start / width_; at < bins() && at * width_ < end; ++at) {
      Bin& bin = bins_[static_cast<size_t>(at)];
      const int64_t from = std::max<int64_t>(start - at * width_, 0);
      if (bin.lead < 0)
        bin.lead = from;
      else
        bin.longest = std::max(bin.longest, from - bin.last);
      bin.last = std::min(end - at * width_, width_);
    }
}

BusySums DeviceBins::of(const Bin& bin) const {
  BusySums sum;
  sum.width = width_;
  sum.busy = bin.busy;
  sum.kernels = bin.kernels;
  sum.copies = bin.copies;
  sum.exposed = bin.exposed;
  sum.collectives = bin.collectives;
  sum.lead = bin.lead < 0 ? width_ : bin.lead;
  sum.longest = bin.longest;
  sum.trail = bin.lead < 0 ? width_ : width_ - bin.last;
  return sum;
}

BusySums DeviceBins::sum(int64_t from, int64_t to) const {
  BusySums sum;
  for (int64_t bin = std::max<int64_t>(from, 0); bin < to && bin < bins(); ++bin)
    sum.append(of(bins_[static_cast<size_t>(bin)]));
  return sum;
}

}  // namespace tacho::view
