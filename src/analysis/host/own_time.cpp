// One walk over the host's calls and ranges (own_time.h).
#include "analysis/host/own_time.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/saturating.h"
#include "trace/read/rows.h"
#include "walk/names/program_ranges.h"
#include "walk/sweep.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

// The open calls of a thread: the topmost gets the time; what ended below it is closed when it comes to the top.
class OpenCalls {
 public:
  void push(int64_t start, int64_t end, HostKind kind, OwnTimes& times) {
    pass(start, times);
    now_ = start;
    stack_.push_back({end, 0, kind});
  }
  void pass(int64_t to, OwnTimes& times) {
    while (!stack_.empty()) {
      Open& top = stack_.back();
      const int64_t until = std::min(to, top.end);
      if (until > now_) {
        top.own += until - now_;
        now_ = until;
      }
      if (top.end > to) return;
      times.of[static_cast<size_t>(top.kind)].add(top.own);
      stack_.pop_back();
    }
    now_ = std::max(now_, to);
  }

 private:
  struct Open {
    int64_t end, own;
    HostKind kind;
  };
  std::vector<Open> stack_;
  int64_t now_ = 0;
};

class OwnTimeWalk {
 public:
  OwnTimeWalk(const trace::Trace& trace, walk::ProgramRanges ranges, std::optional<int64_t> process)
      : trace_(trace),
        ranges_(std::move(ranges)),
        process_(process),
        kinds_(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kFunction), 1)), HostKind::kEnd) {}

  Result<OwnTimes> run() {
    static constexpr Table kHost[] = {Table::kMarker, Table::kApi};
    walk::Sweep sweep(trace_, kHost, walk::kSweepDim);
    walk::RowSlice slice;
    while (sweep.next(slice)) {
      const auto track = trace::row<event::row::Track>(trace_, slice.track);
      const bool ranges = slice.table == Table::kMarker;
      if (process_ && track.process != *process_) continue;
      OpenCalls& open = lines_[slice.track];
      for (size_t i = 0; i < slice.rows; ++i) {
        if (ranges && !ranges_.has(slice.track, slice.dim[i])) continue;
        const HostKind kind = ranges ? HostKind::kMarker : kind_of(slice.dim[i]);
        if (slice.duration[i] == kUnknown)
          ++times_.of[static_cast<size_t>(kind)].unknown;
        else
          open.push(slice.start[i], saturating_add(slice.start[i], slice.duration[i]), kind, times_);
      }
    }
    for (auto& [at, open] : lines_) open.pass(INT64_MAX, times_);
    TACHO_TRY(Status(sweep.status()));
    return times_;
  }

 private:
  HostKind kind_of(int64_t function) {
    HostKind& kind =
        kinds_[function >= 0 && static_cast<size_t>(function) < kinds_.size() ? static_cast<size_t>(function) : 0];
    if (kind == HostKind::kEnd)
      kind = host_kind(event::from_cell(trace::cell<column::Function::domain>(trace_, function)),
                       trace::text<column::Function::name>(trace_, function));
    return kind;
  }

  const trace::Trace& trace_;
  walk::ProgramRanges ranges_;
  std::optional<int64_t> process_;
  std::vector<HostKind> kinds_;
  std::unordered_map<int64_t, OpenCalls> lines_;  // by track
  OwnTimes times_;
};

}  // namespace

Result<OwnTimes> own_times(const trace::Trace& trace, std::optional<int64_t> process) {
  TACHO_ASSIGN(walk::ProgramRanges ranges, walk::ProgramRanges::make(trace));
  return OwnTimeWalk(trace, std::move(ranges), process).run();
}

}  // namespace tacho::analysis
