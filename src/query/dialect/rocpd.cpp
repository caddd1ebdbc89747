// The rocpd dialect: over any trace, the tables and views of format/rocpd/relations.h as virtual tables and sums; or
// over a rocpd database in place.
#include "format/rocpd/rocpd.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/files/sorted_file.h"
#include "base/format.h"
#include "base/saturating.h"
#include "format/rocpd/layout.h"
#include "format/rocpd/owners.h"
#include "format/rocpd/relations.h"
#include "format/rocpd/schema.h"
#include "query/dialect/dialect.h"
#include "query/dialect/relation_face.h"
#include "query/dialect/top_rows.h"
#include "trace/read/rows.h"
#include "walk/counters.h"
#include "walk/names/agents.h"

namespace tacho::query {

using event::kUnknown;
using event::Table;
using format::rocpd::words;
namespace column = event::column;
namespace derive = format::rocpd::derive;
using Rows = std::vector<std::vector<report::Cell>>;

namespace {

constexpr const char* kGuid = "tacho";
constexpr int kRocpdVersion = 3;  // of the schema

// Numbers the events of all kinds, one table after the other.
constexpr Table kEvents[] = {Table::kApi,  Table::kMarker, Table::kDispatch,
                             Table::kCopy, Table::kFill,   Table::kAllocation};
int64_t first_event(const trace::Trace& trace, Table table) {
  int64_t first = 1;
  for (const Table before : kEvents) {
    if (before == table) break;
    first += trace.rows(before);
  }
  return first;
}

// A trace as a database's.
struct RocpdTrace {
  explicit RocpdTrace(std::shared_ptr<TraceFacts> about)
      : facts(std::move(about)),
        agents(facts->trace(), 0),
        owners(facts->trace(), agents, facts->boottime(), kGuid, 0),
        strings(std::max<int64_t>(facts->trace().rows(Table::kString), 1)) {}
  const std::shared_ptr<TraceFacts> facts;
  const walk::Agents agents;
  format::rocpd::RocpdOwners owners;
  const int64_t strings;

  /// With the marks found; without their tracks where they cannot be read.
  const format::rocpd::RocpdOwners& with_marks() {
    if (!std::exchange(marks_, true)) (void)owners.find_marks();
    return owners;
  }

  /// Whether a counter's value is one of the first pass that read it; true for all where the passes cannot be read.
  bool counts(int64_t track, int64_t start, int64_t ordinal, int64_t counter, int64_t pass) {
    if (!passes_) passes_.emplace(walk::FirstPasses::make(facts->trace()));
    return !*passes_ || (*passes_)->count(track, start, ordinal, counter, pass);
  }

  /// Row of the dispatch that starts on this track then; -1 if there is none.
  int64_t dispatch(int64_t track, int64_t start) {
    if (!indexed_) {
      indexed_ = true;
      using D = column::Dispatch;
      int64_t row = 0;
      Status status;
      for (const auto& read : trace::chunks<D::track, D::start>(facts->trace(), status))
        for (size_t i = 0; i < read.size(); ++i) index_.add({read.track[i], read.start[i]}, row++);
      usable_ = status && index_.finish();
    }
    const auto* const found = usable_ ? index_.find({track, start}) : nullptr;
    return found != nullptr ? found->value : -1;
  }

 private:
  struct Place {
    int64_t track, start;
    auto operator<=>(const Place&) const = default;
  };
  KeyIndex<int64_t, Place> index_;
  bool indexed_ = false, usable_ = false, marks_ = false;
  std::optional<Result<walk::FirstPasses>> passes_;
};

// Answers the lists of format/rocpd/relations.h about a trace.
struct RocpdFacts {
  std::shared_ptr<RocpdTrace> about;
  int64_t first_id = 1;        // of the rows of the table that this is about
  int64_t first_event_id = 1;  // of their events

