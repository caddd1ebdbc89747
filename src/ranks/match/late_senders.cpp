// What the senders of late messages did (late_senders.h).
#include "ranks/match/late_senders.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/saturating.h"
#include "base/text/demangle.h"
#include "format/format.h"
#include "ranks/read/step_marks.h"
#include "report/text.h"
#include "trace/read/rows.h"

namespace tacho::ranks {
namespace {

using event::Table;
namespace column = event::column;

struct Interval {
  int64_t start, end;
};
using Intervals = std::vector<Interval>;

// Ascending and apart.
void unite(Intervals& list) {
  std::sort(list.begin(), list.end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
  size_t kept = 0;
  for (const Interval& one : list) {
    if (kept > 0 && one.start <= list[kept - 1].end)
      list[kept - 1].end = std::max(list[kept - 1].end, one.end);
    else
      list[kept++] = one;
  }
  list.resize(kept);
}

int64_t length(const Intervals& list) {
  int64_t sum = 0;
  for (const Interval& one : list) sum += one.end - one.start;
  return sum;
}

// Both are united.
Intervals common(const Intervals& a, const Intervals& b) {
  Intervals out;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const int64_t start = std::max(a[i].start, b[k].start), end = std::min(a[i].end, b[k].end);
    if (start < end) out.push_back({start, end});
    a[i].end < b[k].end ? ++i : ++k;
  }
  return out;
}

Intervals without(const Intervals& a, const Intervals& b) {
  Intervals out;
  size_t k = 0;
  for (Interval one : a) {
    while (k < b.size() && b[k].end <= one.start) ++k;
    for (size_t i = k; i < b.size() && b[i].start < one.end; ++i) {
      if (b[i].start > one.start) out.push_back({one.start, b[i].start});
      one.start = std::max(one.start, b[i].end);
    }
    if (one.start < one.end) out.push_back(one);
  }
  return out;
}

struct Range {
  Interval span;  // within the window
  int64_t whole;  // ns, all of it
  int64_t label;
};

// The time in which a receiver waited, on the sender's own clock, and what the sender did then.
struct Window {
  LateMessage* message = nullptr;
  Interval span{};
  Intervals mpi, calls, kernels, copies;
  std::map<int64_t, int64_t> by_mpi, by_call, by_kernel;  // ns by row of table function or kernel
  std::vector<Range> ranges;
};

// Windows by time; they may overlap.
class Windows {
 public:
  explicit Windows(std::vector<Window>& windows) : windows_(windows) {
    std::sort(windows_.begin(), windows_.end(),
              [](const Window& a, const Window& b) { return a.span.start < b.span.start; });
    for (const Window& window : windows_) longest_ = std::max(longest_, window.span.end - window.span.start);
  }
  // Calls visit(window, part of it) for each that [start, end) overlaps.
  template <typename Visit>
  void overlapping(int64_t start, int64_t end, Visit visit) {
    auto at = std::partition_point(windows_.begin(), windows_.end(), [&](const Window& window) {
      return window.span.start <= saturating_add(start, -longest_);
    });
    for (; at != windows_.end() && at->span.start < end; ++at) {
      const Interval part{std::max(start, at->span.start), std::min(end, at->span.end)};
      if (part.start < part.end) visit(*at, part);
    }
  }
  bool any(int64_t start, int64_t end) {
    bool found = false;
    overlapping(start, end, [&](Window&, Interval) { found = true; });
    return found;
  }

