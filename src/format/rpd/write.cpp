// Writes .rpd files: calls and operations in time order, numbered from 1. Rows that depend on calls are sorted by the
// call's number at the end.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "base/text/utf8.h"
#include "format/import/origin.h"
#include "format/rpd/op_type.h"
#include "format/rpd/relations.h"
#include "format/rpd/rpd.h"
#include "format/rpd/schema.h"
#include "format/rpd/tracks.h"
#include "format/sqlite/bulk.h"
#include "format/sqlite/output.h"
#include "trace/read/rows.h"
#include "vendor/definitions.h"
#include "walk/calls/causes.h"
#include "walk/hash_ids.h"
#include "walk/time/clock.h"
#include "walk/work.h"

namespace tacho::format::rpd {
namespace {

using event::Domain;
using event::kUnknown;
using event::Table;
using sqlite::BulkTable;
namespace column = event::column;
using walk::Causes;
using walk::HashIds;
using walk::OutputClock;
using walk::RowNumbers;

class Writer {
 public:
  Writer(const trace::Trace& trace, const ExportOptions& options, sqlite::BulkFile& file, OutputClock clock)
      : trace_(trace), options_(options), version_(options.rpd_schema), file_(file), clock_(std::move(clock)) {}
  Status run();

  // What the lists of relations.h ask. Codes of texts are ids of rocpd_string or, in columns that hold the text itself,
  // rows of the trace's string table.
  const trace::Trace& trace() const { return trace_; }
  int64_t clock(int64_t time) const { return clock_(time); }
  int64_t unknown_end(int64_t start) const { return clock_(start); }  // the file's columns are NOT NULL
  int64_t reading_end(int64_t) const { return clock_(reading_end_); }
  const auto& track(int64_t row) const { return tracks_[static_cast<size_t>(row)]; }
  int64_t id(int64_t) const { return id_; }
  int64_t operation(int64_t) const { return operation_; }
  int64_t call(int64_t, int64_t) const { return call_; }
  bool call_counts_items(int64_t, int64_t) const { return call_counts_items_; }
  int64_t no_text() const { return 1; }
  int64_t word(RpdWord word) {
    int64_t& known = words_[static_cast<size_t>(word)];
    return known != 0 ? known : known = text(kWords[static_cast<size_t>(word)]);
  }
  int64_t kernel_name(int64_t kernel);
  int64_t function_name(int64_t function) const { return functions_[static_cast<size_t>(function)].name; }
  int64_t function_domain(int64_t function) const { return functions_[static_cast<size_t>(function)].domain; }
  int64_t argument(int64_t row);  // id of a marker's text or a call's arguments
  int64_t counter_name(int64_t counter) const { return trace_.cell(Table::kCounter, counter, column::Counter::name); }

 private:
  struct LaunchRow {
    int64_t call, track, kernel, items;
    bool operator<(const LaunchRow& other) const { return call < other.call; }
  };
  struct CopyRow {
    int64_t call, track, shape, bytes;
    bool operator<(const CopyRow& other) const { return call < other.call; }
  };
  struct Function {
    int64_t name = 0, domain = 0;
    bool wanted = true, items = false;
  };

  bool wanted(const RpdTrack& track) const { return options_.process == 0 || options_.process == track.process; }
  void read_functions();
  Status calls();
  Status operations();
  Status launches();
  Status copies();
  Status readings();
  int64_t text(std::string_view value);  // rocpd_string.id
  int64_t text_of_row(int64_t row);      // the same, by row of the trace's string table
  std::string_view domain_word(Domain domain) const;
  template <typename List, typename Stored>
  void put(BulkTable& table, const List& list, int64_t id, Table from, const Stored& stored);

