// Trimming and merging of traces (trim.h).
#include "analysis/trim.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "analysis/sums/sums.h"
#include "base/files/sorted_file.h"
#include "base/saturating.h"
#include "trace/read/rows.h"
#include "trace/write/copy.h"
#include "walk/calls/causes.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
namespace column = event::column;
using A = column::Api;
using D = column::Dispatch;

namespace {

struct Pair {
  int64_t a, b;
  bool operator<(const Pair& other) const { return a != other.a ? a < other.a : b < other.b; }
  bool operator==(const Pair& other) const { return a == other.a && b == other.b; }
};

bool is_operation(Table table) {
  return table == Table::kDispatch || table == Table::kCopy || table == Table::kFill || table == Table::kSync;
}

}  // namespace

Status trim_into(const trace::Trace& trace, trace::TraceWriter& writer, int64_t from, int64_t to, TrimCounts& counts) {
  const auto inside = [&](int64_t start) { return start >= from && start <= to; };
  const auto process_of = [&](int64_t track) { return trace::cell<column::Track::process>(trace, track); };
  // Of every call, and of every dispatch by (track, start): whether it is kept.
  walk::Causes<bool> calls;
  KeyIndex<bool, Pair> dispatches;
  Status status;
  for (const auto& c : trace::chunks<A::track, A::start, A::correlation>(trace, status))
    for (size_t i = 0; i < c.size(); ++i) calls.add(process_of(c.track[i]), c.correlation[i], inside(c.start[i]));
  TACHO_TRY(status);
  TACHO_TRY(calls.finish());
  const auto operation_kept = [&](int64_t track, int64_t start, int64_t correlation) {
    const bool* const kept = calls.find(process_of(track), correlation);
    return kept != nullptr ? *kept : inside(start);
  };
  if (trace.rows(Table::kCounterValue) > 0) {
    for (const auto& d : trace::chunks<D::track, D::start, D::correlation>(trace, status))
      for (size_t i = 0; i < d.size(); ++i)
        dispatches.add({d.track[i], d.start[i]}, operation_kept(d.track[i], d.start[i], d.correlation[i]));
    TACHO_TRY(status);
    TACHO_TRY(dispatches.finish());
  }
  const auto end_kept = [&](int64_t process, int64_t correlation) {
    const bool* const kept = calls.find(process, correlation);
    return kept == nullptr || *kept;
  };
  trace::CopyOptions options;
  options.only_used = true;
  options.keep = [&](Table table, const int64_t* row) {
    bool kept;
    if (table == Table::kLink) {
      kept = end_kept(row[column::Link::process], row[column::Link::from]) &&
             end_kept(row[column::Link::process], row[column::Link::to]);
    } else if (table == Table::kCounterValue) {
      const auto* const dispatch =
          dispatches.find({row[column::CounterValue::track], row[column::CounterValue::start]});
      kept = dispatch != nullptr ? dispatch->value : inside(row[column::CounterValue::start]);
    } else if (is_operation(table)) {
      kept = operation_kept(row[column::Fact::track], row[column::Fact::start], row[column::Fact::correlation]);
    } else {
      kept = inside(row[column::Fact::start]);
    }
    ++(kept ? counts.kept : counts.dropped);
    return kept;
  };
  TACHO_TRY(trace::copy_into(trace, writer, options));
  if (!trace.complete()) writer.property(Table::kEnd, 0, kCutOff, trace.note());
  return {};
}

