// The rpd dialect over any trace: the tables and views of an .rpd file, computed from the trace's columns.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/files/sorted_file.h"
#include "base/format.h"
#include "base/saturating.h"
#include "format/rpd/op_type.h"
#include "format/rpd/schema.h"
#include "query/dialect/column_flags.h"
#include "query/dialect/dialect.h"
#include "query/dialect/top_rows.h"

namespace tacho::query {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

// Codes of texts: rows of the string table; negative codes stand for words that only .rpd files have.
constexpr std::string_view kWords[] = {"UserMarker",
                                       "KernelExecution",
                                       "Task",
                                       "NativeKernel",
                                       "Graph",
                                       "CopyHostToHost",
                                       "CopyHostToDevice",
                                       "CopyDeviceToHost",
                                       "CopyDeviceToDevice",
                                       "CopyPeerToPeer",
                                       "Memcpy",
                                       "FillBuffer"};
int64_t word(std::string_view text) {
  for (size_t i = 0; i < std::size(kWords); ++i)
    if (kWords[i] == text) return -static_cast<int64_t>(i) - 1;
  return 0;
}

std::string_view word_of(int64_t code) {
  const uint64_t place = ~static_cast<uint64_t>(code);  // -1 is 0
  return place < std::size(kWords) ? kWords[place] : std::string_view();
}

struct Maker {
  std::shared_ptr<TraceStore> store;
  std::shared_ptr<TraceFacts> facts;
  int64_t strings = 1;

  // rocpd_string.id for a text's code.
  int64_t id_of(int64_t code) const { return code >= 0 ? code + 1 : strings - code; }

  TextOf text() const {
    return [facts = facts](int64_t code, std::string& scratch) {
      if (code < 0) return word_of(code);
      return facts->readable(code, scratch);
    };
  }
  static PartColumn one(int16_t base, Derive derive = {}) {
    return {{base, kNoBase, kNoBase, kNoBase}, std::move(derive)};
  }
  static PartColumn two(int16_t a, int16_t b, Derive derive) { return {{a, b, kNoBase, kNoBase}, std::move(derive)}; }
  static PartColumn constant(int64_t value) {
    return {{kNoBase, kNoBase, kNoBase, kNoBase}, [value](const int64_t*) { return value; }};
  }
  PartColumn start() const {
    return one(column::Fact::start, [facts = facts](const int64_t* base) { return facts->monotonic()(base[0]); });
  }
  PartColumn end() const {
    return two(column::Fact::start, column::Fact::duration, [facts = facts](const int64_t* base) {
      return base[1] == kUnknown ? kUnknown : facts->monotonic()(base[0] + base[1]);
    });
  }
  PartColumn duration() const {
    return two(column::Fact::start, column::Fact::duration, [facts = facts](const int64_t* base) {
      return base[1] == kUnknown ? kUnknown : facts->monotonic()(base[0] + base[1]) - facts->monotonic()(base[0]);
    });
  }
  PartColumn of_track(int64_t TraceFacts::Track::*member) const {
    return one(column::Fact::track,
               [facts = facts, member](const int64_t* base) { return facts->track(base[0]).*member; });
  }
  PartColumn queue() const { return of_track(&TraceFacts::Track::queue); }
  PartColumn sequence() const { return of_track(&TraceFacts::Track::sequence); }
  PartColumn of_dim(Derive derive) const { return one(column::Fact::dim, std::move(derive)); }
  PartColumn kernel_cell(int at) const {
    return of_dim(
        [facts = facts, at](const int64_t* base) { return facts->trace().cell(Table::kKernel, base[0], at); });
  }
  // The id of the API call that caused an operation; kUnknown if there is none.
  PartColumn cause() const {
    return two(column::Fact::track, column::Fact::correlation, [facts = facts](const int64_t* base) {
      const int64_t row = facts->cause(facts->track(base[0]).process, base[1]);
      return row >= 0 ? row + 1 : kUnknown;
    });
  }
  PartColumn caused() const {
    return two(column::Fact::track, column::Fact::correlation, [facts = facts](const int64_t* base) -> int64_t {
      return facts->cause(facts->track(base[0]).process, base[1]) >= 0;
    });
  }
  // The number of workgroups along an axis.
  PartColumn groups(int grid, int group) const {
    return of_dim([facts = facts, grid, group](const int64_t* base) {
      const int64_t items = facts->trace().cell(Table::kKernel, base[0], grid),
                    each = facts->trace().cell(Table::kKernel, base[0], group);
      return items == kUnknown || each == kUnknown || each <= 0 ? items : (items + each - 1) / each;
    });
  }