  const trace::Trace& trace_;
  const ExportOptions& options_;
  int version_;
  sqlite::BulkFile& file_;
  OutputClock clock_;
  const std::vector<RpdTrack> tracks_ = rpd_tracks(trace_);
  std::vector<Function> functions_;
  HashIds texts_;
  RowNumbers rows_{trace_.rows(Table::kString)}, arguments_{trace_.rows(Table::kString)},
      kernel_names_{trace_.rows(Table::kKernel)};
  int64_t words_[std::size(kWords)] = {};
  int64_t next_text_ = 1, next_argument_ = 1;
  Causes<int64_t> causes_;  // of API calls: id * 2, + 1 if the function's grid is in work-items
  SortedFile<LaunchRow> launch_rows_;
  SortedFile<CopyRow> copy_rows_;
  // About the row that is being written.
  int64_t id_ = 0, operation_ = 0, call_ = kUnknown, reading_end_ = 0;
  bool call_counts_items_ = false;
};

// Reads the list of a table as one row of it.
template <typename Stored>
class RowFace {
 public:
  RowFace(Writer& facts, BulkTable& table, int version, Table from, const Stored& stored)
      : facts_(facts), table_(table), version_(version), from_(from), stored_(stored) {}
  int version() const { return version_; }
  void relation(std::string_view) {}
  void keep(auto) {}
  [[gnu::always_inline]] void column(std::string_view, relation::ColumnType type, unsigned flags, auto derivation) {
    if (type.code == 'k' || (type.code == 'p' && version_ < 3)) return void(table_.null());  // the rowid
    const int64_t value = relation::value_of(derivation, from_, facts_, stored_);
    if ((flags & kHex) != 0)
      table_.text(fmt::format("0x{:x}", static_cast<uint64_t>(value)));
    else if ((flags & kDecimal) != 0)
      table_.text(fmt::format("{}", __builtin_bit_cast(double, value)));
    else if ((flags & kMonitor) != 0)
      table_.text(kMonitorTypes[static_cast<size_t>(value)]);
    else if ((flags & kText) != 0 || type.code == 's')
      table_.text(value == 0 ? std::string() : valid_utf8(facts_.trace().string(value)));
    else
      table_.integer(value == kUnknown ? 0 : value);  // NOT NULL
  }

