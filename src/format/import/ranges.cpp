// The pairing (ranges.h).
#include "format/import/ranges.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "event/times.h"

namespace tacho::format::imported {

using event::kUnknown;
using event::LossReason;
using event::Table;
namespace row = event::row;

namespace {

constexpr size_t kDeepest = 100000;       // open ranges of one lane
constexpr size_t kFarthestInside = 4096;  // open ranges that an end's name is compared with

struct OpenEdge {
  int64_t start, label, name, track;
};

// The open ranges of one lane, innermost last.
class OpenStack {
 public:
  OpenStack(trace::TraceWriter& writer, BadRows& bad, const RangePairs::HeldRange& held)
      : writer_(writer), bad_(bad), held_(held) {}
  void begin(const OpenEdge& edge) {
    if (open_.size() < kDeepest) {
      open_.push_back(edge);
    } else {
      ++dropped_;
      bad_.add(writer_, Table::kMarker, fmt::format("a range within {} others", kDeepest), 0, {});
    }
  }
  // False if nothing is open that this end could close.
  bool end(int64_t time, int64_t name, int64_t held) {
    if (dropped_ > 0) {  // the innermost
      --dropped_;
      return true;
    }
    const size_t farthest = std::min(open_.size(), kFarthestInside);
    for (size_t inside = 1; inside <= farthest; ++inside) {
      const auto at = open_.end() - static_cast<ptrdiff_t>(inside);
      if (name != 0 && at->name != 0 && at->name != name) continue;
      write(*at, held, time);
      open_.erase(at);
      return true;
    }
    return false;
  }
  void orphan(int64_t place) { bad_.add(writer_, Table::kMarker, "the end of a range that did not begin", place, {}); }
  // The lane is done.
  void close() {
    for (const OpenEdge& edge : open_) write(edge, -1, kUnknown);
    left_ += static_cast<int64_t>(open_.size());
    open_.clear();
    dropped_ = 0;
  }
  Status tell() const {
    if (left_ > 0) writer_.lose(0, Table::kMarker, LossReason::kOpenAtExit, left_);
    return status_;
  }

 private:
  void write(const OpenEdge& edge, int64_t held_by_end, int64_t time) {
    if (edge.track == RangePairs::kHeld) {
      if (status_) status_ = held_(edge.label, held_by_end, edge.start, time);
      return;
    }
    const int64_t duration = time == kUnknown ? kUnknown : event::duration_between(edge.start, time);
    writer_.add(row::Marker{.track = edge.track, .start = edge.start, .duration = duration, .dim = edge.label});
  }

  trace::TraceWriter& writer_;
  BadRows& bad_;
  const RangePairs::HeldRange& held_;
  Status status_;
  std::vector<OpenEdge> open_;
  int64_t left_ = 0;
  int64_t dropped_ = 0;  // ranges within the deepest that are open, too
};

}  // namespace

Status RangePairs::finish(trace::TraceWriter& writer, BadRows& bad, const HeldRange& held) {
  TACHO_TRY(edges_.finish());
  OpenStack stack(writer, bad, held);
  std::vector<RangeEdge> waiting;  // ends of this moment whose begin may stand behind them in the file
  int64_t lane = kUnknown, time = kUnknown;
  const auto settle = [&] {
    for (const RangeEdge& edge : waiting)
      if (!stack.end(edge.time, edge.name, edge.track)) stack.orphan(edge.label);
    waiting.clear();
  };
  RangeEdge edge;
  while (edges_.next(edge)) {
    if (edge.lane != lane || edge.time != time) settle();
    if (edge.lane != lane) stack.close();
    lane = edge.lane;
    time = edge.time;
    if (!edge.ends)
      stack.begin({edge.time, edge.label, edge.name, edge.track});
    else if (!stack.end(edge.time, edge.name, edge.track)) {
      if (waiting.size() < kDeepest)
        waiting.push_back(edge);
      else
        stack.orphan(edge.label);
    }
  }
  settle();
  stack.close();
  return stack.tell();
}

}  // namespace tacho::format::imported
