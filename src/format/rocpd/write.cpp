// Writes rocpd databases: regions first, in time order, so that operations find their calling thread.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/text/demangle.h"
#include "base/text/json_writer.h"
#include "base/text/utf8.h"
#include "format/rocpd/owners.h"
#include "format/rocpd/relations.h"
#include "format/rocpd/rocpd.h"
#include "format/rocpd/schema.h"
#include "format/shared/rocprof_words.h"
#include "format/sqlite/bulk.h"
#include "format/sqlite/output.h"
#include "report/text.h"
#include "trace/read/rows.h"
#include "walk/calls/causes.h"
#include "walk/counters.h"
#include "walk/hash_ids.h"
#include "walk/merge.h"
#include "walk/names/agents.h"
#include "walk/names/names.h"
#include "walk/time/clock.h"

namespace tacho::format::rocpd {
namespace {

using event::Domain;
using event::kUnknown;
using event::Table;
using sqlite::BulkTable;
namespace column = event::column;
using walk::Agents;
using walk::Causes;
using walk::HashIds;
using walk::OutputClock;
using walk::RowNumbers;

// A UUID of version 7: milliseconds since 1970, then random bits.
std::string make_guid(int64_t realtime_ns) {
  std::random_device random;
  const auto ms = static_cast<uint64_t>(std::max<int64_t>(realtime_ns, 0) / 1'000'000);
  const uint64_t a = random(), b = random(), c = random();
  return fmt::format("{:08x}-{:04x}-7{:03x}-{:04x}-{:08x}{:04x}", ms >> 16 & 0xffffffff, ms & 0xffff, a & 0xfff,
                     0x8000 | (a >> 12 & 0x3fff), b & 0xffffffff, c & 0xffff);
}

class Writer {
 public:
  Writer(const trace::Trace& trace, const ExportOptions& options, sqlite::BulkFile& file, OutputClock clock,
         std::string suffix, std::string guid)
      : trace_(trace),
        options_(options),
        file_(file),
        clock_(std::move(clock)),
        suffix_(std::move(suffix)),
        guid_(std::move(guid)),
        agents_(trace, options.process),
        owners_(trace, agents_, clock_, guid_, options.process) {}
  Status run();

  // What the lists of relations.h ask

  const trace::Trace& trace() const { return trace_; }
  int64_t clock(int64_t time) const { return clock_(time); }
  int64_t unknown_end(int64_t start) const { return clock_(start); }  // the columns are NOT NULL
  int64_t id(int64_t) const { return id_; }
  int64_t event(int64_t) const { return event_; }
  int64_t node(int64_t track) const { return owners_.track(track).node; }
  int64_t process(int64_t track) const { return owners_.track(track).process_id; }
  int64_t thread(int64_t track) const { return owners_.track(track).thread; }
  int64_t agent(int64_t track) const { return owners_.track(track).agent; }
  int64_t agent_of(int64_t device) const { return agents_.of(device).node; }
  int64_t queue(int64_t track) const { return owners_.track(track).queue; }
  int64_t sample_track(int64_t track) const { return owners_.mark_track(track); }
  int64_t launching_thread(int64_t track, int64_t correlation);
  int64_t symbol(int64_t kernel) { return symbol(process_, kernel); }
  int64_t code_object() const { return code_object_; }
  int64_t pmc(int64_t) const { return pmc_; }
  int64_t pmc_agent() const { return pmc_agent_; }
  int64_t dispatch_event(int64_t, int64_t) const { return event_; }
  int64_t owner_node() const { return owners_.process(process_).node; }
  int64_t owner() const { return owners_.process(process_).id; }
  int64_t text_cell(Table table, int64_t row, int at) const { return trace_.cell(table, row, at); }

  // What the columns of a row ask

  const std::string& guid() const { return guid_; }
  std::string_view text(int64_t code) const { return code >= 0 ? trace_.string(code) : words().text(code); }
  int64_t text_id(int64_t code);  // rocpd_string.id
  std::string_view own_text(unsigned flags, int64_t value, std::string& scratch) const {
    if ((flags & kReadable) != 0) return shown_name_;
    if ((flags & kKernelNames) != 0) return kernel_names_;
    return object_text(trace_, flags, value, scratch);
  }

