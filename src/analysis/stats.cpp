// Statistics per name from chunk summaries (stats.h).
#include "analysis/stats.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>

#include "analysis/accumulate.h"
#include "base/demangle.h"
#include "event/schema.h"

namespace tacho::analysis {

using event::Table;
namespace column = event::column;

namespace {

struct Accumulator {
  StatRow row;
  Sums sums;
  void add(const trace::Summary& summary) { sums.add(summary); }
};

Table table_of(By by) {
  switch (by) {
    case By::kKernel: return Table::kDispatch;
    case By::kApi: return Table::kApi;
    case By::kCopy: return Table::kCopy;
    case By::kFill: return Table::kFill;
    case By::kMarker: return Table::kMarker;
    case By::kSync: return Table::kSync;
    case By::kOverhead: return Table::kOverhead;
    case By::kAllocation: return Table::kAllocation;
    case By::kDomain: break;
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
        const auto cell = [&](int at) { return trace.cell(Table::kKernel, dim, at); };
        const auto size = [](int64_t value) { return value == event::kUnknown ? std::string("?") : std::to_string(value); };
        shape = size(cell(column::Kernel::grid_x)) + "x" + size(cell(column::Kernel::grid_y)) + "x" +
                size(cell(column::Kernel::grid_z)) + " / " + size(cell(column::Kernel::group_x)) + "x" +
                size(cell(column::Kernel::group_y)) + "x" + size(cell(column::Kernel::group_z));
      }
      return {std::move(name), std::move(shape)};
    }
    case By::kApi:
      return {std::string(trace.text(Table::kFunction, dim, column::Function::name)),
              enum_text(static_cast<event::Domain>(trace.cell(Table::kFunction, dim, column::Function::domain)))};
    case By::kCopy:
      return {enum_text(static_cast<event::CopyDirection>(trace.cell(Table::kCopyShape, dim, column::CopyShape::direction))), ""};
    case By::kFill:
      return {"fill " + enum_text(static_cast<event::MemoryKind>(trace.cell(Table::kFillShape, dim, column::FillShape::memory))), ""};
    case By::kMarker:
      return {std::string(trace.text(Table::kLabel, dim, column::Label::name)),
              std::string(trace.text(Table::kLabel, dim, column::Label::domain))};
    case By::kSync:
      return {enum_text(static_cast<event::SyncKind>(trace.cell(Table::kSyncShape, dim, column::SyncShape::kind))), ""};
    case By::kOverhead: {
      const std::string_view name = trace.text(Table::kOverheadShape, dim, column::OverheadShape::name);
      const auto kind = enum_text(static_cast<event::OverheadKind>(trace.cell(Table::kOverheadShape, dim, column::OverheadShape::kind)));
      return {name.empty() ? kind : std::string(name), kind};
    }
    case By::kAllocation:
      return {enum_text(static_cast<event::AllocationOperation>(trace.cell(Table::kAllocationShape, dim, column::AllocationShape::operation))) +
                  " " + std::string(trace.text(Table::kAllocationShape, dim, column::AllocationShape::name)),
              ""};
    case By::kDomain: break;
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
  sum.row.total = sum.sums.total;
  sum.row.min = sum.sums.min;
  sum.row.max = sum.sums.max;
  sum.row.mean = sum.sums.mean;
  sum.row.stddev = sum.sums.stddev();
}

Result<std::vector<StatRow>> by_domain(const trace::Trace& trace, const StatOptions& options) {
  std::vector<StatRow> rows;
  const auto add = [&](std::string name, const std::vector<trace::Summary>& summaries, auto keep) {
    Accumulator sum;
    for (const trace::Summary& summary : summaries)
      if (keep(summary)) sum.add(summary);
    close(sum);
    if (sum.row.count == 0) return;
    sum.row.name = std::move(name);
    rows.push_back(std::move(sum.row));
  };
  const auto of_process = [&](const trace::Summary& summary) {
    return !options.process || trace.cell(Table::kTrack, summary.track, column::Track::process) == *options.process;
  };
  static constexpr std::pair<Table, const char*> kTables[] = {{Table::kDispatch, "KERNEL_DISPATCH"},
                                                              {Table::kCopy, "MEMORY_COPY"},
                                                              {Table::kFill, "MEMORY_FILL"},
                                                              {Table::kAllocation, "MEMORY_ALLOCATION"},
                                                              {Table::kMarker, "MARKER_API"},
                                                              {Table::kSync, "SYNCHRONIZATION"},
                                                              {Table::kOverhead, "OVERHEAD"}};
  for (const auto& [table, name] : kTables) {
    TACHO_ASSIGN(const auto summaries, trace.merged_summaries(table));
    add(name, summaries, of_process);
  }
  TACHO_ASSIGN(const auto calls, trace.merged_summaries(Table::kApi));
  for (size_t d = 0; d < static_cast<size_t>(event::Domain::kEnd); ++d) {
    const auto domain = static_cast<event::Domain>(d);
    std::string name(event::to_string(domain));
    for (char& c : name) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    add(name + "_API", calls, [&](const trace::Summary& summary) {
      return of_process(summary) &&
             trace.cell(Table::kFunction, summary.dim, column::Function::domain) == static_cast<int64_t>(domain);
    });
  }
  finish(rows);
  return rows;
}

}  // namespace