  TraceFacts& facts() const { return *about->facts; }
  const trace::Trace& trace() const { return facts().trace(); }
  int64_t clock(int64_t time) const { return facts().boottime()(time); }
  int64_t unknown_end(int64_t) const { return kUnknown; }
  int64_t id(int64_t row) const { return row + first_id; }
  int64_t event(int64_t row) const { return row + first_event_id; }
  const format::rocpd::RocpdOwners::OfTrack& on(int64_t track) const { return about->owners.track(track); }
  int64_t node(int64_t track) const { return on(track).node; }
  int64_t process(int64_t track) const { return on(track).process_id; }
  int64_t thread(int64_t track) const { return on(track).thread; }
  int64_t pid(int64_t track) const { return about->owners.process(on(track).process).pid; }
  int64_t tid(int64_t track) const { return on(track).tid; }
  const walk::Agent& agent_of_track(int64_t track) const { return about->agents.of(facts().track(track).device); }
  int64_t agent(int64_t track) const { return agent_of_track(track).node; }
  int64_t agent_of(int64_t device) const { return about->agents.of(device).node; }
  int64_t queue(int64_t track) const { return on(track).queue; }
  int64_t sample_track(int64_t track) const { return about->with_marks().mark_track(track); }
  // The track of the call that requested device work, else the work's own.
  int64_t launching_track(int64_t track, int64_t correlation) const {
    const int64_t call = facts().calls().find(facts().track(track).process, correlation);
    return call >= 0 ? facts().calls().track(call) : track;
  }
  int64_t launching_thread(int64_t track, int64_t correlation) const {
    return thread(launching_track(track, correlation));
  }
  int64_t launching_tid(int64_t track, int64_t correlation) const { return tid(launching_track(track, correlation)); }
  int64_t symbol(int64_t kernel) const { return kernel; }
  int64_t code_object() const { return 1; }
  int64_t owner_node() const { return about->owners.first().node; }
  int64_t owner() const { return about->owners.first().id; }
  int64_t pmc(int64_t counter) const { return counter; }
  bool counts(int64_t track, int64_t start, int64_t ordinal, int64_t counter, int64_t pass) const {
    return about->counts(track, start, ordinal, counter, pass);
  }
  int64_t pmc_agent() const { return about->agents.all().size() > 1 ? about->agents.all()[1].node : 0; }
  int64_t dispatch_event(int64_t track, int64_t start) const {
    const int64_t row = about->dispatch(track, start);
    return row >= 0 ? row + first_event(trace(), Table::kDispatch) : kUnknown;
  }
  int64_t text_cell(Table table, int64_t row, int at) const { return facts().string_row(table, row, at); }

