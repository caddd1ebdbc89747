// One sweep over all events in order of time, for the writers of timelines (Perfetto, Chrome). It puts slices into
// lanes in which they nest, so that begins and ends match whatever the trace contains.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "event/members.h"
#include "trace/trace.h"
#include "walk/counters.h"
#include "walk/filter.h"

namespace tacho::walk {

struct OwnColumn {
  event::Table table;
  int column;
};
template <auto... columns>
inline constexpr std::array<OwnColumn, sizeof...(columns)> kOwnColumns = {
    OwnColumn{event::kTableOf<columns>, static_cast<int>(columns)}...};
/// The columns that the sweep reads beyond those of every timed fact. Of timed tables without a column here it reads
/// the first three.
inline constexpr auto kTimelineColumns =
    kOwnColumns<event::column::Dispatch::ordinal, event::column::Dispatch::graph_node,
                event::column::Dispatch::arguments, event::column::Copy::bytes, event::column::Copy::arguments,
                event::column::Copy::graph_node, event::column::Fill::bytes, event::column::Fill::graph_node,
                event::column::Allocation::bytes, event::column::Allocation::address, event::column::Api::result,
                event::column::Api::arguments, event::column::Api::inputs, event::column::Marker::payload,
                event::column::Marker::fields, event::column::Reading::value, event::column::CounterValue::ordinal,
                event::column::CounterValue::instance, event::column::CounterValue::value>;

/// The event that a visitor gets. Times are trace time, ns. Of counter values, only those of the first pass come.
struct Happening {
  static constexpr size_t kMostOwn = 3;
  event::Table table;
  int64_t track;  // row
  int64_t start;
  int64_t end;            // event::kUnknown: still open, or a point
  int64_t dim;            // row of the table's dimension; of a counter value the counter
  int64_t correlation;    // 0 = none
  int64_t own[kMostOwn];  // the table's own columns: cell() and each_own() read them
  uint32_t lane;          // for slices, and for points that are drawn on a line

  /// The cell of one of kTimelineColumns: cell<event::column::Copy::bytes>().
  template <auto column>
  auto cell() const {
    constexpr size_t kPlace = [] {
      size_t place = 0;
      for (const OwnColumn& own : kTimelineColumns) {
        if (own.table != event::kTableOf<column>) continue;
        if (own.column == static_cast<int>(column)) return place;
        ++place;
      }
      return kMostOwn;
    }();
    static_assert(kPlace < kMostOwn, "the sweep does not read this column");
    return std::bit_cast<typename event::CellOf<column>::Value>(own[kPlace]);
  }
  /// Calls f(const event::Column&, int64_t cell) for the table's own columns; for timed tables without
  /// kTimelineColumns.
  template <typename F>
  void each_own(F f) const {
    const auto columns = event::table_info(table).columns.subspan(event::column::Fact::correlation + 1);
    for (size_t i = 0; i < std::min(columns.size(), kMostOwn); ++i) f(columns[i], own[i]);
  }
};

/// Fails for a trace that holds only sums (--aggregate): it has no timeline to write.
Status check_has_events(const trace::Trace& trace);

/// A place in which slices nest or are disjoint. Viewers show all lanes of a track under its name.
struct Lane {
  int64_t track;   // the first track row of its kind (see Timeline::track_of)
  uint32_t index;  // 0 = the track itself, from 1 on = for overlapping slices
};

class Timeline {
 public:
  /// The events that `filter` wants, of `tables` (bits of event::Table). `by_queue`: see queue_identity(). The trace
  /// must outlive this.
  Timeline(const trace::Trace& trace, const EventFilter& filter, bool by_queue, uint64_t tables);
  /// The row that represents all rows of the same queue; they differ only in the launching thread.
  int64_t track_of(int64_t track) const { return same_[static_cast<size_t>(track)]; }
  const Lane& lane(uint32_t number) const { return lanes_[number].lane; }

  /// Calls the visitor in ascending time. At equal times, ends come before begins and inner ends before outer ones:
  ///
  ///   visitor.lane_opened(uint32_t lane)            before the lane's first slice
  ///   visitor.begin(const Happening&)               a slice begins
  ///   visitor.end(const Happening&, int64_t time)   it ends at `time`: its end, or the trace's if unknown
  ///   visitor.point(const Happening&)               marks, samples, readings, allocations, unfinished work
  ///   visitor.keep_going(done, all) -> bool         asked now and then, `done` of `all` rows; false stops the sweep
  template <typename Visitor>
  Status run(Visitor& visitor);