Result<By> parse_by(std::string_view text) {
  static constexpr std::pair<const char*, By> kNames[] = {
      {"kernel", By::kKernel},     {"api", By::kApi},   {"copy", By::kCopy},         {"fill", By::kFill},
      {"marker", By::kMarker},     {"domain", By::kDomain}, {"sync", By::kSync},     {"overhead", By::kOverhead},
      {"allocation", By::kAllocation}};
  for (const auto& [name, by] : kNames)
    if (text == name) return by;
  return fail("--by {}: choose kernel, api, copy, fill, marker, domain, sync, overhead, allocation, stack, function or line", text);
}

Result<std::vector<StatRow>> statistics(const trace::Trace& trace, By by, const StatOptions& options) {
  if (by == By::kDomain) return by_domain(trace, options);
  TACHO_ASSIGN(const auto summaries, trace.merged_summaries(table_of(by)));
  std::unordered_map<int64_t, size_t> of_dim;
  std::map<std::pair<std::string, std::string>, size_t> of_name;
  std::vector<Accumulator> sums;
  for (const trace::Summary& summary : summaries) {
    if (options.process && trace.cell(Table::kTrack, summary.track, column::Track::process) != *options.process) continue;
    if (by == By::kApi && options.domain &&
        trace.cell(Table::kFunction, summary.dim, column::Function::domain) != static_cast<int64_t>(*options.domain))
      continue;
    auto known = of_dim.find(summary.dim);
    if (known == of_dim.end()) {
      auto key = name_of(trace, by, summary.dim, options);
      const auto [named, fresh] = of_name.try_emplace(key, sums.size());
      if (fresh) {
        sums.emplace_back();
        sums.back().row.name = key.first;
        sums.back().row.group = key.second;
      }
      known = of_dim.emplace(summary.dim, named->second).first;
    }
    sums[known->second].add(summary);
  }
  std::vector<StatRow> rows;
  rows.reserve(sums.size());
  for (Accumulator& sum : sums) {
    close(sum);
    rows.push_back(std::move(sum.row));
  }
  finish(rows);
  return rows;
}

Result<std::vector<DeviceBusy>> device_busy(const trace::Trace& trace) {
  struct State {
    int64_t busy = 0, first = INT64_MAX, last = INT64_MIN, open_until = INT64_MIN;
  };
  // One sweep in time order over three tables; per device the union of intervals needs only the latest end.
  static constexpr Table kTables[] = {Table::kDispatch, Table::kCopy, Table::kFill};
  static constexpr int kColumns[] = {column::Fact::track, column::Fact::duration};
  std::vector<std::unique_ptr<trace::TimeCursor>> cursors;
  for (const Table table : kTables) {
    auto cursor = std::make_unique<trace::TimeCursor>(trace, table, kColumns);
    if (cursor->next()) {
      cursors.push_back(std::move(cursor));
    } else {
      TACHO_TRY(cursor->status());
    }
  }
  std::map<int64_t, State> devices;
  while (!cursors.empty()) {
    size_t earliest = 0;
    for (size_t i = 1; i < cursors.size(); ++i)
      if (cursors[i]->start() < cursors[earliest]->start()) earliest = i;
    trace::TimeCursor& cursor = *cursors[earliest];
    const int64_t start = cursor.start(), duration = cursor.row()[1];
    if (duration != event::kUnknown) {
      State& state = devices[trace.cell(Table::kTrack, cursor.row()[0], column::Track::device)];
      const int64_t end = start + duration;
      state.first = std::min(state.first, start);
      state.last = std::max(state.last, end);
      if (end > state.open_until) {
        state.busy += end - std::max(start, state.open_until);
        state.open_until = end;
      }
    }
    if (!cursor.next()) {
      TACHO_TRY(cursor.status());
      cursors.erase(cursors.begin() + static_cast<ptrdiff_t>(earliest));
    }
  }
  std::vector<DeviceBusy> result;
  for (const auto& [device, state] : devices) {
    std::string name(trace.text(Table::kDevice, device, column::Device::name));
    result.push_back({device, name.empty() ? "device" : name, state.busy, state.last - state.first});
  }
  return result;
}

namespace {

std::vector<std::string> counted_sentences(const trace::Trace& trace, bool filtered) {
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;  // (reason, table)
  std::vector<int64_t> table, reason, count;
  for (size_t chunk = 0; chunk < trace.chunks(Table::kLoss).size(); ++chunk) {
    if (!trace.decode(Table::kLoss, chunk, column::Loss::table, table) ||
        !trace.decode(Table::kLoss, chunk, column::Loss::reason, reason) ||
        !trace.decode(Table::kLoss, chunk, column::Loss::count, count))
      return {"the counts of losses in this file are damaged"};
    for (size_t i = 0; i < table.size(); ++i) counts[{reason[i], table[i]}] += count[i];
  }
  std::vector<std::string> sentences;
  for (const auto& [key, number] : counts) {
    if ((key.first == static_cast<int64_t>(event::LossReason::kFiltered)) != filtered) continue;
    const auto number_of_table = static_cast<size_t>(key.second);
    const std::string_view what = number_of_table < event::kFactTables
                                      ? event::table_info(static_cast<Table>(key.second)).name
                                      : std::string_view("other");
    sentences.push_back(fmt::format("{} {} record{}: {}", number, what, number == 1 ? "" : "s",
                                    event::to_string(static_cast<event::LossReason>(key.first))));
  }
  return sentences;
}

}  // namespace

std::vector<std::string> loss_sentences(const trace::Trace& trace) { return counted_sentences(trace, false); }
std::vector<std::string> filter_sentences(const trace::Trace& trace) { return counted_sentences(trace, true); }

}  // namespace tacho::analysis