  // rocpd_string.id for a text's code, and the text.
  int64_t text_id(int64_t code) const { return code >= 0 ? code + 1 : about->strings - code; }
  std::string_view text(int64_t code, std::string&) const {
    return code >= 0 ? trace().string(code) : words().text(code);
  }
  std::string_view own_text(unsigned flags, int64_t code, std::string& scratch) const {
    using namespace format::rocpd;
    if ((flags & format::rocpd::kGuid) != 0) return query::kGuid;
    if ((flags & kReadable) != 0) return facts().readable(code, scratch);
    if ((flags & (kQueueName | kStreamName)) != 0)
      return scratch = RocpdOwners::line_name((flags & kQueueName) != 0 ? "Queue" : "Stream", code);
    return object_text(trace(), flags, code, scratch);
  }
  static bool is_text(char type) { return std::string_view("tTUegjJ").find(type) != std::string_view::npos; }
};

// The value of a derivation for the rows of a dimension (and a track).
template <typename Derivation>
int64_t value_for(Derivation derivation, Table table, const RocpdFacts& x, int64_t dim, int64_t track = 0) {
  return format::relation::value_of(derivation, table, x,
                                    [&](int16_t at) { return at == column::Fact::dim ? dim : track; });
}

using RC = QueryTable::Column;
constexpr ValueType kI = ValueType::kInteger, kT = ValueType::kText, kR = ValueType::kReal;

// The columns of a list as those of a result.
struct ColumnsFace {
  std::string name;
  std::vector<RC> columns;
  int version() const { return kRocpdVersion; }
  void relation(std::string_view of, std::string_view = {}) { name = of; }
  void keep(auto) {}
  void column(std::string_view of, format::relation::ColumnType type, unsigned, auto) {
    columns.push_back({std::string(of), RocpdFacts::is_text(type.code) ? kT : kI});
  }
};
QueryTable table_of(const auto& list, std::function<Result<Rows>()> rows) {
  ColumnsFace face;
  list(face);
  return {face.name, face.columns, std::move(rows)};
}

std::vector<QueryTable> small_tables(const RocpdFacts& x) {
  const std::string guid = kGuid, none = "{}";
  using namespace format::rocpd;
  std::vector<QueryTable> all;
  all.push_back(table_of(kMetadataTable, [guid]() -> Result<Rows> {
    return Rows{{int64_t{1}, std::string("schema_version"), std::string("3.0.2")},
                {int64_t{2}, std::string("uuid"), std::string("")},
                {int64_t{3}, std::string("guid"), guid}};
  }));
  all.push_back(table_of(kNodeTable, [x]() -> Result<Rows> { return x.about->owners.nodes(); }));
  all.push_back(table_of(kProcessTable, [x]() -> Result<Rows> { return x.about->owners.processes(); }));
  all.push_back(table_of(kThreadTable, [x]() -> Result<Rows> { return x.about->owners.threads(); }));
  all.push_back(table_of(kAgentTable, [x]() -> Result<Rows> { return x.about->owners.agents(); }));
  all.push_back(table_of(kQueueTable, [x]() -> Result<Rows> { return x.about->owners.queues(); }));
  all.push_back(table_of(kStreamTable, [x]() -> Result<Rows> { return x.about->owners.streams(); }));
  all.push_back(table_of(kCodeObjectTable, [x, guid, none]() -> Result<Rows> {
    return Rows{
        {int64_t{1}, guid, x.owner_node(), x.owner(), {}, std::string(), int64_t{0}, int64_t{0}, int64_t{0}, {}, none}};
  }));
  all.push_back(table_of(kTrackTable, [x]() -> Result<Rows> {
    return x.about->with_marks().mark_tracks(x.text_id(code_of(RocpdWord::kRoctxMark)));
  }));
  return all;
}

// Codes of names in a top: a text's code doubled, plus 1 for names of kernels, which are shown demangled.
std::shared_ptr<NamedSums> sums_of_names(const RocpdFacts& x) {
  return std::make_shared<NamedSums>([x](int64_t code, std::string& scratch) {
    return (code & 1) != 0 ? x.facts().readable(code >> 1, scratch) : x.text(code >> 1, scratch);
  });
}
int64_t kernel_code(int64_t code) {
  return code * 2 + 1;
}
int64_t text_code(int64_t code) {
  return code * 2;
}

// `code` maps a dimension's row to a code; kUnknown = the view lacks that row.
Status add_sums(const RocpdFacts& x, Table table, const std::function<int64_t(int64_t)>& code, NamedSums& sums,
                int64_t& all) {
  return x.trace().visit_summaries(table, [&](std::span<const trace::Summary> summaries) {
    for (const trace::Summary& summary : summaries) {
      add_saturating(all, summary.sum);
      if (const int64_t name = code(summary.dim); name != kUnknown)
        sums.add(name, summary.count + summary.unknown, summary.count, summary.sum);
    }
  });
}

Result<std::shared_ptr<const ResultRows>> top_kernels(const RocpdFacts& x) {
  const std::shared_ptr<NamedSums> sums = sums_of_names(x);
  int64_t all = 0;
  TACHO_TRY(add_sums(
      x, Table::kDispatch,
      [&](int64_t dim) { return kernel_code(value_for(derive::kKernelName, Table::kDispatch, x, dim)); }, *sums, all));
  TACHO_TRY(sums->finish(NamedSums::Order::kRocpd));
  return std::make_shared<const TopRows>(sums, all, TopRows::Shape::kRocpd);
}

Result<std::shared_ptr<const ResultRows>> top(const RocpdFacts& x) {
  const std::shared_ptr<NamedSums> sums = sums_of_names(x);
  int64_t all = 0;
  const int64_t fill = text_code(code_of(format::rocpd::RocpdWord::kMemoryFill));
  TACHO_TRY(add_sums(
      x, Table::kDispatch,
      [&](int64_t dim) { return kernel_code(value_for(derive::kKernelName, Table::kDispatch, x, dim)); }, *sums, all));
  TACHO_TRY(add_sums(
      x, Table::kCopy, [&](int64_t dim) { return text_code(value_for(derive::kCopyName, Table::kCopy, x, dim)); },
      *sums, all));
  TACHO_TRY(add_sums(
      x, Table::kFill, [&](int64_t) { return fill; }, *sums, all));
  TACHO_TRY(add_sums(
      x, Table::kApi, [&](int64_t dim) { return text_code(value_for(derive::kFunctionName, Table::kApi, x, dim)); },
      *sums, all));
  // Marks are samples, not regions.
  TACHO_TRY(add_sums(
      x, Table::kMarker,
      [&](int64_t dim) {
        return value_for(derive::kIsMark, Table::kMarker, x, dim) == 0
                   ? text_code(value_for(derive::kMarkerCall, Table::kMarker, x, dim))
                   : kUnknown;
      },
      *sums, all));
  TACHO_TRY(sums->finish(NamedSums::Order::kRocpd));
  return std::make_shared<const TopRows>(sums, all, TopRows::Shape::kRocpd);
}

Result<Rows> busy(const RocpdFacts& x) {
  std::map<int64_t, int64_t> time;
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const Table table : {Table::kDispatch, Table::kCopy, Table::kFill}) {
    TACHO_ASSIGN(const auto summaries, x.trace().merged_summaries(table));
    for (const trace::Summary& summary : summaries) {
      if (summary.count == 0) continue;
      const int64_t agent = table == Table::kDispatch
                                ? x.agent(summary.track)
                                : value_for(derive::kTarget, table, x, summary.dim, summary.track);
      add_saturating(time[agent], summary.sum);
      first = std::min(first, summary.first);
      last = std::max(last, summary.last);
    }
  }
  Rows rows;
  for (const auto& [agent, sum] : time) {
    const walk::Agent* about = nullptr;
    for (const walk::Agent& one_agent : x.about->agents.all())
      if (one_agent.node == agent) about = &one_agent;
    const bool cpu = about != nullptr && (about->device == 0 || about->kind == event::DeviceKind::kCpu);
    rows.push_back(
        {agent, std::string(cpu ? "CPU" : "GPU"), sum, last - first,
         last > first ? report::Cell(static_cast<double>(sum) / static_cast<double>(last - first)) : report::Cell()});
  }
  return rows;
}

}  // namespace

