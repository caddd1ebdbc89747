// Sums of summaries and one pass over samples (run_facts.h).
#include "analysis/time/run_facts.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "analysis/call_kind.h"
#include "analysis/operators/places.h"
#include "base/format.h"
#include "base/saturating.h"
#include "trace/read/rows.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

std::string thread_text(const trace::Trace& trace, int64_t track) {
  const int64_t thread = trace.cell(Table::kTrack, track, column::Track::thread);
  if (thread <= 0) return "a thread";
  const std::string_view name = trace.text(Table::kThread, thread, column::Thread::name);
  const int64_t tid = trace.cell(Table::kThread, thread, column::Thread::tid);
  return name.empty() ? fmt::format("thread {}", tid) : fmt::format("thread {} ({})", name, tid);
}

Status longest_call(const trace::Trace& trace, RunFacts& out) {
  struct Sum {
    int64_t time = 0, count = 0, longest = 0, first = INT64_MAX, last = INT64_MIN;
    int64_t rest() const { return time - longest; }
  };
  struct Key {
    int64_t track, function;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return static_cast<uint64_t>(key.track) * 0x9e3779b97f4a7c15u ^ static_cast<uint64_t>(key.function);
    }
  };
  constexpr size_t kMost = 1 << 18;  // functions times threads; further ones are left out
  std::unordered_map<Key, Sum, Hash> sums;
  std::vector<int8_t> wanted(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kFunction), 1)), -1);
  TACHO_TRY(trace.visit_summaries(Table::kApi, [&](std::span<const trace::Summary> summaries) {
    for (const trace::Summary& summary : summaries) {
      if (summary.dim < 0 || static_cast<size_t>(summary.dim) >= wanted.size()) continue;
      int8_t& want = wanted[static_cast<size_t>(summary.dim)];
      if (want < 0) {
        const auto kind = call_kind(
            event::from_cell<event::Domain>(trace.cell(Table::kFunction, summary.dim, column::Function::domain)),
            trace.text(Table::kFunction, summary.dim, column::Function::name));
        want = kind == CallKind::kOther || kind == CallKind::kAllocate ? 1 : 0;
      }
      if (want == 0) continue;
      const Key key{summary.track, summary.dim};
      if (sums.size() >= kMost && !sums.contains(key)) continue;
      Sum& sum = sums[key];
      add_saturating(sum.time, summary.sum);
      sum.count += summary.count;
      sum.longest = std::max(sum.longest, summary.max);
      sum.first = std::min(sum.first, summary.first);
      sum.last = std::max(sum.last, summary.last);
    }
  }));
  for (const auto& [key, sum] : sums) {
    if (sum.rest() < out.call_time || (sum.rest() == out.call_time && key.track >= out.call_track)) continue;
    out.call_time = sum.rest();
    out.call_count = sum.count;
    out.call_first = sum.first;
    out.call_last = sum.last;
    out.call_track = key.track;
    out.call = trace.text(Table::kFunction, key.function, column::Function::name);
  }
  if (out.call_time > 0) out.call_thread = thread_text(trace, out.call_track);
  return {};
}

// A wait for a condition, as the C library names it.
bool awaits_condition(std::string_view function) {
  function.remove_prefix(std::min(function.find_first_not_of('_'), function.size()));
  return function.starts_with("pthread_cond_timedwait") || function.starts_with("pthread_cond_clockwait") ||
         function.starts_with("pthread_cond_wait");
}

// A function of the interpreter that has no name: distributions strip those that it does not export. One that waits for
// a condition is take_gil(), or drop_gil() that waits until another thread has the lock: on Linux, CPython's other
// locks are semaphores.
bool is_nameless_interpreter(const trace::Trace& trace, int64_t frame) {
  if (!trace.text(Table::kFrame, frame, column::Frame::function).empty()) return false;
  std::string_view module = trace.text(Table::kFrame, frame, column::Frame::module);
  module.remove_prefix(module.rfind('/') + 1);
  return module.starts_with("python") || module.starts_with("libpython");
}

bool takes_lock(std::string_view function) {
  return function == "take_gil" || function == "PyEval_AcquireThread" || function == "PyEval_RestoreThread" ||
         function == "PyGILState_Ensure" || function == "_PyThreadState_Attach" || function == "PyMutex_LockTimed";
}