 private:
  struct Place {
    int64_t track, start;
    auto operator<=>(const Place&) const = default;
  };
  // Kernels and copies of a graph.
  struct GraphNode {
    int64_t process, correlation;  // of the launch
    int64_t graph, kernels;
    int64_t track, start, end;
    bool operator<(const GraphNode& other) const { return launch() < other.launch(); }
    std::pair<int64_t, int64_t> launch() const { return std::pair(process, correlation); }
  };
  void graph_node(const auto& row, int64_t graph, int64_t kernels);

  BulkTable& table(const char* name) { return file_.table(std::string(name) + suffix_); }
  /// Begins a row and writes its id and the guid.
  BulkTable& begin(BulkTable& table, int64_t id) {
    table.begin(id);
    return table.null().text(guid_);
  }
  template <typename List, typename Stored>
  void put(BulkTable& table, const List& list, int64_t id, Table from, const Stored& stored);
  template <typename Stored>
  void put_event(Table from, const Stored& stored) {
    event_ = next_event_++;
    put(events_, kEventTable, event_, from, stored);
  }
  int64_t text_id_of(std::string_view value);
  void put_rows(const char* name, const RocpdOwners::Rows& rows);
  int64_t symbol(int64_t process, int64_t kernel);
  void write_symbol(int64_t id, int64_t process, int64_t kernel);
  Status regions();
  Status operations();
  Status allocations();
  Status graph_launches();
  Status counters();
  Status readings();
  Status find_counted();
  int64_t pmc_of(const RocpdOwners::OfTrack& on, int64_t counter, int64_t agent);
  int64_t plain_event(int64_t category, int64_t stack);

  const trace::Trace& trace_;
  const ExportOptions& options_;
  sqlite::BulkFile& file_;
  OutputClock clock_;
  std::string suffix_, guid_;
  Agents agents_;
  RocpdOwners owners_;
  HashIds texts_;
  RowNumbers text_rows_{trace_.rows(Table::kString)};
  std::vector<int64_t> word_ids_ = std::vector<int64_t>(words().size(), 0);
  int64_t next_text_ = 1, next_event_ = 1;
  HashIds symbols_;    // by process, name and resource needs
  HashIds symbol_of_;  // by process and row of table kernel
  int64_t symbol_count_ = 0;
  std::map<int64_t, int64_t> code_objects_;  // by process
  int64_t next_track_ = 1, next_sample_ = 1, next_value_ = 1;
  std::map<std::pair<int64_t, int64_t>, int64_t> pmcs_;  // (agent, counter) -> rocpd_info_pmc.id
  BulkTable& events_ = table("rocpd_event");
  Causes<int64_t> threads_;  // of API calls: the calling thread's id
  // Of everything that may have counters: its event.
  KeyIndex<int64_t, Place> counted_events_;
  // Dispatches that are written for their counters alone. Empty where kernels are wanted or counters are not.
  KeyIndex<char, Place> counted_dispatches_;
  bool counters_ = false;
  SortedFile<GraphNode> graph_nodes_;
  // About the row that is being written.
  int64_t id_ = 0, event_ = 0, process_ = 0, code_object_ = 0, pmc_ = 0, pmc_agent_ = 0;
  std::string shown_name_, kernel_names_;
};

// Reads the list of a table as one row of it.
template <typename Stored>
class RowFace {
 public:
  RowFace(Writer& facts, BulkTable& table, Table from, const Stored& stored)
      : facts_(facts), table_(table), from_(from), stored_(stored) {}
  void relation(std::string_view, std::string_view = {}) {}
  void keep(auto) {}
  [[gnu::always_inline]] void column(std::string_view, relation::ColumnType type, unsigned flags, auto derivation) {
    if (type.code == 'k') return void(table_.null());  // the rowid
    if (type.code == 'g') return void(table_.text(facts_.guid()));
    if ((flags & kObject) != 0) return void(table_.text("{}"));
    const int64_t value = relation::value_of(derivation, from_, facts_, stored_);
    if (flags >= relation::kOwnFlag) return void(table_.text(facts_.own_text(flags, value, scratch_)));
    if (type.text_id) return void(table_.integer(facts_.text_id(value)));
    switch (type.code) {
      case 't':
      case 'T':
      case 'e':
        return void(table_.text(valid_utf8(facts_.text(value))));
      case 'r':
        return void(value == kUnknown ? table_.null() : table_.real(__builtin_bit_cast(double, value)));
      case 'i':
        return void(table_.known(value));
      default:
        table_.integer(value == kUnknown ? 0 : value);  // NOT NULL
    }
  }

