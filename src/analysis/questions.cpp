// Sweeps behind the reports (questions.h).
#include "analysis/questions.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "analysis/names.h"
#include "base/files/sorted_file.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "trace/read/rows.h"
#include "trace/write/scratch.h"
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

std::string device_name(const trace::Trace& trace, int64_t device) {
  if (device <= 0) return "device";
  const std::string_view name = trace.text(Table::kDevice, device, column::Device::name);
  const int64_t index = trace.cell(Table::kDevice, device, column::Device::index);
  const std::string number = index == kUnknown ? std::string() : std::to_string(index);
  if (name.empty()) return "GPU " + number;
  return name.find("GPU " + number) != std::string_view::npos ? std::string(name) : number + ": " + std::string(name);
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

std::string kernel_name(const trace::Trace& trace, int64_t kernel) {
  return demangle(trace.text(Table::kKernel, kernel, column::Kernel::name));
}

constexpr const char* kNoCalls = "the trace holds no API calls that device work can be tied to: record API calls too";

}  // namespace

Result<Answer> gaps(const trace::Trace& trace) {
  walk::Launches launches(trace, walk::Launches::Around::kNothing);
  struct State {
    walk::BusyTime time;
    int64_t operations = 0, gaps = 0, longest = 0;
    int64_t queued_gaps = 0, queued = 0;
  };
  std::map<int64_t, State> states;
  walk::Sweep sweep(trace, kOperations, walk::kSweepCorrelation);
  walk::Slice slice;
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
                    {"gap_loss_percent", "Loss %", Unit::kPercent}};
  for (const auto& [device, state] : states) {
    const int64_t busy = state.time.busy(), idle = state.time.idle();
    answer.rows.push_back({device_name(trace, device), state.operations, busy, state.gaps, idle, mean(idle, state.gaps),
                           state.longest, calls ? report::Cell(state.queued_gaps) : report::Cell(),
                           calls ? report::Cell(state.queued) : report::Cell(), mean(state.queued, state.queued_gaps),
                           calls ? share(state.queued, state.queued + busy) : report::Cell()});
  }
  if (!calls && !states.empty()) answer.remarks.emplace_back(kNoCalls);
  if (launches.forgotten() > 0) answer.remarks.push_back(walk::forgotten_sentence(launches.forgotten()));
  return answer;
}

