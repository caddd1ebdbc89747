// The pairing (ranges.h).
#include "format/import/ranges.h"

#include <algorithm>
#include <vector>

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
  explicit OpenStack(trace::TraceWriter& writer) : writer_(writer) {}
  void begin(const OpenEdge& edge) {
    if (open_.size() < kDeepest) {
      open_.push_back(edge);
    } else {
      ++dropped_;
      ++bad_;
    }
  }
  // False if nothing is open that this end could close.
  bool end(int64_t time, int64_t name) {
    if (dropped_ > 0) {  // the innermost
      --dropped_;
      return true;
    }
    const size_t farthest = std::min(open_.size(), kFarthestInside);
    for (size_t inside = 1; inside <= farthest; ++inside) {
      const auto at = open_.end() - static_cast<ptrdiff_t>(inside);
      if (name != 0 && at->name != 0 && at->name != name) continue;
      writer_.add(row::Marker{.track = at->track,
                              .start = at->start,
                              .duration = event::duration_between(at->start, time),
                              .dim = at->label});
      open_.erase(at);
      return true;
    }
    return false;
  }
  void orphan() { ++bad_; }
  // The lane is done.
  void close() {
    for (const OpenEdge& edge : open_)
      writer_.add(row::Marker{.track = edge.track, .start = edge.start, .dim = edge.label});
    left_ += static_cast<int64_t>(open_.size());
    open_.clear();
    dropped_ = 0;
  }
  void tell() const {
    if (left_ > 0) writer_.lose(0, Table::kMarker, LossReason::kOpenAtExit, left_);
    if (bad_ > 0) writer_.lose(0, Table::kMarker, LossReason::kBadInput, bad_);
  }

 private:
  trace::TraceWriter& writer_;
  std::vector<OpenEdge> open_;
  int64_t left_ = 0, bad_ = 0;
  int64_t dropped_ = 0;  // ranges within the deepest that are open, too
};

}  // namespace

Status RangePairs::finish(trace::TraceWriter& writer) {
  TACHO_TRY(edges_.finish());
  OpenStack stack(writer);
  std::vector<RangeEdge> waiting;  // ends of this moment whose begin may stand behind them in the file
  int64_t lane = kUnknown, time = kUnknown;
  const auto settle = [&] {
    for (const RangeEdge& edge : waiting)
      if (!stack.end(edge.time, edge.name)) stack.orphan();
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
    else if (!stack.end(edge.time, edge.name)) {
      if (waiting.size() < kDeepest)
        waiting.push_back(edge);
      else
        stack.orphan();
    }
  }
  settle();
  stack.close();
  stack.tell();
  return {};
}

}  // namespace tacho::format::imported
