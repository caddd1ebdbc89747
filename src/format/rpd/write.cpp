// Writes .rpd files: calls and operations in time order, numbered from 1. Rows that depend on calls are sorted by the
// call's number at the end.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/saturating.h"
#include "base/text/demangle.h"
#include "format/rpd/op_type.h"
#include "format/rpd/rpd.h"
#include "format/rpd/schema.h"
#include "format/sqlite/bulk.h"
#include "format/sqlite/output.h"
#include "format/view/causes.h"
#include "format/view/clock.h"
#include "format/view/hash_ids.h"

namespace tacho::format::rpd {
namespace {

using event::Domain;
using event::kUnknown;
using event::Table;
using sqlite::BulkTable;
namespace column = event::column;

constexpr int64_t kPidStride = 10'000'000, kGpuStride = 1000;

class Writer {
 public:
  Writer(const trace::Trace& trace, const ExportOptions& options, sqlite::BulkFile& file, OutputClock clock)
      : trace_(trace), options_(options), version_(options.rpd_schema), file_(file), clock_(std::move(clock)) {}
  Status run();

 private:
  struct LaunchRow {
    int64_t call, kernel, stream, items;
    bool operator<(const LaunchRow& other) const { return call < other.call; }
  };
  struct CopyRow {
    int64_t call, shape, bytes, stream;
    bool operator<(const CopyRow& other) const { return call < other.call; }
  };
  struct Track {
    int64_t process = 0, pid = 0, tid = 0, gpu = 0, queue = 0, sequence = 0, native = 0;
    bool wanted = true;
  };

  void read_tracks();
  Status calls();
  Status operations();
  Status launches();
  Status copies();
  Status readings();
  int64_t text(std::string_view value);           // rocpd_string.id
  int64_t text_of_row(int64_t row, bool kernel);  // the same, by row of the trace's string table
  int64_t argument(int64_t row);                  // id of a marker's text or a call's arguments, for args_id
  std::string_view domain_word(Domain domain) const;