 private:
  Writer& facts_;
  BulkTable& table_;
  Table from_;
  const Stored& stored_;
  std::string scratch_;
};

// Writes a row. stored(column) gives the stored columns of the trace's row.
template <typename List, typename Stored>
void Writer::put(BulkTable& table, const List& list, int64_t id, Table from, const Stored& stored) {
  id_ = id;
  table.begin(id);
  RowFace<Stored> face(*this, table, from, stored);
  list(face);
  table.end();
}

template <size_t kCount>
std::string_view bytes_of(const int64_t (&numbers)[kCount]) {
  return {reinterpret_cast<const char*>(numbers), sizeof numbers};
}

int64_t Writer::text_id_of(std::string_view value) {
  const std::string clean = valid_utf8(value);
  int64_t& known = texts_.of(clean);
  if (known != 0) return known;
  const int64_t id = known = next_text_++;
  begin(table("rocpd_string"), id).text(clean).end();
  return id;
}

int64_t Writer::text_id(int64_t code) {
  int64_t& known = code < 0 ? word_ids_[~static_cast<uint64_t>(code)] : text_rows_.of(code);
  return known != 0 ? known : known = text_id_of(text(code));
}

void Writer::put_rows(const char* name, const RocpdOwners::Rows& rows) {
  BulkTable& into = table(name);
  for (const std::vector<report::Cell>& row : rows) {
    into.begin(std::get<int64_t>(row[0]));
    into.null();  // the id
    for (const report::Cell& cell : std::span(row).subspan(1))
      if (const auto* const number = std::get_if<int64_t>(&cell))
        into.integer(*number);
      else if (const auto* const text = std::get_if<std::string>(&cell))
        into.text(valid_utf8(*text));
      else
        into.null();
    into.end();
  }
}

int64_t Writer::symbol(int64_t process_row, int64_t kernel) {
  const int64_t place[] = {process_row, kernel};
  int64_t& known = symbol_of_.of(bytes_of(place));
  if (known != 0) return known;
  using K = column::Kernel;
  const auto cell = [&](int at) { return trace_.cell(Table::kKernel, kernel, at); };
  const int64_t key[] = {process_row,
                         cell(K::name),
                         cell(K::registers),
                         cell(K::accum_registers),
                         cell(K::scalar_registers),
                         cell(K::shared_static),
                         cell(K::private_bytes)};
  int64_t& id = symbols_.of(bytes_of(key));
  if (id == 0) {
    id = ++symbol_count_;
    write_symbol(id, process_row, kernel);
  }
  return known = id;
}

void Writer::write_symbol(int64_t id, int64_t process_row, int64_t kernel) {
  const RocpdOwners::OfProcess& of = owners_.process(process_row);
  const auto [object, first] = code_objects_.try_emplace(process_row, static_cast<int64_t>(code_objects_.size()) + 1);
  code_object_ = object->second;
  if (first)
    begin(table("rocpd_info_code_object"), code_object_)
        .integer(of.node)
        .integer(of.id)
        .null()
        .text("")
        .integer(0)
        .integer(0)
        .integer(0)
        .null()
        .text("{}")
        .end();
  const std::string_view raw = trace_.text(Table::kKernel, kernel, column::Kernel::name);
  const std::string readable = demangle(raw), truncated = short_name(readable);
  shown_name_ = valid_utf8(options_.mangled ? raw : options_.truncate ? truncated : readable);
  kernel_names_.clear();
  JsonWriter json(kernel_names_);
  json.begin_object().member("kernel_id", id).member("formatted_kernel_name", readable);
  json.member("demangled_kernel_name", readable).member("truncated_kernel_name", truncated).end_object();
  const int64_t row = std::exchange(id_, id);
  put(table("rocpd_info_kernel_symbol"), kKernelSymbolTable, id, Table::kKernel,
      [&](int16_t at) { return trace_.cell(Table::kKernel, kernel, at); });
  id_ = row;
}

Status Writer::regions() {
  using A = column::Api;
  using M = column::Marker;
  walk::Merge<trace::RowCursor<A::track, A::start, A::duration, A::dim, A::correlation>,
              trace::RowCursor<M::track, M::start, M::duration, M::dim, M::correlation>>
      rows(trace_);
  std::vector<bool> wanted(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kFunction), 1)));
  for (size_t row = 0; row < wanted.size(); ++row) {
    const int64_t domain = trace_.cell(Table::kFunction, static_cast<int64_t>(row), column::Function::domain);
    text_id(trace_.cell(Table::kFunction, static_cast<int64_t>(row), column::Function::name));
    text_id(words().of_domain(domain));
    wanted[row] = options_.wants(event::from_cell<Domain>(domain));
  }
  for (const RocpdWord word :
       {RocpdWord::kMarkerCoreApi, RocpdWord::kRoctxThreadRange, RocpdWord::kRoctxProcessRange, RocpdWord::kRoctxMark})
    text_id(code_of(word));
  if (options_.wants(Table::kMarker)) {
    TACHO_TRY(owners_.find_marks());
    const RocpdOwners::Rows lines = owners_.mark_tracks(text_id(code_of(RocpdWord::kRoctxMark)));
    put_rows("rocpd_track", lines);
    next_track_ += static_cast<int64_t>(lines.size());
  }
  BulkTable& region_rows = table("rocpd_region");
  BulkTable& samples = table("rocpd_sample");
  int64_t region = 0;
  while (rows.more())
    rows.take([&](const auto& row) {
      const RocpdOwners::OfTrack& on = owners_.track(row.track);
      const bool call = row.kTable == Table::kApi;
      if (!on.wanted || !options_.wants(row.kTable) || (call && !wanted[static_cast<size_t>(row.dim)])) return;
      const auto stored = relation::stored_of(row);
      put_event(row.kTable, stored);
      if (relation::value_of(derive::kIsRegion, row.kTable, *this, stored) != 0)
        put(region_rows, kRegionTable, ++region, row.kTable, stored);
      else
        put(samples, kSampleTable, next_sample_++, row.kTable, stored);
      if (counters_) counted_events_.add({row.track, row.start}, event_);
      if (call) threads_.add(on.process, row.correlation, on.thread);
    });
  TACHO_TRY(rows.status());
  return threads_.finish();
}

