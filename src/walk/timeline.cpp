// Sources, tracks and lanes of the sweep (timeline.h).
#include "walk/timeline.h"

#include <map>
#include <tuple>

#include "walk/names/names.h"
#include "walk/names/tracks.h"

namespace tacho::walk {

namespace column = event::column;
using event::kUnknown;
using event::Table;
using event::TrackKind;

namespace {

using C = column::CounterValue;

// The columns that a cursor of `table` reads: first those that happening() expects, then the table's own.
std::vector<int> columns_of(Table table) {
  std::vector<int> columns = {column::Fact::track, column::Fact::start, column::Fact::duration, column::Fact::dim,
                              column::Fact::correlation};
  if (table == Table::kReading) columns = {column::Reading::track, column::Reading::start};
  if (table == Table::kCounterValue) columns = {C::track, C::start, C::dim, C::pass};
  const size_t shared = columns.size();
  for (const OwnColumn& own : kTimelineColumns)
    if (own.table == table) columns.push_back(own.column);
  const size_t all = event::table_info(table).columns.size();
  if (columns.size() == shared)
    for (size_t i = 0; i < Happening::kMostOwn && shared + i < all; ++i)
      columns.push_back(static_cast<int>(shared + i));
  return columns;
}
constexpr size_t kPass = 3;  // its place among those of counter values

// The order of rows that begin and end together; other tables come after these.
constexpr Table kOrder[] = {Table::kDispatch, Table::kCopy,    Table::kFill,        Table::kMarker,
                            Table::kApi,      Table::kSync,    Table::kOverhead,    Table::kAllocation,
                            Table::kSample,   Table::kReading, Table::kCounterValue};

bool device_work(Table table) {
  return table == Table::kDispatch || table == Table::kCopy || table == Table::kFill;
}

}  // namespace

Status check_has_events(const trace::Trace& trace) {
  if (!trace.aggregated()) return {};
  return fail("{}: was recorded with --aggregate: it holds sums, no events; -f csv writes them as statistics",
              trace.path());
}

Timeline::Timeline(const trace::Trace& trace, const EventFilter& filter, bool by_queue, uint64_t tables)
    : trace_(trace), filter_(filter) {
  const int64_t tracks = std::max<int64_t>(trace.rows(Table::kTrack), 1);
  same_.resize(static_cast<size_t>(tracks));
  kind_.resize(static_cast<size_t>(tracks));
  lanes_of_.resize(static_cast<size_t>(tracks));
  std::map<std::array<int64_t, 6>, int64_t> queues;
  for (int64_t track = 0; track < tracks; ++track) {
    const auto at = static_cast<size_t>(track);
    same_[at] = track;
    const auto cell = [&](int index) { return trace.cell(Table::kTrack, track, index); };
    const int64_t kind = cell(column::Track::kind);
    kind_[at] =
        kind >= 0 && kind < static_cast<int64_t>(TrackKind::kEnd) ? static_cast<TrackKind>(kind) : TrackKind::kUnknown;
    if (kind_[at] == TrackKind::kQueue)
      same_[at] = queues.try_emplace(queue_identity(trace, track, by_queue), track).first->second;
  }
  std::vector<Table> order(std::begin(kOrder), std::end(kOrder));
  for (const event::TableInfo& info : event::all_tables())
    // Messages have the times of their calls, which the timeline shows already.
    if (info.timed && info.table != Table::kMessage && std::find(order.begin(), order.end(), info.table) == order.end())
      order.push_back(info.table);
  for (const Table table : order)
    if (filter.wants(table) && (tables >> static_cast<unsigned>(table) & 1) != 0 && trace.rows(table) > 0) {
      sources_.push_back({table, std::make_unique<trace::TimeCursor>(trace, table, columns_of(table)), false});
      total_ += static_cast<uint64_t>(trace.rows(table));
    }
}

Happening Timeline::happening(const Source& source) const {
  const auto row = source.cursor->row();
  Happening what{source.table, row[0], row[1], kUnknown, 0, 0, {0, 0, 0}, kNoLane};
  const auto own_from = [&](size_t first) { std::copy(row.begin() + first, row.end(), what.own); };
  if (source.table == Table::kReading) {
    own_from(2);
    return what;
  }
  if (source.table == Table::kCounterValue) {
    what.dim = row[2];
    own_from(kPass + 1);
    return what;
  }
  if (row[2] != kUnknown) {
    const int64_t duration = std::max<int64_t>(row[2], 0);
    what.end = duration > std::numeric_limits<int64_t>::max() - 1 - std::max<int64_t>(what.start, 0)
                   ? std::numeric_limits<int64_t>::max() - 1
                   : what.start + duration;
  }
  what.dim = row[3];
  what.correlation = row[4];
  own_from(5);
  return what;
}

Status Timeline::read_passes() {
  const auto counters = [](const Source& source) { return source.table == Table::kCounterValue; };
  if (std::none_of(sources_.begin(), sources_.end(), counters)) return {};
  TACHO_ASSIGN(FirstPasses passes, FirstPasses::make(trace_));
  passes_.emplace(std::move(passes));
  return {};
}

bool Timeline::wanted(const Source& source, const Happening& what) const {
  if (source.table == Table::kCounterValue &&
      !passes_->count(what.track, what.start, what.cell<C::ordinal>(), what.dim, source.cursor->row()[kPass]))
    return false;
  if (filter_.process != 0) {
    const int64_t process = trace_.cell(Table::kTrack, what.track, column::Track::process);
    if (process != filter_.process && !(process == 0 && what.table == Table::kReading)) return false;
  }
  if (what.table == Table::kApi && filter_.domains != ~0ull)
    return filter_.wants(
        event::from_cell<event::Domain>(trace_.cell(Table::kFunction, what.dim, column::Function::domain)));
  return true;
}

bool Timeline::point(const Happening& what) const {
  switch (what.table) {
    case Table::kAllocation:
    case Table::kSample:
    case Table::kReading:
    case Table::kCounterValue:
      return true;
    case Table::kMarker:
      return trace_.cell(Table::kLabel, what.dim, column::Label::kind) ==
             static_cast<int64_t>(event::MarkerKind::kMark);
    default:
      return what.end == kUnknown && kind_[static_cast<size_t>(what.track)] == TrackKind::kQueue;
  }
}

uint32_t Timeline::choose_lane(const Happening& what, int64_t end, bool& fresh) {
  const int64_t track = track_of(what.track);
  auto& lanes = lanes_of_[static_cast<size_t>(track)];
  // On a queue, device work never nests in device work: nesting would mean that one caused the other.
  const bool exclusive = kind_[static_cast<size_t>(track)] == TrackKind::kQueue && device_work(what.table);
  for (const uint32_t number : lanes) {
    const auto& open = lanes_[number].open;
    if (open.empty() || (open.back().first >= end && !(exclusive && device_work(open.back().second)))) return number;
  }
  if (lanes.size() >= kMostLanes) return kNoLane;
  fresh = true;
  return add_lane(track);
}

uint32_t Timeline::first_lane(const Happening& what, bool& fresh) {
  const int64_t track = track_of(what.track);
  const auto& lanes = lanes_of_[static_cast<size_t>(track)];
  if (!lanes.empty()) return lanes.front();
  fresh = true;
  return add_lane(track);
}

uint32_t Timeline::add_lane(int64_t track) {
  auto& lanes = lanes_of_[static_cast<size_t>(track)];
  const auto number = static_cast<uint32_t>(lanes_.size());
  lanes_.push_back({{track, static_cast<uint32_t>(lanes.size())}, {}});
  lanes.push_back(number);
  return number;
}

}  // namespace tacho::walk
