// Slices become rows (slices.h).
#include "format/perfetto/read/slices.h"

#include <algorithm>
#include <bit>

#include "event/times.h"

namespace tacho::format::perfetto {

using event::kUnknown;
using event::LossReason;
using event::Table;
namespace row = event::row;

void SliceRows::add_timed(const SliceRow& from, int64_t duration) {
  const bool unmeasured = imported::UnmeasuredRows::looks_so(from.start, duration);
  switch (from.table) {
    case Table::kDispatch: {
      const row::Dispatch row{.track = from.track,
                              .start = from.start,
                              .duration = duration,
                              .dim = from.dim,
                              .correlation = from.correlation,
                              .ordinal = from.number,
                              .graph_node = from.graph_node,
                              .arguments = from.text};
      if (keep_dispatches_) {
        // Perfetto's counters of a GPU belong to no process.
        const int64_t process = from.of_gpu ? kUnknown : from.process;
        dispatches_.add({process, from.device, from.start}, {from.track, from.number});
      }
      return unmeasured ? unmeasured_.take(row) : writer_.add(row);
    }
    case Table::kCopy: {
      const row::Copy row{.track = from.track,
                          .start = from.start,
                          .duration = duration,
                          .dim = from.dim,
                          .correlation = from.correlation,
                          .bytes = from.number,
                          .graph_node = from.graph_node,
                          .arguments = from.text};
      return unmeasured ? unmeasured_.take(row) : writer_.add(row);
    }
    case Table::kFill: {
      const row::Fill row{.track = from.track,
                          .start = from.start,
                          .duration = duration,
                          .dim = from.dim,
                          .correlation = from.correlation,
                          .bytes = from.number,
                          .graph_node = from.graph_node};
      return unmeasured ? unmeasured_.take(row) : writer_.add(row);
    }
    case Table::kApi:
      if (from.correlation != 0 && duration != kUnknown) call_ends_.add(from.correlation, from.start + duration);
      return writer_.add(row::Api{.track = from.track,
                                  .start = from.start,
                                  .duration = duration,
                                  .dim = from.dim,
                                  .correlation = from.correlation,
                                  .result = from.number,
                                  .arguments = from.text});
    case Table::kSync:
      return writer_.add(row::Sync{.track = from.track,
                                   .start = from.start,
                                   .duration = duration,
                                   .dim = from.dim,
                                   .correlation = from.correlation});
    case Table::kOverhead:
      return writer_.add(row::Overhead{.track = from.track,
                                       .start = from.start,
                                       .duration = duration,
                                       .dim = from.dim,
                                       .correlation = from.correlation});
    default:
      return writer_.add(row::Marker{.track = from.track,
                                     .start = from.start,
                                     .duration = duration,
                                     .dim = from.dim,
                                     .correlation = from.correlation,
                                     .payload = from.number == kUnknown ? 0 : from.number});
  }
}

void SliceRows::add(const SliceRow& from, int64_t duration) {
  if (!event::is_time(from.start)) return writer_.lose(0, from.table, LossReason::kBadInput, 1);
  duration = event::known_duration(duration);
  if (!imported::UnmeasuredRows::looks_so(from.start, duration)) unmeasured_.saw(from.start, duration);
  add_timed(from, duration);
}

void SliceRows::dispatch_counter(int64_t process, int64_t device, int64_t time, int64_t counter, double value) {
  values_.add({{process, device, time}, counter, value});
}

void SliceRows::allocation(int64_t track, int64_t device, int64_t time, double change) {
  if (change == 0) return;
  const bool frees = change < 0;
  const int64_t shape = writer_.dimension(row::AllocationShape{
      .operation = frees ? event::AllocationOperation::kFree : event::AllocationOperation::kAllocate,
      .memory = device != 0 ? event::MemoryKind::kDevice : event::MemoryKind::kHost,
      .device = device});
  const double bytes = frees ? -change : change;
  writer_.add(row::Allocation{
      .track = track, .start = time, .dim = shape, .bytes = bytes < 9e18 ? static_cast<int64_t>(bytes) : kUnknown});
}

// A value at the start of a dispatch is that dispatch's; a zero elsewhere only lets the line of the counter fall.
// Without any dispatch all are values, of whatever ran then.
Status SliceRows::dispatch_counters() {
  TACHO_TRY(dispatches_.finish());
  TACHO_TRY(values_.finish());
  const bool alone = dispatches_.size() == 0;
  DispatchValue value{}, next{};
  DispatchKey last{};
  int64_t lost = 0, ordinal = -1;
  bool more = values_.next(next);
  while (more) {
    value = next;
    // The zero behind one dispatch and the value of the next one may meet.
    while ((more = values_.next(next)) && next.key == value.key && next.counter == value.counter)
      if (next.value != 0) value = next;
    const auto* const dispatch = dispatches_.find(value.key);
    if (dispatch == nullptr && !alone) {
      lost += value.value != 0 ? 1 : 0;
      continue;
    }
    if (ordinal < 0 || value.key != last) ++ordinal;
    last = value.key;
    const int64_t track =
        dispatch != nullptr
            ? dispatch->value.track
            : writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                           .process = value.key.process == kUnknown ? 0 : value.key.process,
                                           .device = value.key.device});
    writer_.add(row::CounterValue{.track = track,
                                  .start = value.key.start,
                                  .ordinal = dispatch != nullptr ? dispatch->value.ordinal : ordinal,
                                  .dim = value.counter,
                                  .value = std::bit_cast<int64_t>(value.value)});
  }
  if (lost > 0) writer_.lose(0, Table::kCounterValue, LossReason::kBadInput, lost);
  return {};
}

