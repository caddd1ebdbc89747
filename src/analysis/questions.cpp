// Sweeps behind the reports (questions.h).
#include "analysis/questions.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/operators/places.h"
#include "base/files/sorted_file.h"
#include "base/saturating.h"
#include "trace/read/rows.h"
#include "walk/calls/launches.h"
#include "walk/sweep.h"
#include "walk/time/busy_time.h"

namespace tacho::analysis {

using report::Answer;
using report::Unit;

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

constexpr Table kOperations[] = {Table::kDispatch, Table::kCopy, Table::kFill};

int64_t process_of(const trace::Trace& trace, int64_t track) {
  return trace.cell(Table::kTrack, track, column::Track::process);
}
int64_t device_of(const trace::Trace& trace, int64_t track) {
  return trace.cell(Table::kTrack, track, column::Track::device);
}

// Steps of a device's queue depth in order of time: up when the call begins, down when the operation ends.
struct Step {
  int64_t time;
  int32_t device;
  int32_t change;
  int64_t sort_key() const { return time; }
  bool operator<(const Step& other) const { return time < other.time; }
};

report::Cell share(int64_t part, int64_t whole) {
  return whole > 0 ? report::Cell(static_cast<double>(part) / static_cast<double>(whole) * 100.0) : report::Cell();
}
report::Cell mean(int64_t sum, int64_t count) {
  return count > 0 ? report::Cell(static_cast<double>(sum) / static_cast<double>(count)) : report::Cell();
}

constexpr const char* kNoCalls = "the trace holds no API calls that device work can be tied to: record API calls too";

}  // namespace

namespace {

// As one trace calls it.
std::string own_gpu_name(const trace::Trace& trace, int64_t device) {
  const std::string_view name = trace.text(Table::kDevice, device, column::Device::name);
  const int64_t index = trace.cell(Table::kDevice, device, column::Device::index);
  const std::string number = index == kUnknown ? std::string() : std::to_string(index);
  if (name.empty()) return "GPU " + number;
  return name.find("GPU " + number) != std::string_view::npos ? std::string(name) : number + ": " + std::string(name);
}

}  // namespace

std::string gpu_name(const trace::Trace& trace, int64_t device) {
  if (device <= 0) return "device";
  std::string name = own_gpu_name(trace, device);
  std::optional<DeviceNumbers> numbers;
  for (int64_t other = 1; other < trace.rows(Table::kDevice); ++other) {
    if (other == device || own_gpu_name(trace, other) != name) continue;
    if (!numbers) numbers.emplace(trace);
    if (numbers->device(other) == numbers->device(device)) continue;
    const std::string& number = numbers->text(device);
    return number == name ? name : fmt::format("{} ({})", number, name);
  }
  return name;
}

Result<Answer> gaps(const trace::Trace& trace) {
  walk::Launches launches(trace, walk::Launches::Around::kNothing);
  struct State {
    walk::BusyTime time;
    int64_t operations = 0, gaps = 0, longest = 0;
    int64_t queued_gaps = 0, queued = 0;
  };
  std::map<int64_t, State> states;
  walk::Sweep sweep(trace, kOperations, walk::kSweepCorrelation);
  walk::RowSlice slice;
  while (sweep.next(slice)) {
    State& state = states[device_of(trace, slice.track)];
    const int64_t process = process_of(trace, slice.track);
    for (size_t i = 0; i < slice.rows; ++i) {
      if (slice.duration[i] == kUnknown) continue;
      const int64_t start = slice.start[i], end = start + slice.duration[i];
      ++state.operations;
      if (const int64_t until = state.time.until(); state.time.any() && start > until) {
        const int64_t gap = start - until;
        ++state.gaps;
        state.longest = std::max(state.longest, gap);
        const walk::Launch* const call = launches.find(process, slice.correlation[i], start);
        if (call != nullptr && call->start < until) {
          ++state.queued_gaps;
          state.queued += gap;
        }
      }
      state.time.add(start, end);
    }
  }
  TACHO_TRY(Status(sweep.status()));
  TACHO_TRY(launches.status());
  const bool calls = launches.any();
  Answer answer;
  answer.columns = {{"gpu", "GPU", Unit::kText},
                    {"operations", "Operations", Unit::kCount, 4},
                    {"busy_ns", "Busy", Unit::kNs},
                    {"gaps", "Gaps", Unit::kCount},
                    {"idle_ns", "Idle", Unit::kNs},
                    {"mean_gap_ns", "Mean gap", Unit::kNs, 5},
                    {"longest_gap_ns", "Longest", Unit::kNs, 2},
                    {"queued_gaps", "Queued", Unit::kCount, 3},
                    {"queued_gap_ns", "Lost", Unit::kNs},
                    {"mean_queued_gap_ns", "Mean lost", Unit::kNs, 6},
                    {"gap_loss_percent", "% of busy + lost", Unit::kPercent}};
  for (const auto& [device, state] : states) {
    const int64_t busy = state.time.busy(), idle = state.time.idle();
    answer.rows.push_back({gpu_name(trace, device), state.operations, busy, state.gaps, idle, mean(idle, state.gaps),
                           state.longest, calls ? report::Cell(state.queued_gaps) : report::Cell(),
                           calls ? report::Cell(state.queued) : report::Cell(), mean(state.queued, state.queued_gaps),
                           calls ? share(state.queued, state.queued + busy) : report::Cell()});
  }
  if (!calls && !states.empty()) answer.remarks.emplace_back(kNoCalls);
  if (launches.forgotten() > 0) answer.remarks.push_back(walk::forgotten_sentence(launches.forgotten()));
  return answer;
}