int64_t Writer::launching_thread(int64_t track, int64_t correlation) {
  const RocpdOwners::OfTrack& on = owners_.track(track);
  const int64_t* const thread = threads_.find(on.process, correlation);
  return thread != nullptr && *thread != 0 ? *thread : on.thread;
}

// A value is tied to its dispatch's event, so a database with counters holds those dispatches also where kernels
// were not asked for, as AMD's has them.
Status Writer::find_counted() {
  if (counters_ && options_.wants(Table::kCounterValue) && !options_.wants(Table::kDispatch)) {
    using C = column::CounterValue;
    Status status;
    Place last{-1, 0};
    for (const auto& read : trace::chunks<C::track, C::start>(trace_, status))
      for (size_t i = 0; i < read.size(); ++i) {
        const Place place{read.track[i], read.start[i]};
        if (place != last) counted_dispatches_.add(place, 0);
        last = place;
      }
    TACHO_TRY(std::move(status));
  }
  return counted_dispatches_.finish();
}

Status Writer::operations() {
  using D = column::Dispatch;
  using C = column::Copy;
  using F = column::Fill;
  walk::Merge<trace::RowCursor<D::track, D::start, D::duration, D::dim, D::correlation, D::ordinal, D::graph_node>,
              trace::RowCursor<C::track, C::start, C::duration, C::dim, C::correlation, C::bytes, C::graph_node>,
              trace::RowCursor<F::track, F::start, F::duration, F::dim, F::correlation, F::bytes, F::graph_node>>
      rows(trace_);
  for (const RocpdWord word : {RocpdWord::kKernelDispatch, RocpdWord::kMemoryCopy, RocpdWord::kMemoryFill})
    text_id(code_of(word));
  BulkTable& dispatches = table("rocpd_kernel_dispatch");
  BulkTable& copies = table("rocpd_memory_copy");
  int64_t dispatch_count = 0, copy_count = 0;
  while (rows.more())
    rows.take([&](const auto& row) {
      const RocpdOwners::OfTrack& on = owners_.track(row.track);
      const bool counted =
          row.kTable == Table::kDispatch && counted_dispatches_.find({row.track, row.start}) != nullptr;
      if (!on.wanted || (!options_.wants(row.kTable) && !counted)) return;
      const auto stored = relation::stored_of(row);
      process_ = on.process;
      put_event(row.kTable, stored);
      if constexpr (std::decay_t<decltype(row)>::kTable == Table::kDispatch) {
        put(dispatches, kKernelDispatchTable, ++dispatch_count, row.kTable, stored);
        const auto cell = [&](int at) { return trace_.cell(Table::kKernel, row.dim, at); };
        const bool one = cell(column::Kernel::kind) == static_cast<int64_t>(event::DispatchKind::kGraph);
        if (!one && cell(column::Kernel::graph) > 0) graph_node(row, cell(column::Kernel::graph), 1);
      } else {
        put(copies, kMemoryCopyTable, ++copy_count, row.kTable, stored);
        if (row.graph_node > 0) graph_node(row, 0, 0);
      }
      if (counters_) counted_events_.add({row.track, row.start}, event_);
    });
  return rows.status();
}

