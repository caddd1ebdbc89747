// The pass over one rank's trace (rank_pass.h).
#include "ranks/read/rank_pass.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>

#include "base/saturating.h"
#include "ranks/match/mpi_operations.h"
#include "ranks/read/host_times.h"
#include "ranks/read/rank_kernels.h"
#include "trace/read/rows.h"
#include "walk/calls/causes.h"
#include "walk/sweep.h"
#include "walk/time/busy_time.h"

namespace tacho::ranks {

using event::Table;
namespace column = event::column;

namespace {

struct GpuOperation {
  Table table;
  int64_t track, start, end, dim, correlation, arguments;
};

// Kernels, copies and fills of a process (row; 0 = all) that have ended, as one sequence in order of start.
class GpuOperations {
 public:
  GpuOperations(const trace::Trace& trace, int64_t process)
      : trace_(trace),
        process_(process),
        sweep_(trace, kTables, walk::kSweepDim | walk::kSweepCorrelation | walk::kSweepArguments) {}
  bool next(GpuOperation& operation) {
    while (true) {
      if (at_ == slice_.rows) {
        at_ = slice_.rows = 0;
        if (!sweep_.next(slice_)) return false;
        if (process_ != 0 && process_of(slice_.track) != process_) at_ = slice_.rows;
        continue;
      }
      const size_t row = at_++;
      if (slice_.duration[row] == kUnknown) continue;
      operation = {slice_.table,
                   slice_.track,
                   slice_.start[row],
                   slice_.start[row] + std::max<int64_t>(slice_.duration[row], 0),
                   slice_.dim[row],
                   slice_.correlation[row],
                   slice_.table == Table::kDispatch ? slice_.arguments[row] : 0};
      return true;
    }
  }
  int64_t process_of(int64_t track) const { return trace::cell<column::Track::process>(trace_, track); }
  Status status() const { return sweep_.status(); }

 private:
  static constexpr Table kTables[] = {Table::kDispatch, Table::kCopy, Table::kFill};
  const trace::Trace& trace_;
  int64_t process_;
  walk::Sweep sweep_;
  walk::RowSlice slice_{};
  size_t at_ = 0;
};

enum Kind : uint8_t { kCompute, kCollective, kCopy };

// The time of a rank in which something of each kind ran, whole and step by step.
class TimeByStep {
 public:
  void add(Kind kind, int64_t start, int64_t end) {
    if (kind == kCompute) compute_.add(start, end);
    if (kind == kCollective) communication_.add(start, end);
    if (kind == kCopy) copies_.add(start, end);
    if (kind != kCopy) compute_or_communication_.add(start, end);
    all_.add(start, end);
    last_ = std::max(last_, end);
  }
  // The first operation of all begins.
  void begin_at(int64_t start) { first_ = last_ = begin_ = start; }
  bool begun() const { return first_ != kUnknown; }
  // An operation of `step` begins at `start`. Operations of earlier steps belong to the current one.
  void enter(int32_t step, int64_t start) {
    if (step <= step_) return;
    end_step(std::max(start, begin_));
    step_ = step;
  }
  // An operation begins at `start`; the call that launched it returned at `returned`.
  void idled(int64_t start, int64_t returned) {
    if (start > all_.until()) launch_bound_ += std::clamp<int64_t>(returned - all_.until(), 0, start - all_.until());
  }
  // After the last operation: the whole of it, and all steps by their numbers.
  Times take(std::vector<Times>& steps) {
    if (!begun()) return {};
    end_step(last_);
    steps = std::move(steps_);
    Times whole = up_to(last_);
    whole.first = first_;
    return whole;
  }

 private:
  Times up_to(int64_t time) const {
    Times times;
    times.last = time;
    times.compute = compute_.busy_before(time);
    times.communication = communication_.busy_before(time);
    times.copies = copies_.busy_before(time);
    times.compute_or_communication = compute_or_communication_.busy_before(time);
    times.busy = all_.busy_before(time);
    times.launch_bound = launch_bound_;
    return times;
  }
  void end_step(int64_t at) {
    const Times now = up_to(at);
    if (step_ >= 0) {
      steps_.resize(std::max(steps_.size(), static_cast<size_t>(step_)));
      Times& step = steps_.emplace_back(now);
      step.first = begin_;
      for (int64_t Times::*const part : {&Times::compute, &Times::communication, &Times::copies,
                                         &Times::compute_or_communication, &Times::busy, &Times::launch_bound})
        step.*part -= before_.*part;
    }
    before_ = now;
    begin_ = at;
  }

