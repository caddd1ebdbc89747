// How long kernels take to begin after their launch on an idle device: launch_delay() of questions.h.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "analysis/names.h"
#include "analysis/questions.h"
#include "base/files/sorted_file.h"
#include "base/format.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "trace/read/rows.h"
#include "walk/calls/launches.h"
#include "walk/sweep.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
using report::Answer;
using report::Unit;
namespace column = event::column;

namespace {

constexpr size_t kInMemory = 8u << 20;  // bytes of each sorted file, beside the launches that walk remembers

// An operation and its call. Sorted by call: a launch finds the GPU idle when all that was asked for before has ended.
struct TimedLaunch {
  int64_t call_start, call_end, start, end, function, kernel;
  int32_t device;
  int32_t is_kernel;
  int64_t sort_key() const { return call_start; }
  bool operator<(const TimedLaunch& other) const { return call_start < other.call_start; }
};

struct LaunchCounts {
  int64_t operations = 0, untied = 0;
  int64_t early = 0;  // begin before their call: the clocks are apart
};

Result<LaunchCounts> read_launches(const trace::Trace& trace, walk::Launches& calls,
                                   SortedFile<TimedLaunch>& launches) {
  static constexpr Table kOperations[] = {Table::kDispatch, Table::kCopy, Table::kFill};
  LaunchCounts counts;
  walk::Sweep sweep(trace, kOperations, walk::kSweepDim | walk::kSweepCorrelation);
  walk::RowSlice slice;
  while (sweep.next(slice)) {
    const auto track = trace::row<event::row::Track>(trace, slice.track);
    for (size_t i = 0; i < slice.rows; ++i) {
      const walk::Launch* const call = calls.find(track.process, slice.correlation[i], slice.start[i]);
      ++counts.operations;
      if (call == nullptr || call->duration == kUnknown || slice.duration[i] == kUnknown) {
        ++counts.untied;
        continue;
      }
      if (slice.start[i] < call->start) {
        ++counts.early;
        continue;
      }
      launches.add({call->start, call->start + call->duration, slice.start[i], slice.start[i] + slice.duration[i],
                    call->function, slice.dim[i], static_cast<int32_t>(track.device),
                    slice.table == Table::kDispatch ? 1 : 0});
    }
  }
  TACHO_TRY(Status(sweep.status()));
  TACHO_TRY(calls.status());
  TACHO_TRY(launches.finish());
  return counts;
}

// Device, function and kernel stand for all of their names.
struct Delay {
  int32_t device;
  int64_t function, kernel, delay;
  bool same(const Delay& other) const { return !(*this < other) && !(other < *this); }
  bool operator<(const Delay& other) const {
    return std::tie(device, function, kernel) < std::tie(other.device, other.function, other.kernel);
  }
};

class LaunchNames {
 public:
  static Result<LaunchNames> make(const trace::Trace& trace) {
    LaunchNames names(trace);
    names.function_rows_ = std::max<int64_t>(trace.rows(Table::kFunction), 1);
    names.kernel_rows_ = std::max<int64_t>(trace.rows(Table::kKernel), 1);
    TACHO_ASSIGN(names.functions_,
                 SameNames::make(names.function_rows_, [&](int64_t row) { return names.function(row); }));
    TACHO_ASSIGN(names.kernels_, SameNames::make(names.kernel_rows_, [&](int64_t row) { return names.kernel(row); }));
    return names;
  }
  bool few() const { return kernels_.names() <= kSortedByName && functions_.names() <= kSortedByName; }

  Delay delay_of(const TimedLaunch& launch) {
    const auto [device, fresh] = device_of_name_.try_emplace(launch.device, launch.device);
    if (fresh) device->second = devices_.try_emplace(gpu_name(*trace_, launch.device), launch.device).first->second;
    const auto known = [](int64_t row, int64_t rows) { return row >= 0 && row < rows ? row : 0; };
    return {device->second, functions_.first(known(launch.function, function_rows_)),
            kernels_.first(known(launch.kernel, kernel_rows_)), std::max<int64_t>(launch.start - launch.call_end, 0)};
  }
  std::array<std::string, 3> of(const Delay& delay) const {
    return {gpu_name(*trace_, delay.device), function(delay.function), kernel(delay.kernel)};
  }

 private:
  explicit LaunchNames(const trace::Trace& trace) : trace_(&trace) {}
  std::string function(int64_t row) const { return std::string(trace::text<column::Function::name>(*trace_, row)); }
  std::string kernel(int64_t row) const { return demangle(trace::text<column::Kernel::name>(*trace_, row)); }

