// Where the host was instead of launching (late_hosts.h).
#include "ranks/answer/late_hosts.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/stacks/own_code.h"
#include "base/text/demangle.h"
#include "format/format.h"
#include "trace/read/rows.h"

namespace tacho::ranks {
namespace {

using event::Table;
namespace column = event::column;

// A rank's delay on the clock of its trace: from the end of the collectives before to the call that launched late.
struct HostWindow {
  int64_t from = 0, to = 0;
  Cause* cause = nullptr;
  int64_t thread = 0;                                        // that launched; 0 = the trace does not say
  std::map<std::string, int64_t> sampled;                    // ns by place of the innermost own frame
  std::map<std::string_view, int64_t> kinds;                 // ns by what the host did (kKinds)
  int64_t samples = 0;                                       // ns
  std::vector<std::pair<int64_t, int64_t>> stacks;           // read at launches: time, row of table stack
  std::map<int64_t, std::pair<int64_t, int64_t>> functions;  // Python's: row -> ns within, shortest whole
};

// What functions on a stack tell of the host. The first that fits counts.
struct HostKind {
  std::string_view part, means;
};
constexpr HostKind kKinds[] = {
    {"gc_collect_main", "garbage collection"},
    {"gc.collect", "garbage collection"},
    {"_find_and_load", "imports"},
    {"importlib", "imports"},
    {"_try_get_data", "waiting for data"},
    {"_next_data", "waiting for data"},
    {"DataLoader", "waiting for data"},
    {"pthread_cond_", "waiting for a lock"},
    {"pthread_mutex_lock", "waiting for a lock"},
    {"sem_wait", "waiting for a lock"},
    {"lock_PyThread_acquire_lock", "waiting for a lock"},
    {"nanosleep", "sleeping"},
    {"time_sleep", "sleeping"},
};

std::string_view kind_of(std::string_view function) {
  for (const HostKind& kind : kKinds)
    if (function.find(kind.part) != std::string_view::npos) return kind.means;
  return {};
}

// Reads frames of call stacks.
class Stacks {
 public:
  explicit Stacks(const trace::Trace& trace) : trace_(trace) {}

  // "train.py:16" of the innermost frame that is the user's own Python code; "" if there is none.
  std::string own_place(int64_t stack) const {
    std::string place;
    walk(stack, [&](int64_t frame) {
      analysis::StackFrame known;
      known.part = analysis::StackPart::kPython;
      known.name = trace_.text(Table::kFrame, frame, column::Frame::function);
      known.file = trace_.text(Table::kFrame, frame, column::Frame::file);
      if (trace_.cell(Table::kFrame, frame, column::Frame::kind) != static_cast<int64_t>(event::FrameKind::kPython) ||
          !analysis::own_frame(known))
        return true;
      const int64_t line = trace_.cell(Table::kFrame, frame, column::Frame::line);
      place = known.file.substr(known.file.rfind('/') + 1);
      if (line != event::kUnknown && line > 0) place += fmt::format(":{}", line);
      return false;
    });
    return place;
  }
  std::string_view kind(int64_t stack) const {
    std::string_view found;
    walk(stack, [&](int64_t frame) {
      found = kind_of(trace_.text(Table::kFrame, frame, column::Frame::function));
      if (found.empty()) found = kind_of(trace_.text(Table::kFrame, frame, column::Frame::file));
      return found.empty();
    });
    return found;
  }

 private:
  // Calls visit(frame) from the innermost frame outwards until it returns false.
  template <typename Visit>
  void walk(int64_t stack, Visit visit) const {
    constexpr int kDeepest = 1024;
    for (int depth = 0; stack > 0 && depth < kDeepest; ++depth) {
      if (!visit(trace_.cell(Table::kStack, stack, column::Stack::frame))) return;
      stack = trace_.cell(Table::kStack, stack, column::Stack::parent);
    }
  }

  const trace::Trace& trace_;
};

bool near_any(const std::vector<HostWindow>& windows, int64_t first, int64_t last) {
  return std::ranges::any_of(windows, [&](const HostWindow& one) { return first <= one.to && last >= one.from; });
}

// The calls that end the windows tell their threads; Python's functions lie in them.
Status read_calls(const trace::Trace& trace, std::vector<HostWindow>& windows) {
  using C = column::Api;
  trace::ChunkReader<C::track, C::start, C::duration, C::dim> rows(trace);
  const auto thread_of = [&](int64_t track) { return trace.cell(Table::kTrack, track, column::Track::thread); };
  const std::span<const trace::Chunk> chunks = trace.chunks(Table::kApi);
  for (const bool threads : {true, false})
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      if (!near_any(windows, chunks[chunk].min_start, std::max(chunks[chunk].max_end, chunks[chunk].max_start)))
        continue;
      TACHO_TRY(rows.read(chunk));
      for (size_t i = 0; i < rows->size(); ++i) {
        const int64_t start = rows->start[i], end = start + std::max<int64_t>(rows->duration[i], 0);
        const bool python = trace.cell(Table::kFunction, rows->dim[i], column::Function::domain) ==
                            static_cast<int64_t>(event::Domain::kPython);
        for (HostWindow& window : windows) {
          if (threads && !python && start == window.to) window.thread = thread_of(rows->track[i]);
          if (threads || !python || window.thread != thread_of(rows->track[i])) continue;
          const int64_t inside = std::min(end, window.to) - std::max(start, window.from);
          if (inside <= 0) continue;
          auto& [time, whole] = window.functions.try_emplace(rows->dim[i], 0, end - start).first->second;
          time += inside;
          whole = std::min(whole, end - start);
        }
      }
    }
  return {};
}

Status read_samples(const trace::Trace& trace, const Stacks& stacks, std::vector<HostWindow>& windows) {
  using S = column::Sample;
  constexpr int64_t kBefore = 10'000'000'000;  // ns: how far the launch before a window may lie
  trace::ChunkReader<S::track, S::start, S::duration, S::dim> rows(trace);
  const std::span<const trace::Chunk> chunks = trace.chunks(Table::kSample);
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    if (!near_any(windows, chunks[chunk].min_start - kBefore, chunks[chunk].max_start + kBefore)) continue;
    TACHO_TRY(rows.read(chunk));
    for (size_t i = 0; i < rows->size(); ++i) {
      const int64_t time = rows->start[i], length = rows->duration[i];
      const int64_t thread = trace.cell(Table::kTrack, rows->track[i], column::Track::thread);
      for (HostWindow& window : windows) {
        if (window.thread != 0 && window.thread != thread) continue;
        if (length == 0 && time > window.from - kBefore && time < window.to + kBefore)
          window.stacks.emplace_back(time, rows->dim[i]);
        if (length <= 0 || time < window.from || time > window.to) continue;
        window.samples += length;
        window.sampled[stacks.own_place(rows->dim[i])] += length;
        if (const std::string_view kind = stacks.kind(rows->dim[i]); !kind.empty()) window.kinds[kind] += length;
      }
    }
  }
  return {};
}