  walk::BusyTime compute_, communication_, copies_, compute_or_communication_, all_;
  int64_t first_ = kUnknown, last_ = kUnknown, launch_bound_ = 0;
  int32_t step_ = -1;
  int64_t begin_ = 0;  // of the step
  Times before_;       // what lies before it
  std::vector<Times> steps_;
};

// The kernels of a stretch by name.
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

// Busy time of a stretch, with the rest of operations that began earlier.
struct StretchTime {
  walk::BusyTime busy;
  int64_t before = 0;
  void restart(int64_t at) { before = busy.busy_before(at); }
  int64_t up_to(int64_t time) const { return std::max<int64_t>(0, busy.busy_before(time) - before); }
};

// The stretch of time since the last collective: what ran in it, and why the GPU idled.
class CurrentStretch {
 public:
  explicit CurrentStretch(size_t kernels) : kernels_(kernels) {}
  void begin_at(int64_t start) { from_ = gap_until_ = start; }

  // Time before `start` in which nothing ran counts as idle. While a collective runs, nothing counts as a gap.
  // `returned`: when the call that launched the operation at `start` returned; kUnknown = the trace has no such call.
  void gap(int64_t start, int64_t returned) {
    if (start <= gap_until_) return;
    const int64_t gap = start - gap_until_;
    idle_ += gap;
    if (returned == kUnknown)
      unlaunched_ += gap;
    else
      host_ += std::clamp<int64_t>(returned - gap_until_, 0, gap);
  }
  void add_gpu(Kind kind, size_t kernel, int64_t start, int64_t end) {
    const int64_t inside = std::max(start, from_);
    if (end > inside) {
      all_.busy.add(inside, end);
      if (kind == kCompute) compute_.busy.add(inside, end);
    }
    if (kind == kCompute) kernels_.add(kernel, end - start);
    gap_until_ = std::max(gap_until_, end);
  }
  // A call of MPI that is no collective. Time in which the GPU ran does not count as MPI's.
  void add_mpi(int64_t start, int64_t end) {
    const int64_t begin = std::max({start, from_, gap_until_});
    if (end > begin) mpi_.busy.add(begin, end);
    gap_until_ = std::max(gap_until_, end);
  }
  // `arrival` comes with its own facts and gets those of its stretch. The next stretch begins.
  void end_with(Arrival& arrival, const std::vector<uint64_t>& kernel_numbers) {
    const int64_t start = arrival.start;
    arrival.from = std::min(from_, start);
    arrival.compute = compute_.up_to(start);
    arrival.copy = std::max<int64_t>(0, all_.up_to(start) - arrival.compute);
    arrival.idle = idle_;
    arrival.host = host_;
    arrival.unlaunched = unlaunched_;
    arrival.mpi = mpi_.up_to(start);
    arrival.previous_communicator = communicator_;
    arrival.previous_sequence = sequence_;
    arrival.previous_number = number_;
    kernels_.take(arrival.kernel, kernel_numbers);
    if (arrival.end >= from_) {
      from_ = arrival.end;
      communicator_ = arrival.communicator;
      sequence_ = arrival.sequence;
      number_ = arrival.number;
    }
    for (StretchTime* const part : {&compute_, &all_, &mpi_}) part->restart(from_);
    idle_ = host_ = unlaunched_ = 0;
    gap_until_ = std::max(gap_until_, from_);
  }

 private:
  StretchTime compute_, all_, mpi_;
  KernelTimes kernels_;
  int64_t from_ = kUnknown;                                                 // end of the collectives so far
  uint32_t communicator_ = Arrival::kNobody, sequence_ = Arrival::kNobody;  // of the collective that ended then
  int64_t number_ = -1;
  int64_t gap_until_ = kUnknown;  // end of what ran in the stretch so far, collectives included
  int64_t idle_ = 0, host_ = 0, unlaunched_ = 0;
};

class Pass {
 public:
  Pass(const trace::Trace& trace, const Period& period, StepMarks marks, walk::Causes<walk::Span> calls,
       RankKernels kernels, Names& names, RankRun& run)
      : trace_(trace),
        marks_(std::move(marks)),
        period_(marks_.begins.empty() ? period : Period{}),
        calls_(std::move(calls)),
        kernels_(std::move(kernels)),
        names_(names),
        run_(run),
        stretch_(kernels_.size()) {}

  // Reads all of the rank.
  Status read();
  // Stores the results in the run and the spools.
  Status leave(Spools& spools);

 private:
  int32_t step_at(int64_t asked) const;
  void begin_at(int64_t start);
  void count_from(int32_t step);
  void arrive(Arrival arrival, int32_t step);
  void take(const MpiOperation& called);
  void take(const GpuOperation& operation, int64_t process);
  void count_launched_kernels();