Dialect rocpd_dialect(std::shared_ptr<TraceStore> store, std::shared_ptr<TraceFacts> facts) {
  using namespace format::rocpd;
  const auto about = std::make_shared<RocpdTrace>(facts);
  const trace::Trace& trace = facts->trace();
  Dialect dialect;
  dialect.name = "rocpd";
  // The rows of some tables of the trace; their ids begin with `first`, counted on from table to table.
  const auto add = [&](const auto& list, std::initializer_list<Table> tables, int64_t first = 1) {
    RelationFace<RocpdFacts> face(kRocpdVersion);
    for (const Table table : tables) {
      face.add(list, table, {about, first, first_event(trace, table)});
      first += trace.rows(table);
    }
    dialect.relations.emplace_back(store, face.take());
  };
  add(kEventTable, {Table::kApi, Table::kMarker, Table::kDispatch, Table::kCopy, Table::kFill, Table::kAllocation});
  add(kRegionTable, {Table::kApi, Table::kMarker});
  add(kSampleTable, {Table::kMarker}, first_event(trace, Table::kMarker));
  add(kKernelDispatchTable, {Table::kDispatch});
  add(kMemoryCopyTable, {Table::kCopy, Table::kFill});
  add(kMemoryAllocateTable, {Table::kAllocation});
  add(kKernelSymbolTable, {Table::kKernel}, 0);
  add(kPmcTable, {Table::kCounter}, 0);
  add(kPmcEventTable, {Table::kCounterValue});
  const RocpdFacts x{about};
  dialect.relations.emplace_back(store, RelationFace<RocpdFacts>(kRocpdVersion).empty(kArgTable, x).take());
  dialect.relations.emplace_back(store, RelationFace<RocpdFacts>(kRocpdVersion).empty(kGraphLaunchTable, x).take());
  add(kKernelsView, {Table::kDispatch});
  add(kRegionsView, {Table::kApi, Table::kMarker});
  const auto strings = std::make_shared<TraceStrings>(facts, words().size());
  Relation texts = RelationFace<RocpdFacts>(kRocpdVersion).empty(kStringTable, x).take();
  texts.parts.push_back({0,
                         {PartColumn{{kRowNumber}, [](const int64_t* base) { return base[0] + 1; }},
                          PartColumn{{kNoBase}, [](const int64_t*) { return int64_t{0}; }},
                          PartColumn{{kRowNumber},
                                     [count = about->strings](const int64_t* base) {
                                       return base[0] < count ? base[0] : count - 1 - base[0];
                                     }}},
                         {},
                         1});
  dialect.relations.emplace_back(strings, std::move(texts));
  dialect.results = small_tables(x);
  const std::vector<RC> top_columns = {RC{"name", kT}, RC{"total_calls", kI}, RC{"total_duration", kR},
                                       RC{"average", kR}, RC{"percentage", kR}};
  dialect.results.push_back({"top_kernels", top_columns, {}, [x] { return top_kernels(x); }});
  dialect.results.push_back({"top", top_columns, {}, [x] { return top(x); }});
  dialect.results.push_back(
      {"busy", {RC{"agent_id", kI}, RC{"type", kT}, RC{"GpuTime", kI}, RC{"WallTime", kI}, RC{"Busy", kR}}, [x] {
         return busy(x);
       }});
  for (const format::rocpd::ViewDefinition& view : format::rocpd::data_views()) {
    static constexpr std::string_view kOwn[] = {"kernels", "regions", "top", "top_kernels", "busy"};
    if (std::find(std::begin(kOwn), std::end(kOwn), view.name) != std::end(kOwn)) continue;
    dialect.views.push_back({view.name, view.name + " AS " + view.select});
  }
  return dialect;
}