 private:
  std::vector<Window>& windows_;
  int64_t longest_ = 0;
};

// Visits the rows of `table` that overlap a window: (track, dim, start, end) of each.
template <typename Visit>
Status visit_rows(const trace::Trace& trace, Table table, Windows& windows, Visit visit) {
  using F = column::Fact;
  trace::ChunkReader<F::track, F::start, F::duration, F::dim> rows(trace, table);
  const std::span<const trace::Chunk> chunks = trace.chunks(table);
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    if (!windows.any(chunks[chunk].min_start, std::max(chunks[chunk].max_end, chunks[chunk].max_start) + 1)) continue;
    TACHO_TRY(rows.read(chunk));
    for (size_t i = 0; i < rows->size(); ++i)
      if (const int64_t start = rows->start[i], time = rows->duration[i]; time != event::kUnknown && time > 0)
        visit(rows->track[i], rows->dim[i], start, start + time);
  }
  return {};
}

int64_t most(const std::map<int64_t, int64_t>& times, int64_t& time) {
  int64_t best = 0;
  time = 0;
  for (const auto& [row, sum] : times)
    if (sum > time) {
      time = sum;
      best = row;
    }
  return best;
}

// The innermost range in which the thread was for at least half of `parts`.
int64_t range_of(const std::vector<Range>& ranges, const Intervals& parts, int64_t& time) {
  std::map<int64_t, std::pair<Intervals, int64_t>> by_label;
  for (const Range& range : ranges) {
    auto& [spans, shortest] = by_label.try_emplace(range.label, Intervals{}, range.whole).first->second;
    spans.push_back(range.span);
    shortest = std::min(shortest, range.whole);
  }
  int64_t best = 0, shortest = 0;
  time = 0;
  for (auto& [label, found] : by_label) {
    unite(found.first);
    const int64_t inside = length(common(found.first, parts));
    if (inside * 2 < length(parts) || (best != 0 && found.second >= shortest)) continue;
    best = label;
    shortest = found.second;
    time = inside;
  }
  return best;
}

// `waits`: of the sender, within the window, on its own clock; with whom it waited for.
Meanwhile judge(Window& window, const trace::Trace& trace, bool knows_calls, Intervals waits, int64_t waited_for,
                Names& names) {
  for (Intervals* const list : {&window.mpi, &window.calls, &window.kernels, &window.copies, &waits}) unite(*list);
  const Intervals whole = {window.span};
  const Intervals messages = common(waits, whole);
  const Intervals mpi = without(window.mpi, messages);
  const Intervals other = without(without(whole, messages), window.mpi);
  // Where the trace has no calls of the GPU's API, whatever ran on the GPU may have been waited for.
  const Intervals asking = knows_calls ? common(other, window.calls) : common(other, [&] {
    Intervals ran = window.kernels;
    ran.insert(ran.end(), window.copies.begin(), window.copies.end());
    unite(ran);
    return ran;
  }());
  const Intervals own = without(other, asking);
  const Intervals kernels = common(asking, window.kernels);
  const Intervals copies = common(without(asking, window.kernels), window.copies);
  const Intervals calls = without(without(asking, window.kernels), window.copies);
  Meanwhile found;
  const auto offer = [&](Meanwhile::Kind kind, const Intervals& parts) {
    const int64_t time = length(parts);
    if (time <= found.time) return;
    found.kind = kind;
    found.time = time;
  };
  offer(Meanwhile::Kind::kMessages, messages);
  offer(Meanwhile::Kind::kMpi, mpi);
  offer(Meanwhile::Kind::kKernels, kernels);
  offer(Meanwhile::Kind::kCopies, copies);
  offer(Meanwhile::Kind::kCall, calls);
  offer(Meanwhile::Kind::kOwnCode, own);
  const auto name = [&](Table table, int which, int64_t row) {
    if (row > 0) found.name = names.number(trace.text(table, row, which));
  };
  switch (found.kind) {
    case Meanwhile::Kind::kMessages:
      found.peer = waited_for;
      break;
    case Meanwhile::Kind::kMpi:
      name(Table::kFunction, column::Function::name, most(window.by_mpi, found.name_time));
      break;
    case Meanwhile::Kind::kKernels:
      name(Table::kKernel, column::Kernel::name, most(window.by_kernel, found.name_time));
      break;
    case Meanwhile::Kind::kCall:
      name(Table::kFunction, column::Function::name, most(window.by_call, found.name_time));
      break;
    case Meanwhile::Kind::kOwnCode:
      name(Table::kLabel, column::Label::name, range_of(window.ranges, own, found.name_time));
      break;
    case Meanwhile::Kind::kCopies:
    case Meanwhile::Kind::kUnknown:
      break;
  }
  return found;
}

enum class Called : uint8_t { kNothing, kMpi, kGpu };

Status explain(const RankRun& run, std::vector<Window>& found, std::span<const MessageWait> waits,
               std::span<const RankRun> runs, Names& names) {
  TACHO_ASSIGN(const std::shared_ptr<const trace::Trace> opened, format::open_any(run.file));
  const trace::Trace& trace = *opened;
  Windows windows(found);
  std::vector<Called> called(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kFunction), 1)), Called::kNothing);
  bool knows_calls = false;
  for (size_t row = 1; row < called.size(); ++row) {
    const auto domain =
        static_cast<event::Domain>(trace.cell(Table::kFunction, static_cast<int64_t>(row), column::Function::domain));
    if (domain == event::Domain::kMpi)
      called[row] = Called::kMpi;
    else if (domain != event::Domain::kOperator && domain != event::Domain::kPython &&
             domain != event::Domain::kMarker && domain != event::Domain::kHost)
      called[row] = Called::kGpu;
    knows_calls = knows_calls || called[row] == Called::kGpu;
  }
  const auto cell = [&](int64_t track, int which) { return trace.cell(Table::kTrack, track, which); };
  const auto of_rank = [&](int64_t track) {
    return run.process == 0 || cell(track, column::Track::process) == run.process;
  };
  TACHO_TRY(visit_rows(trace, Table::kApi, windows, [&](int64_t track, int64_t dim, int64_t start, int64_t end) {
    if (dim <= 0 || dim >= static_cast<int64_t>(called.size())) return;
    const Called kind = called[static_cast<size_t>(dim)];
    if (kind == Called::kNothing) return;
    const int64_t thread = cell(track, column::Track::thread);
    windows.overlapping(start, end, [&](Window& window, Interval part) {
      if (window.message->thread != thread) return;
      (kind == Called::kMpi ? window.mpi : window.calls).push_back(part);
      add_saturating((kind == Called::kMpi ? window.by_mpi : window.by_call)[dim], part.end - part.start);
    });
  }));
  TACHO_TRY(visit_rows(trace, Table::kDispatch, windows, [&](int64_t track, int64_t dim, int64_t start, int64_t end) {
    if (!of_rank(track)) return;
    windows.overlapping(start, end, [&](Window& window, Interval part) {
      window.kernels.push_back(part);
      add_saturating(window.by_kernel[dim], part.end - part.start);
    });
  }));
  for (const Table table : {Table::kCopy, Table::kFill})
    TACHO_TRY(visit_rows(trace, table, windows, [&](int64_t track, int64_t, int64_t start, int64_t end) {
      if (!of_rank(track)) return;
      windows.overlapping(start, end, [&](Window& window, Interval part) { window.copies.push_back(part); });
    }));
  std::unordered_map<int64_t, bool> is_step;
  TACHO_TRY(visit_rows(trace, Table::kMarker, windows, [&](int64_t track, int64_t dim, int64_t start, int64_t end) {
    if (cell(track, column::Track::device) != 0) return;
    const auto [known, fresh] = is_step.try_emplace(dim, false);
    if (fresh) known->second = names_a_step(trace.text(Table::kLabel, dim, column::Label::name));
    if (known->second) return;
    const int64_t thread = cell(track, column::Track::thread);
    windows.overlapping(start, end, [&](Window& window, Interval part) {
      if (window.message->thread == thread) window.ranges.push_back({part, end - start, dim});
    });
  }));
  for (Window& window : found) {
    const LateMessage& message = *window.message;
    const int64_t begin = message.until - message.waited, shift = message.sender_until - message.until;
    const Waited waited = waited_between(waits, begin, message.until);
    Intervals own;
    for (auto at =
             std::partition_point(waits.begin(), waits.end(), [&](const MessageWait& one) { return one.end <= begin; });
         at != waits.end() && at->start < message.until; ++at)
      own.push_back({at->start + shift, at->end + shift});
    window.message->meanwhile = judge(window, trace, knows_calls, std::move(own), runs[waited.blamed].rank, names);
  }
  return {};
}

}  // namespace

