// Statistics per name from chunk summaries (stats.h).
#include "analysis/stats.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "analysis/accumulate.h"
#include "analysis/call_kind.h"
#include "analysis/host/own_time.h"
#include "analysis/kernels/launch_shape.h"
#include "analysis/names.h"
#include "analysis/operators/places.h"
#include "base/files/sorted_file.h"
#include "base/files/temporary.h"
#include "base/format.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "event/left_out.h"
#include "event/schema.h"
#include "event/times.h"
#include "report/text.h"
#include "trace/read/rows.h"
#include "trace/store/hash.h"
#include "trace/write/scratch.h"
#include "walk/names/program_ranges.h"
#include "walk/sweep.h"
#include "walk/time/busy_time.h"

namespace tacho::analysis {

using event::Table;
namespace column = event::column;

namespace {

// Tables of numbers up to this size, in bytes, are the process's own memory; larger ones lie in temporary files.
constexpr size_t kOwnMemory = 16 << 20;

struct Accumulator {
  StatRow row;
  Sums sums;
  void add(const trace::Summary& summary) { sums.add(summary); }
};

Table table_of(By by) {
  switch (by) {
    case By::kKernel:
      return Table::kDispatch;
    case By::kApi:
      return Table::kApi;
    case By::kCopy:
      return Table::kCopy;
    case By::kFill:
      return Table::kFill;
    case By::kMarker:
      return Table::kMarker;
    case By::kSync:
      return Table::kSync;
    case By::kOverhead:
      return Table::kOverhead;
    case By::kAllocation:
      return Table::kAllocation;
    case By::kDomain:
      break;
  }
  return Table::kEnd;
}

Table dimension_of(By by) {
  switch (by) {
    case By::kKernel:
      return Table::kKernel;
    case By::kApi:
      return Table::kFunction;
    case By::kCopy:
      return Table::kCopyShape;
    case By::kFill:
      return Table::kFillShape;
    case By::kMarker:
      return Table::kLabel;
    case By::kSync:
      return Table::kSyncShape;
    case By::kOverhead:
      return Table::kOverheadShape;
    case By::kAllocation:
      return Table::kAllocationShape;
    case By::kDomain:
      break;
  }
  return Table::kEnd;
}

// The name and group under which a dimension row is counted.
std::pair<std::string, std::string> name_of(const trace::Trace& trace, By by, int64_t dim, const StatOptions& options) {
  const auto enum_text = [&](auto value) { return std::string(event::to_string(value)); };
  switch (by) {
    case By::kKernel: {
      const std::string_view raw = trace.text(Table::kKernel, dim, column::Kernel::name);
      std::string name = options.mangled ? std::string(raw) : demangle(raw);
      if (options.truncate) name = short_name(name);
      std::string shape;
      if (options.per_shape) {
        const LaunchShapeText text = launch_shape(trace, dim, options.blocks, "x");
        const auto known = [](const std::string& size) { return size.empty() ? std::string("?") : size; };
        shape = fmt::format("grid {}, {} {}", known(text.grid), text.group_title, known(text.group));
      }
      return {std::move(name), std::move(shape)};
    }
    case By::kApi:
      return {std::string(trace.text(Table::kFunction, dim, column::Function::name)),
              enum_text(static_cast<event::Domain>(trace.cell(Table::kFunction, dim, column::Function::domain)))};
    case By::kCopy:
      return {enum_text(
                  static_cast<event::CopyDirection>(trace.cell(Table::kCopyShape, dim, column::CopyShape::direction))),
              ""};
    case By::kFill:
      return {"fill " + enum_text(static_cast<event::MemoryKind>(
                            trace.cell(Table::kFillShape, dim, column::FillShape::memory))),
              ""};
    case By::kMarker:
      return {std::string(trace.text(Table::kLabel, dim, column::Label::name)),
              std::string(trace.text(Table::kLabel, dim, column::Label::domain))};
    case By::kSync:
      return {enum_text(static_cast<event::SyncKind>(trace.cell(Table::kSyncShape, dim, column::SyncShape::kind))), ""};
    case By::kOverhead: {
      const std::string_view name = trace.text(Table::kOverheadShape, dim, column::OverheadShape::name);
      const auto kind = enum_text(
          static_cast<event::OverheadKind>(trace.cell(Table::kOverheadShape, dim, column::OverheadShape::kind)));
      return {name.empty() ? kind : std::string(name), kind};
    }
    case By::kAllocation:
      return {enum_text(static_cast<event::AllocationOperation>(
                  trace.cell(Table::kAllocationShape, dim, column::AllocationShape::operation))) +
                  " " + std::string(trace.text(Table::kAllocationShape, dim, column::AllocationShape::name)),
              ""};
    case By::kDomain:
      break;
  }
  return {};
}

void finish(std::vector<StatRow>& rows) {
  double sum = 0;
  for (const StatRow& row : rows) sum += static_cast<double>(row.total);
  for (StatRow& row : rows) row.percent = sum > 0 ? static_cast<double>(row.total) / sum * 100.0 : 0.0;
  std::sort(rows.begin(), rows.end(), [](const StatRow& a, const StatRow& b) {
    return a.total != b.total ? a.total > b.total : std::tie(a.name, a.group) < std::tie(b.name, b.group);
  });
}

void close(Accumulator& sum) {
  sum.row.count = sum.sums.count + sum.sums.unknown;
  sum.row.unknown = sum.sums.unknown;
  sum.row.bytes = sum.sums.bytes;
  sum.row.sized = sum.sums.sized;
  sum.row.sized_ns = sum.sums.sized_ns;
  sum.row.total = sum.sums.total;
  sum.row.min = sum.sums.min;
  sum.row.max = sum.sums.max;
  sum.row.mean = sum.sums.mean;
  sum.row.stddev = sum.sums.stddev();
}

// Whether the trace has rows that nest within others of their kind, whose times must not be added up. Sums of
// --aggregate cannot be taken apart.
bool any_nests(const trace::Trace& trace) {
  if (trace.aggregated()) return false;
  if (trace.rows(Table::kMarker) > 0) return true;
  for (int64_t row = 1; row < trace.rows(Table::kFunction); ++row)
    if (functions_nest(event::from_cell(trace::cell<column::Function::domain>(trace, row)))) return true;
  return false;
}

Result<std::vector<StatRow>> by_domain(const trace::Trace& trace, const StatOptions& options) {
  std::vector<StatRow> rows;
  const auto add = [&](std::string name, Accumulator& sum) {
    close(sum);
    if (sum.row.count == 0) return;
    sum.row.name = std::move(name);
    rows.push_back(std::move(sum.row));
  };
  const auto of_process = [&](const trace::Summary& summary) {
    return !options.process || trace.cell(Table::kTrack, summary.track, column::Track::process) == *options.process;
  };
  static constexpr std::pair<Table, const char*> kTables[] = {
      {Table::kDispatch, "KERNEL_DISPATCH"}, {Table::kCopy, "MEMORY_COPY"},
      {Table::kFill, "MEMORY_FILL"},         {Table::kAllocation, "MEMORY_ALLOCATION"},
      {Table::kMarker, "MARKER_API"},        {Table::kSync, "SYNCHRONIZATION"},
      {Table::kOverhead, "OVERHEAD"}};
  const bool own = options.of_program && any_nests(trace);
  OwnTimes times;
  if (own) {
    TACHO_ASSIGN(times, own_times(trace, options.process));
  }
  for (const auto& [table, name] : kTables) {
    Accumulator sum;
    if (own && table == Table::kMarker)
      sum.sums = times[HostKind::kMarker];
    else
      TACHO_TRY(trace.visit_summaries(table, [&](std::span<const trace::Summary> summaries) {
        for (const trace::Summary& summary : summaries)
          if (of_process(summary)) sum.add(summary);
      }));
    add(name, sum);
  }
  std::vector<Accumulator> domains(static_cast<size_t>(event::Domain::kEnd));
  TACHO_TRY(trace.visit_summaries(Table::kApi, [&](std::span<const trace::Summary> summaries) {
    for (const trace::Summary& summary : summaries) {
      const auto domain = static_cast<uint64_t>(trace.cell(Table::kFunction, summary.dim, column::Function::domain));
      if (of_process(summary) && domain < domains.size()) domains[domain].add(summary);
    }
  }));
  Accumulator waits;
  if (own) {
    static constexpr std::pair<event::Domain, HostKind> kNesting[] = {{event::Domain::kPython, HostKind::kPython},
                                                                      {event::Domain::kOperator, HostKind::kOperator},
                                                                      {event::Domain::kHost, HostKind::kFunction}};
    for (const auto& [domain, kind] : kNesting) domains[static_cast<size_t>(domain)].sums = times[kind];
    waits.sums = times[HostKind::kWait];
  }
  for (size_t d = 0; d < domains.size(); ++d) {
    std::string name(event::to_string(static_cast<event::Domain>(d)));
    for (char& c : name) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    add(name + "_API", domains[d]);
  }
  finish(rows);
  // Waiting is no work: last, and no part of the whole.
  add("PYTHON_WAIT", waits);
  if (!rows.empty() && rows.back().name == "PYTHON_WAIT")
    rows.back().percent = std::numeric_limits<double>::quiet_NaN();
  return rows;
}

// A dimension row under the hash of its name and group.
struct Named {
  uint64_t high, low;
  int64_t dim;
  bool same_name(const Named& other) const { return high == other.high && low == other.low; }
  bool operator<(const Named& other) const {
    return high != other.high ? high < other.high : low != other.low ? low < other.low : dim < other.dim;
  }
};

}  // namespace

struct StatTable::State {
  const trace::Trace* trace = nullptr;
  By by = By::kKernel;
  StatOptions options;
  std::vector<StatRow> domains;  // By::kDomain only
  trace::Scratch sums;           // Sums, by dimension row; of rows with one name all are in the first
  trace::Scratch order;          // int64 dimension rows, as they are given out
  size_t rows = 0;
  int64_t calls = 0, total = 0, left_out = 0;
  double whole = 0;  // ns
  bool grouped = false;