Result<Answer> queue_depth(const trace::Trace& trace) {
  walk::Launches calls(trace, walk::Launches::Around::kNothing);
  SortedFile<Step> steps;
  int64_t untied = 0;
  {
    walk::Sweep sweep(trace, kOperations, walk::kSweepCorrelation);
    walk::RowSlice slice;
    while (sweep.next(slice)) {
      const int64_t process = process_of(trace, slice.track);
      const auto device = static_cast<int32_t>(device_of(trace, slice.track));
      for (size_t i = 0; i < slice.rows; ++i) {
        if (slice.duration[i] == kUnknown) continue;
        const walk::Launch* const call = calls.find(process, slice.correlation[i], slice.start[i]);
        if (call == nullptr) ++untied;
        const int64_t end = slice.start[i] + slice.duration[i];
        steps.add({call != nullptr ? std::min(call->start, end) : slice.start[i], device, 1});
        steps.add({end, device, -1});
      }
    }
    TACHO_TRY(Status(sweep.status()));
    TACHO_TRY(calls.status());
  }
  TACHO_TRY(steps.finish());
  constexpr size_t kLevels = 34;  // 0, 1, 2, 3-4, 5-8, ...
  struct State {
    int64_t depth = 0, last = 0, deepest = 0;
    double weighted = 0;
    bool any = false;
    std::array<int64_t, kLevels> time{};
  };
  std::map<int32_t, State> states;
  const auto level = [](int64_t depth) -> size_t {
    if (depth <= 0) return 0;
    size_t at = 1;
    for (int64_t top = 1; top < depth; top *= 2) ++at;
    return std::min(at, kLevels - 1);
  };
  Step step;
  while (steps.next(step)) {
    State& state = states[step.device];
    if (state.any) {
      state.time[level(state.depth)] += step.time - state.last;
      state.weighted += static_cast<double>(step.time - state.last) * static_cast<double>(state.depth);
    }
    state.any = true;
    state.last = step.time;
    state.depth += step.change;
    state.deepest = std::max(state.deepest, state.depth);
  }
  Answer answer;
  answer.columns = {{"gpu", "GPU", Unit::kText},
                    {"depth", "Depth", Unit::kText},
                    {"time_ns", "Time", Unit::kNs},
                    {"percent", "% of time", Unit::kPercent},
                    {"mean_depth", "Mean depth", Unit::kNumber},
                    {"max_depth", "Max depth", Unit::kCount}};
  for (const auto& [device, state] : states) {
    int64_t all = 0;
    for (const int64_t time : state.time) all += time;
    bool first = true;
    for (size_t i = 0; i < kLevels; ++i) {
      if (state.time[i] == 0) continue;
      const int64_t high = i == 0 ? 0 : int64_t{1} << (i - 1), low = i <= 1 ? high : high / 2 + 1;
      answer.rows.push_back(
          {gpu_name(trace, device), low == high ? std::to_string(low) : fmt::format("{}-{}", low, high), state.time[i],
           share(state.time[i], all),
           first && all > 0 ? report::Cell(state.weighted / static_cast<double>(all)) : report::Cell(),
           first ? report::Cell(state.deepest) : report::Cell()});
      first = false;
    }
  }
  if (!calls.any() && !states.empty())
    answer.remarks.emplace_back(
        "the trace holds no API calls that device work can be tied to: operations count from their start on the GPU");
  else if (untied > 0)
    answer.remarks.push_back(fmt::format(
        "{} operations belong to no API call in the trace: they count from their start on the GPU", untied));
  if (calls.forgotten() > 0) answer.remarks.push_back(walk::forgotten_sentence(calls.forgotten()));
  return answer;
}