  const trace::Trace* trace_;
  int64_t function_rows_ = 1, kernel_rows_ = 1;
  SameNames functions_, kernels_;
  std::map<std::string, int32_t> devices_;  // one of the devices with a name stands for all
  std::map<int32_t, int32_t> device_of_name_;
};

// The delays of kernels that were launched on an idle device.
Status add_delays(SortedFile<TimedLaunch>& launches, LaunchNames& names, SortedFile<Delay>& delays) {
  std::map<int32_t, int64_t> until;  // by device: the end of what was asked for so far
  TimedLaunch launch;
  int64_t last_call = kUnknown;
  while (launches.next(launch)) {
    int64_t& end = until.try_emplace(launch.device, INT64_MIN).first->second;
    // Further operations of the same call (a graph's nodes) were not launched on their own.
    const bool idle = end <= launch.call_start, first = launch.call_start != last_call;
    if (idle && first && launch.is_kernel != 0) delays.add(names.delay_of(launch));
    last_call = launch.call_start;
    end = std::max(end, launch.end);
  }
  return delays.finish();
}

struct DelaySum {
  Delay key;
  int64_t count, sum, least, most;
};
struct LongestFirst {
  std::shared_ptr<const LaunchNames> names;
  bool operator()(const DelaySum& a, const DelaySum& b) const {
    if (a.sum != b.sum) return a.sum > b.sum;
    return names->few() ? names->of(a.key) < names->of(b.key) : a.key < b.key;
  }
};
using DelaySums = SortedFile<DelaySum, LongestFirst>;

Status add_sums(SortedFile<Delay>& delays, DelaySums& sums) {
  Delay delay;
  DelaySum sum{};
  while (delays.next(delay)) {
    if (sum.count > 0 && !sum.key.same(delay)) {
      sums.add(sum);
      sum.count = 0;
    }
    if (sum.count == 0) sum = {delay, 0, 0, INT64_MAX, INT64_MIN};
    ++sum.count;
    add_saturating(sum.sum, delay.delay);
    sum.least = std::min(sum.least, delay.delay);
    sum.most = std::max(sum.most, delay.delay);
  }
  if (sum.count > 0) sums.add(sum);
  return sums.finish();
}

}  // namespace

Result<Answer> launch_delay(const trace::Trace& trace) {
  walk::Launches calls(trace, walk::Launches::Around::kNothing);
  SortedFile<TimedLaunch> launches(kInMemory);
  TACHO_ASSIGN(const LaunchCounts counts, read_launches(trace, calls, launches));
  TACHO_ASSIGN(LaunchNames made, LaunchNames::make(trace));
  const auto names = std::make_shared<LaunchNames>(std::move(made));
  SortedFile<Delay> delays(kInMemory);
  TACHO_TRY(add_delays(launches, *names, delays));
  const auto sums = std::make_shared<DelaySums>(kInMemory, LongestFirst{names});
  TACHO_TRY(add_sums(delays, *sums));
  Answer answer;
  answer.columns = {
      {"gpu", "GPU", Unit::kText},      {"api", "API", Unit::kText},    {"count", "Launches", Unit::kCount, 1},
      {"min_ns", "Min", Unit::kNs, 3},  {"mean_ns", "Mean", Unit::kNs}, {"max_ns", "Max", Unit::kNs, 2},
      {"kernel", "Kernel", Unit::kText}};
  answer.next = [sums, names](std::vector<report::Cell>& row) {
    DelaySum next;
    if (!sums->next(next)) return false;
    auto [device, function, kernel] = names->of(next.key);
    row = {std::move(device),
           std::move(function),
           next.count,
           next.least,
           static_cast<double>(next.sum) / static_cast<double>(next.count),
           next.most,
           std::move(kernel)};
    return true;
  };
  const int64_t operations = counts.operations;
  if (operations > 0) answer.when_empty = "no kernel that was launched on an idle GPU by a recorded API call";
  if (operations > 0 && !calls.any())
    answer.remarks.push_back(
        fmt::format("launch delays need the API calls that launched the {} GPU operation{}, and the trace holds none: "
                    "record API calls too, as tacho trace does",
                    operations, operations == 1 ? "" : "s"));
  else if (counts.untied > 0)
    answer.remarks.push_back(fmt::format("{} of {} GPU operations belong to no API call in the trace and are left out",
                                         counts.untied, operations));
  if (counts.early > 0)
    answer.remarks.push_back(
        counts.early == 1
            ? "1 GPU operation begins before the call that launched it: its delay is unknown, and it is left out"
            : fmt::format("{} GPU operations begin before the calls that launched them: their delays are unknown, and "
                          "they are left out",
                          counts.early));
  if (calls.forgotten() > 0) answer.remarks.push_back(walk::forgotten_sentence(calls.forgotten()));
  return answer;
}

}  // namespace tacho::analysis