namespace {

// Names of foreign tables become part of statements.
bool is_plain(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

}  // namespace

Result<Dialect> rocpd_file_dialect(const sqlite::Database& database) {
  Dialect dialect;
  dialect.name = "rocpd";
  const std::vector<std::string> suffixes = format::rocpd::suffixes(database);
  int major = 0;
  for (const std::string& suffix : suffixes) {
    TACHO_ASSIGN(const format::rocpd::RecordingSchema schema, format::rocpd::schema_of(database, suffix));
    if (major != 0 && major != schema.major)
      return fail("{}: it holds recordings of schema 3 and of schema 4: use --dialect tacho", database.file().path());
    major = schema.major;
  }
  const auto add = [&](const std::string& name, const std::string& select) {
    dialect.views.push_back({name, "\"" + name + "\" AS " + select});
  };
  // One view for each table that all recordings have; where one lacks it, SQLite's error names the view.
  if (!suffixes.empty() && !suffixes[0].empty())
    for (const sqlite::StoredTable& table : database.tables()) {
      if (!table.name.starts_with("rocpd_") || !table.name.ends_with(suffixes[0]) || !is_plain(table.name)) continue;
      const std::string name = table.name.substr(0, table.name.size() - suffixes[0].size());
      std::string select;
      bool everywhere = true;
      for (const std::string& suffix : suffixes) {
        everywhere = everywhere && is_plain(suffix) && database.table(name + suffix) != nullptr;
        select += (select.empty() ? "SELECT * FROM \"" : " UNION ALL SELECT * FROM \"") + name + suffix + "\"";
      }
      if (everywhere) add(name, select);
    }
  const sqlite::StoredTable* const regions = suffixes.empty() ? nullptr : database.table("rocpd_region" + suffixes[0]);
  const bool times_apart = regions != nullptr && regions->column("start_id") >= 0;
  for (const format::rocpd::ViewDefinition& view :
       major == 4 ? format::rocpd::data_views_of_schema_4(times_apart) : format::rocpd::data_views())
    add(view.name, view.select);
  return dialect;
}

}  // namespace tacho::query