int64_t Writer::plain_event(int64_t category, int64_t stack) {
  const int64_t id = next_event_++;
  begin(events_, id).integer(category).integer(stack).integer(0).integer(0).text("{}").text("{}").text("{}").end();
  return id;
}

void Writer::graph_node(const auto& row, int64_t graph, int64_t kernels) {
  if (row.correlation == 0) return;
  graph_nodes_.add({owners_.track(row.track).process, row.correlation, graph, kernels, row.track, row.start,
                    row.start + std::max<int64_t>(row.duration, 0)});
}

// Sums up each launch of a graph that has kernels.
Status Writer::graph_launches() {
  TACHO_TRY(graph_nodes_.finish());
  BulkTable& launches = table("rocpd_graph_launch");
  int64_t launch = 0;
  GraphNode sum{};
  const auto put_launch = [&] {
    if (sum.kernels == 0) return;
    const RocpdOwners::OfTrack& on = owners_.track(sum.track);
    const int64_t event = plain_event(text_id(code_of(RocpdWord::kHipGraph)), sum.correlation);
    begin(launches, ++launch)
        .integer(on.node)
        .integer(on.process_id)
        .integer(launching_thread(sum.track, sum.correlation))
        .integer(on.agent)
        .integer(on.queue)
        .integer(clock_(sum.start))
        .integer(clock_(sum.end))
        .integer(sum.graph)
        .integer(sum.kernels)
        .integer(event)
        .text("{}")
        .end();
  };
  GraphNode node;
  while (graph_nodes_.next(node)) {
    if (node.launch() != sum.launch()) {
      put_launch();
      sum = node;
      continue;
    }
    sum.start = std::min(sum.start, node.start);
    sum.end = std::max(sum.end, node.end);
    sum.graph = std::max(sum.graph, node.graph);
    sum.kernels += node.kernels;
  }
  put_launch();
  return {};
}