  Sums& sum(int64_t dim) const { return static_cast<Sums*>(sums.data())[dim]; }
  std::span<int64_t> dims() const { return {static_cast<int64_t*>(order.data()), rows}; }
  bool wants_function(int64_t dim) const;
  Status add_summaries();
  Status merge_names(size_t known, const std::function<trace::Scratch(size_t)>& take);
  template <auto track, auto duration, auto dim, auto bytes>
  Status add_sizes();
  Status fill();
};

bool StatTable::State::wants_function(int64_t dim) const {
  const auto domain = static_cast<event::Domain>(trace->cell(Table::kFunction, dim, column::Function::domain));
  if (options.domain && domain != *options.domain) return false;
  if (!options.nested && functions_nest(domain)) return false;
  return !options.runtime_calls ||
         call_kind(domain, trace->text(Table::kFunction, dim, column::Function::name)) != CallKind::kNone;
}

// Bytes of a table's rows, which its summaries give without the number of rows that have a size.
template <auto track, auto duration, auto dim, auto bytes>
Status StatTable::State::add_sizes() {
  Status status;
  for (const auto& chunk : trace::chunks<track, duration, dim, bytes>(*trace, status))
    for (size_t i = 0; i < chunk.size(); ++i)
      if (!options.process || trace::cell<column::Track::process>(*trace, chunk.track[i]) == *options.process)
        sum(chunk.dim[i]).add_size(chunk.bytes[i], event::known_duration(chunk.duration[i]));
  return status;
}

// The sums of each dimension row.
Status StatTable::State::add_summaries() {
  std::optional<walk::ProgramRanges> ranges;
  if (by == By::kMarker && options.of_program) {
    TACHO_ASSIGN(ranges, walk::ProgramRanges::make(*trace));
  }
  return trace->visit_summaries(table_of(by), [&](std::span<const trace::Summary> summaries) {
    for (const trace::Summary& summary : summaries) {
      if (options.process && trace->cell(Table::kTrack, summary.track, column::Track::process) != *options.process)
        continue;
      if (ranges && !ranges->has(summary.track, summary.dim)) {
        left_out += summary.count + summary.unknown;
        continue;
      }
      sum(summary.dim).add(summary);
      if (trace->aggregated()) add_saturating(sum(summary.dim).bytes, summary.bytes);
    }
  });
}

// One row for each name: adds up its dimension rows in the first of them, and makes `order`.
Status StatTable::State::merge_names(size_t known, const std::function<trace::Scratch(size_t)>& take) {
  SortedFile<Named> names;
  for (int64_t dim = 0; dim < static_cast<int64_t>(known); ++dim) {
    const Sums& of_dim = sum(dim);
    if (of_dim.count == 0 && of_dim.unknown == 0) continue;
    if (by == By::kApi && !wants_function(dim)) {
      left_out += of_dim.count + of_dim.unknown;
      continue;
    }
    auto [name, group] = name_of(*trace, by, dim, options);
    if (!options.groups) group.clear();
    grouped |= !group.empty();
    name.push_back('\0');
    name += group;
    const trace::Hash128 hash = trace::hash_128(name);
    names.add({hash.high, hash.low, dim});
    ++rows;
  }
  TACHO_TRY(names.finish());
  order = take(std::max<size_t>(rows, 1) * sizeof(int64_t));
  rows = 0;
  Named one{}, first{};
  while (names.next(one)) {
    if (rows > 0 && one.same_name(first)) {
      sum(first.dim).add(sum(one.dim));
    } else {
      first = one;
      static_cast<int64_t*>(order.data())[rows++] = one.dim;
    }
  }
  return {};
}

Status StatTable::State::fill() {
  const std::string folder = temporary_folder();
  const auto take = [&](size_t bytes) { return trace::Scratch(bytes, bytes > kOwnMemory ? folder : std::string()); };
  const auto known = static_cast<size_t>(std::max<int64_t>(trace->rows(dimension_of(by)), 1));
  sums = take(known * sizeof(Sums));
  TACHO_TRY(add_summaries());
  if (!options.sizes) {
    // Nobody asks for them.
  } else if (trace->aggregated()) {
    for (size_t dim = 0; dim < known; ++dim) sum(static_cast<int64_t>(dim)).assume_sizes();
  } else if (by == By::kCopy) {
    using C = column::Copy;
    TACHO_TRY((add_sizes<C::track, C::duration, C::dim, C::bytes>()));
  } else if (by == By::kFill) {
    using F = column::Fill;
    TACHO_TRY((add_sizes<F::track, F::duration, F::dim, F::bytes>()));
  }
  TACHO_TRY(merge_names(known, take));

  const auto longer = [&](int64_t a, int64_t b) {
    return sum(a).total != sum(b).total ? sum(a).total > sum(b).total : a < b;
  };
  std::sort(dims().begin(), dims().end(), longer);
  if (rows <= kSortedByName) {
    for (size_t i = 0; i < rows;) {
      size_t next = i + 1;
      while (next < rows && sum(dims()[next]).total == sum(dims()[i]).total) ++next;
      if (next - i > 1) {
        std::vector<std::pair<std::pair<std::string, std::string>, int64_t>> equal;
        for (size_t at = i; at < next; ++at) equal.emplace_back(name_of(*trace, by, dims()[at], options), dims()[at]);
        std::sort(equal.begin(), equal.end());
        for (size_t at = i; at < next; ++at) dims()[at] = equal[at - i].second;
      }
      i = next;
    }
  }
  for (const int64_t dim : dims()) {
    calls += sum(dim).count + sum(dim).unknown;
    add_saturating(total, sum(dim).total);
    whole += static_cast<double>(sum(dim).total);
  }
  return {};
}

StatTable::StatTable(std::unique_ptr<State> state) : state_(std::move(state)) {}
StatTable::StatTable(StatTable&&) noexcept = default;
StatTable& StatTable::operator=(StatTable&&) noexcept = default;
StatTable::~StatTable() = default;

Result<StatTable> StatTable::make(const trace::Trace& trace, By by, const StatOptions& options) {
  auto state = std::make_unique<State>();
  state->trace = &trace;
  state->by = by;
  state->options = options;
  if (options.per_shape) state->options.blocks = grids_in_blocks(trace);
  if (by == By::kDomain) {
    TACHO_ASSIGN(state->domains, by_domain(trace, options));
    state->rows = state->domains.size();
    for (const StatRow& row : state->domains) {
      state->calls += row.count;
      add_saturating(state->total, row.total);
    }
  } else {
    TACHO_TRY(state->fill());
  }
  return StatTable(std::move(state));
}

size_t StatTable::size() const {
  return state_->rows;
}
int64_t StatTable::calls() const {
  return state_->calls;
}
int64_t StatTable::total() const {
  return state_->total;
}
int64_t StatTable::left_out() const {
  return state_->left_out;
}
bool StatTable::grouped() const {
  return state_->grouped;
}

StatRow StatTable::row(size_t index) const {
  if (state_->by == By::kDomain) return state_->domains[index];
  const int64_t dim = state_->dims()[index];
  Accumulator sum;
  sum.sums = state_->sum(dim);
  close(sum);
  auto [name, group] = name_of(*state_->trace, state_->by, dim, state_->options);
  sum.row.name = std::move(name);
  sum.row.group = std::move(group);
  sum.row.percent = state_->whole > 0 ? static_cast<double>(sum.row.total) / state_->whole * 100.0 : 0.0;
  return std::move(sum.row);
}

Result<By> parse_by(std::string_view text) {
  static constexpr std::pair<const char*, By> kNames[] = {
      {"kernel", By::kKernel}, {"api", By::kApi},           {"copy", By::kCopy},
      {"fill", By::kFill},     {"marker", By::kMarker},     {"domain", By::kDomain},
      {"sync", By::kSync},     {"overhead", By::kOverhead}, {"allocation", By::kAllocation}};
  for (const auto& [name, by] : kNames)
    if (text == name) return by;
  return fail(
      "--by {}: choose kernel, api, copy, fill, marker, domain, sync, overhead, allocation, process, rank, thread, "
      "device, stream, stack, function, line, operator or module",
      text);
}

std::string unsized_sentence(std::span<const StatRow> rows) {
  int64_t all = 0, sized = 0;
  for (const StatRow& row : rows) {
    all += row.count;
    sized += row.sized;
  }
  if (sized == all) return {};
  if (sized == 0) return fmt::format("none of {} has a size", all);
  return fmt::format("{} of {} have no size: bytes and GB/s are those of the others", all - sized, all);
}

Result<std::vector<StatRow>> statistics(const trace::Trace& trace, By by, const StatOptions& options) {
  TACHO_ASSIGN(const StatTable table, StatTable::make(trace, by, options));
  std::vector<StatRow> rows;
  rows.reserve(table.size());
  for (size_t i = 0; i < table.size(); ++i) rows.push_back(table.row(i));
  return rows;
}

Result<std::vector<DeviceBusy>> device_busy(const trace::Trace& trace) {
  struct State {
    int64_t row = 0;
    walk::BusyTime time;
    std::set<int64_t> processes;
  };
  const DeviceNumbers numbers(trace);
  // Per device the union of intervals needs only the latest end, as they come in order of time.
  static constexpr Table kTables[] = {Table::kDispatch, Table::kCopy, Table::kFill};
  std::map<size_t, State> devices;
  std::vector<State*> of_track(static_cast<size_t>(std::max<int64_t>(trace.rows(Table::kTrack), 1)), nullptr);
  walk::Sweep sweep(trace, kTables);
  walk::RowSlice slice;
  while (sweep.next(slice)) {
    State*& state = of_track[static_cast<size_t>(slice.track)];
    for (size_t i = 0; i < slice.rows; ++i) {
      if (slice.duration[i] == event::kUnknown) continue;
      if (state == nullptr) {
        const auto track = trace::row<event::row::Track>(trace, slice.track);
        state = &devices[numbers.device(track.device)];
        if (state->row == 0) state->row = track.device;
        state->processes.insert(track.process);
      }
      state->time.add(slice.start[i], slice.start[i] + slice.duration[i]);
    }
  }
  TACHO_TRY(Status(sweep.status()));
  std::vector<DeviceBusy> result;
  for (const auto& [device, state] : devices)
    result.push_back({state.row, numbers.text(state.row),
                      std::string(trace.text(Table::kDevice, state.row, column::Device::name)),
                      static_cast<int64_t>(state.processes.size()), state.time.busy(), state.time.span().length()});
  return result;
}

namespace {

// How many rows, by reason and table; nothing where the file is damaged.
std::optional<std::map<std::pair<int64_t, int64_t>, int64_t>> counted_losses(const trace::Trace& trace) {
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  std::vector<int64_t> table, reason, count;
  for (size_t chunk = 0; chunk < trace.chunks(Table::kLoss).size(); ++chunk) {
    if (!trace.decode(Table::kLoss, chunk, column::Loss::table, table) ||
        !trace.decode(Table::kLoss, chunk, column::Loss::reason, reason) ||
        !trace.decode(Table::kLoss, chunk, column::Loss::count, count))
      return std::nullopt;
    for (size_t i = 0; i < table.size(); ++i) add_saturating(counts[{reason[i], table[i]}], count[i]);
  }
  return counts;
}

std::vector<std::string> counted_sentences(const trace::Trace& trace, bool filtered) {
  const auto counts = counted_losses(trace);
  if (!counts) return {"the counts of losses in this file are damaged"};
  std::vector<std::string> sentences;
  for (const auto& [key, number] : *counts) {
    const auto because = static_cast<event::LossReason>(key.first);
    if (because == event::LossReason::kNoTimer || because == event::LossReason::kUnrecorded) {
      const bool threads = because == event::LossReason::kNoTimer;
      if (!filtered)
        sentences.push_back(fmt::format("{} {}{}: {}", number, threads ? "thread" : "process",
                                        number == 1 ? ""
                                        : threads   ? "s"
                                                    : "es",
                                        event::to_string(because)));
      continue;
    }
    if ((key.first == static_cast<int64_t>(event::LossReason::kFiltered)) != filtered) continue;
    const auto number_of_table = static_cast<size_t>(key.second);
    const std::string_view what = number_of_table < event::kFactTables
                                      ? event::table_info(static_cast<Table>(key.second)).name
                                      : std::string_view("other");
    // Sources count what they leave out by name and what they leave out while recording is off as one.
    sentences.push_back(fmt::format("{} {} record{}: {}", number, what, number == 1 ? "" : "s",
                                    filtered ? "filtered or while recording was off, as asked"
                                             : event::to_string(static_cast<event::LossReason>(key.first))));
  }
  return sentences;
}

}  // namespace

int64_t lost_rows(const trace::Trace& trace, Table table) {
  int64_t lost = 0;
  if (const auto counts = counted_losses(trace))
    for (const auto& [key, number] : *counts)
      if (key.second == static_cast<int64_t>(table) && key.first != static_cast<int64_t>(event::LossReason::kFiltered))
        add_saturating(lost, number);
  return lost;
}

std::vector<std::string> loss_sentences(const trace::Trace& trace) {
  return counted_sentences(trace, false);
}
std::vector<std::string> filter_sentences(const trace::Trace& trace) {
  std::vector<std::string> sentences = counted_sentences(trace, true);
  std::set<std::string> names;
  for (int64_t process = 1; process < trace.rows(Table::kProcess); ++process)
    for (size_t i = 0; i < event::kLeftOutNames; ++i)
      if (const auto name = trace.property(Table::kProcess, process, fmt::format("{}{}", event::kLeftOutKernel, i)))
        names.emplace(*name);
  if (names.empty()) return sentences;
  std::string list;
  constexpr size_t kNameWidth = 48;
  for (const std::string& name : names)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", report::shortened(name, kNameWidth));
  if (names.size() == event::kLeftOutNames) list += ", ...";
  sentences.push_back(trace.rows(Table::kDispatch) == 0
                          ? fmt::format("the filter let no kernel pass; the program launched {}", list)
                          : fmt::format("kernels that the filter left out: {}", list));
  return sentences;
}

}  // namespace tacho::analysis
