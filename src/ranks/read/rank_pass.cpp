// The pass over one rank's trace (rank_pass.h).
#include "ranks/read/rank_pass.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "analysis/pair_hash.h"
#include "base/files/sorted_file.h"
#include "base/saturating.h"
#include "event/collective_kernels.h"
#include "ranks/match/mpi_operations.h"
#include "trace/call_key.h"
#include "trace/read/rows.h"
#include "walk/calls/launches.h"
#include "walk/sweep.h"

namespace tacho::ranks {

using event::Table;
namespace column = event::column;

namespace {

// GPU operations in order of start

struct GpuOperation {
  Table table;
  int64_t track, start, duration, dim, correlation, arguments;
};

// Kernels, copies and fills as one sequence.
class Operations {
 public:
  explicit Operations(const trace::Trace& trace)
      : sweep_(trace, kTables, walk::kSweepDim | walk::kSweepCorrelation | walk::kSweepArguments) {}
  bool next(GpuOperation& operation) {
    if (at_ == slice_.rows) {
      at_ = 0;
      slice_.rows = 0;
      if (!sweep_.next(slice_)) return false;
    }
    const size_t row = at_++;
    operation = {slice_.table,
                 slice_.track,
                 slice_.start[row],
                 slice_.duration[row],
                 slice_.dim[row],
                 slice_.correlation[row],
                 slice_.table == Table::kDispatch ? slice_.arguments[row] : 0};
    return true;
  }
  Status status() const { return sweep_.status(); }

 private:
  static constexpr Table kTables[] = {Table::kDispatch, Table::kCopy, Table::kFill};
  walk::Sweep sweep_;
  walk::RowSlice slice_{};
  size_t at_ = 0;
};

// Unions

// The union of intervals that come in order of start.
struct Union {
  int64_t until = INT64_MIN, total = 0;
  void add(int64_t start, int64_t end) {
    if (end <= until) return;
    total += end - std::max(start, until);
    until = end;
  }
  // What has been counted beyond `time`.
  int64_t beyond(int64_t time) const { return until > time ? until - time : 0; }
  int64_t up_to(int64_t time) const { return total - beyond(time); }
};

enum Kind : uint8_t { kCompute, kCollective, kCopy };

// The unions of a rank, and of its current step.
struct Unions {
  Union compute, communication, copies, both, all;
  void add(Kind kind, int64_t start, int64_t end) {
    if (kind == kCompute) compute.add(start, end);
    if (kind == kCollective) communication.add(start, end);
    if (kind == kCopy) copies.add(start, end);
    if (kind != kCopy) both.add(start, end);
    all.add(start, end);
  }
  Times up_to(int64_t time) const {
    Times times;
    times.compute = compute.up_to(time);
    times.communication = communication.up_to(time);
    times.copies = copies.up_to(time);
    times.compute_or_communication = both.up_to(time);
    times.busy = all.up_to(time);
    return times;
  }
};

Times difference(const Times& later, const Times& earlier) {
  Times times;
  times.compute = later.compute - earlier.compute;
  times.communication = later.communication - earlier.communication;
  times.copies = later.copies - earlier.copies;
  times.compute_or_communication = later.compute_or_communication - earlier.compute_or_communication;
  times.busy = later.busy - earlier.busy;
  return times;
}

// Steps

struct Steps {
  std::vector<int64_t> begins;  // host time, ascending
  std::string from;
  int64_t first = 0;
  std::vector<bool> is_step;  // by row of table label

  int32_t of(int64_t time) const {
    return static_cast<int32_t>(std::upper_bound(begins.begin(), begins.end(), time) - begins.begin()) - 1;
  }
};

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

Result<Steps> marked_steps(const trace::Trace& trace, int64_t process) {
  Steps steps;
  const auto labels = static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kLabel), 1));
  steps.is_step.assign(labels, false);
  // What a label could be: a profiler's step, an optimizer's, a step by the program's own name.
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
  // The optimizer ends a step. What begins one is the first range that comes once in each.
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