 private:
  Writer& facts_;
  BulkTable& table_;
  int version_;
  Table from_;
  const Stored& stored_;
};

// Writes a row. stored(column) gives the stored columns of the trace's row.
template <typename List, typename Stored>
void Writer::put(BulkTable& table, const List& list, int64_t id, Table from, const Stored& stored) {
  id_ = id;
  table.begin(id);
  RowFace<Stored> face(*this, table, version_, from, stored);
  list(face);
  table.end();
}

int64_t Writer::text(std::string_view value) {
  int64_t& known = texts_.of(value);
  if (known != 0) return known;
  const int64_t id = known = next_text_++;
  BulkTable& table = file_.table("rocpd_string");
  table.begin(id);
  table.null().text(valid_utf8(value)).end();
  return id;
}

int64_t Writer::text_of_row(int64_t row) {
  int64_t& known = rows_.of(row);
  return known != 0 ? known : known = text(trace_.string(row));
}

int64_t Writer::kernel_name(int64_t kernel) {
  int64_t& known = kernel_names_.of(kernel);
  if (known != 0) return known;
  const std::string_view raw = trace_.text(Table::kKernel, kernel, column::Kernel::name);
  if (options_.mangled) return known = text(raw);
  return known = text(options_.truncate ? short_name(demangle(raw)) : demangle(raw));
}

int64_t Writer::argument(int64_t row) {
  if (version_ < 3) return text_of_row(row);
  if (row == 0) return 1;
  int64_t& known = arguments_.of(row);
  if (known != 0) return known;
  const int64_t id = known = next_argument_++;
  BulkTable& table = file_.table("rocpd_ustring");
  table.begin(id);
  table.null().text(valid_utf8(trace_.string(row))).end();
  return id;
}

std::string_view Writer::domain_word(Domain domain) const {
  if (domain == Domain::kUnknown) return {};
  const std::string_view family = vendor::api_family(domain);
  return family.empty() ? event::to_string(domain) : family;
}

void Writer::read_functions() {
  const std::vector<bool> count_items = functions_that_count_items(trace_);
  functions_.resize(count_items.size());
  for (int64_t row = 1; row < static_cast<int64_t>(functions_.size()); ++row) {
    Function& function = functions_[static_cast<size_t>(row)];
    const auto domain = static_cast<Domain>(trace_.cell(Table::kFunction, row, column::Function::domain));
    function.name = text_of_row(trace_.cell(Table::kFunction, row, column::Function::name));
    function.domain = version_ >= 3 ? text(domain_word(domain)) : 0;
    function.wanted = options_.wants(domain);
    function.items = count_items[static_cast<size_t>(row)];
  }
}

Status Writer::calls() {
  using A = column::Api;
  using M = column::Marker;
  walk::Merge<trace::RowCursor<A::track, A::start, A::duration, A::dim, A::correlation, A::arguments>,
              trace::RowCursor<M::track, M::start, M::duration, M::dim, M::correlation>>
      rows(trace_);
  read_functions();
  word(RpdWord::kUserMarker);
  if (version_ >= 3) word(RpdWord::kRoctx);
  BulkTable& table = file_.table("rocpd_api");
  int64_t id = 0;
  while (rows.more())
    rows.take([&](const auto& row) {
      const RpdTrack& of = track(row.track);
      if (!wanted(of) || !options_.wants(row.kTable)) return;
      const Function* const function = row.kTable == Table::kApi ? &functions_[static_cast<size_t>(row.dim)] : nullptr;
      if (function != nullptr && !function->wanted) return;
      put(table, kApiTable, ++id, row.kTable, relation::stored_of(row));
      if (function != nullptr) causes_.add(of.process, row.correlation, id * 2 + (function->items ? 1 : 0));
    });
  TACHO_TRY(rows.status());
  return causes_.finish();
}

Status Writer::operations() {
  using F = column::Fact;
  BulkTable& ops = file_.table("rocpd_op");
  BulkTable& links = file_.table("rocpd_api_ops");
  int64_t link = 0;
  walk::WorkCursor cursor(trace_);
  while (cursor.next()) {
    const walk::Work& work = *cursor;
    const RpdTrack& of = track(work.track);
    if (!wanted(of) || !options_.wants(work.table)) continue;
    const auto stored = [&work](int16_t at) {
      return at == F::track      ? work.track
             : at == F::start    ? work.start
             : at == F::duration ? work.duration
             : at == F::dim      ? work.dim
                                 : work.correlation;
    };
    put(ops, kOpTable, ++operation_, work.table, stored);
    const int64_t* const cause = causes_.find(of.process, work.correlation);
    if (cause == nullptr) continue;
    call_ = *cause / 2;
    put(links, kApiOpsTable, ++link, work.table, stored);
    if (work.graph_node != 0) continue;
    if (work.table == Table::kDispatch) launch_rows_.add({call_, work.track, work.dim, *cause % 2});
    if (work.table == Table::kCopy) copy_rows_.add({call_, work.track, work.dim, work.bytes});
  }
  return cursor.status();
}

Status Writer::launches() {
  TACHO_TRY(launch_rows_.finish());
  BulkTable& table = file_.table("rocpd_kernelapi");
  LaunchRow row;
  int64_t last = 0, number = 0;
  while (launch_rows_.next(row)) {
    if (row.call == last) continue;  // several kernels of one call: the first represents it
    last = call_ = row.call;
    call_counts_items_ = row.items != 0;
    put(table, kKernelapiTable, version_ >= 3 ? ++number : call_, Table::kDispatch,
        [&](int16_t at) { return at == column::Fact::dim ? row.kernel : row.track; });
  }
  return {};
}

Status Writer::copies() {
  TACHO_TRY(copy_rows_.finish());
  BulkTable& table = file_.table("rocpd_copyapi");
  CopyRow row;
  int64_t last = 0, number = 0;
  while (copy_rows_.next(row)) {
    if (row.call == last) continue;
    last = call_ = row.call;
    put(table, kCopyapiTable, version_ >= 3 ? ++number : call_, Table::kCopy, [&](int16_t at) {
      return at == column::Copy::dim ? row.shape : at == column::Copy::bytes ? row.bytes : row.track;
    });
  }
  return {};
}

// Runs of equal values, like upstream's poller: from a value's first reading to that of the next value.
Status Writer::readings() {
  if (!options_.wants(Table::kReading)) return {};
  using R = column::Reading;
  struct Run {
    int64_t start = kUnknown, last = 0, value = 0;
  };
  std::vector<Run> runs(tracks_.size());
  BulkTable& table = file_.table("rocpd_monitor");
  int64_t id = 0;
  const auto put_run = [&](size_t at, const Run& run, int64_t end) {
    reading_end_ = end;
    put(table, kMonitorTable, ++id, Table::kReading, [&](int16_t column) {
      return column == column::Reading::track   ? static_cast<int64_t>(at)
             : column == column::Reading::start ? run.start
                                                : run.value;
    });
  };
  Status status;
  for (const auto& reading : trace::rows<R::track, R::start, R::value>(trace_, status)) {
    const auto at = static_cast<size_t>(reading.track);
    if (!wanted(tracks_[at])) continue;
    Run& run = runs[at];
    if (run.start != kUnknown && run.value != reading.value.cell) {
      put_run(at, run, reading.start);
      run.start = kUnknown;
    }
    if (run.start == kUnknown) run.start = reading.start;
    run.last = reading.start;
    run.value = reading.value.cell;
  }
  TACHO_TRY(status);
  for (size_t at = 0; at < runs.size(); ++at)
    if (runs[at].start != kUnknown) put_run(at, runs[at], runs[at].last);
  return {};
}

Status Writer::run() {
  text("");
  if (version_ >= 3) {
    BulkTable& table = file_.table("rocpd_ustring");
    table.begin(next_argument_++);
    table.null().text("").end();
  }
  TACHO_TRY(calls());
  TACHO_TRY(operations());
  TACHO_TRY(launches());
  TACHO_TRY(copies());
  TACHO_TRY(readings());
  BulkTable& metadata = file_.table("rocpd_metadata");
  int64_t id = 0;
  const auto tag = [&](std::string_view name, std::string_view value) {
    metadata.begin(++id);
    metadata.null().text(name).text(valid_utf8(value)).end();
  };
  if (version_ >= 3) {
    tag("gpu_stride", std::to_string(kGpuStride));
    tag("pid_stride", std::to_string(kPidStride));
  }
  tag("schema_version", std::to_string(version_));
  tag("session_count", "1");
  tag("tacho::version", TACHO_PROGRAM_VERSION);
  std::set<int64_t> pids, gpus;
  for (size_t row = 1; row < tracks_.size(); ++row) {
    const RpdTrack& track = tracks_[row];
    if (!wanted(track)) continue;
    if (track.process > 0 && pids.insert(track.pid).second)
      tag(fmt::format("{}{}", kProcessTag, track.pid), imported::process_origin(trace_, track.process));
    const int64_t device = trace::cell<column::Track::device>(trace_, static_cast<int64_t>(row));
    if (device > 0 && gpus.insert(track.gpu).second)
      tag(fmt::format("{}{}", kGpuTag, track.gpu), imported::device_origin(trace_, device));
  }
  if (const auto command = trace_.property(Table::kEnd, 0, "command")) tag("tacho::command", *command);
  return file_.status();
}

}  // namespace

Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written) {
  if (options.rpd_schema != 2 && options.rpd_schema != 3)
    return fail("--rpd-schema {}: choose 2 or 3", options.rpd_schema);
  if (trace.aggregated())
    return fail("{}: recorded with --aggregate: it holds no events that an .rpd file could hold", trace.path());
  TACHO_ASSIGN(sqlite::DatabaseOutput output, sqlite::DatabaseOutput::create(target.file, options.overwrite));
  TACHO_ASSIGN(OutputClock clock, OutputClock::make(trace, OutputClock::Clock::kMonotonic));
  TACHO_ASSIGN(const std::unique_ptr<sqlite::BulkFile> file,
               sqlite::BulkFile::create(output, table_schema(options.rpd_schema)));
  TACHO_TRY(Writer(trace, options, *file, std::move(clock)).run());
  std::string script(index_schema(options.rpd_schema));
  for (const RpdView& view : views(options.rpd_schema)) script += "CREATE VIEW " + std::string(view.select) + ";\n";
  TACHO_TRY(file->finish(script));
  TACHO_TRY(output.commit());
  written.push_back(target.file);
  return {};
}

}  // namespace tacho::format::rpd
