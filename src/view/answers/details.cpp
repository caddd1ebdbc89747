// One slice with all its details, and one name with its launches (run.h).
#include "view/answers/details.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "analysis/kernels/launch_shape.h"
#include "analysis/operators/places.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "base/text/json_writer.h"
#include "report/text.h"
#include "trace/read/rows.h"
#include "view/answers/message_matches.h"
#include "view/run.h"
#include "walk/calls/call_index.h"
#include "walk/names/names.h"

namespace tacho::view {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

constexpr size_t kChunksForLinks = 48;  // looked at for the other end of a link, of each table
constexpr size_t kMostLinks = 200;
constexpr size_t kMostLaunches = 4000;
constexpr size_t kMostHistogram = 60;
constexpr size_t kMostFrames = 200;

}  // namespace

std::string readable_cell(const trace::Trace& trace, const analysis::DeviceNumbers& devices, const event::Column& of,
                          int64_t value) {
  if (of.type == event::Type::kRow)
    return of.target == Table::kDevice && value != 0 ? devices.text(value) : std::string();
  if (of.type == event::Type::kId && value == 0) return {};
  if (of.type == event::Type::kBytes && value != kUnknown)
    return value < 1024 ? fmt::format("{} bytes", value)
                        : fmt::format("{} ({} bytes)", report::format_bytes(static_cast<double>(value)), value);
  return walk::cell_text(trace, of, value);
}

Texts shape_texts(const trace::Trace& trace, const analysis::DeviceNumbers& devices, Table table, int64_t dim) {
  Texts list;
  const auto add = [&](std::string_view title, std::string text) {
    if (!text.empty()) list.emplace_back(title, std::move(text));
  };
  if (table == Table::kSample) return list;
  const event::TableInfo& dimension = event::table_info(walk::dimension_of(table));
  if (table == Table::kDispatch) {
    analysis::LaunchShapeText shape = analysis::launch_shape(trace, dim, analysis::grids_in_blocks(trace));
    add("grid", std::move(shape.grid));
    add(shape.group_title, std::move(shape.group));
  }
  for (size_t i = 0; i < dimension.columns.size(); ++i) {
    const auto at = static_cast<int>(i);
    const int64_t value = trace.cell(dimension.table, dim, at);
    if (table == Table::kDispatch) {
      using column::Kernel;
      if (at == Kernel::name || (at >= Kernel::grid_x && at <= Kernel::group_z)) continue;
      // Offsets and clusters are 0 in nearly all launches.
      if (value == 0 && at >= Kernel::offset_x && at <= Kernel::cluster_z) continue;
      // Profilers write 0 percent, whose bits are 0, where they could not estimate it.
      if (value == 0 && at == Kernel::occupancy) continue;
    } else if (dimension.columns[i].name == "name") {
      continue;
    }
    add(dimension.columns[i].name, readable_cell(trace, devices, dimension.columns[i], value));
  }
  if (table == Table::kDispatch) {
    const std::string_view raw = trace.text(Table::kKernel, dim, column::Kernel::name);
    if (demangle(raw) != raw) add("mangled", std::string(raw));
  }
  return list;
}

Result<std::vector<Run::Linked>> Run::same_correlation(Table table, int64_t process, int64_t correlation, int64_t from,
                                                       bool backwards) {
  std::vector<Linked> found;
  const auto chunks = trace_->chunks(table);
  std::vector<size_t> order;
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (backwards ? chunks[i].min_start <= walk::launched_by(from) : chunks[i].max_start >= from - walk::kClockSlack)
      order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return backwards ? chunks[a].max_start > chunks[b].max_start : chunks[a].min_start < chunks[b].min_start;
  });
  if (order.size() > kChunksForLinks) order.resize(kChunksForLinks);
  using F = column::Fact;
  trace::ChunkReader<F::correlation> correlations(*trace_, table);
  trace::ChunkReader<F::track> tracks(*trace_, table);
  for (const size_t chunk : order) {
    TACHO_TRY(correlations.read(chunk));
    const auto values = correlations->correlation;
    if (std::find(values.begin(), values.end(), correlation) == values.end()) continue;
    TACHO_TRY(tracks.read(chunk));
    for (size_t i = 0; i < values.size() && found.size() < kMostLinks; ++i)
      if (values[i] == correlation && trace::cell<column::Track::process>(*trace_, tracks->track[i]) == process) {
        const uint64_t row = row_id(table, index_.first_row(table, chunk) + static_cast<int64_t>(i));
        TACHO_ASSIGN(const auto slice, index_.slice(row));
        if (slice) found.push_back({slice->first, slice->second});
      }
    if (!found.empty() && backwards) break;
    if (!found.empty() && chunks[chunk].min_start > from + 1'000'000'000) break;
  }
  // The outermost comes first.
  std::sort(found.begin(), found.end(),
            [](const Linked& a, const Linked& b) { return earlier_or_longer(a.slice, b.slice); });
  return found;
}