// Launching calls

struct LaunchCall {
  int64_t start, end;
};
using LaunchCalls = KeyIndex<LaunchCall, trace::CallKey>;

Status index_launches(const trace::Trace& trace, int64_t process, LaunchCalls& calls) {
  using A = column::Api;
  const std::vector<bool> launches = walk::calls_of_runtimes(trace);
  Status status;
  for (const auto& rows : trace::chunks<A::track, A::start, A::duration, A::dim, A::correlation>(trace, status))
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto dim = static_cast<size_t>(rows.dim[i]);
      if (rows.correlation[i] == 0 || (dim < launches.size() && !launches[dim])) continue;
      const int64_t owner = trace::cell<column::Track::process>(trace, rows.track[i]);
      if (process != 0 && owner != process) continue;
      calls.add({owner, rows.correlation[i]},
                {rows.start[i], rows.duration[i] == kUnknown ? rows.start[i] : rows.start[i] + rows.duration[i]});
    }
  TACHO_TRY(status);
  return calls.finish();
}

// What NCCL says of its collectives

// Labels of the collectives that a launch carries out, by (process, correlation of the launch). NCCL tells tacho of a
// collective right after it has launched the kernel, on the same thread: the mark is about the launch before it.
using Tellings = std::unordered_map<std::pair<int64_t, int64_t>, std::vector<int64_t>, analysis::PairHash>;

Result<Tellings> tellings(const trace::Trace& trace, int64_t process) {
  Tellings told;
  std::vector<bool> tells(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kLabel), 1)), false);
  bool any = false;
  for (size_t row = 1; row < tells.size(); ++row) {
    const auto label = static_cast<int64_t>(row);
    tells[row] = trace.text(Table::kLabel, label, column::Label::domain) == "NCCL" &&
                 trace.text(Table::kLabel, label, column::Label::name).starts_with("Collective name=");
    any = any || tells[row];
  }
  if (!any) return told;
  std::vector<bool> launches(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kFunction), 1)), false);
  for (size_t row = 1; row < launches.size(); ++row)
    launches[row] =
        trace.text(Table::kFunction, static_cast<int64_t>(row), column::Function::name).find("LaunchKernel") !=
        std::string_view::npos;
  trace::RowCursor<column::Api::track, column::Api::dim, column::Api::correlation> calls(trace);
  trace::RowCursor<column::Marker::track, column::Marker::dim> marks(trace);
  std::unordered_map<int64_t, int64_t> launched;  // by thread: correlation of its newest launch
  bool more = calls.next();
  while (marks.next()) {
    if (!tells[static_cast<size_t>(marks->dim)]) continue;
    const auto track = trace::row<event::row::Track>(trace, marks->track);
    if (process != 0 && track.process != process) continue;
    for (; more && calls.start() <= marks.start(); more = calls.next())
      if (calls->correlation != 0 && launches[static_cast<size_t>(calls->dim)])
        launched[trace::cell<column::Track::thread>(trace, calls->track)] = calls->correlation;
    const auto newest = launched.find(track.thread);
    if (newest != launched.end()) told[{track.process, newest->second}].push_back(marks->dim);
  }
  TACHO_TRY(calls.status());
  TACHO_TRY(marks.status());
  return told;
}

// What the host did in the stretches before collectives