  int64_t first_op(Table table) const {
    int64_t first = 1;
    for (const Table before : {Table::kDispatch, Table::kCopy, Table::kFill}) {
      if (before == table) break;
      first += facts->trace().rows(before);
    }
    return first;
  }
  PartColumn op_id(Table table) const {
    return one(kRowNumber, [first = first_op(table)](const int64_t* base) { return base[0] + first; });
  }

  // Codes for an operation's description and type.
  int64_t description(Table table, int64_t dim) const {
    return table == Table::kDispatch ? facts->string_row(Table::kKernel, dim, column::Kernel::name) : 0;
  }
  int64_t op_type(Table table, int64_t dim) const {
    if (table == Table::kDispatch) {
      const auto kind =
          static_cast<event::DispatchKind>(facts->trace().cell(Table::kKernel, dim, column::Kernel::kind));
      return word(format::rpd::op_type_of_dispatch(kind));
    }
    if (table == Table::kFill) return word(format::rpd::kOpTypeOfFill);
    return word(format::rpd::op_type_of_copy(
        static_cast<event::CopyDirection>(facts->trace().cell(Table::kCopyShape, dim, column::CopyShape::direction))));
  }
  PartColumn dim_code(Table table, int64_t (Maker::*member)(Table, int64_t) const, bool as_id) const {
    return of_dim([*this, table, member, as_id](const int64_t* base) {
      const int64_t code = (this->*member)(table, base[0]);
      return as_id ? id_of(code) : code;
    });
  }