  const trace::Trace& trace_;
  const ExportOptions& options_;
  int version_;
  sqlite::BulkFile& file_;
  OutputClock clock_;
  std::vector<Track> tracks_;
  HashIds texts_;
  RowNumbers rows_{trace_.rows(Table::kString)}, kernel_rows_{trace_.rows(Table::kString)},
      arguments_{trace_.rows(Table::kString)};
  int64_t next_text_ = 1, next_argument_ = 1;
  Causes causes_;  // of API calls: id * 2, + 1 if the function's grid is in work-items
  SortedFile<LaunchRow> launch_rows_;
  SortedFile<CopyRow> copy_rows_;
};

int64_t Writer::text(std::string_view value) {
  int64_t& known = texts_.of(value);
  if (known != 0) return known;
  const int64_t id = known = next_text_++;
  BulkTable& table = file_.table("rocpd_string");
  table.begin(id);
  table.null().text(sqlite::valid_utf8(value)).end();
  return id;
}

int64_t Writer::text_of_row(int64_t row, bool kernel) {
  int64_t& known = (kernel ? kernel_rows_ : rows_).of(row);
  if (known != 0) return known;
  const std::string_view raw = trace_.string(row);
  return known = kernel && !options_.mangled ? text(options_.truncate ? short_name(demangle(raw)) : demangle(raw))
                                             : text(raw);
}

int64_t Writer::argument(int64_t row) {
  if (version_ < 3) return text_of_row(row, false);
  if (row == 0) return 1;
  int64_t& known = arguments_.of(row);
  if (known != 0) return known;
  const int64_t id = known = next_argument_++;
  BulkTable& table = file_.table("rocpd_ustring");
  table.begin(id);
  table.null().text(sqlite::valid_utf8(trace_.string(row))).end();
  return id;
}

std::string_view Writer::domain_word(Domain domain) const {
  switch (domain) {
    case Domain::kHipRuntime:
    case Domain::kHipCompiler:
      return "hip";
    case Domain::kCudaRuntime:
    case Domain::kCudaDriver:
      return "cuda";
    case Domain::kUnknown:
      return "";
    default:
      return event::to_string(domain);
  }
}

void Writer::read_tracks() {
  // Distinguishes several hosts or runs in one file as upstream's multi-node views expect.
  std::map<std::pair<int64_t, int64_t>, int64_t> nodes;
  for (int64_t process = 1; process < trace_.rows(Table::kProcess); ++process)
    nodes.try_emplace({trace_.cell(Table::kProcess, process, column::Process::run),
                       trace_.cell(Table::kProcess, process, column::Process::host)},
                      static_cast<int64_t>(nodes.size()));
  const auto node_of = [&](int64_t process) -> int64_t {
    const auto found = nodes.find({trace_.cell(Table::kProcess, process, column::Process::run),
                                   trace_.cell(Table::kProcess, process, column::Process::host)});
    return process > 0 && found != nodes.end() ? found->second : 0;
  };
  const bool from_rpd = trace_.property(Table::kEnd, 0, "source").value_or("") == "rpd";
  const int64_t count = std::max<int64_t>(trace_.rows(Table::kTrack), 1);
  tracks_.resize(static_cast<size_t>(count));
  for (int64_t row = 1; row < count; ++row) {
    Track& track = tracks_[static_cast<size_t>(row)];
    const auto cell = [&](int at) { return trace_.cell(Table::kTrack, row, at); };
    track.process = cell(column::Track::process);
    const int64_t node = node_of(track.process);
    track.pid = trace_.cell(Table::kProcess, track.process, column::Process::pid) + node * kPidStride;
    const int64_t thread = cell(column::Track::thread), device = cell(column::Track::device);
    track.tid = thread > 0 ? trace_.cell(Table::kThread, thread, column::Thread::tid) + node * kPidStride : track.pid;
    const int64_t index = device > 0 ? trace_.cell(Table::kDevice, device, column::Device::index) : 0;
    track.gpu = (index == kUnknown ? 0 : index) + node * kGpuStride;
    track.native = cell(column::Track::native);
    const int64_t context = cell(column::Track::context);
    const bool cuda = device > 0 && trace_.text(Table::kDevice, device, column::Device::vendor).find("NVIDIA") !=
                                        std::string_view::npos;
    // Like upstream's CUDA backend: the context is the queue, the stream the sequence. Ignores the others.
    track.queue = cuda ? context : track.native;
    track.sequence = cuda ? track.native : from_rpd ? context : 0;
    track.wanted = options_.process == 0 || options_.process == track.process;
  }
}

Status Writer::calls() {
  static constexpr int kColumns[] = {column::Fact::track, column::Fact::start, column::Fact::duration,
                                     column::Fact::dim, column::Fact::correlation};
  static constexpr int kApiColumns[] = {column::Fact::track, column::Fact::start,       column::Fact::duration,
                                        column::Fact::dim,   column::Fact::correlation, column::Api::arguments};
  trace::TimeCursor api(trace_, Table::kApi, kApiColumns), marker(trace_, Table::kMarker, kColumns);
  bool more_api = options_.wants(Table::kApi) && api.next(),
       more_marker = options_.wants(Table::kMarker) && marker.next();
  struct Function {
    int64_t name, domain;
    bool wanted, items;
  };
  std::vector<Function> functions(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kFunction), 1)),
                                  Function{0, 0, true, false});
  for (size_t row = 1; row < functions.size(); ++row) {
    const auto domain =
        static_cast<Domain>(trace_.cell(Table::kFunction, static_cast<int64_t>(row), column::Function::domain));
    functions[row].name =
        text_of_row(trace_.cell(Table::kFunction, static_cast<int64_t>(row), column::Function::name), false);
    functions[row].domain = version_ >= 3 ? text(domain_word(domain)) : 0;
    functions[row].wanted = options_.wants(domain);
    functions[row].items =
        launches_items(trace_.text(Table::kFunction, static_cast<int64_t>(row), column::Function::name));
  }
  const int64_t user_marker = text("UserMarker"), roctx = version_ >= 3 ? text("roctx") : 0;
  BulkTable& table = file_.table("rocpd_api");
  int64_t id = 0;
  while (more_api || more_marker) {
    const bool take_api = more_api && (!more_marker || api.start() <= marker.start());
    const std::span<const int64_t> row = take_api ? api.row() : marker.row();
    const Track& track = tracks_[static_cast<size_t>(row[0])];
    const auto dim = static_cast<size_t>(row[3]);
    if (track.wanted && (!take_api || functions[dim].wanted)) {
      ++id;
      const int64_t start = clock_(row[1]);
      const int64_t end = row[2] == kUnknown ? start : clock_(row[1] + row[2]);
      table.begin(id);
      table.null().integer(track.pid).integer(track.tid).integer(start).integer(end);
      if (take_api) {
        table.integer(functions[dim].name);
        if (version_ >= 3) table.integer(1).integer(functions[dim].domain);
        table.integer(row[5] != 0 ? argument(row[5]) : 1);
        if (row[4] != 0) causes_.add(track.process, row[4], id * 2 + (functions[dim].items ? 1 : 0));
      } else {
        table.integer(user_marker);
        if (version_ >= 3) table.integer(1).integer(roctx);
        table.integer(argument(trace_.cell(Table::kLabel, row[3], column::Label::name)));
      }
      table.end();
    }
    if (take_api)
      more_api = api.next();
    else
      more_marker = marker.next();
  }
  TACHO_TRY(api.status());
  TACHO_TRY(marker.status());
  return causes_.finish();
}

