// Steps of a program (step_marks.h).
#include "ranks/read/step_marks.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "trace/read/rows.h"

namespace tacho::ranks {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

std::string without_digits(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c < '0' || c > '9') out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

bool plain_names_a_step(std::string_view plain) {
  for (const std::string_view word : {"step", "iteration", "iter", "timestep", "time step"})
    if (plain.starts_with(word)) {
      const std::string_view rest = plain.substr(word.size());
      if (rest.empty() || rest.find_first_not_of(" #:_-=[]()/") == std::string_view::npos) return true;
    }
  return plain == "train_step" || plain == "train step" || plain == "training_step" || plain == "train_batch";
}

}  // namespace

bool names_a_step(std::string_view range) {
  return plain_names_a_step(without_digits(range));
}

Result<StepMarks> marked_steps(const trace::Trace& trace, int64_t process) {
  StepMarks steps;
  const auto labels = static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kLabel), 1));
  steps.is_step.assign(labels, false);
  // What a label may mark: a profiler's step, an optimizer's, or a step with a name of the program's own.
  enum Class : uint8_t { kNone, kProfiler, kOptimizer, kOwn };
  std::vector<Class> classes(labels, kNone);
  bool any_profiler = false, any_optimizer = false, any_own = false;
  for (size_t row = 1; row < labels; ++row) {
    const std::string_view name = trace.text(Table::kLabel, static_cast<int64_t>(row), column::Label::name);
    if (name.starts_with("ProfilerStep#")) {
      classes[row] = kProfiler;
      any_profiler = true;
    } else if (name.starts_with("Optimizer.step#")) {
      classes[row] = kOptimizer;
      any_optimizer = true;
    } else if (names_a_step(name)) {
      classes[row] = kOwn;
      any_own = true;
    }
  }
  if (!any_profiler && !any_optimizer && !any_own) return steps;
  struct Range {
    int64_t start, end;
    int64_t label;
  };
  std::map<int64_t, std::vector<Range>> by_label;  // host ranges; labels that occur too often are no steps
  std::vector<Range> profiler, own;
  constexpr size_t kMost = 1u << 20;
  using F = column::Fact;
  Status status;
  for (const auto& markers : trace::chunks<F::track, F::start, F::duration, F::dim>(trace, Table::kMarker, status))
    for (size_t i = 0; i < markers.size(); ++i) {
      const int64_t dim = markers.dim[i];
      if (dim <= 0 || dim >= static_cast<int64_t>(labels)) continue;
      const int64_t track = markers.track[i];
      if (trace::cell<column::Track::device>(trace, track) != 0) continue;
      if (process != 0 && trace::cell<column::Track::process>(trace, track) != process) continue;
      const int64_t start = markers.start[i],
                    end = markers.duration[i] == kUnknown ? start : start + markers.duration[i];
      const Class kind = classes[static_cast<size_t>(dim)];
      if (kind == kProfiler && profiler.size() < kMost) profiler.push_back({start, end, dim});
      if (kind == kOwn && own.size() < kMost) own.push_back({start, end, dim});
      if (auto& list = by_label[dim]; any_optimizer && list.size() < kMost) list.push_back({start, end, dim});
    }
  if (!status) return fail_with(std::move(status));
  const auto by_start = [](const Range& a, const Range& b) { return a.start < b.start; };
  const auto take = [&](std::vector<Range>& ranges, const char* from) {
    std::sort(ranges.begin(), ranges.end(), by_start);
    for (const Range& range : ranges) {
      steps.is_step[static_cast<size_t>(range.label)] = true;
      if (steps.begins.empty() || range.start > steps.begins.back()) steps.begins.push_back(range.start);
    }
    steps.from = from;
    const std::string_view name = trace.text(Table::kLabel, ranges.front().label, column::Label::name);
    const size_t digit = name.find_first_of("0123456789");
    if (digit != std::string_view::npos) std::from_chars(name.data() + digit, name.data() + name.size(), steps.first);
  };
  if (!profiler.empty()) {
    take(profiler, "ProfilerStep");
    return steps;
  }
  // The optimizer ends a step. The first range that comes once in each step begins it.
  std::vector<Range>* optimizer = nullptr;
  for (auto& [label, ranges] : by_label) {
    std::sort(ranges.begin(), ranges.end(), by_start);
    if (classes[static_cast<size_t>(label)] == kOptimizer &&
        (optimizer == nullptr || ranges.size() < optimizer->size()))
      optimizer = &ranges;
  }
  if (optimizer != nullptr && !optimizer->empty()) {
    const std::vector<Range>* begin = optimizer;
    for (const auto& [label, ranges] : by_label) {
      if (ranges.size() != optimizer->size()) continue;
      bool fits = true;
      for (size_t i = 0; i < ranges.size() && fits; ++i)
        fits = ranges[i].start <= (*optimizer)[i].start && (i == 0 || ranges[i].start >= (*optimizer)[i - 1].end);
      if (fits && ranges.front().start < begin->front().start) begin = &ranges;
    }
    // Whatever lies between two steps prepares the coming one: it begins where the last range of the step before ended.
    std::vector<int64_t> ends;
    for (const auto& [label, ranges] : by_label)
      for (const Range& range : ranges) ends.push_back(range.end);
    std::sort(ends.begin(), ends.end());
    for (size_t i = 0; i < begin->size(); ++i) {
      // Where only the optimizer is marked, all before its first time is the first step.
      int64_t at = i == 0 && begin == optimizer ? INT64_MIN : (*begin)[i].start;
      if (i > 0) {
        const auto after = std::upper_bound(ends.begin(), ends.end(), at);
        if (after != ends.begin()) at = std::max(*std::prev(after), (*optimizer)[i - 1].start + 1);
      }
      if (steps.begins.empty() || at > steps.begins.back()) steps.begins.push_back(at);
    }
    steps.from = "Optimizer.step";
    return steps;
  }
  if (own.size() >= 2) take(own, "ranges of the program");
  return steps;
}

Period period_of(const std::vector<uint64_t>& signatures, const std::vector<int64_t>& before) {
  const size_t count = signatures.size();
  constexpr size_t kLongest = 4096;
  for (size_t length = 2; length <= std::min(count / 3, kLongest); ++length) {
    size_t equal = 0;
    for (size_t i = 0; i + length < count; ++i) equal += signatures[i] == signatures[i + length] ? 1 : 0;
    if (equal * 100 < (count - length) * 95) continue;
    // Is it a repetition of one and the same? Then it says nothing about steps.
    if (std::all_of(signatures.begin(), signatures.begin() + static_cast<int64_t>(length),
                    [&](uint64_t signature) { return signature == signatures[0]; }))
      return {};
    // A step begins where the ranks compute longest between two collectives.
    size_t best = 0;
    double longest = -1;
    for (size_t phase = 0; phase < length; ++phase) {
      double sum = 0, rows = 0;
      for (size_t i = phase; i < count; i += length)
        if (i > 0) {
          sum += static_cast<double>(before[i]);
          ++rows;
        }
      if (rows > 0 && sum / rows > longest) {
        longest = sum / rows;
        best = phase;
      }
    }
    return {length, best};
  }
  return {};
}

}  // namespace tacho::ranks
