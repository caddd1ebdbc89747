// Device work (dispatches, copies and fills) in order of time.
#pragma once

#include "walk/merge.h"

namespace tacho::walk {

/// A row of one of the three tables. Times in ns of the trace.
struct Work {
  event::Table table;
  int64_t track, start, duration, dim, correlation;
  int64_t graph_node;  // 0 = not from a graph
  int64_t bytes;       // event::kUnknown for dispatches
};

class WorkCursor {
  using D = event::column::Dispatch;
  using C = event::column::Copy;
  using F = event::column::Fill;

 public:
  /// The trace must outlive this.
  explicit WorkCursor(const trace::Trace& trace) : rows_(trace) {}
  /// Moves to the next row, at first to the first one. False at the end and after an error: see status().
  bool next() {
    if (!rows_.more()) return false;
    rows_.take([&](const auto& row) {
      work_ = {row.kTable, row.track,       row.start,      row.duration,
               row.dim,    row.correlation, row.graph_node, event::kUnknown};
      if constexpr (requires { row.bytes; }) work_.bytes = row.bytes;
    });
    return true;
  }
  const Work& operator*() const { return work_; }
  const Work* operator->() const { return &work_; }
  Status status() const { return rows_.status(); }

 private:
  Merge<trace::RowCursor<D::track, D::start, D::duration, D::dim, D::correlation, D::graph_node>,
        trace::RowCursor<C::track, C::start, C::duration, C::dim, C::correlation, C::graph_node, C::bytes>,
        trace::RowCursor<F::track, F::start, F::duration, F::dim, F::correlation, F::graph_node, F::bytes>>
      rows_;
  Work work_{};
};

}  // namespace tacho::walk