void explain_late_messages(std::span<const RankRun> runs, Names& names, MessageReport& report) {
  std::map<uint32_t, std::vector<Window>> by_sender;
  for (LateMessage& message : report.late) {  // the longest first
    std::vector<Window>& windows = by_sender[message.from];
    if (windows.size() == kMostExplained) continue;
    Window& window = windows.emplace_back();
    window.message = &message;
    window.span = {message.sender_until - message.waited, message.sender_until};
  }
  for (auto& [run, windows] : by_sender)
    // Another file may have taken its place meanwhile, or none: the rest of the answers stands without it.
    if (const Status done = explain(runs[run], windows, report.waits[run], runs, names); !done)
      for (const Window& window : windows) window.message->meanwhile = {};
}

std::string meanwhile_text(const Meanwhile& meanwhile, const Names& names) {
  const std::string name = meanwhile.name != 0 ? short_name(names.text(meanwhile.name)) : std::string();
  switch (meanwhile.kind) {
    case Meanwhile::Kind::kOwnCode:
      return name.empty() ? std::string("its own code on the host") : "its own code on the host, in " + name;
    case Meanwhile::Kind::kKernels:
      return name.empty() ? std::string("kernels") : "kernels, most " + name;
    case Meanwhile::Kind::kCopies:
      return "copies";
    case Meanwhile::Kind::kCall:
    case Meanwhile::Kind::kMpi:
      return name.empty() ? std::string("a call") : "in " + name;
    case Meanwhile::Kind::kMessages:
      return fmt::format("waited itself for rank {}", meanwhile.peer);
    case Meanwhile::Kind::kUnknown:
      break;
  }
  return "";
}

}  // namespace tacho::ranks