template <typename Key>
std::pair<Key, int64_t> most(const std::map<Key, int64_t>& times) {
  std::pair<Key, int64_t> best{};
  for (const auto& [key, time] : times)
    if (time > best.second) best = {key, time};
  return best;
}

// Half of the delay, or of what was sampled of it, has to lie in one place.
void judge(HostWindow& window, const trace::Trace& trace, const Stacks& stacks, Names& names) {
  const int64_t whole = window.to - window.from;
  std::string place;
  int64_t time = 0;
  const auto [kind, in_kind] = most(window.kinds);
  const std::string what = in_kind * 2 >= window.samples && in_kind > 0 ? std::string(kind) : std::string();
  if (window.samples * 2 >= whole) {
    const auto [where, inside] = most(window.sampled);
    if (!where.empty() && inside * 2 >= window.samples) {
      place = (what.empty() ? "" : what + ", ") + "at " + where;
      time = inside;
    } else if (!what.empty()) {
      place = what;
      time = in_kind;
    }
  }
  if (place.empty()) {
    int64_t shortest = INT64_MAX;
    for (const auto& [function, inside] : window.functions) {
      if (inside.first * 2 < whole || inside.second >= shortest) continue;
      shortest = inside.second;
      time = std::min(inside.first, whole);
      place = "in " + std::string(trace.text(Table::kFunction, function, column::Function::name));
    }
  }
  if (place.empty()) {
    std::sort(window.stacks.begin(), window.stacks.end());
    for (size_t i = 1; i < window.stacks.size(); ++i) {
      const int64_t inside =
          std::min(window.stacks[i].first, window.to) - std::max(window.stacks[i - 1].first, window.from);
      if (inside <= time || inside * 2 < whole) continue;
      const std::string before = stacks.own_place(window.stacks[i - 1].second),
                        after = stacks.own_place(window.stacks[i].second);
      if (before.empty() || after.empty()) continue;
      time = window.stacks[i].first - window.stacks[i - 1].first;
      place =
          before == after ? "at " + before + " between two launches" : fmt::format("between {} and {}", before, after);
    }
  }
  if (place.empty()) return;
  window.cause->place = names.number(place);
  window.cause->place_time = time;
}

bool unexplained(const Cause& cause) {
  return cause.kind == Cause::Kind::kHost && cause.name == 0;
}

}  // namespace

void explain_late_hosts(std::span<const RankRun> runs, Names& names, Report& report) {
  std::map<int64_t, uint32_t> run_of;
  for (uint32_t run = 0; run < runs.size(); ++run) run_of[runs[run].rank] = run;
  std::map<uint32_t, std::vector<HostWindow>> by_run;
  // The longest delay of that kind.
  const auto ask = [&](int64_t rank, Cause& cause, bool in_step, int64_t begin, int64_t end) {
    if (!unexplained(cause) || !run_of.contains(rank)) return;
    const uint32_t run = run_of[rank];
    if (!runs[run].tells_host || (by_run.size() >= kMostHostFiles && !by_run.contains(run))) return;
    std::vector<HostWindow>& windows = by_run[run];
    if (windows.size() >= kMostHostWindows) return;
    const Collective* worst = nullptr;
    for (const Collective& one : report.collectives)
      if (one.last_run == run && unexplained(one.cause) && !one.cause.carried &&
          (!in_step || (one.last_start >= begin && one.last_start <= end)) && one.host_to > one.host_from &&
          (worst == nullptr || one.late > worst->late))
        worst = &one;
    if (worst == nullptr) return;
    HostWindow& window = windows.emplace_back();
    window.from = worst->host_from;
    window.to = worst->host_to;
    window.cause = &cause;
  };
  for (Straggler& one : report.stragglers) ask(one.rank, one.cause, false, 0, 0);
  for (StepReport& step : report.steps) ask(step.last_rank, step.cause, true, step.begin, step.end);
  for (auto& [run, windows] : by_run) {
    if (windows.empty()) continue;
    const auto opened = format::open_any(runs[run].file);
    // Another file may have taken its place meanwhile, or none: the rest of the answers stands without it.
    if (!opened) continue;
    const trace::Trace& trace = **opened;
    const Stacks stacks(trace);
    if (!read_calls(trace, windows) || !read_samples(trace, stacks, windows)) continue;
    for (HostWindow& window : windows) judge(window, trace, stacks, names);
  }
}

}  // namespace tacho::ranks