Result<Answer> overlap(const trace::Trace& trace) {
  // Open operations per device as a heap of ends; the sweep gives the starts.
  struct State {
    std::vector<std::pair<int64_t, bool>> open;  // (end, is a kernel), earliest end first
    int64_t now = 0, kernels = 0, others = 0;
    std::map<int64_t, int64_t> time;  // by number open
    int64_t both = 0, kernel_time = 0, other_time = 0;
    bool any = false;

    void pass(int64_t to) {
      const auto later = [](const auto& a, const auto& b) { return a.first > b.first; };
      while (true) {
        const int64_t next = open.empty() ? to : std::min(to, open.front().first);
        if (next > now) {
          const int64_t length = next - now;
          add_saturating(time[kernels + others], length);
          if (kernels > 0 && others > 0) add_saturating(both, length);
          if (kernels > 0) add_saturating(kernel_time, length);
          if (others > 0) add_saturating(other_time, length);
          now = next;
        }
        if (open.empty() || open.front().first > to) return;
        --(open.front().second ? kernels : others);
        std::pop_heap(open.begin(), open.end(), later);
        open.pop_back();
      }
    }
  };
  std::map<int64_t, State> states;
  walk::Sweep sweep(trace, kOperations);
  walk::RowSlice slice;
  while (sweep.next(slice)) {
    State& state = states[device_of(trace, slice.track)];
    const bool kernel = slice.table == Table::kDispatch;
    for (size_t i = 0; i < slice.rows; ++i) {
      if (slice.duration[i] == kUnknown) continue;
      const int64_t start = slice.start[i];
      if (!state.any) state.now = start;
      state.any = true;
      state.pass(start);
      state.open.emplace_back(start + slice.duration[i], kernel);
      std::push_heap(state.open.begin(), state.open.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
      ++(kernel ? state.kernels : state.others);
    }
  }
  TACHO_TRY(Status(sweep.status()));
  Answer answer;
  answer.columns = {{"gpu", "GPU", Unit::kText},
                    {"what", "What", Unit::kText},
                    {"time_ns", "Time", Unit::kNs},
                    {"percent", "% of span", Unit::kPercent}};
  for (auto& [device, state] : states) {
    while (!state.open.empty()) state.pass(std::max(state.now, state.open.front().first));
    const std::string name = gpu_name(trace, device);
    int64_t all = 0, busy = 0;
    for (const auto& [open, time] : state.time) {
      add_saturating(all, time);
      if (open > 0) add_saturating(busy, time);
    }
    for (const auto& [open, time] : state.time) {
      if (open > 8) break;
      answer.rows.push_back(
          {name, open == 0 ? std::string("idle") : fmt::format("{} operation{} at once", open, open == 1 ? "" : "s"),
           time, share(time, all)});
    }
    int64_t more = 0;
    for (const auto& [open, time] : state.time)
      if (open > 8) add_saturating(more, time);
    if (more > 0) answer.rows.push_back({name, std::string("more than 8 at once"), more, share(more, all)});
    answer.rows.push_back({name, std::string("kernels"), state.kernel_time, share(state.kernel_time, all)});
    answer.rows.push_back({name, std::string("copies and fills"), state.other_time, share(state.other_time, all)});
    answer.rows.push_back({name, std::string("copies and fills beside kernels"), state.both, share(state.both, all)});
  }
  return answer;
}

Result<Answer> bins(const trace::Trace& trace, std::span<const int64_t> bounds) {
  std::vector<int64_t> counts(bounds.size() + 1), totals(bounds.size() + 1);
  for (const Table table : kOperations) {
    Status status;
    for (const auto& rows : trace::chunks<column::Fact::duration>(trace, table, status))
      for (const int64_t duration : rows.duration) {
        if (duration == kUnknown) continue;
        const auto at = static_cast<size_t>(std::upper_bound(bounds.begin(), bounds.end(), duration) - bounds.begin());
        ++counts[at];
        add_saturating(totals[at], duration);
      }
    TACHO_TRY(status);
  }
  int64_t all = 0;
  for (const int64_t total : totals) add_saturating(all, total);
  Answer answer;
  answer.columns = {{"bin", "Duration", Unit::kText},
                    {"count", "Count", Unit::kCount},
                    {"total_ns", "Time", Unit::kNs},
                    {"percent", "% of work", Unit::kPercent}};
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto text = [&](size_t at) { return report::format_duration(static_cast<double>(bounds[at])); };
    const std::string name = bounds.empty()       ? "all"
                             : i == 0             ? "< " + text(0)
                             : i == bounds.size() ? ">= " + text(i - 1)
                                                  : text(i - 1) + " - " + text(i);
    answer.rows.push_back({name, counts[i], totals[i], share(totals[i], all)});
  }
  return answer;
}

}  // namespace tacho::analysis