Status Writer::operations() {
  static constexpr Table kTables[] = {Table::kDispatch, Table::kCopy, Table::kFill};
  static constexpr int kDispatchColumns[] = {column::Dispatch::track,       column::Dispatch::start,
                                             column::Dispatch::duration,    column::Dispatch::dim,
                                             column::Dispatch::correlation, column::Dispatch::graph_node};
  static constexpr int kCopyColumns[] = {column::Copy::track,     column::Copy::start,       column::Copy::duration,
                                         column::Copy::dim,       column::Copy::correlation, column::Copy::bytes,
                                         column::Copy::graph_node};
  trace::TimeCursor dispatch(trace_, Table::kDispatch, kDispatchColumns), copy(trace_, Table::kCopy, kCopyColumns),
      fill(trace_, Table::kFill, kCopyColumns);
  trace::TimeCursor* const cursors[] = {&dispatch, &copy, &fill};
  bool more[3];
  for (int i = 0; i < 3; ++i) more[i] = options_.wants(kTables[i]) && cursors[i]->next();
  struct Kernel {
    int64_t name, type;
  };
  std::vector<Kernel> kernels(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kKernel), 1)), Kernel{0, 0});
  int64_t fill_type = 0;
  std::vector<int64_t> copy_types(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kCopyShape), 1)), 0);
  BulkTable& ops = file_.table("rocpd_op");
  BulkTable& links = file_.table("rocpd_api_ops");
  int64_t id = 0, link = 0;
  while (more[0] || more[1] || more[2]) {
    int which = -1;
    for (int i = 0; i < 3; ++i)
      if (more[i] && (which < 0 || cursors[i]->start() < cursors[which]->start())) which = i;
    const std::span<const int64_t> row = cursors[which]->row();
    const Track& track = tracks_[static_cast<size_t>(row[0])];
    if (track.wanted) {
      int64_t description = 1, type = 0;
      const auto dim = static_cast<size_t>(row[3]);
      if (which == 0) {
        Kernel& kernel = kernels[dim];
        if (kernel.type == 0) {
          kernel.name = text_of_row(trace_.cell(Table::kKernel, row[3], column::Kernel::name), true);
          kernel.type = text(op_type_of_dispatch(
              static_cast<event::DispatchKind>(trace_.cell(Table::kKernel, row[3], column::Kernel::kind))));
        }
        description = kernel.name;
        type = kernel.type;
      } else if (which == 1) {
        if (copy_types[dim] == 0)
          copy_types[dim] = text(op_type_of_copy(
              static_cast<event::CopyDirection>(trace_.cell(Table::kCopyShape, row[3], column::CopyShape::direction))));
        type = copy_types[dim];
      } else {
        if (fill_type == 0) fill_type = text(kOpTypeOfFill);
        type = fill_type;
      }
      ++id;
      const int64_t start = clock_(row[1]);
      const int64_t end = row[2] == kUnknown ? start : clock_(row[1] + row[2]);
      ops.begin(id);
      ops.null().integer(track.gpu).integer(track.queue).integer(track.sequence);
      if (version_ < 3) ops.text("");
      ops.integer(start).integer(end).integer(description).integer(type).end();
      if (const int64_t cause = causes_.find(track.process, row[4]); cause != 0) {
        const int64_t call = cause / 2;
        links.begin(++link);
        links.null().integer(call).integer(id).end();
        if (which == 0 && row[5] == 0) launch_rows_.add({call, row[3], track.native, cause % 2});
        if (which == 1 && row[6] == 0) copy_rows_.add({call, row[3], row[5], track.native});
      }
    }
    more[which] = cursors[which]->next();
  }
  for (const trace::TimeCursor* cursor : cursors) TACHO_TRY(cursor->status());
  return {};
}

