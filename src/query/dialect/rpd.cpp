// The rpd dialect over any trace: the tables and views of an .rpd file (format/rpd/relations.h) as virtual tables, and
// its sums.
#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "base/saturating.h"
#include "format/rpd/op_type.h"
#include "format/rpd/relations.h"
#include "format/rpd/schema.h"
#include "format/rpd/tracks.h"
#include "query/dialect/dialect.h"
#include "query/dialect/relation_face.h"
#include "query/dialect/top_rows.h"
#include "trace/read/rows.h"
#include "walk/merge.h"

namespace tacho::query {

using event::kUnknown;
using event::Table;
using format::rpd::RpdWord;
namespace column = event::column;

namespace {

constexpr int kRpdVersion = 2;  // of the schema
constexpr Table kOps[] = {Table::kDispatch, Table::kCopy, Table::kFill};

// Answers the lists of format/rpd/relations.h about a trace. Codes of texts are rows of the string table; negative
// codes stand for words that only .rpd files have.
struct RpdFacts {
  std::shared_ptr<TraceFacts> facts;
  std::shared_ptr<const std::vector<format::rpd::RpdTrack>> tracks;
  std::shared_ptr<const std::vector<bool>> counting_items;  // by row of table function; nullptr = none does
  int64_t strings = 1;
  int64_t first_id = 1;  // of the rows of the table that this is about

  const trace::Trace& trace() const { return facts->trace(); }
  int64_t clock(int64_t time) const { return facts->monotonic()(time); }
  int64_t unknown_end(int64_t) const { return kUnknown; }
  int64_t reading_end(int64_t start) const { return clock(start); }
  const format::rpd::RpdTrack& track(int64_t row) const {
    return (*tracks)[row >= 0 && row < static_cast<int64_t>(tracks->size()) ? static_cast<size_t>(row) : 0];
  }
  int64_t id(int64_t row) const { return row + first_id; }
  int64_t operation(int64_t row) const { return row + first_id; }
  int64_t call(int64_t track_row, int64_t correlation) const {
    const int64_t row = facts->calls().find(track(track_row).process, correlation);
    return row >= 0 ? row + 1 : kUnknown;
  }
  bool call_counts_items(int64_t track_row, int64_t correlation) const {
    if (counting_items == nullptr) return false;
    const int64_t row = facts->calls().find(track(track_row).process, correlation);
    const int64_t function = row >= 0 ? facts->calls().function(row) : 0;
    return function > 0 && function < static_cast<int64_t>(counting_items->size()) &&
           (*counting_items)[static_cast<size_t>(function)];
  }
  int64_t word(RpdWord word) const { return -static_cast<int64_t>(word) - 1; }
  int64_t no_text() const { return 0; }
  int64_t argument(int64_t text) const { return text; }
  int64_t kernel_name(int64_t row) const { return facts->string_row(Table::kKernel, row, column::Kernel::name); }
  int64_t function_name(int64_t row) const { return facts->string_row(Table::kFunction, row, column::Function::name); }
  int64_t function_domain(int64_t) const { return 0; }  // a column of schema 3
  int64_t counter_name(int64_t row) const { return facts->string_row(Table::kCounter, row, column::Counter::name); }