// Adds rows of `table` (API calls or markers) to the stretches that they overlap. `name_of`: 0 leaves a row out.
template <typename NameOf, typename Slot>
Status add_host_times(const trace::Trace& trace, Table table, int64_t process, std::vector<Arrival>& arrivals,
                      const std::vector<size_t>& stretches, NameOf name_of, Slot slot) {
  if (stretches.empty()) return {};
  constexpr size_t kMost = 16;
  std::vector<std::vector<NamedTime>> sums(stretches.size());
  size_t at = 0;
  using F = column::Fact;
  trace::RowCursor<F::track, F::start, F::duration, F::dim> cursor(trace, table);
  while (cursor.next()) {
    const auto& row = *cursor;
    if (row.duration == kUnknown || row.duration <= 0) continue;
    const int64_t start = row.start, end = start + row.duration;
    // Stretches ascend and do not overlap. A row that began long ago may still be open, so only stretches that ended
    // before any later row can begin are left behind.
    while (at < stretches.size() && arrivals[stretches[at]].start <= start) ++at;
    if (at == stretches.size()) break;
    if (arrivals[stretches[at]].from >= end) continue;
    if (process != 0 && trace::cell<column::Track::process>(trace, row.track) != process) continue;
    const uint64_t name = name_of(row.track, row.dim);
    if (name == 0) continue;
    for (size_t i = at; i < stretches.size() && arrivals[stretches[i]].from < end; ++i) {
      const Arrival& arrival = arrivals[stretches[i]];
      const int64_t inside = std::min(end, arrival.start) - std::max(start, arrival.from);
      if (inside <= 0) continue;
      auto& list = sums[i];
      auto found = std::find_if(list.begin(), list.end(), [&](const NamedTime& n) { return n.name == name; });
      if (found == list.end()) {
        if (list.size() >= kMost) continue;
        found = list.insert(list.end(), {name, 0, 0});
      }
      ++found->count;
      add_saturating(found->time, inside);
    }
  }
  TACHO_TRY(cursor.status());
  for (size_t i = 0; i < stretches.size(); ++i) {
    auto& list = sums[i];
    std::sort(list.begin(), list.end(), [](const NamedTime& a, const NamedTime& b) {
      return a.time != b.time ? a.time > b.time : a.name < b.name;
    });
    NamedTime* const to = slot(arrivals[stretches[i]]);
    for (size_t k = 0; k < 2 && k < list.size(); ++k) to[k] = list[k];
  }
  return {};
}

// The kernels of the current stretch by name.
class KernelTimes {
 public:
  explicit KernelTimes(size_t rows) : epoch_(rows, 0), sums_(rows) {}
  void add(size_t name, int64_t time) {
    if (epoch_[name] != now_) {
      epoch_[name] = now_;
      sums_[name] = {};
      used_.push_back(name);
    }
    ++sums_[name].count;
    add_saturating(sums_[name].time, time);
  }
  template <size_t N>
  void take(NamedTime (&top)[N], const std::vector<uint64_t>& numbers) {
    std::partial_sort(
        used_.begin(), used_.begin() + static_cast<ptrdiff_t>(std::min(N, used_.size())), used_.end(),
        [&](size_t a, size_t b) { return sums_[a].time != sums_[b].time ? sums_[a].time > sums_[b].time : a < b; });
    for (size_t i = 0; i < N; ++i)
      top[i] =
          i < used_.size() ? NamedTime{numbers[used_[i]], sums_[used_[i]].count, sums_[used_[i]].time} : NamedTime{};
    used_.clear();
    ++now_;
  }

 private:
  std::vector<uint32_t> epoch_;
  std::vector<NamedTime> sums_;
  std::vector<size_t> used_;
  uint32_t now_ = 1;
};

}  // namespace

bool names_a_step(std::string_view range) {
  return plain_names_a_step(without_digits(range));
}

// Periods

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

// The pass

