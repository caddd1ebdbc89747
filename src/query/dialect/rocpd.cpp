// The rocpd dialect: over any trace, computed from the trace's columns, or over a rocpd database in place.
#include "format/rocpd/rocpd.h"

#include <algorithm>
#include <map>

#include "base/files/sorted_file.h"
#include "base/format.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "base/text/json_writer.h"
#include "format/rocpd/schema.h"
#include "format/shared/rocprof_words.h"
#include "query/dialect/column_flags.h"
#include "query/dialect/dialect.h"
#include "query/dialect/top_rows.h"
#include "walk/agents.h"
#include "walk/names.h"

namespace tacho::query {

using event::kUnknown;
using event::Table;
namespace column = event::column;
using Rows = std::vector<std::vector<report::Cell>>;

namespace {

constexpr const char* kGuid = "tacho";

struct Column {
  const char* name;
  unsigned flags = 0;
};

struct Context {
  std::shared_ptr<TraceStore> store;
  std::shared_ptr<TraceFacts> facts;
  std::shared_ptr<walk::Agents> agents;
  std::vector<std::string> words;  // texts that the trace's own strings may lack
  int64_t strings = 1;

  const trace::Trace& trace() const { return facts->trace(); }
  int64_t word(std::string_view text) const {
    for (size_t i = 0; i < words.size(); ++i)
      if (words[i] == text) return -static_cast<int64_t>(i) - 1;
    return 0;
  }
  int64_t string_id(int64_t code) const { return code >= 0 ? code + 1 : strings - code; }
  // Numbers the events of all kinds, one table after the other.
  static constexpr Table kEvents[] = {Table::kApi,  Table::kMarker, Table::kDispatch,
                                      Table::kCopy, Table::kFill,   Table::kAllocation};
  int64_t first_event(Table table) const {
    int64_t first = 1;
    for (const Table before : kEvents) {
      if (before == table) break;
      first += trace().rows(before);
    }
    return first;
  }
  /// True if some track of the trace names no process: row 0 then stands for that process.
  bool nameless_process() const {
    for (int64_t row = 1; row < trace().rows(Table::kTrack); ++row)
      if (trace().cell(Table::kTrack, row, column::Track::process) <= 0) return true;
    return trace().rows(Table::kProcess) <= 1;
  }
  /// The process that owns whatever belongs to none in particular.
  int64_t owner() const { return nameless_process() ? 0 : 1; }
  int64_t thread(int64_t track) const {
    return std::max<int64_t>(trace().cell(Table::kTrack, track, column::Track::thread), 0);
  }
  const walk::Agent& agent_of_track(int64_t track) const { return agents->of(facts->track(track).device); }
};
using C = std::shared_ptr<Context>;

PartColumn one(int16_t base, Derive derive = {}) {
  return {{base, kNoBase, kNoBase, kNoBase}, std::move(derive)};
}
PartColumn constant(int64_t value) {
  return {{kNoBase, kNoBase, kNoBase, kNoBase}, [value](const int64_t*) { return value; }};
}
PartColumn null() {
  return constant(kUnknown);
}
PartColumn row_number(int64_t first) {
  return one(kRowNumber, [first](const int64_t* base) { return base[0] + first; });
}
PartColumn start_of(const C& c) {
  return one(column::Fact::start, [c](const int64_t* base) { return c->facts->boottime()(base[0]); });
}
PartColumn end_of(const C& c) {
  return {{column::Fact::start, column::Fact::duration, kNoBase, kNoBase}, [c](const int64_t* base) {
            return base[1] == kUnknown ? kUnknown : c->facts->boottime()(base[0] + base[1]);
          }};
}
PartColumn duration_of(const C& c) {
  return {{column::Fact::start, column::Fact::duration, kNoBase, kNoBase}, [c](const int64_t* base) {
            return base[1] == kUnknown ? kUnknown
                                       : c->facts->boottime()(base[0] + base[1]) - c->facts->boottime()(base[0]);
          }};
}
PartColumn of_track(const C& c, int64_t (*value)(const Context&, int64_t track)) {
  return one(column::Fact::track, [c, value](const int64_t* base) { return value(*c, base[0]); });
}
PartColumn of_dim(const C& c, int64_t (*value)(const Context&, int64_t dim)) {
  return one(column::Fact::dim, [c, value](const int64_t* base) { return value(*c, base[0]); });
}
PartColumn kernel_cell(const C& c, int at) {
  return one(column::Fact::dim, [c, at](const int64_t* base) { return c->trace().cell(Table::kKernel, base[0], at); });
}

TextOf text_of(const C& c) {
  return [c](int64_t code, std::string&) {
    if (code >= 0) return c->trace().string(code);
    const uint64_t place = ~static_cast<uint64_t>(code);  // -1 is word 0; damaged files may hold any code
    return place < c->words.size() ? std::string_view(c->words[place]) : std::string_view();
  };
}
TextOf fixed(std::string text) {
  return [text = std::move(text)](int64_t, std::string&) { return std::string_view(text); };
}

Relation relation(const C& c, const char* name, std::initializer_list<Column> columns) {
  Relation result;
  result.name = name;
  result.clock = [c](int64_t time) { return c->facts->boottime()(time); };
  for (const Column& about : columns) {
    ColumnInfo info{.name = about.name,
                    .text = {},
                    .few = (about.flags & kFew) != 0,
                    .time = (about.flags & kTime) != 0,
                    .id = (about.flags & kId) != 0};
    info.type = (about.flags & kText) != 0   ? ValueType::kText
                : (about.flags & kReal) != 0 ? ValueType::kReal
                                             : ValueType::kInteger;
    const std::string_view column_name = about.name;
    if ((about.flags & kText) != 0)
      info.text = column_name == "guid"                                                                   ? fixed(kGuid)
                  : column_name == "extdata" || column_name == "call_stack" || column_name == "line_info" ? fixed("{}")
                                                                                                          : text_of(c);
    result.columns.push_back(std::move(info));
  }
  return result;
}
void add(Relation& to, Table table, int64_t first_id, std::vector<PartColumn> columns,
         std::vector<PartColumn> keep = {}) {
  to.parts.push_back({static_cast<int>(table), std::move(columns), std::move(keep), first_id});
}

int64_t process_of(const Context& c, int64_t track) {
  return c.facts->track(track).process;
}
int64_t thread_of(const Context& c, int64_t track) {
  return c.thread(track);
}
int64_t agent_of(const Context& c, int64_t track) {
  return c.agent_of_track(track).node;
}
int64_t queue_of(const Context&, int64_t track) {
  return track;
}
int64_t node_of(const Context&, int64_t) {
  return 1;
}
// The thread that requested the device work, as a column of thread facts.
PartColumn launcher(const C& c, int64_t (*value)(const Context&, int64_t track)) {
  return {{column::Fact::track, column::Fact::correlation, kNoBase, kNoBase}, [c, value](const int64_t* base) {
            const int64_t call = c->facts->cause(c->facts->track(base[0]).process, base[1]);
            return value(*c, call >= 0 ? c->facts->call_track(call) : base[0]);
          }};
}
int64_t pid_of(const Context& c, int64_t track) {
  return c.facts->track(track).pid;
}
int64_t tid_of(const Context& c, int64_t track) {
  return c.facts->track(track).tid;
}

int64_t function_name(const Context& c, int64_t dim) {
  return c.facts->string_row(Table::kFunction, dim, column::Function::name);
}
int64_t function_category(const Context& c, int64_t dim) {
  return c.word(format::api_domain_name(
      event::from_cell<event::Domain>(c.trace().cell(Table::kFunction, dim, column::Function::domain))));
}
int64_t marker_call(const Context& c, int64_t dim) {
  const auto kind = static_cast<event::MarkerKind>(c.trace().cell(Table::kLabel, dim, column::Label::kind));
  return c.word(kind == event::MarkerKind::kMark        ? "roctxMarkA"
                : kind == event::MarkerKind::kStartStop ? "roctxProcessRangeA"
                                                        : "roctxThreadRangeA");
}
int64_t marker_is_range(const Context& c, int64_t dim) {
  return c.trace().cell(Table::kLabel, dim, column::Label::kind) != static_cast<int64_t>(event::MarkerKind::kMark) ? 1
                                                                                                                   : 0;
}
int64_t marker_is_mark(const Context& c, int64_t dim) {
  return 1 - marker_is_range(c, dim);
}
int64_t copy_name(const Context& c, int64_t dim) {
  return c.word(format::copy_direction_name(c.trace().cell(Table::kCopyShape, dim, column::CopyShape::direction)));
}
int64_t kernel_name(const Context& c, int64_t dim) {
  return c.facts->string_row(Table::kKernel, dim, column::Kernel::name);
}

PartColumn id_text(const C& c, PartColumn column) {
  const Derive inner = std::move(column.derive);
  column.derive = [c, inner](const int64_t* base) { return c->string_id(inner ? inner(base) : base[0]); };
  return column;
}
PartColumn shape_agent(const C& c, int at, bool source) {
  return {{column::Copy::dim, column::Copy::track, kNoBase, kNoBase}, [c, at, source](const int64_t* base) {
            const int64_t device = c->trace().cell(Table::kCopyShape, base[0], at);
            if (device > 0) return c->agents->of(device).node;
            const auto way = static_cast<event::CopyDirection>(
                c->trace().cell(Table::kCopyShape, base[0], column::CopyShape::direction));
            using event::CopyDirection;
            const bool host = way == CopyDirection::kHostToHost ||
                              way == (source ? CopyDirection::kHostToDevice : CopyDirection::kDeviceToHost);
            return host ? c->agents->of(0).node : c->agent_of_track(base[1]).node;
          }};
}
PartColumn lds(const C& c, bool all) {
  return one(column::Fact::dim, [c, all](const int64_t* base) {
    const int64_t fixed_part = c->trace().cell(Table::kKernel, base[0], column::Kernel::shared_static),
                  dynamic = c->trace().cell(Table::kKernel, base[0], column::Kernel::shared_dynamic);
    if (!all) return fixed_part;
    return fixed_part == kUnknown ? dynamic : dynamic == kUnknown ? fixed_part : fixed_part + dynamic;
  });
}
// Ordinals of a trace count from 0, rocprofv3's dispatch ids from 1. Without an ordinal, uses the row.
PartColumn dispatch_id() {
  return {{column::Dispatch::ordinal, kRowNumber, kNoBase, kNoBase},
          [](const int64_t* base) { return base[0] == kUnknown ? base[1] + 1 : format::dispatch_id(base[0]); }};
}

std::vector<Relation> event_tables(const C& c) {
  const trace::Trace& trace = c->trace();
  std::vector<Relation> all;
  const auto guid = [] { return constant(0); };
  const auto node = [&] { return of_track(c, node_of); };

  Relation events = relation(c, "rocpd_event",
                             {{"id", kId},
                              {"guid", kFew | kText},
                              {"category_id", kFew},
                              {"stack_id"},
                              {"parent_stack_id", kFew},
                              {"correlation_id", kFew},
                              {"call_stack", kFew | kText},
                              {"line_info", kFew | kText},
                              {"extdata", kText}});
  // Markers carry their text in extdata; negative codes stand for "{}".
  events.columns[8].text = [c](int64_t code, std::string& scratch) -> std::string_view {
    if (code < 0) return "{}";
    scratch.clear();
    JsonWriter(scratch).begin_object().member("message", c->trace().string(code)).end_object();
    return scratch;
  };
  for (const Table table : Context::kEvents) {
    PartColumn category = table == Table::kApi
                              ? id_text(c, of_dim(c, function_category))
                              : constant(c->string_id(c->word(table == Table::kMarker       ? "MARKER_CORE_API"
                                                              : table == Table::kDispatch   ? "KERNEL_DISPATCH"
                                                              : table == Table::kAllocation ? "MEMORY_ALLOCATION"
                                                                                            : "MEMORY_COPY")));
    PartColumn extdata =
        table == Table::kMarker
            ? of_dim(c, [](const Context& of,
                           int64_t dim) { return of.facts->string_row(Table::kLabel, dim, column::Label::name); })
            : constant(-1);
    add(events, table, c->first_event(table),
        {row_number(c->first_event(table)), guid(), std::move(category), one(column::Fact::correlation), constant(0),
         constant(0), constant(0), constant(0), std::move(extdata)});
  }
  all.push_back(std::move(events));

  Relation regions = relation(c, "rocpd_region",
                              {{"id", kId},
                               {"guid", kFew | kText},
                               {"nid", kFew},
                               {"pid", kFew},
                               {"tid", kFew},
                               {"start", kTime},
                               {"end"},
                               {"name_id", kFew},
                               {"event_id"},
                               {"extdata", kFew | kText}});
  for (const Table table : {Table::kApi, Table::kMarker})
    add(regions, table, c->first_event(table),
        {row_number(c->first_event(table)), guid(), node(), of_track(c, process_of), of_track(c, thread_of),
         start_of(c), end_of(c), id_text(c, of_dim(c, table == Table::kApi ? function_name : marker_call)),
         row_number(c->first_event(table)), constant(0)},
        table == Table::kMarker ? std::vector<PartColumn>{of_dim(c, marker_is_range)} : std::vector<PartColumn>{});
  all.push_back(std::move(regions));

  Relation samples = relation(c, "rocpd_sample",
                              {{"id", kId},
                               {"guid", kFew | kText},
                               {"track_id", kFew},
                               {"timestamp"},
                               {"event_id"},
                               {"extdata", kFew | kText}});
  add(samples, Table::kMarker, c->first_event(Table::kMarker),
      {row_number(c->first_event(Table::kMarker)), guid(), of_track(c, queue_of), start_of(c),
       row_number(c->first_event(Table::kMarker)), constant(0)},
      {of_dim(c, marker_is_mark)});
  all.push_back(std::move(samples));

  using K = column::Kernel;
  Relation dispatches = relation(c, "rocpd_kernel_dispatch",
                                 {{"id", kId},
                                  {"guid", kFew | kText},
                                  {"nid", kFew},
                                  {"pid", kFew},
                                  {"tid"},
                                  {"agent_id", kFew},
                                  {"kernel_id", kFew},
                                  {"dispatch_id"},
                                  {"queue_id", kFew},
                                  {"stream_id", kFew},
                                  {"start", kTime},
                                  {"end"},
                                  {"private_segment_size", kFew},
                                  {"group_segment_size", kFew},
                                  {"workgroup_size_x", kFew},
                                  {"workgroup_size_y", kFew},
                                  {"workgroup_size_z", kFew},
                                  {"grid_size_x", kFew},
                                  {"grid_size_y", kFew},
                                  {"grid_size_z", kFew},
                                  {"region_name_id", kFew},
                                  {"event_id"},
                                  {"extdata", kFew | kText}});
  add(dispatches, Table::kDispatch, 1,
      {row_number(1),
       guid(),
       node(),
       of_track(c, process_of),
       launcher(c, thread_of),
       of_track(c, agent_of),
       one(column::Fact::dim),
       dispatch_id(),
       of_track(c, queue_of),
       of_track(c, queue_of),
       start_of(c),
       end_of(c),
       kernel_cell(c, K::private_bytes),
       lds(c, true),
       kernel_cell(c, K::group_x),
       kernel_cell(c, K::group_y),
       kernel_cell(c, K::group_z),
       kernel_cell(c, K::grid_x),
       kernel_cell(c, K::grid_y),
       kernel_cell(c, K::grid_z),
       constant(1),
       row_number(c->first_event(Table::kDispatch)),
       constant(0)});
  all.push_back(std::move(dispatches));

  Relation copies = relation(c, "rocpd_memory_copy",
                             {{"id", kId},
                              {"guid", kFew | kText},
                              {"nid", kFew},
                              {"pid", kFew},
                              {"tid"},
                              {"start", kTime},
                              {"end"},
                              {"name_id", kFew},
                              {"dst_agent_id"},
                              {"dst_address", kFew},
                              {"src_agent_id"},
                              {"src_address", kFew},
                              {"size"},
                              {"queue_id", kFew},
                              {"stream_id", kFew},
                              {"region_name_id", kFew},
                              {"event_id"},
                              {"extdata", kFew | kText}});
  for (const Table table : {Table::kCopy, Table::kFill}) {
    const int64_t first = table == Table::kCopy ? 1 : trace.rows(Table::kCopy) + 1;
    PartColumn name =
        table == Table::kCopy ? id_text(c, of_dim(c, copy_name)) : constant(c->string_id(c->word("MEMORY_FILL")));
    PartColumn to =
        table == Table::kCopy ? shape_agent(c, column::CopyShape::target_device, false) : of_track(c, agent_of);
    PartColumn from =
        table == Table::kCopy ? shape_agent(c, column::CopyShape::source_device, true) : of_track(c, agent_of);
    add(copies, table, first,
        {row_number(first), guid(), node(), of_track(c, process_of), launcher(c, thread_of), start_of(c), end_of(c),
         std::move(name), std::move(to), null(), std::move(from), null(), one(column::Copy::bytes),
         of_track(c, queue_of), of_track(c, queue_of), constant(1), row_number(c->first_event(table)), constant(0)});
  }
  all.push_back(std::move(copies));

  Relation allocations = relation(c, "rocpd_memory_allocate",
                                  {{"id", kId},
                                   {"guid", kFew | kText},
                                   {"nid", kFew},
                                   {"pid", kFew},
                                   {"tid", kFew},
                                   {"agent_id", kFew},
                                   {"type", kFew | kText},
                                   {"level", kFew | kText},
                                   {"start", kTime},
                                   {"end"},
                                   {"address"},
                                   {"size"},
                                   {"queue_id", kFew},
                                   {"stream_id", kFew},
                                   {"event_id"},
                                   {"extdata", kFew | kText}});
  add(allocations, Table::kAllocation, 1,
      {row_number(1), guid(), node(), of_track(c, process_of), of_track(c, thread_of),
       of_dim(
           c,
           [](const Context& of, int64_t dim) {
             return of.agents->of(of.trace().cell(Table::kAllocationShape, dim, column::AllocationShape::device)).node;
           }),
       of_dim(c,
              [](const Context& of, int64_t dim) {
                return of.word(of.trace().cell(Table::kAllocationShape, dim, column::AllocationShape::operation) ==
                                       static_cast<int64_t>(event::AllocationOperation::kFree)
                                   ? "FREE"
                                   : "ALLOC");
              }),
       constant(c->word("REAL")), start_of(c), end_of(c), one(column::Allocation::address),
       one(column::Allocation::bytes), constant(0), constant(0), row_number(c->first_event(Table::kAllocation)),
       constant(0)});
  all.push_back(std::move(allocations));

  Relation symbols = relation(c, "rocpd_info_kernel_symbol",
                              {{"id", kId},
                               {"guid", kFew | kText},
                               {"nid"},
                               {"pid"},
                               {"code_object_id"},
                               {"kernel_name", kText},
                               {"display_name", kText},
                               {"kernel_object"},
                               {"kernarg_segment_size"},
                               {"kernarg_segment_alignment"},
                               {"group_segment_size"},
                               {"private_segment_size"},
                               {"sgpr_count"},
                               {"arch_vgpr_count"},
                               {"accum_vgpr_count"},
                               {"extdata", kText}});
  symbols.columns[6].text = [c](int64_t code, std::string& scratch) { return c->facts->readable(code, scratch); };
  add(symbols, Table::kKernel, 0,
      {row_number(0), guid(), constant(1), constant(c->owner()), constant(1), one(K::name), one(K::name), null(),
       null(), null(), one(K::shared_static), one(K::private_bytes), one(K::scalar_registers), one(K::registers),
       one(K::accum_registers), constant(0)},
      {row_number(0)});
  all.push_back(std::move(symbols));

  Relation pmc = relation(c, "rocpd_info_pmc",
                          {{"id", kId},
                           {"guid", kFew | kText},
                           {"nid"},
                           {"pid"},
                           {"agent_id"},
                           {"target_arch", kText},
                           {"event_code"},
                           {"instance_id"},
                           {"name", kText},
                           {"symbol", kText},
                           {"description", kText},
                           {"long_description", kText},
                           {"component", kText},
                           {"units", kText},
                           {"value_type", kText},
                           {"block", kText},
                           {"expression", kText},
                           {"is_constant"},
                           {"is_derived"},
                           {"extdata", kText}});
  using N = column::Counter;
  add(pmc, Table::kCounter, 0,
      {row_number(0),
       guid(),
       constant(1),
       constant(c->owner()),
       constant(c->agents->all().size() > 1 ? c->agents->all()[1].node : 0),
       constant(c->word("GPU")),
       row_number(0),
       constant(0),
       one(N::name),
       one(N::name),
       one(N::text),
       constant(0),
       constant(c->word("tacho")),
       one(N::unit),
       constant(c->word("ABS")),
       one(N::block),
       constant(0),
       constant(0),
       constant(0),
       constant(0)},
      {row_number(0)});
  all.push_back(std::move(pmc));

  // A value belongs to the dispatch that starts on the value's track at the value's start.
  struct Place {
    int64_t track, start;
    bool operator<(const Place& other) const {
      return track != other.track ? track < other.track : start < other.start;
    }
    bool operator==(const Place& other) const { return track == other.track && start == other.start; }
  };
  struct Index {
    KeyIndex<int64_t, Place> rows;
    bool ready = false;
  };
  const auto index = std::make_shared<Index>();
  Relation values = relation(c, "rocpd_pmc_event",
                             {{"id", kId},
                              {"guid", kFew | kText},
                              {"event_id"},
                              {"pmc_id", kFew},
                              {"value", kReal},
                              {"extdata", kFew | kText}});
  add(values, Table::kCounterValue, 1,
      {row_number(1), guid(),
       PartColumn{{column::CounterValue::track, column::CounterValue::start, kNoBase, kNoBase},
                  [c, index](const int64_t* base) {
                    if (!index->ready) {
                      index->ready = true;
                      static constexpr int kColumns[] = {column::Fact::track, column::Fact::start};
                      int64_t row = 0;
                      const Status read =
                          trace::visit_chunks(c->trace(), Table::kDispatch, kColumns,
                                              [&](size_t, std::span<const std::span<const int64_t>> columns) {
                                                for (size_t i = 0; i < columns[0].size(); ++i)
                                                  index->rows.add({columns[0][i], columns[1][i]}, row++);
                                                return true;
                                              });
                      if (!read || !index->rows.finish()) return kUnknown;
                    }
                    const auto* const found = index->rows.find({base[0], base[1]});
                    return found != nullptr ? found->value + c->first_event(Table::kDispatch) : kUnknown;
                  }},
       one(column::CounterValue::dim), one(column::CounterValue::value), constant(0)});
  all.push_back(std::move(values));
  all.push_back(relation(c, "rocpd_arg",
                         {{"id", kId},
                          {"guid", kText},
                          {"event_id"},
                          {"position"},
                          {"type", kText},
                          {"name", kText},
                          {"value", kText},
                          {"extdata", kText}}));
  return all;
}

// The views that users query most, flat: without joins, so that grouping by name costs nothing extra.
std::vector<Relation> flat_views(const C& c) {
  std::vector<Relation> all;
  using K = column::Kernel;
  const auto guid = [] { return constant(0); };
  Relation kernels = relation(c, "kernels",
                              {{"id", kId},
                               {"guid", kFew | kText},
                               {"tid"},
                               {"category", kFew | kText},
                               {"region", kFew | kText},
                               {"name", kFew | kText},
                               {"nid", kFew},
                               {"pid", kFew},
                               {"agent_abs_index", kFew},
                               {"agent_log_index", kFew},
                               {"agent_type_index", kFew},
                               {"agent_type", kFew | kText},
                               {"code_object_id", kFew},
                               {"kernel_id", kFew},
                               {"dispatch_id"},
                               {"stream_id", kFew},
                               {"queue_id", kFew},
                               {"queue", kFew | kText},
                               {"stream", kFew | kText},
                               {"start", kTime},
                               {"end"},
                               {"duration"},
                               {"grid_x", kFew},
                               {"grid_y", kFew},
                               {"grid_z", kFew},
                               {"workgroup_x", kFew},
                               {"workgroup_y", kFew},
                               {"workgroup_z", kFew},
                               {"lds_size", kFew},
                               {"scratch_size", kFew},
                               {"vgpr_count", kFew},
                               {"accum_vgpr_count", kFew},
                               {"sgpr_count", kFew},
                               {"static_lds_size", kFew},
                               {"static_scratch_size", kFew},
                               {"stack_id"},
                               {"parent_stack_id", kFew},
                               {"corr_id", kFew}});
  kernels.columns[5].text = [c](int64_t code, std::string& scratch) { return c->facts->readable(code, scratch); };
  const auto numbered = [](const char* word) {
    return TextOf([word](int64_t code, std::string& scratch) {
      scratch = fmt::format("{} {}", word, code);
      return std::string_view(scratch);
    });
  };
  kernels.columns[17].text = numbered("Queue");
  kernels.columns[18].text = numbered("Stream");
  const auto agent = [&](int64_t (*value)(const Context&, int64_t)) { return of_track(c, value); };
  const auto type = [](const Context& of, int64_t track) {
    const walk::Agent& about = of.agent_of_track(track);
    return of.word(about.kind == event::DeviceKind::kCpu ? "CPU" : "GPU");
  };
  add(kernels, Table::kDispatch, 1,
      {row_number(1),
       guid(),
       launcher(c, tid_of),
       constant(c->word("KERNEL_DISPATCH")),
       constant(0),
       of_dim(c, kernel_name),
       of_track(c, node_of),
       of_track(c, pid_of),
       agent(agent_of),
       agent([](const Context& of, int64_t track) { return of.agent_of_track(track).logical; }),
       agent([](const Context& of, int64_t track) { return of.agent_of_track(track).of_type; }),
       agent(type),
       constant(1),
       one(column::Fact::dim),
       dispatch_id(),
       of_track(c, queue_of),
       of_track(c, queue_of),
       of_track(c, queue_of),
       of_track(c, queue_of),
       start_of(c),
       end_of(c),
       duration_of(c),
       kernel_cell(c, K::grid_x),
       kernel_cell(c, K::grid_y),
       kernel_cell(c, K::grid_z),
       kernel_cell(c, K::group_x),
       kernel_cell(c, K::group_y),
       kernel_cell(c, K::group_z),
       lds(c, true),
       kernel_cell(c, K::private_bytes),
       kernel_cell(c, K::registers),
       kernel_cell(c, K::accum_registers),
       kernel_cell(c, K::scalar_registers),
       lds(c, false),
       kernel_cell(c, K::private_bytes),
       one(column::Fact::correlation),
       constant(0),
       constant(0)});
  all.push_back(std::move(kernels));

  Relation regions = relation(c, "regions",
                              {{"id", kId},
                               {"guid", kFew | kText},
                               {"category", kFew | kText},
                               {"name", kFew | kText},
                               {"nid", kFew},
                               {"pid", kFew},
                               {"tid", kFew},
                               {"start", kTime},
                               {"end"},
                               {"duration"},
                               {"event_id"},
                               {"stack_id"},
                               {"parent_stack_id", kFew},
                               {"corr_id", kFew},
                               {"extdata", kText},
                               {"call_stack", kFew | kText},
                               {"line_info", kFew | kText}});
  regions.columns[14].text = [c](int64_t code, std::string& scratch) -> std::string_view {
    if (code < 0) return "{}";
    scratch.clear();
    JsonWriter(scratch).begin_object().member("message", c->trace().string(code)).end_object();
    return scratch;
  };
  for (const Table table : {Table::kApi, Table::kMarker})
    add(regions, table, c->first_event(table),
        {row_number(c->first_event(table)), guid(),
         table == Table::kApi ? of_dim(c, function_category) : constant(c->word("MARKER_CORE_API")),
         of_dim(c, table == Table::kApi ? function_name : marker_call), of_track(c, node_of), of_track(c, pid_of),
         of_track(c, tid_of), start_of(c), end_of(c), duration_of(c), row_number(c->first_event(table)),
         one(column::Fact::correlation), constant(0), constant(0),
         table == Table::kMarker
             ? of_dim(c, [](const Context& of,
                            int64_t dim) { return of.facts->string_row(Table::kLabel, dim, column::Label::name); })
             : constant(-1),
         constant(0), constant(0)},
        table == Table::kMarker ? std::vector<PartColumn>{of_dim(c, marker_is_range)} : std::vector<PartColumn>{});
  all.push_back(std::move(regions));
  return all;
}

using RC = ResultTable::Column;
constexpr ValueType kI = ValueType::kInteger, kT = ValueType::kText, kR = ValueType::kReal;

std::vector<ResultTable> small_tables(const C& c) {
  const std::string guid = kGuid, none = "{}";
  std::vector<ResultTable> all;
  all.push_back({"rocpd_metadata", {RC{"id", kI}, RC{"tag", kT}, RC{"value", kT}}, [guid]() -> Result<Rows> {
                   return Rows{{int64_t{1}, std::string("schema_version"), std::string("3")},
                               {int64_t{2}, std::string("uuid"), std::string("")},
                               {int64_t{3}, std::string("guid"), guid}};
                 }});
  all.push_back(
      {"rocpd_info_node",
       {RC{"id", kI}, RC{"guid", kT}, RC{"hash", kI}, RC{"machine_id", kT}, RC{"system_name", kT}, RC{"hostname", kT},
        RC{"release", kT}, RC{"version", kT}, RC{"hardware_name", kT}, RC{"domain_name", kT}},
       [c, guid]() -> Result<Rows> {
         std::string host;
         for (int64_t row = 1; row < c->trace().rows(Table::kProcess) && host.empty(); ++row)
           host = c->trace().text(Table::kProcess, row, column::Process::host);
         return Rows{{int64_t{1}, guid, int64_t{1}, host, std::string("Linux"), host, {}, {}, {}, {}}};
       }});
  all.push_back(
      {"rocpd_info_process",
       {RC{"id", kI}, RC{"guid", kT}, RC{"nid", kI}, RC{"ppid", kI}, RC{"pid", kI}, RC{"init", kI}, RC{"fini", kI},
        RC{"start", kI}, RC{"end", kI}, RC{"command", kT}, RC{"environment", kT}, RC{"extdata", kT}},
       [c, guid, none]() -> Result<Rows> {
         Rows rows;
         const auto known = [](int64_t value) { return value == kUnknown ? report::Cell() : report::Cell(value); };
         for (int64_t row = c->nameless_process() ? 0 : 1; row < std::max<int64_t>(c->trace().rows(Table::kProcess), 1);
              ++row) {
           const auto cell = [&](int at) { return row > 0 ? c->trace().cell(Table::kProcess, row, at) : kUnknown; };
           const int64_t start = cell(column::Process::start);
           rows.push_back({row,
                           guid,
                           int64_t{1},
                           known(cell(column::Process::parent_pid)),
                           row > 0 ? cell(column::Process::pid) : 0,
                           {},
                           {},
                           known(start == kUnknown ? kUnknown : c->facts->boottime()(start)),
                           {},
                           std::string(row > 0 ? c->trace().text(Table::kProcess, row, column::Process::command) : ""),
                           none,
                           none});
         }
         return rows;
       }});
  all.push_back({"rocpd_info_thread",
                 {RC{"id", kI}, RC{"guid", kT}, RC{"nid", kI}, RC{"ppid", kI}, RC{"pid", kI}, RC{"tid", kI},
                  RC{"name", kT}, RC{"start", kI}, RC{"end", kI}, RC{"extdata", kT}},
                 [c, guid, none]() -> Result<Rows> {
                   Rows rows;
                   for (int64_t row = 0; row < std::max<int64_t>(c->trace().rows(Table::kThread), 1); ++row)
                     rows.push_back(
                         {row,
                          guid,
                          int64_t{1},
                          {},
                          row > 0 ? c->trace().cell(Table::kThread, row, column::Thread::process) : 0,
                          row > 0 ? c->trace().cell(Table::kThread, row, column::Thread::tid) : 0,
                          std::string(row > 0 ? c->trace().text(Table::kThread, row, column::Thread::name) : ""),
                          {},
                          {},
                          none});
                   return rows;
                 }});
  all.push_back({"rocpd_info_agent",
                 {RC{"id", kI}, RC{"guid", kT}, RC{"nid", kI}, RC{"pid", kI}, RC{"type", kT}, RC{"absolute_index", kI},
                  RC{"logical_index", kI}, RC{"type_index", kI}, RC{"uuid", kI}, RC{"name", kT}, RC{"model_name", kT},
                  RC{"vendor_name", kT}, RC{"product_name", kT}, RC{"user_name", kT}, RC{"extdata", kT}},
                 [c, guid, none]() -> Result<Rows> {
                   Rows rows;
                   for (const walk::Agent& agent : c->agents->all()) {
                     const auto text = [&](int at) {
                       return std::string(agent.device > 0 ? c->trace().text(Table::kDevice, agent.device, at) : "");
                     };
                     const std::string product = agent.device > 0 ? text(column::Device::name) : "host";
                     rows.push_back(
                         {agent.node, guid, int64_t{1}, c->owner(),
                          std::string(agent.device == 0 || agent.kind == event::DeviceKind::kCpu ? "CPU" : "GPU"),
                          agent.node, agent.logical, agent.of_type, int64_t{0}, product, product,
                          text(column::Device::vendor), product, product, none});
                   }
                   return rows;
                 }});
  const auto lines = [c, guid, none](const char* word) {
    return [c, guid, none, word]() -> Result<Rows> {
      Rows rows = {{int64_t{0}, guid, int64_t{1}, c->owner(), fmt::format("Default {}", word), none}};
      for (int64_t row = 1; row < c->trace().rows(Table::kTrack); ++row)
        if (c->trace().cell(Table::kTrack, row, column::Track::kind) == static_cast<int64_t>(event::TrackKind::kQueue))
          rows.push_back({row, guid, int64_t{1}, c->facts->track(row).process, fmt::format("{} {}", word, row), none});
      return rows;
    };
  };
  const std::vector<RC> line_columns = {RC{"id", kI},  RC{"guid", kT}, RC{"nid", kI},
                                        RC{"pid", kI}, RC{"name", kT}, RC{"extdata", kT}};
  all.push_back({"rocpd_info_queue", line_columns, lines("Queue")});
  all.push_back({"rocpd_info_stream", line_columns, lines("Stream")});
  all.push_back(
      {"rocpd_info_code_object",
       {RC{"id", kI}, RC{"guid", kT}, RC{"nid", kI}, RC{"pid", kI}, RC{"agent_id", kI}, RC{"uri", kT},
        RC{"load_base", kI}, RC{"load_size", kI}, RC{"load_delta", kI}, RC{"storage_type", kT}, RC{"extdata", kT}},
       [c, guid, none]() -> Result<Rows> {
         return Rows{{int64_t{1},
                      guid,
                      int64_t{1},
                      c->owner(),
                      {},
                      std::string(),
                      int64_t{0},
                      int64_t{0},
                      int64_t{0},
                      {},
                      none}};
       }});
  all.push_back({"rocpd_track",
                 {RC{"id", kI}, RC{"guid", kT}, RC{"nid", kI}, RC{"pid", kI}, RC{"tid", kI}, RC{"name_id", kI},
                  RC{"extdata", kT}},
                 [c, guid, none]() -> Result<Rows> {
                   Rows rows;
                   for (int64_t row = 1; row < c->trace().rows(Table::kTrack); ++row)
                     rows.push_back({row, guid, int64_t{1}, c->facts->track(row).process, c->thread(row),
                                     c->string_id(c->word("roctxMarkA")), none});
                   return rows;
                 }});
  return all;
}

// Codes of names in a top: a text's code doubled, plus 1 for names of kernels, which are shown demangled.
std::shared_ptr<NamedSums> sums_of_names(const C& c) {
  return std::make_shared<NamedSums>([c, text = text_of(c)](int64_t code, std::string& scratch) {
    return (code & 1) != 0 ? c->facts->readable(code >> 1, scratch) : text(code >> 1, scratch);
  });
}
int64_t kernel_code(int64_t code) {
  return code * 2 + 1;
}
int64_t text_code(int64_t code) {
  return code * 2;
}

// `code` maps a dimension's row to a code; kUnknown = the view lacks that row.
Status add_sums(const C& c, Table table, const std::function<int64_t(int64_t)>& code, NamedSums& sums, int64_t& all) {
  return c->trace().visit_summaries(table, [&](std::span<const trace::Summary> summaries) {
    for (const trace::Summary& summary : summaries) {
      add_saturating(all, summary.sum);
      if (const int64_t name = code(summary.dim); name != kUnknown)
        sums.add(name, summary.count + summary.unknown, summary.count, summary.sum);
    }
  });
}

Result<std::shared_ptr<const ResultRows>> top_kernels(const C& c) {
  const std::shared_ptr<NamedSums> sums = sums_of_names(c);
  int64_t all = 0;
  TACHO_TRY(add_sums(
      c, Table::kDispatch, [&](int64_t dim) { return kernel_code(kernel_name(*c, dim)); }, *sums, all));
  TACHO_TRY(sums->finish(NamedSums::Order::kRocpd));
  return std::make_shared<const TopRows>(sums, all, TopRows::Shape::kRocpd);
}

Result<std::shared_ptr<const ResultRows>> top(const C& c) {
  const std::shared_ptr<NamedSums> sums = sums_of_names(c);
  int64_t all = 0;
  const int64_t fill = text_code(c->word("MEMORY_FILL"));
  TACHO_TRY(add_sums(
      c, Table::kDispatch, [&](int64_t dim) { return kernel_code(kernel_name(*c, dim)); }, *sums, all));
  TACHO_TRY(add_sums(
      c, Table::kCopy, [&](int64_t dim) { return text_code(copy_name(*c, dim)); }, *sums, all));
  TACHO_TRY(add_sums(
      c, Table::kFill, [&](int64_t) { return fill; }, *sums, all));
  TACHO_TRY(add_sums(
      c, Table::kApi, [&](int64_t dim) { return text_code(function_name(*c, dim)); }, *sums, all));
  // Marks are samples, not regions.
  TACHO_TRY(add_sums(
      c, Table::kMarker,
      [&](int64_t dim) { return marker_is_range(*c, dim) != 0 ? text_code(marker_call(*c, dim)) : kUnknown; }, *sums,
      all));
  TACHO_TRY(sums->finish(NamedSums::Order::kRocpd));
  return std::make_shared<const TopRows>(sums, all, TopRows::Shape::kRocpd);
}

Result<Rows> busy(const C& c) {
  std::map<int64_t, int64_t> time;
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const Table table : {Table::kDispatch, Table::kCopy, Table::kFill}) {
    TACHO_ASSIGN(const auto summaries, c->trace().merged_summaries(table));
    const PartColumn target = shape_agent(c, column::CopyShape::target_device, false);
    for (const trace::Summary& summary : summaries) {
      if (summary.count == 0) continue;
      const int64_t base[4] = {summary.dim, summary.track, 0, 0};
      add_saturating(time[table == Table::kCopy ? target.derive(base) : agent_of(*c, summary.track)], summary.sum);
      first = std::min(first, summary.first);
      last = std::max(last, summary.last);
    }
  }
  Rows rows;
  for (const auto& [agent, sum] : time) {
    const walk::Agent* about = nullptr;
    for (const walk::Agent& one_agent : c->agents->all())
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
  const C c = std::make_shared<Context>();
  c->store = store;
  c->facts = facts;
  c->agents = std::make_shared<walk::Agents>(facts->trace(), 0);
  c->words = {"KERNEL_DISPATCH",
              "MEMORY_COPY",
              "MEMORY_ALLOCATION",
              "MARKER_CORE_API",
              "MEMORY_FILL",
              "roctxThreadRangeA",
              "roctxProcessRangeA",
              "roctxMarkA",
              "GPU",
              "CPU",
              "ABS",
              "REAL",
              "ALLOC",
              "FREE",
              "tacho"};
  for (size_t i = 0; i < static_cast<size_t>(event::Domain::kEnd); ++i) {
    const std::string_view name = format::api_domain_name(static_cast<event::Domain>(i));
    if (!name.empty() && c->word(name) == 0) c->words.emplace_back(name);
  }
  for (int64_t i = 0; i < static_cast<int64_t>(event::CopyDirection::kEnd); ++i)
    if (const std::string_view name = format::copy_direction_name(i); !name.empty() && c->word(name) == 0)
      c->words.emplace_back(name);
  const auto strings = std::make_shared<TraceStrings>(facts, c->words.size());
  c->strings = strings->strings();
  Dialect dialect;
  dialect.name = "rocpd";
  for (Relation& table : event_tables(c)) dialect.relations.emplace_back(store, std::move(table));
  for (Relation& view : flat_views(c)) dialect.relations.emplace_back(store, std::move(view));
  Relation texts = relation(c, "rocpd_string", {{"id", kId}, {"guid", kFew | kText}, {"string", kText}});
  add(texts, static_cast<Table>(0), 1,
      {row_number(1), constant(0), one(kRowNumber, [count = c->strings](const int64_t* base) {
         return base[0] < count ? base[0] : count - 1 - base[0];
       })});
  dialect.relations.emplace_back(strings, std::move(texts));
  dialect.results = small_tables(c);
  const std::vector<RC> top_columns = {RC{"name", kT}, RC{"total_calls", kI}, RC{"total_duration", kR},
                                       RC{"average", kR}, RC{"percentage", kR}};
  dialect.results.push_back({"top_kernels", top_columns, {}, [c] { return top_kernels(c); }});
  dialect.results.push_back({"top", top_columns, {}, [c] { return top(c); }});
  dialect.results.push_back(
      {"busy", {RC{"agent_id", kI}, RC{"type", kT}, RC{"GpuTime", kI}, RC{"WallTime", kI}, RC{"Busy", kR}}, [c] {
         return busy(c);
       }});
  for (const format::rocpd::ViewDefinition& view : format::rocpd::data_views()) {
    static constexpr std::string_view kOwn[] = {"kernels", "regions", "top", "top_kernels", "busy"};
    if (std::find(std::begin(kOwn), std::end(kOwn), view.name) != std::end(kOwn)) continue;
    dialect.views.push_back({view.name, view.name + " AS " + view.select});
  }
  return dialect;
}

Result<Dialect> rocpd_file_dialect(const sqlite::Database& database) {
  Dialect dialect;
  dialect.name = "rocpd";
  std::vector<std::string> suffixes = format::rocpd::suffixes(database);
  for (const format::rocpd::ViewDefinition& view : format::rocpd::plain_views(suffixes)) {
    // If an older or newer writer left out a table, its view is missing too, and SQLite's error names it.
    const bool there = std::all_of(suffixes.begin(), suffixes.end(), [&](const std::string& suffix) {
      return database.table(view.name + suffix) != nullptr;
    });
    if (there && !(suffixes.size() == 1 && suffixes[0].empty()))
      dialect.views.push_back({view.name, view.name + " AS " + view.select});
  }
  for (const format::rocpd::ViewDefinition& view : format::rocpd::data_views())
    dialect.views.push_back({view.name, view.name + " AS " + view.select});
  return dialect;
}

}  // namespace tacho::query