namespace {

// Where a trace's clock stands against the world's; nothing when it does not know.
struct Anchor {
  int64_t raw, realtime;
};
Result<std::optional<Anchor>> anchor_of(const trace::Trace& trace) {
  std::optional<Anchor> anchor;
  if (const auto base = trace.property(Table::kEnd, 0, "kineto.baseTimeNanoseconds")) {
    int64_t value = 0;
    if (std::from_chars(base->data(), base->data() + base->size(), value).ec == std::errc())
      return std::optional(Anchor{0, value});
  }
  using C = column::Clock;
  Status status;
  for (const auto& clocks : trace::chunks<C::raw, C::realtime, C::device>(trace, status))
    for (size_t i = 0; i < clocks.size(); ++i)
      if (clocks.device[i] == 0 && clocks.realtime[i] != kUnknown && clocks.realtime[i] != 0 &&
          (!anchor || clocks.raw[i] < anchor->raw))
        anchor = Anchor{clocks.raw[i], clocks.realtime[i]};
  TACHO_TRY(status);
  return anchor;
}

constexpr std::string_view kClocks = "clocks", kUnaligned = "unaligned";

// How far two spans of time lie apart, ns; 0 when they touch or one is empty.
int64_t distance(std::pair<int64_t, int64_t> a, std::pair<int64_t, int64_t> b) {
  if (a.first > a.second || b.first > b.second) return 0;
  if (a.first > b.first) std::swap(a, b);
  int64_t gap = 0;
  if (b.first <= a.second) return 0;
  return __builtin_sub_overflow(b.first, a.second, &gap) ? std::numeric_limits<int64_t>::max() : gap;
}

// Whose devices the traces of a merge are, if they have no uuid: their host's, else their rank's, else their own.
class DeviceOwners {
 public:
  /// 0 for the first machine, else `first_process`, a process of the trace's.
  int64_t owner(const trace::Trace& trace, const TracedMachine& machine, size_t input, int64_t first_process) {
    std::string name;
    if (machine.host.empty()) {
      name = without_host(trace, input);
    } else {
      auto known = std::ranges::find_if(machines_, [&](const TracedMachine& each) { return each.is(machine); });
      if (known == machines_.end()) known = machines_.insert(known, machine);
      name = fmt::format("machine {}", known - machines_.begin());
    }
    return owners_.try_emplace(name, owners_.empty() ? 0 : first_process).first->second;
  }

 private:
  static std::string without_host(const trace::Trace& trace, size_t input);
  std::vector<TracedMachine> machines_;
  std::map<std::string, int64_t> owners_;
};

std::string DeviceOwners::without_host(const trace::Trace& trace, size_t input) {
  for (int64_t process = 1; process < trace.rows(Table::kProcess); ++process)
    if (const int64_t rank = trace.cell(Table::kProcess, process, column::Process::rank); rank != kUnknown)
      return fmt::format("rank {}", rank);
  return fmt::format("run {}", input);
}

// Sums of `tacho watch` add up by time: they merge with sums of other times, and with nothing else.
class SumsInTurn {
 public:
  Status take(const MergeInput& input, int64_t time_shift) {
    const bool sums = holds_sums(*input.trace);
    if (first_.empty()) first_ = input.name;
    if (taken_++ > 0 && sums == spans_.empty())
      return fail("{}: holds sums of tacho watch, and {} does not: they do not merge", sums ? input.name : first_,
                  sums ? first_ : input.name);
    if (!sums) return {};
    TACHO_ASSIGN(TimeRange span, span_of_sums(*input.trace));
    add_saturating(span.from, time_shift);
    add_saturating(span.to, time_shift);
    for (const auto& [name, other] : spans_)
      if (span.from < other.to && other.from < span.to)
        return fail(
            "{}: its time overlaps that of {}: sums of one time do not merge; tacho diff compares them, and tacho "
            "watch --from shows several hosts together",
            input.name, name);
    spans_.emplace_back(input.name, span);
    return {};
  }

 private:
  size_t taken_ = 0;
  std::string first_;
  std::vector<std::pair<std::string, TimeRange>> spans_;
};

}  // namespace

bool TracedMachine::is(const TracedMachine& other) const {
  constexpr int64_t kStep = 1'000'000'000;  // ns; by less the real-time clock is set while a machine runs
  if (host.empty() || host != other.host) return false;
  return booted == kUnknown || other.booted == kUnknown ||
         (booted - other.booted <= kStep && other.booted - booted <= kStep);
}

Result<TracedMachine> traced_machine(const trace::Trace& trace) {
  TracedMachine machine;
  for (int64_t process = 1; process < trace.rows(Table::kProcess) && machine.host.empty(); ++process)
    machine.host = trace::text<column::Process::host>(trace, process);
  // The clocks of a merged trace are those of its first recording.
  for (int64_t process = 1; process < trace.rows(Table::kProcess); ++process)
    if (trace::cell<column::Process::run>(trace, process) > 0) return machine;
  using C = column::Clock;
  Status status;
  for (const auto& clocks : trace::chunks<C::boottime, C::realtime, C::device>(trace, status))
    for (size_t i = 0; i < clocks.size() && machine.booted == kUnknown; ++i)
      if (clocks.device[i] == 0 && clocks.boottime[i] > 0 && clocks.realtime[i] > 0)
        machine.booted = clocks.realtime[i] - clocks.boottime[i];
  TACHO_TRY(status);
  return machine;
}