Status Writer::allocations() {
  if (!options_.wants(Table::kAllocation)) return {};
  using A = column::Allocation;
  text_id(code_of(RocpdWord::kMemoryAllocation));
  BulkTable& rows = table("rocpd_memory_allocate");
  int64_t count = 0;
  Status status;
  for (const auto& row :
       trace::rows<A::track, A::start, A::duration, A::dim, A::correlation, A::bytes, A::address>(trace_, status)) {
    if (!owners_.track(row.track).wanted) continue;
    const auto stored = relation::stored_of(row);
    put_event(Table::kAllocation, stored);
    put(rows, kMemoryAllocateTable, ++count, Table::kAllocation, stored);
    if (counters_) counted_events_.add({row.track, row.start}, event_);
  }
  return status;
}

// The description of a counter of an agent (kUnknown = of none).
int64_t Writer::pmc_of(const RocpdOwners::OfTrack& on, int64_t counter, int64_t agent) {
  const auto [known, fresh] = pmcs_.try_emplace({agent, counter}, static_cast<int64_t>(pmcs_.size()) + 1);
  process_ = on.process;
  pmc_agent_ = agent;
  pmc_ = known->second;
  if (fresh)
    put(table("rocpd_info_pmc"), kPmcTable, pmc_, Table::kCounter,
        [&](int16_t at) { return at < 0 ? 0 : trace_.cell(Table::kCounter, counter, at); });
  return pmc_;
}

// Values of the first pass, by the event that they belong to.
Status Writer::counters() {
  TACHO_TRY(counted_events_.finish());
  if (!counters_ || !options_.wants(Table::kCounterValue)) return {};
  BulkTable& values = table("rocpd_pmc_event");
  using C = column::CounterValue;
  TACHO_ASSIGN(const walk::FirstPasses passes, walk::FirstPasses::make(trace_));
  Status status;
  for (const auto& read :
       trace::chunks<C::track, C::start, C::ordinal, C::dim, C::instance, C::pass, C::value>(trace_, status))
    for (size_t i = 0; i < read.size(); ++i) {
      const int64_t counter = read.dim[i];
      const RocpdOwners::OfTrack& on = owners_.track(read.track[i]);
      if (!on.wanted || !passes.count(read.track[i], read.start[i], read.ordinal[i], counter, read.pass[i])) continue;
      const auto* const found = counted_events_.find({read.track[i], read.start[i]});
      if (found == nullptr) continue;
      pmc_of(on, counter, on.agent);
      event_ = found->value;
      put(values, kPmcEventTable, next_value_++, Table::kCounterValue, [&](int16_t at) {
        return at == C::value ? read.value[i].cell : at == C::instance ? read.instance[i] : 0;
      });
    }
  return status;
}

// Readings over time, as rocprof-sys writes them: samples, whose events have the values.
Status Writer::readings() {
  if (trace_.rows(Table::kReading) == 0 || !options_.wants(Table::kReading)) return {};
  struct Series {
    int64_t track = 0, pmc = 0, category = 0;  // ids
  };
  std::map<int64_t, Series> series;  // by track
  BulkTable& lines = table("rocpd_track");
  BulkTable& samples = table("rocpd_sample");
  BulkTable& values = table("rocpd_pmc_event");
  const auto series_of = [&](int64_t row) -> const Series& {
    const auto [known, fresh] = series.try_emplace(row);
    Series& of = known->second;
    if (!fresh) return of;
    const RocpdOwners::OfTrack& on = owners_.track(row);
    const auto cell = [&](int at) { return trace_.cell(Table::kTrack, row, at); };
    const int64_t counter = std::max<int64_t>(cell(column::Track::counter), 0), name = cell(column::Track::name);
    of.track = next_track_++;
    of.pmc = pmc_of(on, counter, cell(column::Track::device) > 0 ? on.agent : kUnknown);
    of.category = text_id(trace_.cell(Table::kCounter, counter, column::Counter::name));
    BulkTable& line = begin(lines, of.track).integer(on.node);
    (cell(column::Track::process) > 0 ? line.integer(on.process_id) : line.null()).null();
    (name > 0 ? line.integer(text_id(name)) : line.null()).text("{}").end();
    return of;
  };
  using R = column::Reading;
  Status status;
  for (const auto& read : trace::chunks<R::track, R::start, R::value>(trace_, status))
    for (size_t i = 0; i < read.size(); ++i) {
      if (!owners_.track(read.track[i]).wanted) continue;
      const Series& of = series_of(read.track[i]);
      const int64_t event = plain_event(of.category, 0);
      begin(samples, next_sample_++).integer(of.track).integer(clock_(read.start[i])).integer(event).text("{}").end();
      begin(values, next_value_++)
          .integer(event)
          .integer(of.pmc)
          .real(__builtin_bit_cast(double, read.value[i].cell))
          .text("{}")
          .end();
    }
  return status;
}