Status SliceRows::finish() {
  TACHO_TRY(call_ends_.finish());
  TACHO_TRY(unmeasured_.finish(writer_, [&](int64_t, int64_t correlation) {
    const auto* const call = call_ends_.find(correlation);
    return call == nullptr ? kUnknown : call->value;
  }));
  return keep_dispatches_ ? dispatch_counters() : Status();
}

void SlicePairs::close(const SliceRow& row, int64_t end) {
  if (row.unfinished) return open_at_exit(row);
  const int64_t duration = event::duration_between(row.start, end);
  if (duration == kUnknown) writer_.lose(0, row.table, LossReason::kClockOrder, 1);
  rows_.add(row, duration);
}

void SlicePairs::open_at_exit(const SliceRow& row) {
  rows_.add(row, kUnknown);
  writer_.lose(0, row.table, LossReason::kOpenAtExit, 1);
}

void SlicePairs::begin(uint32_t line, bool unsorted, const SliceRow& row) {
  if (unsorted || waits(line)) return wait(line, false, row);
  if (open_.size() <= line) open_.resize(line + 1);
  OpenLine& open = open_[line];
  if (slices_open_ >= kMostOpen && open.slices.size() < kDeepest) {
    open.waits = true;
    return wait(line, false, row);
  }
  if (open.push(row))
    ++slices_open_;
  else
    writer_.lose(0, row.table, LossReason::kBadInput, 1);
}

void SlicePairs::end(uint32_t line, bool unsorted, int64_t time) {
  if (unsorted || waits(line)) {
    SliceRow row;
    row.start = time;
    return wait(line, true, row);
  }
  if (open_.size() <= line || open_[line].slices.empty())
    return writer_.lose(0, Table::kMarker, LossReason::kBadInput, 1);
  OpenLine& open = open_[line];
  if (open.pop_deeper()) return;
  const SliceRow row = open.slices.back();
  open.slices.pop_back();
  --slices_open_;
  close(row, time);
}

void SlicePairs::close_run(uint32_t line, UnsortedLine& state) {
  if (state.begins == state.ends && !state.crossed && (state.went_back || (state.begins > 1 && state.chained))) {
    column_runs_.add({{line, state.run}, state.went_back});
    state.in_columns |= state.went_back;
  }
  ++state.run;
  state.begins = state.ends = 0;
  state.went_back = state.crossed = false;
  state.chained = true;
  starts_held_ -= state.starts.size();
  std::vector<int64_t>().swap(state.starts);
}

void SlicePairs::wait(uint32_t line, bool ends, const SliceRow& row) {
  any_waiting_ = true;
  UnsortedLine& state = unsorted_[line];
  if (!ends && state.ends > 0) close_run(line, state);
  if (state.begins + state.ends > 0) state.went_back |= row.start < state.last;
  state.last = row.start;
  int64_t& index = ends ? state.ends : state.begins;
  if (!ends && starts_held_ < kMostStarts && static_cast<int64_t>(state.starts.size()) == index) {
    state.starts.push_back(row.start);
    ++starts_held_;
  }
  if (ends &&
      (index >= static_cast<int64_t>(state.starts.size()) || state.starts[static_cast<size_t>(index)] > row.start))
    state.crossed = true;
  const auto after = static_cast<size_t>(index) + 1;
  if (ends && after < state.starts.size() && state.starts[after] < row.start) state.chained = false;
  waiting_.add({{line, state.run}, index++, ++order_, ends, row});
}

Status SlicePairs::pair_by_time(SortedFile<WaitingEdge, ByTime>& edges) {
  TACHO_TRY(edges.finish());
  WaitingEdge edge{};
  OpenLine open;
  int64_t line = -1, unmatched = 0;
  const auto leave = [&] {
    for (const SliceRow& row : open.slices) open_at_exit(row);
    open = {};
  };
  while (edges.next(edge)) {
    if (edge.key.line != line) {
      leave();
      line = edge.key.line;
      if (waits(static_cast<uint32_t>(line))) open = std::move(open_[static_cast<size_t>(line)]);
    }
    if (!edge.ends) {
      if (!open.push(edge.row)) ++unmatched;
    } else if (open.slices.empty()) {
      ++unmatched;
    } else if (!open.pop_deeper()) {
      close(open.slices.back(), edge.row.start);
      open.slices.pop_back();
    }
  }
  leave();
  if (unmatched > 0) writer_.lose(0, Table::kMarker, LossReason::kBadInput, unmatched);
  return {};
}

Status SlicePairs::finish() {
  for (const OpenLine& line : open_)
    for (const SliceRow& row : line.slices)
      if (!line.waits) open_at_exit(row);
  if (!any_waiting_) return {};
  for (auto at = unsorted_.begin(); at != unsorted_.end(); ++at) close_run(at->first, at.value());
  TACHO_TRY(waiting_.finish());
  TACHO_TRY(column_runs_.finish());
  SortedFile<WaitingEdge, ByTime> others;
  ColumnRun run{{-1, -1}, false};
  bool more = column_runs_.next(run);
  WaitingEdge edge{}, begin{};
  while (waiting_.next(edge)) {
    while (more && run.key < edge.key) more = column_runs_.next(run);
    if (!more || run.key != edge.key || !(run.goes_back || unsorted_[static_cast<uint32_t>(edge.key.line)].in_columns))
      others.add(edge);
    else if (!edge.ends)
      begin = edge;
    else
      close(begin.row, edge.row.start);
  }
  return pair_by_time(others);
}

}  // namespace tacho::format::perfetto