Status Writer::launches() {
  TACHO_TRY(launch_rows_.finish());
  BulkTable& table = file_.table("rocpd_kernelapi");
  LaunchRow row;
  int64_t last = 0, number = 0;
  while (launch_rows_.next(row)) {
    if (row.call == last) continue;  // several kernels of one call: the first represents it
    last = row.call;
    using K = column::Kernel;
    const auto cell = [&](int at) { return trace_.cell(Table::kKernel, row.kernel, at); };
    const auto known = [](int64_t value) { return value == kUnknown ? 0 : value; };
    table.begin(version_ >= 3 ? ++number : row.call);
    if (version_ >= 3)
      table.integer(row.call);
    else
      table.null();
    table.text(fmt::format("0x{:x}", static_cast<uint64_t>(row.stream)));
    for (int i = 0; i < 3; ++i) {
      const int64_t items = cell(K::grid_x + i), each = cell(K::group_x + i);
      // Workgroups, except for the launch functions that upstream records in work-items.
      table.integer(items == kUnknown                                 ? 0
                    : row.items != 0 || each == kUnknown || each <= 0 ? items
                                                                      : (items + each - 1) / each);
    }
    for (int i = 0; i < 3; ++i) table.integer(known(cell(K::group_x + i)));
    table.integer(saturating_add(known(cell(K::shared_static)), known(cell(K::shared_dynamic))))
        .integer(known(cell(K::private_bytes)));
    if (version_ < 3) table.text("").text("").text("").text("");
    table.integer(text_of_row(cell(K::name), true)).end();
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
    last = row.call;
    using C = column::CopyShape;
    const auto cell = [&](int at) { return trace_.cell(Table::kCopyShape, row.shape, at); };
    const auto device = [&](int at) {
      const int64_t index = cell(at) > 0 ? trace_.cell(Table::kDevice, cell(at), column::Device::index) : 0;
      return index == kUnknown ? 0 : index;
    };
    table.begin(version_ >= 3 ? ++number : row.call);
    if (version_ >= 3)
      table.integer(row.call);
    else
      table.null();
    table.text(fmt::format("0x{:x}", static_cast<uint64_t>(row.stream)))
        .integer(row.bytes == kUnknown ? 0 : row.bytes)
        .text("")
        .text("");
    const int64_t direction = cell(C::direction);
    table.integer(direction >= 1 && direction <= 4 ? direction - 1 : 4)
        .text("")
        .text("");  // the runtime's memcpy kind; no addresses
    const auto pinned = static_cast<int64_t>(event::MemoryKind::kPinned);
    table.integer(device(C::target_device))
        .integer(device(C::source_device))
        .integer(cell(C::asynchronous) == 0 ? 1 : 0);
    table.integer(cell(C::source_memory) == pinned || cell(C::target_memory) == pinned ? 1 : 0).end();
  }
  return {};
}

// Runs of equal values, like upstream's poller: from a value's first reading to that of the next value.
Status Writer::readings() {
  if (!options_.wants(Table::kReading)) return {};
  static constexpr int kColumns[] = {column::Reading::track, column::Reading::start, column::Reading::value};
  struct Run {
    int64_t start = kUnknown, last = 0, value = 0;
  };
  std::vector<Run> runs(tracks_.size());
  BulkTable& table = file_.table("rocpd_monitor");
  int64_t id = 0;
  const auto put = [&](size_t at, const Run& run, int64_t end) {
    const auto cell = [&](int column) { return trace_.cell(Table::kTrack, static_cast<int64_t>(at), column); };
    const int64_t counter = cell(column::Track::counter);
    const size_t type = monitor_type(cell(column::Track::device), tracks_[at].process);
    table.begin(++id);
    table.null()
        .text(kMonitorTypes[type])
        .integer(type == kMonitorOfGpu       ? tracks_[at].gpu
                 : type == kMonitorOfProcess ? tracks_[at].pid
                                             : 0)
        .text(sqlite::valid_utf8(trace_.text(Table::kCounter, counter, column::Counter::name)));
    table.integer(clock_(run.start))
        .integer(clock_(end))
        .text(fmt::format("{}", __builtin_bit_cast(double, run.value)))
        .end();
  };
  TACHO_TRY(
      trace::visit_by_time(trace_, Table::kReading, kColumns, INT64_MIN, INT64_MAX, [&](std::span<const int64_t> row) {
        const auto at = static_cast<size_t>(row[0]);
        if (!tracks_[at].wanted) return true;
        Run& run = runs[at];
        if (run.start != kUnknown && run.value != row[2]) {
          put(at, run, row[1]);
          run.start = kUnknown;
        }
        if (run.start == kUnknown) run.start = row[1];
        run.last = row[1];
        run.value = row[2];
        return true;
      }));
  for (size_t at = 0; at < runs.size(); ++at)
    if (runs[at].start != kUnknown) put(at, runs[at], runs[at].last);
  return {};
}

Status Writer::run() {
  read_tracks();
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
    metadata.null().text(name).text(sqlite::valid_utf8(value)).end();
  };
  if (version_ >= 3) {
    tag("gpu_stride", std::to_string(kGpuStride));
    tag("pid_stride", std::to_string(kPidStride));
  }
  tag("schema_version", std::to_string(version_));
  tag("session_count", "1");
  tag("tacho::version", TACHO_PROGRAM_VERSION);
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
               sqlite::BulkFile::create(output.temporary(), table_schema(options.rpd_schema)));
  TACHO_TRY(Writer(trace, options, *file, std::move(clock)).run());
  std::string script(index_schema(options.rpd_schema));
  for (const ViewDefinition& view : views(options.rpd_schema))
    script += "CREATE VIEW " + std::string(view.select) + ";\n";
  TACHO_TRY(file->finish(script));
  TACHO_TRY(output.commit());
  written.push_back(target.file);
  return {};
}

}  // namespace tacho::format::rpd