  // rocpd_string.id for a text's code, and the text.
  int64_t text_id(int64_t code) const { return code >= 0 ? code + 1 : strings - code; }
  std::string_view text(int64_t code, std::string& scratch) const {
    const uint64_t place = ~static_cast<uint64_t>(code);  // -1 is 0
    if (code >= 0) return facts->readable(code, scratch);
    return place < std::size(format::rpd::kWords) ? format::rpd::kWords[place] : std::string_view();
  }
  static std::string_view own_text(unsigned, int64_t code, std::string&) {
    return format::rpd::kMonitorTypes[static_cast<size_t>(code)];
  }
  static bool is_text(char type) { return type == 's'; }
};

// The first id of a table's rows within the operations.
int64_t first_operation(const trace::Trace& trace, Table table) {
  int64_t first = 1;
  for (const Table before : kOps) {
    if (before == table) break;
    first += trace.rows(before);
  }
  return first;
}

// Sums

TextOf text_of(const RpdFacts& x) {
  return [x](int64_t code, std::string& scratch) { return x.text(code, scratch); };
}

// An operation's name in the view `top`: its description, else its type.
int64_t name_of(const RpdFacts& x, Table table, int64_t dim) {
  namespace derive = format::rpd::derive;
  const auto stored = [dim](int16_t) { return dim; };
  const int64_t name = format::relation::value_of(derive::kDescription, table, x, stored);
  return name != 0 ? name : format::relation::value_of(derive::kOpType, table, x, stored);
}

// Upstream's view `top` counts operations with the same name, start and end once. In time order, operations with equal
// starts are neighbours.
Result<std::shared_ptr<const ResultRows>> top(const RpdFacts& x) {
  struct Op {
    int64_t name, end;
    bool operator==(const Op&) const = default;
  };
  const auto sums = std::make_shared<NamedSums>(text_of(x));
  int64_t all = 0;
  std::vector<Op> together;
  int64_t start = kUnknown, from = 0;
  constexpr size_t kMostKnown = 1 << 17;
  std::array<std::unordered_map<int64_t, int64_t>, event::kFactTables> names;  // by table, then dimension row
  using D = column::Dispatch;
  using C = column::Copy;
  using F = column::Fill;
  walk::Merge<trace::RowCursor<D::start, D::duration, D::dim>, trace::RowCursor<C::start, C::duration, C::dim>,
              trace::RowCursor<F::start, F::duration, F::dim>>
      rows(x.trace());
  while (rows.more())
    rows.take([&](const auto& row) {
      if (row.start != start) {
        together.clear();
        start = row.start;
        from = x.clock(start);
      }
      auto& known_names = names[static_cast<size_t>(row.kTable)];
      if (known_names.size() > kMostKnown) known_names.clear();
      const auto [name, fresh] = known_names.try_emplace(row.dim, 0);
      if (fresh) name->second = name_of(x, row.kTable, row.dim);
      const bool known = row.duration != kUnknown;
      const Op op{name->second, known ? x.clock(start + row.duration) : kUnknown};
      if (known) add_saturating(all, op.end - from);
      if (!together.empty() && std::find(together.begin(), together.end(), op) != together.end()) return;
      sums->add_call(op.name, known ? op.end - from : kUnknown);
      if (together.size() < 4096) together.push_back(op);
    });
  TACHO_TRY(rows.status());
  TACHO_TRY(sums->finish(NamedSums::Order::kRpd));
  return std::make_shared<const TopRows>(sums, all, TopRows::Shape::kRpd2);
}

Result<std::shared_ptr<const ResultRows>> ktop(const RpdFacts& x) {
  using D = column::Dispatch;
  const auto sums = std::make_shared<NamedSums>(text_of(x));
  walk::CallRows& calls = x.facts->calls();
  int64_t all = 0;
  Status status;
  for (const auto& read : trace::chunks<D::track, D::dim, D::correlation, D::graph_node>(x.trace(), status))
    for (size_t i = 0; i < read.size(); ++i) {
      if (read.graph_node[i] != 0) continue;
      const int64_t cause = calls.find(x.track(read.track[i]).process, read.correlation[i]);
      if (cause < 0) continue;
      const int64_t duration = calls.duration(cause);
      sums->add_call(x.kernel_name(read.dim[i]), duration);
      if (duration != kUnknown) add_saturating(all, duration);
    }
  TACHO_TRY(status);
  TACHO_TRY(calls.status());
  TACHO_TRY(sums->finish(NamedSums::Order::kRpd));
  return std::make_shared<const TopRows>(sums, all, TopRows::Shape::kRpd2);
}

// Upstream's view `busy`: the sum of durations over the span of all operations; overlaps count twice.
Result<std::vector<std::vector<report::Cell>>> busy(const RpdFacts& x) {
  const trace::Trace& trace = x.trace();
  std::map<int64_t, int64_t> by_gpu;
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const Table table : kOps) {
    TACHO_ASSIGN(const auto summaries, trace.merged_summaries(table));
    for (const trace::Summary& summary : summaries) {
      if (summary.count == 0) continue;
      add_saturating(by_gpu[x.track(summary.track).gpu], summary.sum);
      first = std::min(first, x.clock(summary.first));
      last = std::max(last, x.clock(summary.last));
    }
  }
  std::vector<std::vector<report::Cell>> rows;
  for (const auto& [gpu, time] : by_gpu)
    rows.push_back(
        {gpu, time, last - first,
         last > first ? report::Cell(static_cast<double>(time) / static_cast<double>(last - first)) : report::Cell()});
  return rows;
}

}  // namespace