Status merge_into(const std::vector<MergeInput>& inputs, trace::TraceWriter& writer, std::vector<std::string>& notes) {
  if (inputs.empty()) return fail("nothing to merge");
  SumsInTurn sums;
  std::optional<Anchor> first_anchor;
  TracedMachine first_machine;
  bool have_clocks = false;
  int64_t next_run = 0;
  size_t unaligned = 0;
  DeviceOwners owners;
  std::string before;  // what an input says of the traces that it was merged from
  for (size_t i = 0; i < inputs.size(); ++i) {
    const trace::Trace& trace = *inputs[i].trace;
    if (trace.aggregated())
      return fail("{}: recorded with --aggregate: it holds no events that could be merged", inputs[i].name);
    TACHO_ASSIGN(const std::optional<Anchor> anchor, anchor_of(trace));
    TACHO_ASSIGN(const TracedMachine machine, traced_machine(trace));
    trace::CopyOptions options;
    options.run = next_run;
    options.device_owner = [&, i](int64_t first_process) { return owners.owner(trace, machine, i, first_process); };
    int64_t runs = 1;
    for (int64_t process = 1; process < trace.rows(Table::kProcess); ++process)
      runs = std::max(runs, trace.cell(Table::kProcess, process, column::Process::run) + 1);
    next_run += runs;
    options.clocks = !have_clocks;
    if (const auto clocks = trace.property(Table::kEnd, 0, kClocks);
        before.empty() && clocks && clocks->starts_with(kUnaligned))
      before = *clocks;
    const bool one_clock = anchor && first_anchor && machine.is(first_machine);
    if (i > 0 && !inputs[i].related && !one_clock) ++unaligned;
    if (i == 0) {
      first_anchor = anchor;
      first_machine = machine;
    } else if (inputs[i].time_map) {
      options.time_map = inputs[i].time_map;
    } else if (anchor && first_anchor) {
      // Within one boot of a machine the clocks agree but for adjustments of the real-time clock.
      const int64_t shift = (anchor->realtime - first_anchor->realtime) - (anchor->raw - first_anchor->raw);
      const bool apart = machine.host != first_machine.host || (!machine.host.empty() && !machine.is(first_machine));
      if (apart || shift > 1'000'000'000 || shift < -1'000'000'000) options.time_shift = shift;
    } else {
      const int64_t apart = distance(inputs[0].trace->time_range(), trace.time_range());
      constexpr int64_t kFar = 3'600'000'000'000;  // ns: further apart, they do not show one job
      std::string note = fmt::format(
          "{}: unaligned: it does not tell how its clock relates to that of {}: ", inputs[i].name, inputs[0].name);
      if (apart > kFar) {
        options.time_shift = inputs[0].trace->time_range().first - trace.time_range().first;
        note += fmt::format("its times lie {:.1f} hours away and were moved so that both begin together; compare "
                            "durations across the two, not moments",
                            static_cast<double>(apart) / 3.6e12);
      } else {
        note += "times of the two are put together as they are";
      }
      writer.note(0, event::NoteSeverity::kWarning, note);
      notes.push_back(std::move(note));
    }
    have_clocks = have_clocks || trace.rows(Table::kClock) > 0;
    TACHO_TRY(sums.take(inputs[i], options.time_shift));
    TACHO_TRY(trace::copy_into(trace, writer, options));
    if (!trace.complete()) writer.property(Table::kEnd, 0, kCutOff, trace.note());
  }
  // After the inputs' own properties, of which the last one counts.
  if (unaligned > 0 && inputs.size() == 2)
    before = fmt::format("{}: no collective or message ties the clocks of the two traces", kUnaligned);
  else if (unaligned > 0)
    before = fmt::format("{}: {} of {} other traces are tied to the first one's clock by no collective or message",
                         kUnaligned, unaligned, inputs.size() - 1);
  if (!before.empty()) writer.property(Table::kEnd, 0, kClocks, before);
  return {};
}

std::string unaligned_sentence(const trace::Trace& trace) {
  const auto clocks = trace.property(Table::kEnd, 0, kClocks);
  if (!clocks || !clocks->starts_with(kUnaligned)) return {};
  return fmt::format("{}; times of different traces compare only as far as their clocks agree", *clocks);
}

std::string cut_off_sentence(const trace::Trace& trace, const std::string& path) {
  if (!trace.complete()) return std::string(trace.note());
  const auto cut = trace.property(Table::kEnd, 0, kCutOff);
  return cut ? fmt::format("{}: {}", path, *cut) : std::string();
}

bool holds_no_event(const trace::Trace& trace) {
  if (trace.aggregated()) return false;
  for (size_t i = 0; i < event::kFactTables; ++i) {
    const auto table = static_cast<Table>(i);
    if ((event::is_timed(table) || table == Table::kCounterValue) && trace.rows(table) > 0) return false;
  }
  return true;
}

}  // namespace tacho::analysis