// By wall-time samples whose innermost frames are in the function that takes the lock.
Status lock_waits(const trace::Trace& trace, RunFacts& out) {
  const auto tracks = static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kTrack), 1));
  std::vector<bool> wall(tracks, false);
  bool any = false;
  for (size_t track = 1; track < tracks; ++track)
    if (trace.text(Table::kTrack, static_cast<int64_t>(track), column::Track::category) == "sample.wall")
      any = wall[track] = true;
  if (!any || trace.rows(Table::kSample) == 0) return {};
  // Frames below the function that takes the lock: condition variables and system calls.
  constexpr uint8_t kDeepest = 8, kPython = 64;
  const auto stacks = static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kStack), 1));
  std::vector<uint8_t> facts(stacks, 0);  // 1 + frames inside the lock, 0 = not in it; kPython: a Python frame is in it
  for (size_t stack = 1; stack < stacks; ++stack) {
    const auto row = static_cast<int64_t>(stack);
    const int64_t parent = trace.cell(Table::kStack, row, column::Stack::parent),
                  frame = trace.cell(Table::kStack, row, column::Stack::frame);
    const uint8_t above = parent > 0 && parent < row ? facts[static_cast<size_t>(parent)] : 0;
    const bool python = (above & kPython) != 0 || trace.cell(Table::kFrame, frame, column::Frame::kind) ==
                                                      static_cast<int64_t>(event::FrameKind::kPython);
    uint8_t inside = above & (kPython - 1);
    const std::string_view function = trace.text(Table::kFrame, frame, column::Frame::function);
    const int64_t caller = parent > 0 && parent < row ? trace.cell(Table::kStack, parent, column::Stack::frame) : 0;
    if (takes_lock(function) || (awaits_condition(function) && is_nameless_interpreter(trace, caller)))
      inside = 1;
    else if (inside > 0)
      inside = inside < kDeepest ? static_cast<uint8_t>(inside + 1) : 0;
    facts[stack] = static_cast<uint8_t>(inside | (python ? kPython : 0));
  }
  struct Sum {
    int64_t lock = 0, all = 0, first = INT64_MAX, last = INT64_MIN;
  };
  std::map<int64_t, Sum> sums;
  using S = column::Sample;
  Status status;
  for (const auto& samples : trace::chunks<S::track, S::start, S::duration, S::dim>(trace, status))
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto track = static_cast<size_t>(samples.track[i]), stack = static_cast<size_t>(samples.dim[i]);
      const int64_t start = samples.start[i], duration = samples.duration[i];
      if (track >= tracks || !wall[track] || stack >= stacks || duration <= 0 || (facts[stack] & kPython) == 0)
        continue;
      ++out.wall_samples;
      Sum& sum = sums[samples.track[i]];
      add_saturating(sum.all, duration);
      if ((facts[stack] & (kPython - 1)) == 0) continue;
      add_saturating(sum.lock, duration);
      sum.first = std::min(sum.first, start);
      sum.last = std::max(sum.last, start + duration);
    }
  TACHO_TRY(status);
  for (const auto& [track, sum] : sums) {
    if (sum.lock <= out.lock_time) continue;
    out.lock_time = sum.lock;
    out.lock_of = sum.all;
    out.lock_track = track;
    out.lock_first = sum.first;
    out.lock_last = sum.last;
  }
  if (out.lock_track > 0) out.lock_thread = thread_text(trace, out.lock_track);
  return {};
}

}  // namespace

Result<RunFacts> run_facts(const trace::Trace& trace) {
  RunFacts out;
  TACHO_TRY(longest_call(trace, out));
  TACHO_TRY(lock_waits(trace, out));
  std::map<int64_t, int64_t> overhead;  // by process
  TACHO_TRY(trace.visit_summaries(Table::kOverhead, [&](std::span<const trace::Summary> summaries) {
    for (const trace::Summary& summary : summaries)
      switch (event::from_cell<event::OverheadKind>(
          trace.cell(Table::kOverheadShape, summary.dim, column::OverheadShape::kind))) {
        case event::OverheadKind::kProfiler:
        case event::OverheadKind::kFlush:
        case event::OverheadKind::kBufferFull:
        case event::OverheadKind::kInstrumentation:
          add_saturating(overhead[trace.cell(Table::kTrack, summary.track, column::Track::process)], summary.sum);
          break;
        default:
          break;
      }
  }));
  for (const auto& [process, time] : overhead) out.profiler_time = std::max(out.profiler_time, time);
  const DeviceNumbers numbers(trace);
  std::set<size_t> gpus;
  for (int64_t row = 1; row < trace.rows(Table::kDevice); ++row)
    if (trace.cell(Table::kDevice, row, column::Device::kind) == static_cast<int64_t>(event::DeviceKind::kGpu))
      gpus.insert(numbers.device(row));
  out.gpus = static_cast<int64_t>(gpus.size());
  for (int64_t row = 1; row < trace.rows(Table::kProcess); ++row)
    out.ranks = out.ranks || trace.cell(Table::kProcess, row, column::Process::rank) != kUnknown;
  return out;
}

}  // namespace tacho::analysis