Status pass_over(const trace::Trace& trace, const Period& period, Names& names, Spools& spools, RankRun& run) {
  run.total = {};
  run.calls = run.mpi = run.mpi_waiting = run.file_read = run.file_written = 0;
  run.one_sided.clear();
  run.communicators.clear();
  run.kernels = run.operations = run.unlaunched = 0;
  TACHO_ASSIGN(Steps steps, marked_steps(trace, run.process));
  run.steps_from = steps.from;
  run.first_step = steps.first;
  LaunchCalls calls;
  TACHO_TRY(index_launches(trace, run.process, calls));

  // Kernels: which are collectives, and one number for each name.
  const auto kernel_rows = static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kKernel), 1));
  std::vector<uint64_t> kernel_number(kernel_rows, 0);
  std::vector<Operation> kernel_operation(kernel_rows, Operation::kUnknown);
  std::vector<uint8_t> is_collective(kernel_rows, 0);
  std::vector<size_t> kernel_name(kernel_rows, 0);
  {
    std::unordered_map<uint64_t, size_t> first;
    for (size_t row = 1; row < kernel_rows; ++row) {
      const std::string_view name = trace.text(Table::kKernel, static_cast<int64_t>(row), column::Kernel::name);
      kernel_number[row] = names.number(name);
      kernel_name[row] = first.try_emplace(kernel_number[row], row).first->second;
      is_collective[row] = event::is_collective_kernel(name) ? 1 : 0;
      if (is_collective[row] != 0) kernel_operation[row] = operation_of_kernel(name);
    }
  }
  struct Shape {
    Told told;
    uint32_t communicator;
    int64_t bytes;
  };
  std::unordered_map<int64_t, Shape> shapes;  // by the row of `arguments`
  const auto shape_of = [&](int64_t arguments, size_t kernel) -> Shape {
    const auto [found, fresh] = shapes.try_emplace(arguments, Shape{});
    Shape& shape = found->second;
    if (fresh) {
      shape.told = told_by(trace.string(arguments));
      shape.communicator = names.communicator(shape.told);
    }
    Shape result = shape;
    if (result.told.operation == Operation::kUnknown) result.told.operation = kernel_operation[kernel];
    result.bytes = message_bytes(result.told, result.told.group_size);
    return result;
  };

  TACHO_ASSIGN(const Tellings told_by_library, tellings(trace, run.process));
  // Of a kernel that carries out several: the whole of their messages; no operation when they differ.
  const auto shape_of_labels = [&](const std::vector<int64_t>& labels, size_t kernel) {
    const auto told = [&](int64_t label) { return told_by(trace.text(Table::kLabel, label, column::Label::name)); };
    Shape shape{told(labels.front()), 0, 0};
    shape.communicator = names.communicator(shape.told);
    for (const int64_t label : labels) {
      const Told other = told(label);
      if (other.operation != shape.told.operation) shape.told.operation = Operation::kUnknown;
      const int64_t bytes = message_bytes(other, other.group_size);
      shape.bytes = bytes > 0 && shape.bytes >= 0 ? shape.bytes + bytes : -1;
    }
    if (shape.told.operation == Operation::kUnknown) shape.told.operation = kernel_operation[kernel];
    shape.bytes = shape.told.operation == Operation::kUnknown ? 0 : std::max<int64_t>(shape.bytes, 0);
    return shape;
  };

  Unions unions;
  KernelTimes stretch_kernels(kernel_rows);
  Union stretch_compute, stretch_all, stretch_mpi;
  std::vector<Arrival> arrivals;
  std::unordered_map<uint32_t, uint32_t> sequences;
  int64_t from = kUnknown;  // end of the collectives so far
  uint32_t from_communicator = Arrival::kNobody, from_sequence = Arrival::kNobody;
  int64_t idle = 0, host = 0, unlaunched = 0;  // of the stretch
  int64_t gap_until = kUnknown;                // end of what ran in the stretch so far, collectives included
  int64_t kernels = 0, copies = 0;             // of the step
  int32_t gpu_step = -1;
  int64_t step_begin = 0;
  Times before_step;
  std::vector<Times> step_times;
  int64_t launch_bound = 0, launch_bound_before = 0;
  const auto end_step = [&](int64_t at) {
    const Times now = unions.up_to(at);
    if (gpu_step >= 0) {
      Times step = difference(now, before_step);
      step.first = step_begin;
      step.last = at;
      step.launch_bound = launch_bound - launch_bound_before;
      step_times.resize(std::max(step_times.size(), static_cast<size_t>(gpu_step)));
      step_times.push_back(step);
    }
    before_step = now;
    launch_bound_before = launch_bound;
    step_begin = at;
  };
  int64_t count_step = -2;  // the step that `kernels` and `copies` are of
  std::vector<int64_t> kernel_launches;

  const bool by_period = steps.begins.empty() && period.collectives > 0;
  size_t seen_collectives = 0;
  const auto step_at = [&](int64_t asked) {
    if (!by_period) return steps.of(asked);
    const size_t done = seen_collectives;
    return done < period.first ? -1 : static_cast<int32_t>((done - period.first) / period.collectives);
  };
  const auto begin_at = [&](int64_t start) {
    if (run.total.first != kUnknown) return;
    run.total.first = start;
    from = gap_until = start;
    step_begin = start;
  };
  const auto end_at = [&](int64_t end) {
    run.total.last = run.total.last == kUnknown ? end : std::max(run.total.last, end);
  };
  // A collective: what lies before it goes into its stretch, and the next one begins. `arrival` comes with its own
  // facts.
  const auto arrive = [&](Arrival arrival, int32_t step) {
    const int64_t start = arrival.start;
    arrival.from = std::min(from, start);
    arrival.compute = std::max<int64_t>(0, stretch_compute.up_to(start));
    arrival.copy = std::max<int64_t>(0, stretch_all.up_to(start) - arrival.compute);
    arrival.idle = idle;
    arrival.host = host;
    arrival.unlaunched = unlaunched;
    arrival.mpi = std::max<int64_t>(0, stretch_mpi.up_to(start));
    arrival.kernels = kernels;
    arrival.copies = copies;
    arrival.step = step;
    arrival.previous_communicator = from_communicator;
    arrival.previous_sequence = from_sequence;
    stretch_kernels.take(arrival.kernel, kernel_number);
    arrivals.push_back(arrival);
    ++seen_collectives;
    if (arrival.end >= from) {
      from = arrival.end;
      from_communicator = arrival.communicator;
      from_sequence = arrival.sequence;
    }
    // What still runs reaches into the next stretch.
    for (Union* const part : {&stretch_compute, &stretch_all, &stretch_mpi}) part->total = part->beyond(from);
    idle = host = unlaunched = 0;
    gap_until = std::max(gap_until, from);
  };

  // Calls of MPI by the host, between the GPU's operations in order of start.
  MpiOperations mpi(trace, run, names);
  MpiOperation called{};
  bool have_called = mpi.next(called);
  const auto take_call = [&] {
    const int64_t start = called.start, end = called.end;
    const int32_t step = step_at(start);
    begin_at(start);
    if (step > gpu_step) {
      end_step(std::max(start, step_begin));
      gpu_step = step;
    }
    if (step > count_step) {
      kernels = copies = 0;
      count_step = step;
    }
    if (start > gap_until) {  // the host was elsewhere
      idle += start - gap_until;
      host += start - gap_until;
    }
    if (called.collective) {
      Arrival arrival{};
      arrival.start = called.begun;
      arrival.end = end;
      arrival.launch = called.begun;
      arrival.bytes = called.bytes;
      arrival.operation = called.operation;
      arrival.by_host = true;
      arrival.communicator = called.communicator;
      arrival.sequence = called.sequence;
      uint32_t& next = sequences[called.communicator];
      next = std::max(next, called.sequence + 1);
      arrive(arrival, step);
    } else {
      // What ran on the GPU meanwhile is not MPI's time.
      const int64_t begin = std::max({start, from, gap_until});
      if (end > begin) stretch_mpi.add(begin, end);
      gap_until = std::max(gap_until, end);
    }
    unions.add(kCollective, start, end);
    end_at(end);
    have_called = mpi.next(called);
  };

  Operations operations(trace);
  GpuOperation pending{};
  bool have_pending = operations.next(pending);
  while (have_pending || have_called) {
    if (have_called && (!have_pending || called.start < pending.start)) {
      take_call();
      continue;
    }
    const GpuOperation operation = pending;
    have_pending = operations.next(pending);
    const int64_t process = trace.cell(Table::kTrack, operation.track, column::Track::process);
    if (run.process != 0 && process != run.process) continue;
    if (operation.duration == kUnknown) continue;
    const int64_t start = operation.start, end = start + std::max<int64_t>(operation.duration, 0);
    const bool is_dispatch = operation.table == Table::kDispatch;
    const size_t kernel = is_dispatch && operation.dim > 0 && operation.dim < static_cast<int64_t>(kernel_rows)
                              ? static_cast<size_t>(operation.dim)
                              : 0;
    Shape shape{};
    bool collective = is_dispatch && is_collective[kernel] != 0;
    if (is_dispatch && operation.arguments != 0 &&
        (collective || trace.string(operation.arguments).starts_with("Collective name="))) {
      shape = shape_of(operation.arguments, kernel);
      collective = true;
    } else if (collective) {
      const auto labels = told_by_library.find({process, operation.correlation});
      shape = labels != told_by_library.end() ? shape_of_labels(labels->second, kernel) : shape_of(0, kernel);
    }
    const Kind kind = !is_dispatch ? kCopy : collective ? kCollective : kCompute;
    const auto* const call = operation.correlation != 0 ? calls.find({process, operation.correlation}) : nullptr;
    ++run.operations;
    if (is_dispatch && !collective) ++run.kernels;
    if (call == nullptr) ++run.unlaunched;

    // Steps: of a collective by its launch alone, since it may run much later; of the rank's time by all else.
    const int64_t asked = call != nullptr ? call->value.start : start;
    const int32_t step = step_at(asked);
    begin_at(start);
    if (!collective && step > gpu_step) {
      end_step(std::max(start, step_begin));
      gpu_step = step;
    }
    if (step > count_step) {
      kernels = copies = 0;
      count_step = step;
    }

    // The gap before this operation. While a collective runs nothing counts as a gap.
    if (start > gap_until) {
      const int64_t gap = start - gap_until;
      idle += gap;
      if (call == nullptr)
        unlaunched += gap;
      else
        host += std::clamp<int64_t>(call->value.end - gap_until, 0, gap);
    }
    const int64_t all_until = unions.all.until;
    if (run.operations > 1 && start > all_until && call != nullptr)
      launch_bound += std::clamp<int64_t>(call->value.end - all_until, 0, start - all_until);

    if (collective) {
      Arrival arrival{};
      arrival.start = start;
      arrival.end = end;
      arrival.launch = call != nullptr ? call->value.start : kUnknown;
      arrival.bytes = shape.bytes;
      arrival.operation = shape.told.operation;
      arrival.communicator = shape.communicator;
      arrival.sequence = sequences[shape.communicator]++;
      arrive(arrival, step);
    } else {
      const int64_t inside = end - std::max(start, from);
      if (inside > 0) {
        stretch_all.add(std::max(start, from), end);
        if (kind == kCompute) stretch_compute.add(std::max(start, from), end);
      }
      if (kind == kCompute) {
        stretch_kernels.add(kernel_name[kernel], end - start);
        ++kernels;
        if (call != nullptr) kernel_launches.push_back(asked);
      } else {
        ++copies;
      }
      gap_until = std::max(gap_until, end);
    }
    unions.add(kind, start, end);
    end_at(end);
  }
  TACHO_TRY(operations.status());
  TACHO_TRY(mpi.status());
  if (run.total.first != kUnknown) {
    end_step(run.total.last);
    const Times all = unions.up_to(run.total.last);
    const int64_t first = run.total.first, last = run.total.last;
    run.total = all;
    run.total.first = first;
    run.total.last = last;
    run.total.launch_bound = launch_bound;
  }

  // Kernels before a collective in the order in which the host launched them: the GPU starts those of several streams
  // in an order of its own.
  if (!std::is_sorted(kernel_launches.begin(), kernel_launches.end()))
    std::sort(kernel_launches.begin(), kernel_launches.end());
  int64_t step_launch = INT64_MIN;
  for (size_t i = 0; i < arrivals.size() && kernel_launches.size() == static_cast<size_t>(run.kernels); ++i) {
    Arrival& arrival = arrivals[i];
    if (arrival.launch == kUnknown) continue;
    if (!steps.begins.empty())
      step_launch = arrival.step >= 0 ? steps.begins[static_cast<size_t>(arrival.step)] : INT64_MIN;
    else if (i > 0 && (!by_period || arrivals[i - 1].step != arrival.step) && arrivals[i - 1].launch != kUnknown)
      step_launch = arrivals[i - 1].launch;
    const auto first = std::lower_bound(kernel_launches.begin(), kernel_launches.end(), step_launch);
    const auto last = std::lower_bound(first, kernel_launches.end(), arrival.launch);
    arrival.kernels = last - first;
  }

  // What the host did meanwhile: only where the GPU idled long enough to ask.
  constexpr int64_t kWorthAsking = 20'000;  // ns
  std::vector<size_t> stretches;
  for (size_t i = 0; i < arrivals.size(); ++i)
    if (arrivals[i].idle + arrivals[i].mpi >= kWorthAsking && arrivals[i].from < arrivals[i].start)
      stretches.push_back(i);
  std::vector<uint64_t> function_number(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kFunction), 1)), 0);
  for (size_t row = 1; row < function_number.size(); ++row) {
    const auto domain =
        static_cast<event::Domain>(trace.cell(Table::kFunction, static_cast<int64_t>(row), column::Function::domain));
    if (domain != event::Domain::kOperator && domain != event::Domain::kPython)
      function_number[row] =
          names.number(trace.text(Table::kFunction, static_cast<int64_t>(row), column::Function::name));
  }
  TACHO_TRY(add_host_times(
      trace, Table::kApi, run.process, arrivals, stretches,
      [&](int64_t, int64_t dim) {
        return dim > 0 && dim < static_cast<int64_t>(function_number.size()) ? function_number[static_cast<size_t>(dim)]
                                                                             : uint64_t{0};
      },
      [](Arrival& arrival) { return arrival.call; }));
  std::unordered_map<int64_t, uint64_t> label_numbers;
  TACHO_TRY(add_host_times(
      trace, Table::kMarker, run.process, arrivals, stretches,
      [&](int64_t track, int64_t dim) -> uint64_t {
        if (trace.cell(Table::kTrack, track, column::Track::device) != 0) return 0;
        if (dim > 0 && dim < static_cast<int64_t>(steps.is_step.size()) && steps.is_step[static_cast<size_t>(dim)])
          return 0;
        const auto [found, fresh] = label_numbers.try_emplace(dim, 0);
        if (fresh) {
          const std::string_view name = trace.text(Table::kLabel, dim, column::Label::name);
          if (!name.starts_with("nccl:") && !name.starts_with("PyTorch Profiler")) found->second = names.number(name);
        }
        return found->second;
      },
      [](Arrival& arrival) { return arrival.range; }));

  for (const auto& [communicator, count] : sequences) run.communicators.push_back(communicator);
  std::sort(run.communicators.begin(), run.communicators.end());
  run.arrivals = arrivals.size();
  TACHO_ASSIGN(run.spool_at, spools.arrivals.append(arrivals));
  run.steps = step_times.size();
  TACHO_ASSIGN(run.steps_at, spools.steps.append(step_times));
  std::vector<MessageEvent> messages = mpi.take_messages();
  run.messages = messages.size();
  TACHO_ASSIGN(run.messages_at, spools.messages.append(messages));
  return {};
}

}  // namespace tacho::ranks