  struct Column {
    const char* name;
    unsigned flags = 0;  // see ColumnInfo
  };
  Relation relation(const char* name, std::initializer_list<Column> columns) const {
    Relation result;
    result.name = name;
    result.clock = [facts = facts](int64_t time) { return facts->monotonic()(time); };
    for (const Column& about : columns)
      result.columns.push_back({.name = about.name,
                                .type = (about.flags & kText) != 0 ? ValueType::kText : ValueType::kInteger,
                                .text = (about.flags & kText) != 0 ? text() : TextOf{},
                                .few = (about.flags & kFew) != 0,
                                .time = (about.flags & kTime) != 0,
                                .id = (about.flags & kId) != 0});
    return result;
  }
  void add(Relation& relation, Table table, int64_t first_id, std::vector<PartColumn> columns,
           std::vector<PartColumn> keep = {}) const {
    relation.parts.push_back({static_cast<int>(table), std::move(columns), std::move(keep), first_id});
  }
};

constexpr Table kOps[] = {Table::kDispatch, Table::kCopy, Table::kFill};

Relation op_table(const Maker& make) {
  Relation relation = make.relation("rocpd_op", {{"id", kId},
                                                 {"gpuId", kFew},
                                                 {"queueId", kFew},
                                                 {"sequenceId", kFew},
                                                 {"completionSignal", kFew | kText},
                                                 {"start", kTime},
                                                 {"end"},
                                                 {"description_id", kFew},
                                                 {"opType_id", kFew}});
  for (const Table table : kOps)
    make.add(relation, table, make.first_op(table),
             {make.op_id(table), make.of_track(&TraceFacts::Track::gpu), make.queue(), make.sequence(),
              Maker::constant(0), make.start(), make.end(), make.dim_code(table, &Maker::description, true),
              make.dim_code(table, &Maker::op_type, true)});
  return relation;
}

Relation op_view(const Maker& make) {
  Relation relation = make.relation("op", {{"id", kId},
                                           {"gpuId", kFew},
                                           {"queueId", kFew},
                                           {"sequenceId", kFew},
                                           {"start", kTime},
                                           {"end"},
                                           {"description", kFew | kText},
                                           {"opType", kFew | kText}});
  for (const Table table : kOps)
    make.add(
        relation, table, make.first_op(table),
        {make.op_id(table), make.of_track(&TraceFacts::Track::gpu), make.queue(), make.sequence(), make.start(),
         make.end(), make.dim_code(table, &Maker::description, false), make.dim_code(table, &Maker::op_type, false)});
  return relation;
}

Relation api_like(const Maker& make, bool texts) {
  Relation relation = texts ? make.relation("api", {{"id", kId},
                                                    {"pid", kFew},
                                                    {"tid", kFew},
                                                    {"start", kTime},
                                                    {"end"},
                                                    {"apiName", kFew | kText},
                                                    {"args", kFew | kText}})
                            : make.relation("rocpd_api", {{"id", kId},
                                                          {"pid", kFew},
                                                          {"tid", kFew},
                                                          {"start", kTime},
                                                          {"end"},
                                                          {"apiName_id", kFew},
                                                          {"args_id", kFew}});
  const auto facts = make.facts;
  const int64_t calls = facts->trace().rows(Table::kApi);
  const auto code = [&](Derive derive) {
    return make.of_dim([derive = std::move(derive), make, texts](const int64_t* base) {
      return texts ? derive(base) : make.id_of(derive(base));
    });
  };
  const auto fixed = [&](int64_t value) { return Maker::constant(texts ? value : make.id_of(value)); };
  const auto id = [&](int64_t first) {
    return Maker::one(kRowNumber, [first](const int64_t* base) { return base[0] + first; });
  };
  make.add(relation, Table::kApi, 1,
           {id(1), make.of_track(&TraceFacts::Track::pid), make.of_track(&TraceFacts::Track::tid), make.start(),
            make.end(), code([facts](const int64_t* base) {
              return facts->string_row(Table::kFunction, base[0], column::Function::name);
            }),
            Maker::one(column::Api::arguments,
                       [make, texts](const int64_t* base) { return texts ? base[0] : make.id_of(base[0]); })});
  make.add(relation, Table::kMarker, calls + 1,
           {id(calls + 1), make.of_track(&TraceFacts::Track::pid), make.of_track(&TraceFacts::Track::tid), make.start(),
            make.end(), fixed(word("UserMarker")), code([facts](const int64_t* base) {
              return facts->string_row(Table::kLabel, base[0], column::Label::name);
            })});
  return relation;
}

Relation api_ops(const Maker& make) {
  Relation relation = make.relation("rocpd_api_ops", {{"id", kId}, {"api_id"}, {"op_id"}});
  for (const Table table : kOps)
    make.add(relation, table, make.first_op(table), {make.op_id(table), make.cause(), make.op_id(table)},
             {make.caused()});
  return relation;
}

TextOf stream_text() {
  return [](int64_t code, std::string& scratch) {
    scratch = fmt::format("0x{:x}", static_cast<uint64_t>(code));
    return std::string_view(scratch);
  };
}

// Rows of launches: one for each operation that an API call caused, except nodes of graphs (one call launched many).
PartColumn launched(const Maker& make, int16_t graph_node) {
  return {{column::Fact::track, column::Fact::correlation, graph_node, kNoBase},
          [facts = make.facts](const int64_t* base) -> int64_t {
            return base[2] == 0 && facts->cause(facts->track(base[0]).process, base[1]) >= 0;
          }};
}

void launch_columns(const Maker& make, std::vector<PartColumn>& columns) {
  columns.push_back(make.of_track(&TraceFacts::Track::native));
  using K = column::Kernel;
  for (const auto& [grid, group] :
       {std::pair{K::grid_x, K::group_x}, std::pair{K::grid_y, K::group_y}, std::pair{K::grid_z, K::group_z}})
    columns.push_back(make.groups(grid, group));
  for (const int at : {K::group_x, K::group_y, K::group_z}) columns.push_back(make.kernel_cell(at));
  columns.push_back(make.of_dim([facts = make.facts](const int64_t* base) {
    const int64_t fixed = facts->trace().cell(Table::kKernel, base[0], K::shared_static),
                  dynamic = facts->trace().cell(Table::kKernel, base[0], K::shared_dynamic);
    return fixed == kUnknown ? dynamic : dynamic == kUnknown ? fixed : fixed + dynamic;
  }));
  columns.push_back(make.kernel_cell(K::private_bytes));
}

Relation kernelapi(const Maker& make) {
  Relation relation = make.relation("rocpd_kernelapi", {{"api_ptr_id"},
                                                        {"stream", kFew | kText},
                                                        {"gridX", kFew},
                                                        {"gridY", kFew},
                                                        {"gridZ", kFew},
                                                        {"workgroupX", kFew},
                                                        {"workgroupY", kFew},
                                                        {"workgroupZ", kFew},
                                                        {"groupSegmentSize", kFew},
                                                        {"privateSegmentSize", kFew},
                                                        {"kernelArgAddress", kFew | kText},
                                                        {"aquireFence", kFew | kText},
                                                        {"releaseFence", kFew | kText},
                                                        {"codeObject_id", kFew},
                                                        {"kernelName_id", kFew}});
  relation.columns[1].text = stream_text();
  std::vector<PartColumn> columns = {make.cause()};
  launch_columns(make, columns);
  for (int i = 0; i < 4; ++i) columns.push_back(Maker::constant(0));
  columns.push_back(make.dim_code(Table::kDispatch, &Maker::description, true));
  make.add(relation, Table::kDispatch, 1, std::move(columns), {launched(make, column::Dispatch::graph_node)});
  return relation;
}

Relation kernel_view(const Maker& make) {
  Relation relation = make.relation("kernel", {{"id", kId},
                                               {"gpuId", kFew},
                                               {"queueId", kFew},
                                               {"sequenceId", kFew},
                                               {"start", kTime},
                                               {"end"},
                                               {"duration"},
                                               {"stream", kFew | kText},
                                               {"gridX", kFew},
                                               {"gridY", kFew},
                                               {"gridZ", kFew},
                                               {"workgroupX", kFew},
                                               {"workgroupY", kFew},
                                               {"workgroupZ", kFew},
                                               {"groupSegmentSize", kFew},
                                               {"privateSegmentSize", kFew},
                                               {"kernelName", kFew | kText}});
  relation.columns[7].text = stream_text();
  std::vector<PartColumn> columns = {make.op_id(Table::kDispatch),
                                     make.of_track(&TraceFacts::Track::gpu),
                                     make.queue(),
                                     make.sequence(),
                                     make.start(),
                                     make.end(),
                                     make.duration()};
  launch_columns(make, columns);
  columns.push_back(make.dim_code(Table::kDispatch, &Maker::description, false));
  make.add(relation, Table::kDispatch, 1, std::move(columns), {launched(make, column::Dispatch::graph_node)});
  return relation;
}

Relation copyapi(const Maker& make) {
  Relation relation = make.relation("rocpd_copyapi", {{"api_ptr_id"},
                                                      {"stream", kFew | kText},
                                                      {"size"},
                                                      {"width", kFew | kText},
                                                      {"height", kFew | kText},
                                                      {"kind", kFew},
                                                      {"dst", kFew | kText},
                                                      {"src", kFew | kText},
                                                      {"dstDevice", kFew},
                                                      {"srcDevice", kFew},
                                                      {"sync", kFew},
                                                      {"pinned", kFew}});
  relation.columns[1].text = stream_text();
  const auto facts = make.facts;
  const auto shape = [facts](int64_t dim, int at) { return facts->trace().cell(Table::kCopyShape, dim, at); };
  const auto device = [facts, shape](int at) {
    return [facts, shape, at](const int64_t* base) {
      const int64_t row = shape(base[0], at);
      return row > 0 ? facts->trace().cell(Table::kDevice, row, column::Device::index) : 0;
    };
  };
  make.add(relation, Table::kCopy, make.first_op(Table::kCopy),
           {make.cause(), make.of_track(&TraceFacts::Track::native), Maker::one(column::Copy::bytes),
            Maker::constant(0), Maker::constant(0), make.of_dim([shape](const int64_t* base) {
              const int64_t direction = shape(base[0], column::CopyShape::direction);  // the runtime's hipMemcpyKind
              return direction >= 1 && direction <= 4 ? direction - 1 : 4;
            }),
            Maker::constant(0), Maker::constant(0), make.of_dim(device(column::CopyShape::target_device)),
            make.of_dim(device(column::CopyShape::source_device)), make.of_dim([shape](const int64_t* base) {
              return shape(base[0], column::CopyShape::asynchronous) == 0 ? int64_t{1} : int64_t{0};
            }),
            make.of_dim([shape](const int64_t* base) -> int64_t {
              const auto pinned = static_cast<int64_t>(event::MemoryKind::kPinned);
              return shape(base[0], column::CopyShape::source_memory) == pinned ||
                     shape(base[0], column::CopyShape::target_memory) == pinned;
            })},
           {launched(make, column::Copy::graph_node)});
  return relation;
}

Relation monitor(const Maker& make) {
  Relation relation = make.relation("rocpd_monitor", {{"id", kId},
                                                      {"deviceType", kFew | kText},
                                                      {"deviceId", kFew},
                                                      {"monitorType", kFew | kText},
                                                      {"start"},
                                                      {"end"},
                                                      {"value", kText}});
  const auto facts = make.facts;
  const auto counter = [facts](const int64_t* base) {
    const int64_t row = facts->trace().cell(Table::kTrack, base[0], column::Track::counter);
    return facts->string_row(Table::kCounter, row, column::Counter::name);
  };
  relation.columns[1].text = [](int64_t code, std::string&) {
    return format::rpd::kMonitorTypes[static_cast<size_t>(code)];
  };
  const auto type = [facts](const int64_t* base) {
    const TraceFacts::Track& track = facts->track(base[0]);
    return static_cast<int64_t>(format::rpd::monitor_type(track.device, track.process));
  };
  const auto owner = [facts, type](const int64_t* base) -> int64_t {
    const TraceFacts::Track& track = facts->track(base[0]);
    switch (static_cast<size_t>(type(base))) {
      case format::rpd::kMonitorOfGpu:
        return track.gpu;
      case format::rpd::kMonitorOfProcess:
        return track.pid;
      default:
        return 0;
    }
  };
  relation.columns[6].text = [](int64_t code, std::string& scratch) {
    scratch = fmt::format("{}", __builtin_bit_cast(double, code));
    return std::string_view(scratch);
  };
  make.add(
      relation, Table::kReading, 1,
      {Maker::one(kRowNumber, [](const int64_t* base) { return base[0] + 1; }),
       Maker::one(column::Reading::track, type), Maker::one(column::Reading::track, owner),
       Maker::one(column::Reading::track, counter), make.start(), make.start(), Maker::one(column::Reading::value)});
  return relation;
}

Relation empty_table(const Maker& make, const char* name, std::initializer_list<Maker::Column> columns) {
  return make.relation(name, columns);
}

// Native results

// Upstream's view `top` counts operations with the same name, start and end once. In time order, operations with equal
// starts are neighbours.
Result<std::shared_ptr<const ResultRows>> top(const Maker& make) {
  struct Op {
    int64_t name, end;
    bool operator==(const Op&) const = default;
  };
  const trace::Trace& trace = make.facts->trace();
  const auto sums = std::make_shared<NamedSums>(make.text());
  int64_t all = 0;
  std::vector<std::unique_ptr<trace::TimeCursor>> cursors;
  static constexpr int kColumns[] = {column::Fact::start, column::Fact::duration, column::Fact::dim};
  for (const Table table : kOps) {
    cursors.push_back(std::make_unique<trace::TimeCursor>(trace, table, kColumns));
    if (!cursors.back()->next()) {
      TACHO_TRY(cursors.back()->status());
      cursors.back().reset();
    }
  }
  std::vector<Op> together;
  constexpr size_t kMostKnown = 1 << 17;
  std::unordered_map<int64_t, int64_t> codes[3];
  while (true) {
    int64_t start = INT64_MAX;
    bool any = false;
    for (const auto& cursor : cursors)
      if (cursor) {
        start = std::min(start, cursor->start());
        any = true;
      }
    if (!any) break;
    together.clear();
    const int64_t from = make.facts->monotonic()(start);
    for (size_t i = 0; i < 3; ++i)
      while (cursors[i] && cursors[i]->start() == start) {
        const std::span<const int64_t> row = cursors[i]->row();
        if (codes[i].size() > kMostKnown) codes[i].clear();
        const auto [code, fresh] = codes[i].try_emplace(row[2], 0);
        if (fresh) {
          code->second = make.description(kOps[i], row[2]);
          if (code->second == 0) code->second = make.op_type(kOps[i], row[2]);
        }
        const bool known = row[1] != kUnknown;
        const Op op{code->second, known ? make.facts->monotonic()(start + row[1]) : kUnknown};
        if (known) add_saturating(all, op.end - from);
        if (together.empty() || std::find(together.begin(), together.end(), op) == together.end()) {
          sums->add_call(op.name, known ? op.end - from : kUnknown);
          if (together.size() < 4096) together.push_back(op);
        }
        if (!cursors[i]->next()) {
          TACHO_TRY(cursors[i]->status());
          cursors[i].reset();
        }
      }
  }
  TACHO_TRY(sums->finish(NamedSums::Order::kRpd));
  return std::make_shared<const TopRows>(sums, all, TopRows::Shape::kRpd2);
}

Result<std::shared_ptr<const ResultRows>> ktop(const Maker& make) {
  const trace::Trace& trace = make.facts->trace();
  const auto sums = std::make_shared<NamedSums>(make.text());
  static constexpr int kColumns[] = {column::Dispatch::track, column::Dispatch::dim, column::Dispatch::correlation,
                                     column::Dispatch::graph_node};
  int64_t all = 0;
  TACHO_TRY(trace::visit_chunks(
      trace, Table::kDispatch, kColumns, [&](size_t, std::span<const std::span<const int64_t>> values) {
        for (size_t i = 0; i < values[0].size(); ++i) {
          if (values[3][i] != 0) continue;
          const int64_t cause = make.facts->cause(make.facts->track(values[0][i]).process, values[2][i]);
          if (cause < 0) continue;
          const int64_t duration = make.facts->call_duration(cause);
          sums->add_call(make.description(Table::kDispatch, values[1][i]), duration);
          if (duration != kUnknown) add_saturating(all, duration);
        }
        return true;
      }));
  TACHO_TRY(Status(make.facts->status()));
  TACHO_TRY(sums->finish(NamedSums::Order::kRpd));
  return std::make_shared<const TopRows>(sums, all, TopRows::Shape::kRpd2);
}

// Upstream's view `busy`: the sum of durations over the span of all operations; overlaps count twice.
Result<std::vector<std::vector<report::Cell>>> busy(const Maker& make) {
  const trace::Trace& trace = make.facts->trace();
  std::map<int64_t, int64_t> by_gpu;
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const Table table : kOps) {
    TACHO_ASSIGN(const auto summaries, trace.merged_summaries(table));
    for (const trace::Summary& summary : summaries) {
      if (summary.count == 0) continue;
      add_saturating(by_gpu[make.facts->track(summary.track).gpu], summary.sum);
      first = std::min(first, make.facts->monotonic()(summary.first));
      last = std::max(last, make.facts->monotonic()(summary.last));
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
  Dialect dialect;
  dialect.name = "rpd";
  const auto strings = std::make_shared<TraceStrings>(facts, std::size(kWords));
  const Maker make{store, facts, strings->strings()};
  for (Relation& relation :
       std::vector<Relation>{op_table(make), op_view(make), api_like(make, false), api_like(make, true), api_ops(make),
                             kernelapi(make), kernel_view(make), copyapi(make), monitor(make)})
    dialect.relations.emplace_back(store, std::move(relation));
  for (Relation& relation : std::vector<Relation>{
           empty_table(make, "rocpd_kernelcodeobject", {{"id", kId}, {"vgpr"}, {"sgpr"}, {"fbar"}}),
           empty_table(make, "rocpd_barrierop",
                       {{"op_ptr_id"}, {"signalCount"}, {"aquireFence", kText}, {"releaseFence", kText}}),
           empty_table(make, "rocpd_op_inputSignals", {{"id", kId}, {"from_op_id"}, {"to_op_id"}})})
    dialect.relations.emplace_back(store, std::move(relation));
  Relation texts = make.relation("rocpd_string", {{"id", kId}, {"string", kText}});
  texts.parts.push_back(
      {0,
       {Maker::one(kRowNumber, [](const int64_t* base) { return base[0] + 1; }),
        Maker::one(kRowNumber, [count = make.strings](
                                   const int64_t* base) { return base[0] < count ? base[0] : count - 1 - base[0]; })},
       {},
       1});
  dialect.relations.emplace_back(strings, std::move(texts));

  using C = ResultTable::Column;
  const std::vector<C> top_columns = {C{"Name", ValueType::kText}, C{"TotalCalls", ValueType::kInteger},
                                      C{"TotalDuration", ValueType::kInteger}, C{"Ave", ValueType::kInteger},
                                      C{"Percentage", ValueType::kReal}};
  dialect.results.push_back({"top", top_columns, {}, [make] { return top(make); }});
  dialect.results.push_back({"ktop", top_columns, {}, [make] { return ktop(make); }});
  dialect.results.push_back({"busy",
                             {C{"gpuId", ValueType::kInteger}, C{"GpuTime", ValueType::kInteger},
                              C{"WallTime", ValueType::kInteger}, C{"Busy", ValueType::kReal}},
                             [make] { return busy(make); }});
  dialect.results.push_back({"rocpd_metadata",
                             {C{"id", ValueType::kInteger}, C{"tag", ValueType::kText}, C{"value", ValueType::kText}},
                             []() -> Result<std::vector<std::vector<report::Cell>>> {
                               return std::vector<std::vector<report::Cell>>{
                                   {int64_t{1}, std::string("schema_version"), std::string("2")},
                                   {int64_t{2}, std::string("session_count"), std::string("1")}};
                             }});
  for (const format::rpd::ViewDefinition& view : format::rpd::views(2))
    if (view.name == "copy" || view.name == "copyop")
      dialect.views.push_back({std::string(view.name), std::string(view.select)});
  return dialect;
}

}  // namespace tacho::query