 private:
  struct Open {
    Happening what;
    uint64_t order;  // order of opening
    int64_t end;     // max() if unknown
  };
  struct LaneState {
    Lane lane;
    std::vector<std::pair<int64_t, event::Table>> open;  // ends, innermost last
  };
  struct Source {
    event::Table table;
    std::unique_ptr<trace::TimeCursor> cursor;
    bool more;
  };
  static constexpr uint32_t kNoLane = std::numeric_limits<uint32_t>::max();
  static constexpr size_t kMostLanes = 256;       // of one track; slices that would need more become points
  static constexpr size_t kMostTogether = 65536;  // rows with equal start that are sorted together

  static bool later(const Open& a, const Open& b) { return a.end != b.end ? a.end > b.end : a.order < b.order; }
  Status read_passes();
  Happening happening(const Source& source) const;
  bool wanted(const Source& source, const Happening& what) const;
  /// The lane for a slice, or kNoLane; `fresh` is set if the lane is new.
  uint32_t choose_lane(const Happening& what, int64_t end, bool& fresh);
  uint32_t first_lane(const Happening& what, bool& fresh);
  uint32_t add_lane(int64_t track);
  bool point(const Happening& what) const;
  static bool on_a_line(event::Table table) {
    return table != event::Table::kReading && table != event::Table::kCounterValue && table != event::Table::kSample;
  }

  const trace::Trace& trace_;
  EventFilter filter_;
  std::vector<int64_t> same_;
  std::vector<event::TrackKind> kind_;
  std::vector<Source> sources_;
  std::optional<FirstPasses> passes_;  // if the trace has counter values
  std::vector<LaneState> lanes_;
  std::vector<std::vector<uint32_t>> lanes_of_;  // by track
  std::vector<Open> open_;                       // heap, earliest end first
  std::vector<Happening> together_;
  uint64_t total_ = 0;  // rows of all sources
};

template <typename Visitor>
Status Timeline::run(Visitor& visitor) {
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  const int64_t last = trace_.time_range().second;
  uint64_t order = 0, taken = 0;
  int64_t now = 0;
  const auto close = [&](int64_t until) {
    while (!open_.empty() && open_.front().end <= until) {
      std::pop_heap(open_.begin(), open_.end(), later);
      const Open& ended = open_.back();
      lanes_[ended.what.lane].open.pop_back();
      visitor.end(ended.what, ended.end == kNever ? std::max(last, now) : ended.end);
      open_.pop_back();
    }
  };
  const auto place = [&](Happening& what) {
    const auto show_point = [&] {
      if (on_a_line(what.table)) {
        bool first = false;
        what.lane = first_lane(what, first);
        if (first) visitor.lane_opened(what.lane);
      }
      visitor.point(what);
    };
    if (point(what)) return show_point();
    const int64_t end = what.end == event::kUnknown ? kNever : what.end;
    bool fresh = false;
    what.lane = choose_lane(what, end, fresh);
    if (what.lane == kNoLane) return show_point();
    if (fresh) visitor.lane_opened(what.lane);
    visitor.begin(what);
    lanes_[what.lane].open.emplace_back(end, what.table);
    open_.push_back({what, order++, end});
    std::push_heap(open_.begin(), open_.end(), later);
  };
  TACHO_TRY(read_passes());
  for (Source& source : sources_) source.more = source.cursor->next();
  for (uint64_t round = 0;; ++round) {
    int64_t start = kNever;
    bool any = false;
    for (const Source& source : sources_)
      if (source.more && (!any || source.cursor->start() < start)) {
        start = source.cursor->start();
        any = true;
      }
    if (!any) break;
    if (round % 4096 == 0 && !visitor.keep_going(taken, total_)) break;
    now = start;
    close(start);
    together_.clear();
    for (Source& source : sources_)
      while (source.more && source.cursor->start() == start && together_.size() < kMostTogether) {
        Happening what = happening(source);
        if (wanted(source, what)) together_.push_back(what);
        source.more = source.cursor->next();
        ++taken;
      }
    if (together_.size() > 1)
      std::stable_sort(together_.begin(), together_.end(), [](const Happening& a, const Happening& b) {
        const auto length = [](const Happening& what) { return what.end == event::kUnknown ? kNever : what.end; };
        return length(a) > length(b);
      });
    for (Happening& what : together_) {
      close(start);  // closes slices without duration that have just begun
      place(what);
    }
  }
  close(kNever);
  for (const Source& source : sources_) TACHO_TRY(source.cursor->status());
  return {};
}

}  // namespace tacho::walk