// The counter values of a dispatch, as on the lines of counters.
Status Run::add_counters(int64_t track, int64_t start, int64_t ordinal, Texts& columns) {
  const auto chunks = trace_->chunks(Table::kCounterValue);
  if (chunks.empty()) return {};
  const std::lock_guard held(passes_lock_);
  if (!passes_) {
    TACHO_ASSIGN(passes_, walk::FirstPasses::make(*trace_));
  }
  walk::CounterSums sums;
  using C = column::CounterValue;
  trace::ChunkReader<C::track, C::start, C::ordinal, C::dim, C::pass, C::value> reader(*trace_);
  for (size_t chunk = 0, read = 0; chunk < chunks.size() && read < kChunksForLinks; ++chunk) {
    if (chunks[chunk].min_start > start || chunks[chunk].max_start < start) continue;
    ++read;
    TACHO_TRY(reader.read(chunk));
    for (size_t i = 0; i < reader->size(); ++i)
      if (reader->track[i] == track && reader->start[i] == start &&
          (ordinal == kUnknown || reader->ordinal[i] == ordinal) &&
          passes_->count(track, start, reader->ordinal[i], reader->dim[i], reader->pass[i]))
        sums.add(reader->dim[i], reader->value[i].value());
  }
  for (const auto& [counter, sum] : sums.values()) {
    const std::string_view unit = trace::text<column::Counter::unit>(*trace_, counter);
    columns.emplace_back(trace::text<column::Counter::name>(*trace_, counter),
                         fmt::format("{}{}{}", sum, unit.empty() ? "" : " ", unit));
  }
  return {};
}

Result<std::pair<int64_t, bool>> Run::stack_of_sample(uint64_t row) {
  const auto place = index_.place_of(row);
  if (!place) return std::pair(int64_t{0}, false);
  std::vector<int64_t> dim, duration;
  TACHO_TRY(trace_->decode(Table::kSample, place->chunk, column::Sample::dim, dim));
  TACHO_TRY(trace_->decode(Table::kSample, place->chunk, column::Sample::duration, duration));
  return std::pair(dim[place->row], duration[place->row] == 0);
}

// The row of a request for details.
struct Run::Asked {
  uint64_t row = 0;
  size_t line = 0;
  Slice slice;
  std::vector<int64_t> cells;
  int64_t process = 0;
  Table table() const { return table_of_row(row); }
  int64_t correlation() const { return cells[column::Fact::correlation]; }
  int64_t start() const { return cells[column::Fact::start]; }
};

Result<std::string> Run::slice(uint64_t row) {
  const auto place = index_.place_of(row);
  if (!place) return fail("row {}: the trace has no such row", row);
  TACHO_ASSIGN(const auto shown, index_.slice(row));
  if (!shown) return fail("row {}: is not indexed yet; ask again in a moment", row);
  Asked asked{row, shown->first, shown->second, {}, 0};
  const Slice& slice = asked.slice;
  const Table table = asked.table();
  const event::TableInfo& info = event::table_info(table);
  asked.cells.resize(info.columns.size());
  std::vector<int64_t> values;
  for (size_t i = 0; i < asked.cells.size(); ++i) {
    TACHO_TRY(trace_->decode(table, place->chunk, static_cast<int>(i), values));
    asked.cells[i] = values[place->row];
  }
  asked.process = trace::cell<column::Track::process>(*trace_, asked.cells[column::Fact::track]);
  const analysis::DeviceNumbers devices(*trace_);
  Texts columns;
  for (size_t i = column::Fact::correlation; i < asked.cells.size(); ++i)
    if (std::string text = readable_cell(*trace_, devices, info.columns[i], asked.cells[i]); !text.empty())
      columns.emplace_back(info.columns[i].name, std::move(text));
  for (auto& each : shape_texts(*trace_, devices, table, asked.cells[column::Fact::dim]))
    columns.push_back(std::move(each));
  if (table == Table::kDispatch)
    TACHO_TRY(add_counters(asked.cells[column::Dispatch::track], asked.cells[column::Dispatch::start],
                           asked.cells[column::Dispatch::ordinal], columns));
  using M = column::Message;
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object()
      .member("table", std::string(info.name))
      .member("row", number_of_row(row))
      .member("track", asked.line)
      .member("lane", slice.lane)
      .member("start", slice.start)
      .member("duration", slice.end == kOpenEnd ? -1 : slice.end - slice.start)
      .member("name", table == Table::kMessage
                          ? message_title(*trace_, event::from_cell<event::MessageKind>(asked.cells[M::kind]),
                                          asked.cells[M::peer], asked.cells[M::function])
                          : names_.text(slice.name))
      .member("name_id", slice.name)
      .member("flags", slice.flags);
  json.name("columns").begin_array();
  for (const auto& [title, text] : columns) json.begin_array().value(title).value(text).end_array();
  json.end_array().name("links").begin_array();
  std::optional<Linked> launch;
  TACHO_TRY(put_links(json, asked, launch));
  json.end_array();
  TACHO_TRY(put_stack(json, asked, launch));
  json.end_object();
  return out;
}

