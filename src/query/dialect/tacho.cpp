// The tacho dialect, derived from the event schema so that it never falls behind it.
#include "analysis/sums/sums.h"
#include "query/dialect/dialect.h"
#include "walk/names/names.h"

namespace tacho::query {

using event::enumeration;
using event::kUnknown;
using event::Table;
using event::Type;
namespace column = event::column;

namespace {

// The display name of a timed fact's dimension row.
TextOf name_text(const std::shared_ptr<TraceFacts>& facts, Table table) {
  switch (table) {
    case Table::kDispatch:
      return [facts](int64_t dim, std::string& scratch) {
        return facts->readable(facts->trace().cell(Table::kKernel, dim, column::Kernel::name), scratch);
      };
    case Table::kApi:
      return [facts](int64_t dim, std::string&) {
        return facts->trace().text(Table::kFunction, dim, column::Function::name);
      };
    case Table::kMarker:
      return
          [facts](int64_t dim, std::string&) { return facts->trace().text(Table::kLabel, dim, column::Label::name); };
    case Table::kCopy:
      return [facts](int64_t dim, std::string&) {
        return enumeration<event::CopyDirection>().text(
            facts->trace().cell(Table::kCopyShape, dim, column::CopyShape::direction));
      };
    case Table::kFill:
      return [facts](int64_t dim, std::string& scratch) {
        scratch = "fill ";
        scratch += enumeration<event::MemoryKind>().text(
            facts->trace().cell(Table::kFillShape, dim, column::FillShape::memory));
        return std::string_view(scratch);
      };
    case Table::kAllocation:
      return [facts](int64_t dim, std::string& scratch) {
        scratch = enumeration<event::AllocationOperation>().text(
            facts->trace().cell(Table::kAllocationShape, dim, column::AllocationShape::operation));
        scratch += ' ';
        scratch += facts->trace().text(Table::kAllocationShape, dim, column::AllocationShape::name);
        return std::string_view(scratch);
      };
    case Table::kSync:
      return [facts](int64_t dim, std::string&) {
        return enumeration<event::SyncKind>().text(
            facts->trace().cell(Table::kSyncShape, dim, column::SyncShape::kind));
      };
    case Table::kOverhead:
      return [facts](int64_t dim, std::string&) {
        return facts->trace().text(Table::kOverheadShape, dim, column::OverheadShape::name);
      };
    case Table::kSample:
      return [facts](int64_t dim, std::string&) {
        const int64_t frame = facts->trace().cell(Table::kStack, dim, column::Stack::frame);
        return facts->trace().text(Table::kFrame, frame, column::Frame::function);
      };
    default:
      return [facts, table](int64_t dim, std::string&) { return walk::name_of_event(facts->trace(), table, dim); };
  }
}

Relation relation_of(const event::TableInfo& info, const std::shared_ptr<TraceFacts>& facts) {
  const bool fact = event::is_fact(info.table);
  Relation relation;
  relation.name = info.name;
  Part part;
  part.table = static_cast<int>(info.table);
  part.first_id = fact ? 1 : 0;
  relation.columns.push_back({.name = "id", .text = {}, .id = true});
  part.columns.push_back({{kRowNumber}, [first = part.first_id](const int64_t* base) { return base[0] + first; }});
  const auto own = [](int16_t at) { return PartColumn{{at}}; };
  bool start_found = false;
  for (size_t i = 0; i < info.columns.size(); ++i) {
    const event::Column& source = info.columns[i];
    ColumnInfo about{.name = std::string(source.name), .text = {}};
    if (source.type == Type::kDouble) about.type = ValueType::kReal;
    if (source.type == Type::kString) {
      about.type = ValueType::kText;
      about.text = [facts](int64_t code, std::string&) { return facts->trace().string(code); };
    }
    if (source.type == Type::kEnum) {
      about.type = ValueType::kText;
      about.text = [of = source.enumeration](int64_t code, std::string&) { return of->text(code); };
    }
    about.few = fact && (source.type == Type::kRow || source.type == Type::kEnum);
    about.time = fact && source.type == Type::kTime && source.name == "start" && event::is_timed(info.table);
    start_found = start_found || about.time;
    relation.columns.push_back(std::move(about));
    part.columns.push_back(own(static_cast<int16_t>(i)));
  }
  if (event::is_timed(info.table)) {
    relation.columns.push_back({.name = "end", .text = {}});
    part.columns.push_back({{column::Fact::start, column::Fact::duration},
                            [](const int64_t* base) { return base[1] == kUnknown ? kUnknown : base[0] + base[1]; }});
    relation.columns.push_back(
        {.name = "name", .type = ValueType::kText, .text = name_text(facts, info.table), .few = true});
    part.columns.push_back(own(column::Fact::dim));
    const auto of_track = [&](const char* name, int64_t TraceFacts::Track::*member) {
      relation.columns.push_back({.name = name, .text = {}, .few = true});
      part.columns.push_back(
          {{column::Fact::track}, [facts, member](const int64_t* base) { return facts->track(base[0]).*member; }});
    };
    of_track("pid", &TraceFacts::Track::pid);
    of_track("tid", &TraceFacts::Track::tid);
    of_track("device", &TraceFacts::Track::gpu);
    of_track("queue", &TraceFacts::Track::native);
  }
  relation.parts.push_back(std::move(part));
  return relation;
}

// A row for each series and period of a file of `tacho watch` (analysis/sums/names.h): sums instead of rates.
constexpr const char* kWatchSums = R"(watch_sums AS
WITH period AS MATERIALIZED (SELECT reading.start AS start, reading.value AS seconds
                FROM reading JOIN track ON track.id = reading.track WHERE track.category = 'watch.period')
SELECT reading.start AS start, CAST(round(reading.start + seconds * 1e9) AS INTEGER) AS "end", seconds,
  substr(track.category, 7) AS kind, counter.text AS name,
  CAST(round(coalesce(sum(reading.value * seconds) FILTER (WHERE counter.block = 'watch.count'), 0)) AS INTEGER) AS count,
  CAST(round(coalesce(sum(reading.value * seconds) FILTER (WHERE counter.block = 'watch.bytes'), 0)) AS INTEGER) AS bytes,
  CAST(round(coalesce(sum(reading.value * seconds) FILTER (WHERE counter.block = 'watch.timed'), 0)) AS INTEGER) AS timed,
  CAST(round(coalesce(sum(reading.value * seconds) FILTER (WHERE counter.block = 'watch.untold'), 0)) AS INTEGER) AS without_time,
  sum(reading.value * seconds) FILTER (WHERE counter.block = 'watch.time') AS time_ns,
  sum(reading.value * seconds) FILTER (WHERE counter.block = 'watch.error') AS standard_error_ns,
  sum(reading.value) FILTER (WHERE counter.block = 'watch.gauge') AS value, max(counter.unit) FILTER (WHERE counter.block = 'watch.gauge') AS unit
FROM reading JOIN track ON track.id = reading.track JOIN counter ON counter.id = track.counter JOIN period ON period.start = reading.start
WHERE track.category LIKE 'watch.%' AND track.category <> 'watch.period'
GROUP BY reading.start, track.category, counter.text)";

}  // namespace

Dialect tacho_dialect(std::shared_ptr<TraceStore> store, std::shared_ptr<TraceFacts> facts) {
  Dialect dialect;
  dialect.name = "tacho";
  for (const event::TableInfo& info : event::all_tables()) {
    Relation relation = relation_of(info, facts);
    if (info.table == Table::kString) {
      relation.columns.push_back({.name = "text",
                                  .type = ValueType::kText,
                                  .text = [facts](int64_t code, std::string&) { return facts->trace().string(code); }});
      relation.parts[0].columns.push_back({{kRowNumber}});
    }
    dialect.relations.emplace_back(store, std::move(relation));
  }
  if (analysis::holds_sums(facts->trace())) dialect.views.push_back({"watch_sums", kWatchSums});
  return dialect;
}

}  // namespace tacho::query