Dialect rpd_dialect(std::shared_ptr<TraceStore> store, std::shared_ptr<TraceFacts> facts) {
  using namespace format::rpd;
  Dialect dialect;
  dialect.name = "rpd";
  const auto strings = std::make_shared<TraceStrings>(facts, kWordsOfSchema2);
  RpdFacts about{.facts = facts,
                 .tracks = std::make_shared<const std::vector<RpdTrack>>(rpd_tracks(facts->trace())),
                 .counting_items = nullptr,
                 .strings = strings->strings()};
  if (auto items = functions_that_count_items(facts->trace());
      std::find(items.begin(), items.end(), true) != items.end())
    about.counting_items = std::make_shared<const std::vector<bool>>(std::move(items));
  const auto with = [&](int64_t first_id) {
    RpdFacts these = about;
    these.first_id = first_id;
    return these;
  };
  const auto add = [&](Relation relation) { dialect.relations.emplace_back(store, std::move(relation)); };
  const auto of_operations = [&](const auto& list) {
    RelationFace<RpdFacts> face(kRpdVersion);
    for (const Table table : kOps) face.add(list, table, with(first_operation(facts->trace(), table)));
    add(face.take());
  };
  const auto of_calls = [&](const auto& list) {
    RelationFace<RpdFacts> face(kRpdVersion);
    face.add(list, Table::kApi, about).add(list, Table::kMarker, with(facts->trace().rows(Table::kApi) + 1));
    add(face.take());
  };
  const auto of = [&](const auto& list, Table table, const RpdFacts& these) {
    add(RelationFace<RpdFacts>(kRpdVersion).add(list, table, these).take());
  };
  of_operations(kOpTable);
  of_operations(kOpView);
  of_calls(kApiTable);
  of_calls(kApiView);
  of_operations(kApiOpsTable);
  of(kKernelapiTable, Table::kDispatch, about);
  of(kKernelView, Table::kDispatch, about);
  of(kCopyapiTable, Table::kCopy, with(first_operation(facts->trace(), Table::kCopy)));
  of(kMonitorTable, Table::kReading, about);
  const auto empty = [&](const auto& list) { add(RelationFace<RpdFacts>(kRpdVersion).empty(list, about).take()); };
  empty(kKernelcodeobjectTable);
  empty(kBarrieropTable);
  empty(kOpInputSignalsTable);
  Relation texts = RelationFace<RpdFacts>(kRpdVersion).empty(kStringTable, about).take();
  texts.parts.push_back({0,
                         {PartColumn{{kRowNumber}, [](const int64_t* base) { return base[0] + 1; }},
                          PartColumn{{kRowNumber},
                                     [count = about.strings](const int64_t* base) {
                                       return base[0] < count ? base[0] : count - 1 - base[0];
                                     }}},
                         {},
                         1});
  dialect.relations.emplace_back(strings, std::move(texts));

  using C = QueryTable::Column;
  const std::vector<C> top_columns = {C{"Name", ValueType::kText}, C{"TotalCalls", ValueType::kInteger},
                                      C{"TotalDuration", ValueType::kInteger}, C{"Ave", ValueType::kInteger},
                                      C{"Percentage", ValueType::kReal}};
  dialect.results.push_back({"top", top_columns, {}, [about] { return top(about); }});
  dialect.results.push_back({"ktop", top_columns, {}, [about] { return ktop(about); }});
  dialect.results.push_back({"busy",
                             {C{"gpuId", ValueType::kInteger}, C{"GpuTime", ValueType::kInteger},
                              C{"WallTime", ValueType::kInteger}, C{"Busy", ValueType::kReal}},
                             [about] { return busy(about); }});
  dialect.results.push_back({"rocpd_metadata",
                             {C{"id", ValueType::kInteger}, C{"tag", ValueType::kText}, C{"value", ValueType::kText}},
                             []() -> Result<std::vector<std::vector<report::Cell>>> {
                               return std::vector<std::vector<report::Cell>>{
                                   {int64_t{1}, std::string("schema_version"), std::string("2")},
                                   {int64_t{2}, std::string("session_count"), std::string("1")}};
                             }});
  for (const format::rpd::RpdView& view : format::rpd::views(kRpdVersion))
    if (view.name == "copy" || view.name == "copyop")
      dialect.views.push_back({std::string(view.name), std::string(view.select)});
  return dialect;
}

}  // namespace tacho::query