Result<Answer> launch_delay(const trace::Trace& trace) {
  walk::Launches calls(trace, walk::Launches::Around::kNothing);
  // In order of the calls: a launch finds the GPU idle when all that was asked for before has ended.
  struct Launch {
    int64_t call_start, call_end, start, end, function, kernel;
    int32_t device;
    int32_t is_kernel;
    int64_t sort_key() const { return call_start; }
    bool operator<(const Launch& other) const { return call_start < other.call_start; }
  };
  SortedFile<Launch> launches(8u << 20);  // bytes: beside the launches that walk remembers
  int64_t operations = 0, untied = 0;
  {
    walk::Sweep sweep(trace, kOperations, walk::kSweepDim | walk::kSweepCorrelation);
    walk::Slice slice;
    while (sweep.next(slice)) {
      const int64_t process = process_of(trace, slice.track);
      const auto device = static_cast<int32_t>(device_of(trace, slice.track));
      for (size_t i = 0; i < slice.rows; ++i) {
        const walk::Launch* const call = calls.find(process, slice.correlation[i], slice.start[i]);
        ++operations;
        if (call == nullptr || call->duration == kUnknown || slice.duration[i] == kUnknown) {
          ++untied;
          continue;
        }
        launches.add({call->start, call->start + call->duration, slice.start[i], slice.start[i] + slice.duration[i],
                      call->function, slice.dim[i], device, slice.table == Table::kDispatch ? 1 : 0});
      }
    }
    TACHO_TRY(Status(sweep.status()));
    TACHO_TRY(calls.status());
  }
  TACHO_TRY(launches.finish());
  const auto function_name = [&trace](int64_t row) {
    return std::string(trace.text(Table::kFunction, row, column::Function::name));
  };
  const auto kernel_name_of = [&trace](int64_t row) { return kernel_name(trace, row); };
  const int64_t function_rows = std::max<int64_t>(trace.rows(Table::kFunction), 1),
                kernel_rows = std::max<int64_t>(trace.rows(Table::kKernel), 1);
  TACHO_ASSIGN(const SameNames functions, SameNames::make(function_rows, function_name));
  TACHO_ASSIGN(const SameNames kernels, SameNames::make(kernel_rows, kernel_name_of));
  const auto known = [](int64_t row, int64_t rows) { return row >= 0 && row < rows ? row : 0; };
  std::map<std::string, int32_t> devices;  // one of the devices with a name stands for all
  std::map<int32_t, int32_t> device_of_name;

  struct Delay {
    int32_t device;
    int64_t function, kernel, delay;
    bool same(const Delay& other) const {
      return device == other.device && function == other.function && kernel == other.kernel;
    }
    bool operator<(const Delay& other) const {
      return std::tie(device, function, kernel) < std::tie(other.device, other.function, other.kernel);
    }
  };
  SortedFile<Delay> delays(8u << 20);
  std::map<int32_t, int64_t> until;
  Launch launch;
  int64_t last_call = kUnknown;
  while (launches.next(launch)) {
    int64_t& end = until.try_emplace(launch.device, INT64_MIN).first->second;
    // Further operations of the same call (a graph's nodes) were not launched on their own.
    const bool idle = end <= launch.call_start, first = launch.call_start != last_call;
    if (idle && first && launch.is_kernel != 0) {
      const auto [device, fresh] = device_of_name.try_emplace(launch.device, launch.device);
      if (fresh) device->second = devices.try_emplace(device_name(trace, launch.device), launch.device).first->second;
      delays.add({device->second, functions.first(known(launch.function, function_rows)),
                  kernels.first(known(launch.kernel, kernel_rows)), launch.start - launch.call_end});
    }
    last_call = launch.call_start;
    end = std::max(end, launch.end);
  }
  TACHO_TRY(delays.finish());

  struct Sum {
    Delay key;
    int64_t count, sum, least, most;
  };
  struct Before {
    std::function<std::array<std::string, 3>(const Sum&)> names;
    bool by_name;
    bool operator()(const Sum& a, const Sum& b) const {
      if (a.sum != b.sum) return a.sum > b.sum;
      return by_name ? names(a) < names(b) : a.key < b.key;
    }
  };
  const auto names = [&trace, function_name, kernel_name_of](const Sum& sum) {
    return std::array<std::string, 3>{device_name(trace, sum.key.device), function_name(sum.key.function),
                                      kernel_name_of(sum.key.kernel)};
  };
  const auto sums = std::make_shared<SortedFile<Sum, Before>>(
      8u << 20, Before{names, kernels.names() <= kSortedByName && functions.names() <= kSortedByName});
  Delay delay;
  Sum sum{};
  while (delays.next(delay)) {
    if (sum.count > 0 && !sum.key.same(delay)) {
      sums->add(sum);
      sum.count = 0;
    }
    if (sum.count == 0) sum = {delay, 0, 0, INT64_MAX, INT64_MIN};
    ++sum.count;
    add_saturating(sum.sum, delay.delay);
    sum.least = std::min(sum.least, delay.delay);
    sum.most = std::max(sum.most, delay.delay);
  }
  if (sum.count > 0) sums->add(sum);
  TACHO_TRY(sums->finish());
  Answer answer;
  answer.columns = {
      {"gpu", "GPU", Unit::kText},      {"api", "API", Unit::kText},    {"count", "Launches", Unit::kCount, 1},
      {"min_ns", "Min", Unit::kNs, 3},  {"mean_ns", "Mean", Unit::kNs}, {"max_ns", "Max", Unit::kNs, 2},
      {"kernel", "Kernel", Unit::kText}};
  answer.next = [sums, names](std::vector<report::Cell>& row) {
    Sum next;
    if (!sums->next(next)) return false;
    auto [device, function, kernel] = names(next);
    row = {std::move(device),          std::move(function), next.count,       next.least,
           mean(next.sum, next.count), next.most,           std::move(kernel)};
    return true;
  };
  if (operations > 0) answer.when_empty = "no kernel that was launched on an idle GPU by a recorded API call";
  if (operations > 0 && !calls.any())
    answer.remarks.push_back(
        fmt::format("launch delays need the API calls that launched the {} GPU operation{}, and the trace holds none: "
                    "record API calls too (rocprofv3 --hip-trace; tacho trace does by itself)",
                    operations, operations == 1 ? "" : "s"));
  else if (untied > 0)
    answer.remarks.push_back(
        fmt::format("{} of {} GPU operations belong to no API call in the trace and are left out", untied, operations));
  if (calls.forgotten() > 0) answer.remarks.push_back(walk::forgotten_sentence(calls.forgotten()));
  return answer;
}