Status Writer::run() {
  text_id(0);
  counters_ = trace_.rows(Table::kCounterValue) > 0;
  put_rows("rocpd_info_node", owners_.nodes());
  put_rows("rocpd_info_process", owners_.processes());
  put_rows("rocpd_info_thread", owners_.threads());
  put_rows("rocpd_info_agent", owners_.agents());
  put_rows("rocpd_info_queue", owners_.queues());
  put_rows("rocpd_info_stream", owners_.streams());
  TACHO_TRY(regions());
  TACHO_TRY(find_counted());
  TACHO_TRY(operations());
  TACHO_TRY(allocations());
  TACHO_TRY(graph_launches());
  TACHO_TRY(counters());
  TACHO_TRY(readings());
  BulkTable& metadata = table("rocpd_metadata");
  int64_t id = 0;
  const auto tag = [&](std::string_view name, std::string_view value) {
    metadata.begin(++id);
    metadata.null().text(name).text(valid_utf8(value)).end();
  };
  tag("schema_version", "3.0.2");
  tag("uuid", suffix_);
  tag("guid", guid_);
  tag("tacho_version", TACHO_PROGRAM_VERSION);
  return file_.status();
}

}  // namespace

Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written) {
  if (trace.aggregated())
    return fail("{}: recorded with --aggregate: it holds no events that a database could hold", trace.path());
  TACHO_ASSIGN(sqlite::DatabaseOutput output, sqlite::DatabaseOutput::create(target.file, options.overwrite));
  TACHO_ASSIGN(OutputClock clock, OutputClock::make(trace, OutputClock::Clock::kBoottime));
  TACHO_ASSIGN(OutputClock realtime, OutputClock::make(trace, OutputClock::Clock::kRealtime));
  const std::string guid = make_guid(realtime(trace.time_range().first));
  std::string suffix = "_" + guid;
  std::replace(suffix.begin(), suffix.end(), '-', '_');
  TACHO_ASSIGN(const std::unique_ptr<sqlite::BulkFile> file,
               sqlite::BulkFile::create(output, table_schema(suffix, guid)));
  TACHO_TRY(Writer(trace, options, *file, std::move(clock), suffix, guid).run());
  std::string script;
  const std::string suffixes[] = {suffix};
  for (const ViewDefinition& view : plain_views(suffixes))
    script += "CREATE VIEW \"" + view.name + "\" AS " + view.select + ";\n";
  for (const ViewDefinition& view : data_views())
    script += "CREATE VIEW \"" + view.name + "\" AS " + view.select + ";\n";
  if (trace.rows(Table::kCounterValue) > 0)
    script += fmt::format(
        "CREATE INDEX \"rocpd_kernel_dispatch{0}_event\" ON \"rocpd_kernel_dispatch{0}\" (event_id);\n", suffix);
  TACHO_TRY(file->finish(script));
  TACHO_TRY(output.commit());
  written.push_back(target.file);
  return {};
}

}  // namespace tacho::format::rocpd
