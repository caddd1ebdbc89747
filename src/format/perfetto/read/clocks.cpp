// Clocks and snapshots (clocks.h).
#include "format/perfetto/read/clocks.h"

#include <algorithm>

#include "event/times.h"
#include "format/perfetto/messages.h"
#include "format/perfetto/wire.h"

namespace tacho::format::perfetto {

using event::kUnknown;

namespace {

struct SnapshotClock {
  uint32_t id = 0;
  uint64_t timestamp = 0;
  bool incremental = false;
  int64_t multiplier = 1;
};

SnapshotClock clock_of(std::string_view message) {
  SnapshotClock clock;
  for (WireFields field(message); field.next();) {
    if (field.number() == clock_id) clock.id = static_cast<uint32_t>(field.value());
    if (field.number() == clock_timestamp) clock.timestamp = field.value();
    if (field.number() == clock_incremental) clock.incremental = field.value() != 0;
    if (field.number() == clock_multiplier && field.value() > 0 && field.value() < 1'000'000'000)
      clock.multiplier = field.signed_value();
  }
  return clock;
}

int64_t in_ns(uint64_t timestamp, int64_t multiplier) {
  int64_t ns = 0;
  if (timestamp > static_cast<uint64_t>(event::kFarthestTime) ||
      __builtin_mul_overflow(static_cast<int64_t>(timestamp), multiplier, &ns) || !event::is_time(ns))
    return kUnknown;
  return ns;
}

}  // namespace

void RunningClocks::snapshot(uint32_t sequence, std::string_view message) {
  last_key_ = UINT64_MAX;
  for (WireFields field(message); field.next();) {
    if (field.number() != snapshot_clock || !field.is_bytes()) continue;
    const SnapshotClock clock = clock_of(field.bytes());
    const auto found = running_.find(key(sequence, clock.id));
    if (found == running_.end() && !clock.incremental && clock.multiplier == 1) continue;
    if (found == running_.end() && running_.size() >= kMost) continue;
    running_[key(sequence, clock.id)] = {clock.incremental, clock.multiplier, in_ns(clock.timestamp, clock.multiplier)};
  }
}

int64_t RunningClocks::time(uint32_t sequence, uint32_t clock, uint64_t timestamp) {
  if (running_.empty()) return in_ns(timestamp, 1);
  if (const uint64_t wanted = key(sequence, clock); wanted != last_key_) {
    const auto found = running_.find(wanted);
    last_key_ = wanted;
    last_ = found == running_.end() ? nullptr : &found.value();
  }
  if (last_ == nullptr) return in_ns(timestamp, 1);
  Running& running = *last_;
  const int64_t ns = in_ns(timestamp, running.multiplier);
  if (!running.incremental || ns == kUnknown) return ns;
  if (running.last == kUnknown || !event::is_time(running.last + ns)) return kUnknown;
  return running.last += ns;
}

uint32_t SnapshotClocks::clock_row(uint32_t sequence, uint32_t clock) {
  const uint64_t key = static_cast<uint64_t>(is_sequence_clock(clock) ? sequence : 0) << 32 | clock;
  const auto [found, fresh] = rows_.try_emplace(key, static_cast<uint32_t>(clocks_.size()));
  if (fresh) {
    clocks_.push_back({});
    clocks_.back().number = is_sequence_clock(clock) ? 0 : clock;
  }
  return found->second;
}

void SnapshotClocks::snapshot(uint32_t sequence, std::string_view message) {
  ++snapshots_;
  size_t kept = 0;
  for (WireFields field(message); field.next();) {
    if (field.number() == snapshot_primary && !primary_told_) {
      primary_ = static_cast<uint32_t>(field.value());
      primary_told_ = true;
    }
    if (field.number() != snapshot_clock || !field.is_bytes()) continue;
    const SnapshotClock clock = clock_of(field.bytes());
    const int64_t time = in_ns(clock.timestamp, clock.multiplier);
    if (time == kUnknown) continue;
    if (readings_.size() >= kMostReadings || ++kept > kMostOfSnapshot) {
      ++left_out_;
      return;
    }
    readings_.push_back({snapshots_, clock_row(sequence, clock.id), time});
  }
}

size_t SnapshotClocks::end_of_snapshot(size_t from) const {
  size_t to = from;
  while (to < readings_.size() && readings_[to].snapshot == readings_[from].snapshot) ++to;
  return to;
}

// Finds each clock's way to the primary one: from there outwards, snapshot by snapshot.
void SnapshotClocks::finish() {
  const uint32_t primary = clock_row(0, primary_);
  clocks_[primary].depth = 0;
  readings_of_.resize(clocks_.size());
  for (size_t i = 0; i < readings_.size(); ++i) readings_of_[readings_[i].clock].push_back(static_cast<uint32_t>(i));
  std::vector<uint32_t> first(readings_.size());  // of each reading's snapshot
  for (size_t i = 1; i < readings_.size(); ++i)
    first[i] = readings_[i].snapshot == readings_[i - 1].snapshot ? first[i - 1] : static_cast<uint32_t>(i);
  std::vector<uint32_t> queue{primary};
  for (size_t at = 0; at < queue.size(); ++at) {
    const uint32_t middle = queue[at], depth = clocks_[middle].depth + 1;
    if (depth > kFarthestClock) break;
    for (const uint32_t reading : readings_of_[middle])
      for (size_t i = first[reading]; i < readings_.size() && readings_[i].snapshot == readings_[reading].snapshot;
           ++i) {
        KnownClock& other = clocks_[readings_[i].clock];
        if (other.depth != UINT32_MAX) continue;
        other.depth = depth;
        other.next = middle;
        queue.push_back(readings_[i].clock);
      }
  }
}

// The moments that both clocks have.
size_t SnapshotClocks::hop(uint32_t from, uint32_t to) {
  const auto [known, fresh] = hop_of_.try_emplace(static_cast<uint64_t>(from) << 32 | to, hops_.size());
  if (!fresh) return known->second;
  Hop hop;
  for (const uint32_t reading : readings_of_[from]) {
    size_t begin = reading;
    while (begin > 0 && readings_[begin - 1].snapshot == readings_[reading].snapshot) --begin;
    const size_t end = end_of_snapshot(begin);
    for (size_t i = begin; i < end; ++i)
      if (readings_[i].clock == to) hop.points.emplace_back(readings_[reading].time, readings_[i].time);
  }
  std::stable_sort(hop.points.begin(), hop.points.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  hops_.push_back(std::move(hop));
  return hops_.size() - 1;
}

void SnapshotClocks::search(uint32_t clock) {
  clocks_[clock].searched = true;
  std::vector<size_t> path;
  for (uint32_t at = clock; clocks_[at].depth > 0; at = clocks_[at].next) path.push_back(hop(at, clocks_[at].next));
  clocks_[clock].path = std::move(path);
}

bool SnapshotClocks::convert(uint32_t sequence, uint32_t clock, int64_t time, int64_t& primary) {
  const uint64_t key = static_cast<uint64_t>(is_sequence_clock(clock) ? sequence : 0) << 32 | clock;
  if (key != last_key_) {
    const auto found = rows_.find(key);
    last_key_ = key;
    last_row_ = found == rows_.end() ? UINT32_MAX : found->second;
    if (last_row_ != UINT32_MAX && clocks_[last_row_].depth == UINT32_MAX) last_row_ = UINT32_MAX;
    if (last_row_ != UINT32_MAX && !clocks_[last_row_].searched) search(last_row_);
  }
  if (last_row_ == UINT32_MAX) return false;
  for (const size_t number : clocks_[last_row_].path) {
    Hop& hop = hops_[number];
    const auto& points = hop.points;
    const auto fits = [&](size_t at) {
      return (at == 0 || points[at].first <= time) && (at + 1 == points.size() || points[at + 1].first > time);
    };
    if (!fits(hop.last)) {
      const auto after = std::upper_bound(points.begin(), points.end(), time,
                                          [](int64_t wanted, const auto& point) { return wanted < point.first; });
      hop.last = after == points.begin() ? 0 : static_cast<size_t>(after - points.begin()) - 1;
    }
    time += points[hop.last].second - points[hop.last].first;  // times are at most kFarthestTime
    if (!event::is_time(time)) return false;
  }
  primary = time;
  return true;
}

}  // namespace tacho::format::perfetto