Result<Answer> queue_depth(const trace::Trace& trace) {
  walk::Launches calls(trace, walk::Launches::Around::kNothing);
  SortedFile<Step> steps;
  int64_t untied = 0;
  {
    walk::Sweep sweep(trace, kOperations, walk::kSweepCorrelation);
    walk::Slice slice;
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
                    {"percent", "%", Unit::kPercent},
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
          {device_name(trace, device), low == high ? std::to_string(low) : fmt::format("{}-{}", low, high),
           state.time[i], share(state.time[i], all),
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
  walk::Slice slice;
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
                    {"percent", "%", Unit::kPercent}};
  for (auto& [device, state] : states) {
    while (!state.open.empty()) state.pass(std::max(state.now, state.open.front().first));
    const std::string name = device_name(trace, device);
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

Result<Answer> exclusive(const trace::Trace& trace) {
  struct Sum {
    int64_t calls, total, own;
  };
  // Sums of all rows that have a name, table after table.
  struct Named {
    Table facts, rows;
    int64_t from = 0, count = 0;
  };
  std::array<Named, 5> tables{{{Table::kApi, Table::kFunction},
                               {Table::kMarker, Table::kLabel},
                               {Table::kDispatch, Table::kKernel},
                               {Table::kCopy, Table::kCopyShape},
                               {Table::kFill, Table::kFillShape}}};
  int64_t rows = 0;
  for (Named& table : tables) {
    table.from = rows;
    table.count = std::max<int64_t>(trace.rows(table.rows), 1);
    rows += table.count;
  }
  const auto scratch =
      std::make_shared<const trace::Scratch>(trace::Scratch::temporary(static_cast<size_t>(rows) * sizeof(Sum)));
  auto* const sums = static_cast<Sum*>(scratch->data());
  // A stack per line: the topmost interval gets the time; what ended below is dropped when it comes to the top.
  struct Open {
    int64_t end;
    Sum* sum;
  };
  struct Line {
    std::vector<Open> stack;
    int64_t now = 0;
    void pass(int64_t to) {
      while (!stack.empty()) {
        const Open& top = stack.back();
        const int64_t until = std::min(to, top.end);
        if (until > now) {
          add_saturating(top.sum->own, until - now);
          now = until;
        }
        if (top.end > to) return;
        stack.pop_back();
      }
      now = std::max(now, to);
    }
    void push(int64_t start, int64_t end, Sum* sum) {
      pass(start);
      now = start;
      stack.push_back({end, sum});
    }
  };
  const auto run = [&](std::span<const Table> facts, auto line_of) -> Status {
    std::unordered_map<int64_t, Line> lines;
    walk::Sweep sweep(trace, facts, walk::kSweepDim);
    walk::Slice slice;
    while (sweep.next(slice)) {
      Line& line = lines[line_of(slice)];
      const Named& table =
          *std::find_if(tables.begin(), tables.end(), [&](const Named& one) { return one.facts == slice.table; });
      for (size_t i = 0; i < slice.rows; ++i) {
        const int64_t dim = slice.dim[i];
        Sum& sum = sums[table.from + (dim >= 0 && dim < table.count ? dim : 0)];
        ++sum.calls;
        if (slice.duration[i] == kUnknown) continue;
        add_saturating(sum.total, slice.duration[i]);
        line.push(slice.start[i], slice.start[i] + slice.duration[i], &sum);
      }
    }
    for (auto& [at, line] : lines) line.pass(INT64_MAX);
    return Status(sweep.status());
  };
  static constexpr Table kHost[] = {Table::kMarker, Table::kApi};
  TACHO_TRY(run(kHost, [](const walk::Slice& slice) { return slice.track; }));
  TACHO_TRY(run(kOperations, [&](const walk::Slice& slice) { return device_of(trace, slice.track); }));

  // Rows with one name become one.
  const auto table_of = [tables](int64_t row) {
    return *std::find_if(tables.rbegin(), tables.rend(), [row](const Named& one) { return one.from <= row; });
  };
  static constexpr std::string_view kKinds[] = {"API", "marker", "GPU"};
  const auto kind_of = [table_of](int64_t row) -> size_t {
    const Table facts = table_of(row).facts;
    return facts == Table::kApi ? 0 : facts == Table::kMarker ? 1 : 2;
  };
  const auto name_of = [&trace, table_of](int64_t row) -> std::string {
    const Named table = table_of(row);
    const int64_t dim = row - table.from;
    switch (table.facts) {
      case Table::kApi:
        return std::string(trace.text(Table::kFunction, dim, column::Function::name));
      case Table::kMarker:
        return std::string(trace.text(Table::kLabel, dim, column::Label::name));
      case Table::kDispatch:
        return kernel_name(trace, dim);
      case Table::kCopy:
        return "copy " + std::string(event::to_string(static_cast<event::CopyDirection>(
                             trace.cell(Table::kCopyShape, dim, column::CopyShape::direction))));
      default:
        return "fill " + std::string(event::to_string(static_cast<event::MemoryKind>(
                             trace.cell(Table::kFillShape, dim, column::FillShape::memory))));
    }
  };
  TACHO_ASSIGN(const SameNames names,
               SameNames::make(rows, [&](int64_t row) { return std::to_string(kind_of(row)) + name_of(row); }));
  std::array<int64_t, 3> all{};  // by kind
  for (int64_t row = 0; row < rows; ++row) {
    add_saturating(all[kind_of(row)], sums[row].own);
    Sum& first = sums[names.first(row)];
    if (&first == &sums[row]) continue;
    first.calls += sums[row].calls;
    add_saturating(first.total, sums[row].total);
    add_saturating(first.own, sums[row].own);
    sums[row].calls = 0;
  }
  struct Place {
    size_t kind;
    int64_t own, row;
  };
  struct Before {
    std::function<std::string(int64_t)> name_of;
    bool by_name;
    bool operator()(const Place& a, const Place& b) const {
      if (a.kind != b.kind) return a.kind < b.kind;
      if (a.own != b.own) return a.own > b.own;
      return by_name ? name_of(a.row) < name_of(b.row) : a.row < b.row;
    }
  };
  const auto places =
      std::make_shared<SortedFile<Place, Before>>(8u << 20, Before{name_of, names.names() <= kSortedByName});
  for (int64_t row = 0; row < rows; ++row)
    if (sums[row].calls > 0) places->add({kind_of(row), sums[row].own, row});
  TACHO_TRY(places->finish());
  Answer answer;
  answer.when_empty = "no API calls, markers or GPU operations";
  answer.columns = {{"kind", "Kind", Unit::kText},    {"exclusive_ns", "Exclusive", Unit::kNs},
                    {"percent", "%", Unit::kPercent}, {"total_ns", "Inclusive", Unit::kNs},
                    {"calls", "Calls", Unit::kCount}, {"name", "Name", Unit::kText}};
  answer.next = [scratch, places, name_of, all](std::vector<report::Cell>& row) {
    Place place;
    if (!places->next(place)) return false;
    const Sum& sum = static_cast<const Sum*>(scratch->data())[place.row];
    row = {std::string(kKinds[place.kind]),
           sum.own,
           share(sum.own, all[place.kind]),
           sum.total,
           sum.calls,
           name_of(place.row)};
    return true;
  };
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
                    {"percent", "%", Unit::kPercent}};
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