// The connections of the row. `launch` gets the call whose stack put_stack() shows.
Status Run::put_links(JsonWriter& json, const Asked& asked, std::optional<Linked>& launch) {
  const auto link = [&](const Linked& other, JsonLiteral how) {
    if (other.slice.row == asked.row) return;
    json.newline()
        .begin_object()
        .member("row", fmt::format("{}", other.slice.row))
        .member("table", std::string(event::table_info(table_of_row(other.slice.row)).name))
        .member("track", other.line)
        .member("lane", other.slice.lane)
        .member("start", other.slice.start)
        .member("duration", other.slice.end == kOpenEnd ? -1 : other.slice.end - other.slice.start)
        .member("name", names_.text(other.slice.name));
    json.name("how").text(how).end_object();
  };
  const auto link_all = [&](Table table, int64_t from, bool backwards, JsonLiteral how) -> Result<std::vector<Linked>> {
    TACHO_ASSIGN(auto found, same_correlation(table, asked.process, asked.correlation(), from, backwards));
    for (const Linked& each : found) link(each, how);
    return found;
  };
  const Table table = asked.table();
  if (table == Table::kApi) launch = Linked{asked.line, asked.slice};
  if (table == Table::kMessage) {
    TACHO_ASSIGN(const auto matches, matches_of_message(*trace_, number_of_row(asked.row), kMostLinks));
    for (const MessageMatch& each : matches) {
      TACHO_ASSIGN(const auto other, index_.slice(row_id(Table::kMessage, each.row)));
      if (other) link({static_cast<size_t>(other->first), other->second}, each.how);
    }
    return {};
  }
  if (asked.correlation() == 0) return {};
  if (table == Table::kApi) {
    for (const Table work : {Table::kDispatch, Table::kCopy, Table::kFill})
      TACHO_TRY(link_all(work, asked.start(), false, "launched"));
    TACHO_TRY(link_all(Table::kApi, asked.start(), true, "same launch"));
  } else if (is_device_work(table) || table == Table::kSync || table == Table::kSample) {
    TACHO_ASSIGN(const auto calls, link_all(Table::kApi, asked.start(), true, "launched by"));
    if (!calls.empty() && is_device_work(table)) launch = calls.front();
    if ((asked.slice.flags & kGraphNode) != 0)
      TACHO_TRY(link_all(table, asked.start() - 1'000'000'000, false, "same graph launch"));
  }
  return {};
}

// The call stack of the launch, or the calls and ranges that were open around it.
Status Run::put_stack(JsonWriter& json, const Asked& asked, const std::optional<Linked>& launch) {
  int64_t stack = asked.table() == Table::kSample ? asked.cells[column::Fact::dim] : 0;
  if (launch && asked.correlation() != 0 && trace_->rows(Table::kSample) > 0) {
    TACHO_ASSIGN(const auto samples, same_correlation(Table::kSample, asked.process, asked.correlation(),
                                                      launch->slice.start + index_.t0(), true));
    for (const Linked& each : samples) {
      TACHO_ASSIGN(const auto of, stack_of_sample(each.slice.row));
      if (of.second || stack == 0) stack = of.first;
      if (of.second) break;  // read in the call itself, not by a timer that fired in it
    }
  }
  // Without samples: the calls and ranges open around the call on its thread, innermost first.
  if (stack == 0 && launch) {
    std::vector<std::pair<uint16_t, uint32_t>> around;
    const Slice& call = launch->slice;
    TACHO_TRY(index_.visit(launch->line, call.start, call.start + 1, [&](std::span<const Slice> some) {
      for (const Slice& each : some)
        if (each.lane < call.lane && each.start <= call.start && each.end >= call.end)
          around.emplace_back(each.lane, each.name);
      return true;
    }));
    std::sort(around.begin(), around.end(), std::greater<>());
    if (around.size() > kMostFrames) around.resize(kMostFrames);
    json.name("around").begin_array();
    for (const auto& [lane, name] : around) json.value(names_.text(name));
    json.end_array();
  }
  json.name("stack").begin_array();
  for (size_t depth = 0; stack != 0 && depth < kMostFrames; ++depth) {
    const auto frame = trace::row<event::row::Frame>(*trace_, trace::cell<column::Stack::frame>(*trace_, stack));
    std::string text;
    const std::string_view file = trace_->string(frame.file), function = trace_->string(frame.function);
    if (!file.empty())
      text = frame.line == kUnknown ? fmt::format("{} ", file) : fmt::format("{}:{} ", file, frame.line);
    text += function.empty() ? std::string(trace_->string(frame.module)) : demangle(function);
    json.value(text);
    stack = trace::cell<column::Stack::parent>(*trace_, stack);
  }
  json.end_array();
  return {};
}

Result<std::string> Run::kernel(uint32_t name, int64_t from, int64_t to) {
  if (name == 0 || name >= names_.size()) return fail("name {}: the run has no such name", name);
  if (to <= from) return fail("the span of time is empty: choose a `to` behind `from`");
  std::vector<bool> wanted(names_.size());
  wanted[name] = true;
  TACHO_ASSIGN(auto found, index_.all_of(wanted, from, to));
  std::vector<int64_t> durations;
  int64_t total = 0;
  for (const Slice& slice : found.slices) {
    if (slice.end == kOpenEnd || (slice.flags & kUnfinished) != 0) continue;
    durations.push_back(slice.end - slice.start);
    add_saturating(total, durations.back());
  }
  std::sort(durations.begin(), durations.end());
  const auto quantile = [&](double share) {
    return durations[std::min(durations.size() - 1,
                              static_cast<size_t>(share * static_cast<double>(durations.size())))];
  };
  std::string out;
  JsonWriter json(out, kCompactJson);
  json.begin_object()
      .member("name", name)
      .member("text", names_.text(name))
      .member("count", found.slices.size())
      .member("total", total)
      .member("sampled", found.sampled)
      .member("share_read", found.share);
  std::vector<double> edges;
  if (!durations.empty()) {
    json.member("mean", static_cast<double>(total) / static_cast<double>(durations.size()))
        .member("min", durations.front())
        .member("max", durations.back())
        .member("p50", quantile(0.5))
        .member("p90", quantile(0.9))
        .member("p99", quantile(0.99));
    const auto least = static_cast<double>(std::max<int64_t>(durations.front(), 1));
    const double most = std::max(static_cast<double>(durations.back()), least);
    const size_t bars = most > least ? kMostHistogram : 1;
    for (size_t i = 0; i <= bars; ++i)
      edges.push_back(least * std::pow(most / least, static_cast<double>(i) / static_cast<double>(bars)));
    edges.back() = most;
    if (edges.front() == edges.back()) edges.back() = edges.front() + 1;
  }
  json.name("histogram").begin_object().name("edges").begin_array();
  for (const double edge : edges) json.value(edge);
  json.end_array().name("counts").begin_array();
  for (size_t i = 0, at = 0; i + 1 < edges.size(); ++i) {
    const size_t before = at;
    while (at < durations.size() && (i + 2 == edges.size() || static_cast<double>(durations[at]) < edges[i + 1])) ++at;
    json.value(at - before);
  }
  json.end_array().end_object();
  // Evenly chosen ones, and always the longest.
  std::vector<Slice>& all = found.slices;
  std::sort(all.begin(), all.end(), [](const Slice& a, const Slice& b) { return a.start < b.start; });
  std::vector<Slice> chosen;
  const size_t step = (all.size() + kMostLaunches - 1) / kMostLaunches;
  size_t longest = 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].end != kOpenEnd && all[i].end - all[i].start > all[longest].end - all[longest].start) longest = i;
  for (size_t i = 0; i < all.size(); ++i)
    if (i % step == 0 || i == longest) chosen.push_back(all[i]);
  json.name("launches").begin_object().member("every", step).name("start").begin_array();
  for (const Slice& slice : chosen) json.value(slice.start);
  json.end_array().name("duration").begin_array();
  for (const Slice& slice : chosen) json.value(slice.end == kOpenEnd ? -1 : slice.end - slice.start);
  json.end_array().name("row").begin_array();
  for (const Slice& slice : chosen) json.value(fmt::format("{}", slice.row));
  json.end_array().end_object().end_object();
  return out;
}

}  // namespace tacho::view
