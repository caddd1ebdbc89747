// The sweep behind Launches (launches.h).
#include "walk/launches.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "walk/clock.h"

namespace tacho::walk {

namespace column = event::column;
using event::kUnknown;
using event::Table;

namespace {

constexpr int kCallColumns[] = {column::Api::track, column::Api::start, column::Api::correlation};
constexpr int kMarkerColumns[] = {column::Marker::track, column::Marker::start, column::Marker::duration,
                                  column::Marker::dim};
constexpr int64_t kSlack = 100'000'000;  // ns

}  // namespace

LaunchIndex::LaunchIndex(int64_t calls) {
  constexpr size_t kMostBuckets = size_t{1} << 19;
  const size_t buckets =
      std::bit_ceil(std::clamp<size_t>(static_cast<size_t>(std::max<int64_t>(calls, 0)) / kWays * 2, 64, kMostBuckets));
  entries_.resize(buckets * kWays);
  oldest_.resize(buckets);
  mask_ = buckets - 1;
}

size_t LaunchIndex::bucket(int64_t process, int64_t correlation) const {
  // A thread's ids are consecutive. Neighbours go to neighbouring buckets, so that the oldest calls are replaced first.
  const auto id = static_cast<uint64_t>(correlation);
  return static_cast<size_t>(id + (id >> 40) * 0x9e3779b1u + static_cast<uint64_t>(process) * 0x85ebca6bu) & mask_;
}

void LaunchIndex::add(int64_t process, int64_t correlation, const Launch& launch) {
  const size_t at = bucket(process, correlation);
  entries_[at * kWays + oldest_[at]] = {process, correlation, launch};
  oldest_[at] = static_cast<uint8_t>((oldest_[at] + 1) % kWays);
}

const Launch* LaunchIndex::find(int64_t process, int64_t correlation) const {
  if (correlation == 0) return nullptr;
  const size_t at = bucket(process, correlation) * kWays;
  for (size_t way = 0; way < kWays; ++way) {
    const Entry& entry = entries_[at + way];
    if (entry.correlation == correlation && entry.process == process) return &entry.launch;
  }
  return nullptr;
}

Launches::Launches(const trace::Trace& trace, bool labels) : trace_(trace), index_(trace.rows(Table::kApi)) {
  if (trace.rows(Table::kApi) == 0) return;
  calls_ = std::make_unique<trace::TimeCursor>(trace, Table::kApi, kCallColumns);
  more_calls_ = calls_->next();
  if (labels && trace.rows(Table::kMarker) > 0) {
    markers_ = std::make_unique<trace::TimeCursor>(trace, Table::kMarker, kMarkerColumns);
    more_markers_ = markers_->next();
  }
}

void Launches::advance(int64_t time) {
  while (more_calls_ && calls_->start() <= time) {
    const auto call = calls_->row();
    while (more_markers_ && markers_->start() <= call[1]) {
      const auto marker = markers_->row();
      const int64_t kind = trace_.cell(Table::kLabel, marker[3], column::Label::kind);
      if (kind == static_cast<int64_t>(event::MarkerKind::kPushPop)) {
        auto& stack = open_[marker[0]];
        while (!stack.empty() && stack.back().end <= marker[1]) stack.pop_back();
        stack.push_back({marker[2] == kUnknown ? std::numeric_limits<int64_t>::max() : time_after(marker[1], marker[2]),
                         marker[3]});
      }
      more_markers_ = markers_->next();
    }
    const int64_t process = trace_.cell(Table::kTrack, call[0], column::Track::process);
    int64_t label = 0;
    if (markers_ != nullptr) {
      if (const auto found = open_.find(call[0]); found != open_.end()) {
        auto& stack = found->second;
        while (!stack.empty() && stack.back().end < call[1]) stack.pop_back();
        if (!stack.empty()) label = stack.back().label;
      }
    }
    index_.add(process, call[2], {call[0], call[1], label});
    more_calls_ = calls_->next();
  }
}

const Launch* Launches::find(int64_t process, int64_t correlation, int64_t time) {
  if (calls_ == nullptr || correlation == 0) return nullptr;
  advance(time > std::numeric_limits<int64_t>::max() - kSlack ? time : time + kSlack);
  return index_.find(process, correlation);
}

Status Launches::status() const {
  if (calls_ != nullptr) TACHO_TRY(calls_->status());
  if (markers_ != nullptr) TACHO_TRY(markers_->status());
  return {};
}

}  // namespace tacho::walk