  const trace::Trace& trace_;
  StepMarks marks_;
  Period period_;
  walk::Causes<walk::Span> calls_;
  RankKernels kernels_;
  Names& names_;
  RankRun& run_;
  TimeByStep time_;
  CurrentStretch stretch_;
  std::vector<Arrival> arrivals_;
  std::vector<MessageEvent> messages_;
  struct Numbering {
    uint32_t count = 0;             // collectives so far
    int64_t first = -1, last = -1;  // the program's numbers of them
    bool ascending = true;          // all have one, each above the last
    bool identified = true;         // all have an identity
  };
  std::unordered_map<uint32_t, Numbering> sequences_;  // by communicator
  std::set<uint64_t> identities_;                      // the least of them
  int32_t count_step_ = -2;                            // the step that the counts below are of
  int64_t kernel_count_ = 0, copy_count_ = 0;
  std::vector<int64_t> kernel_launches_;
};

int32_t Pass::step_at(int64_t asked) const {
  if (period_.collectives == 0) return marks_.of(asked);
  const size_t done = arrivals_.size();
  return done < period_.first ? -1 : static_cast<int32_t>((done - period_.first) / period_.collectives);
}

void Pass::begin_at(int64_t start) {
  if (time_.begun()) return;
  time_.begin_at(start);
  stretch_.begin_at(start);
}

void Pass::count_from(int32_t step) {
  if (step <= count_step_) return;
  kernel_count_ = copy_count_ = 0;
  count_step_ = step;
}

// A collective, with its own facts.
void Pass::arrive(Arrival arrival, int32_t step) {
  arrival.kernels = kernel_count_;
  arrival.copies = copy_count_;
  arrival.step = step;
  stretch_.end_with(arrival, kernels_.numbers());
  arrivals_.push_back(arrival);
}

void Pass::take(const MpiOperation& called) {
  const int64_t start = called.start, end = called.end;
  const int32_t step = step_at(start);
  begin_at(start);
  time_.enter(step, start);
  count_from(step);
  stretch_.gap(start, start);  // the host was elsewhere
  if (called.collective) {
    Arrival arrival{};
    arrival.start = arrival.launch = called.begun;
    arrival.end = end;
    arrival.bytes = called.bytes;
    arrival.operation = called.operation;
    arrival.by_host = true;
    arrival.communicator = called.communicator;
    arrival.sequence = called.sequence;
    arrival.number = arrival.previous_number = -1;
    arrival.group_size = -1;
    Numbering& numbering = sequences_[called.communicator];
    numbering.count = std::max(numbering.count, called.sequence + 1);
    numbering.ascending = numbering.identified = false;  // MPI's own sequence tells
    arrive(arrival, step);
  } else {
    stretch_.add_mpi(start, end);
  }
  time_.add(kCollective, start, end);
}

void Pass::take(const GpuOperation& operation, int64_t process) {
  const int64_t start = operation.start, end = operation.end;
  const bool is_dispatch = operation.table == Table::kDispatch;
  const size_t kernel = is_dispatch ? kernels_.place(operation.dim) : 0;
  std::optional<RankKernels::Collective> collective;
  if (is_dispatch) collective = kernels_.collective(kernel, operation.arguments, process, operation.correlation);
  const Kind kind = !is_dispatch ? kCopy : collective ? kCollective : kCompute;
  const walk::Span* const call = calls_.find(process, operation.correlation);
  ++run_.operations;
  if (kind == kCompute) ++run_.kernels;
  if (call == nullptr) ++run_.unlaunched;

  // Steps: of a collective by its launch alone, since it may run much later; of the rank's time by all else.
  const int64_t asked = call != nullptr ? call->first : start;
  const int32_t step = step_at(asked);
  begin_at(start);
  if (!collective) time_.enter(step, start);
  count_from(step);
  stretch_.gap(start, call != nullptr ? call->last : kUnknown);
  if (run_.operations > 1 && call != nullptr) time_.idled(start, call->last);

  if (collective) {
    Arrival arrival{};
    arrival.start = start;
    arrival.end = end;
    arrival.launch = call != nullptr ? call->first : kUnknown;
    arrival.bytes = collective->bytes;
    arrival.operation = collective->operation;
    arrival.communicator = collective->communicator;
    Numbering& numbering = sequences_[collective->communicator];
    arrival.sequence = numbering.count++;
    arrival.number = collective->number;
    arrival.identity = collective->identity;
    arrival.group_size = static_cast<int32_t>(std::clamp<int64_t>(collective->group_size, -1, INT32_MAX));
    if (arrival.identity == 0)
      numbering.identified = false;
    else
      identities_.insert(arrival.identity);
    if (identities_.size() > RankRun::kMostIdentities) identities_.erase(std::prev(identities_.end()));
    if (arrival.sequence == 0) numbering.first = arrival.number;
    numbering.ascending = numbering.ascending && arrival.number > numbering.last;
    numbering.last = arrival.number;
    arrive(arrival, step);
  } else {
    stretch_.add_gpu(kind, kernels_.first_of_name(kernel), start, end);
    ++(kind == kCompute ? kernel_count_ : copy_count_);
    if (kind == kCompute && call != nullptr) kernel_launches_.push_back(asked);
  }
  time_.add(kind, start, end);
}

// The GPU starts kernels of several streams in an order of its own, so kernels before a collective count in the order
// in which the host launched them, where it launched all of them.
void Pass::count_launched_kernels() {
  if (kernel_launches_.size() != static_cast<size_t>(run_.kernels)) return;
  if (!std::is_sorted(kernel_launches_.begin(), kernel_launches_.end()))
    std::sort(kernel_launches_.begin(), kernel_launches_.end());
  int64_t step_launch = INT64_MIN;
  for (size_t i = 0; i < arrivals_.size(); ++i) {
    Arrival& arrival = arrivals_[i];
    if (arrival.launch == kUnknown) continue;
    if (!marks_.begins.empty())
      step_launch = arrival.step >= 0 ? marks_.begins[static_cast<size_t>(arrival.step)] : INT64_MIN;
    else if (i > 0 && (period_.collectives == 0 || arrivals_[i - 1].step != arrival.step) &&
             arrivals_[i - 1].launch != kUnknown)
      step_launch = arrivals_[i - 1].launch;
    const auto first = std::lower_bound(kernel_launches_.begin(), kernel_launches_.end(), step_launch);
    const auto last = std::lower_bound(first, kernel_launches_.end(), arrival.launch);
    arrival.kernels = last - first;
  }
}

Status Pass::read() {
  // Calls of MPI by the host, between the GPU's operations in order of start.
  MpiOperations mpi(trace_, run_, names_);
  MpiOperation called{};
  bool have_called = mpi.next(called);
  GpuOperations operations(trace_, run_.process);
  GpuOperation operation{};
  bool have_operation = operations.next(operation);
  while (have_operation || have_called) {
    if (have_called && (!have_operation || called.start < operation.start)) {
      take(called);
      have_called = mpi.next(called);
    } else {
      take(operation, operations.process_of(operation.track));
      have_operation = operations.next(operation);
    }
  }
  TACHO_TRY(operations.status());
  TACHO_TRY(mpi.status());
  messages_ = mpi.take_messages();
  count_launched_kernels();
  return add_host_times(trace_, run_.process, marks_.is_step, names_, arrivals_);
}

Status Pass::leave(Spools& spools) {
  std::vector<Times> steps;
  run_.total = time_.take(steps);
  run_.steps_from = marks_.from;
  run_.first_step = marks_.first;
  run_.numbered.clear();
  run_.identified.clear();
  for (const auto& [communicator, numbering] : sequences_) {
    run_.communicators.push_back(communicator);
    if (numbering.ascending && numbering.first >= 0) run_.numbered[communicator] = numbering.first;
    if (numbering.identified) run_.identified.push_back(communicator);
  }
  std::sort(run_.communicators.begin(), run_.communicators.end());
  std::sort(run_.identified.begin(), run_.identified.end());
  run_.identities.assign(identities_.begin(), identities_.end());
  run_.arrivals = arrivals_.size();
  TACHO_ASSIGN(run_.spool_at, spools.arrivals.append(arrivals_));
  run_.steps = steps.size();
  TACHO_ASSIGN(run_.steps_at, spools.steps.append(steps));
  run_.messages = messages_.size();
  TACHO_ASSIGN(run_.messages_at, spools.messages.append(messages_));
  return {};
}

}  // namespace

Status pass_over(const trace::Trace& trace, const Period& period, Names& names, Spools& spools, RankRun& run) {
  run.calls = run.mpi = run.mpi_waiting = run.file_read = run.file_written = 0;
  run.one_sided.clear();
  run.communicators.clear();
  run.kernels = run.operations = run.unlaunched = 0;
  TACHO_ASSIGN(StepMarks marks, marked_steps(trace, run.process));
  TACHO_ASSIGN(walk::Causes<walk::Span> calls, walk::runtime_calls(trace, run.process));
  TACHO_ASSIGN(RankKernels kernels, RankKernels::make(trace, run.process, names));
  Pass pass(trace, period, std::move(marks), std::move(calls), std::move(kernels), names, run);
  TACHO_TRY(pass.read());
  return pass.leave(spools);
}

}  // namespace tacho::ranks
