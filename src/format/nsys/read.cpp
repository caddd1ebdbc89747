// Reads the SQLite tables of `nsys export --type sqlite`: nsys' own and those that tacho writes (nsys.h).
#include <tsl/robin_map.h>

#include <algorithm>
#include <bit>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/format.h"
#include "base/number_map.h"
#include "base/text/how_many.h"
#include "format/import/origin.h"
#include "format/import/rows.h"
#include "format/import/times.h"
#include "format/import/tracker.h"
#include "format/import/words.h"
#include "format/json/tokens.h"
#include "format/nsys/nsys.h"
#include "format/nsys/words.h"
#include "format/sqlite/database.h"
#include "format/sqlite/unpack.h"
#include "trace/write/writer.h"

namespace tacho::format::nsys {

namespace {

using event::kUnknown;
using event::Table;
using imported::SpanRead;
using sqlite::NamedScan;
namespace row = event::row;

constexpr std::string_view kKernels = "CUPTI_ACTIVITY_KIND_KERNEL", kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY",
                           kFills = "CUPTI_ACTIVITY_KIND_MEMSET", kWaitTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                           kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME", kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                           kMarkers = "NVTX_EVENTS", kGpuRanges = "TACHO_GPU_RANGES";
constexpr std::string_view kRead[] = {kKernels, kCopies, kFills, kWaitTable, kCalls, kGraphs, kMarkers, kGpuRanges};

constexpr std::string_view kStringColumns[] = {"id", "value"};

// "cudaLaunchKernel_v7000": nsys appends the version in which the function came.
std::string_view without_version(std::string_view name) {
  const size_t at = name.rfind("_v");
  if (at == std::string_view::npos || name.size() - at < 6) return name;
  for (const char c : name.substr(at + 2))
    if (c < '0' || c > '9') return name;
  return name.substr(0, at);
}

// "NVTX_EVENTS", or the newest of "NVTX_EVENTS_V2", "NVTX_EVENTS_V3" ... where a file has no other.
const sqlite::StoredTable* newest_table(const sqlite::Database& database, std::string_view name) {
  if (const sqlite::StoredTable* const own = database.table(name)) return own;
  const sqlite::StoredTable* newest = nullptr;
  int64_t most = -1;
  for (const sqlite::StoredTable& table : database.tables()) {
    const std::string_view stored = table.name;
    int64_t version = 0;
    if (stored.starts_with(name) && stored.substr(name.size()).starts_with("_V") &&
        json::integer(stored.substr(name.size() + 2), version) && version > most) {
      newest = &table;
      most = version;
    }
  }
  return newest;
}

class Reader {
 public:
  Reader(const sqlite::Database& database, trace::TraceWriter& writer)
      : db_(database), writer_(writer), tracker_(writer) {}

  Status run() {
    TACHO_TRY(read_strings());
    TACHO_TRY(read_session());
    TACHO_TRY(read_processes());
    TACHO_TRY(read_devices());
    TACHO_TRY(read_calls());
    TACHO_TRY(read_kernels());
    TACHO_TRY(read_graphs());
    TACHO_TRY(read_copies());
    TACHO_TRY(read_fills());
    TACHO_TRY(add_unmeasured());
    TACHO_TRY(read_waits());
    TACHO_TRY(read_names_of_markers());
    TACHO_TRY(read_markers());
    TACHO_TRY(read_gpu_ranges());
    TACHO_TRY(count_unread());
    describe_processes();
    if (folded_ > 0)
      writer_.note(
          0, event::NoteSeverity::kWarning,
          fmt::format(
              "PROCESSES has more than one name for {}: the file's tables know processes by their pid, and tacho "
              "shows those of one pid as one process",
              folded_ == 1 ? fmt::format("pid {}", folded_pid_)
                           : fmt::format("{} pids, such as {}", folded_, folded_pid_)));
    if (unnamed_ > 0)
      writer_.note(0, event::NoteSeverity::kWarning,
                   how_many(unnamed_, "row has a name that StringIds lacks; it is called by number",
                            "rows have names that StringIds lacks; they are called by number"));
    tracker_.finish();
    return {};
  }

 private:
  // Calls `take` with each row of a table that the file may lack.
  template <typename Take>
  Status each(std::string_view name, std::initializer_list<std::string_view> columns, Take take) {
    const sqlite::StoredTable* const table = newest_table(db_, name);
    if (table == nullptr) return {};
    NamedScan scan(db_, *table, columns);
    while (scan.next()) take(scan);
    return scan.status();
  }
  // The string row of an id; 0 for none.
  int64_t text(int64_t id) {
    if (id == kUnknown) return 0;
    if (const auto known = strings_.find(id); known != strings_.end()) return known->second;
    ++unnamed_;
    return strings_[id] = writer_.string(fmt::format("string {}", id));
  }
  // False for rows without a start, which are counted.
  bool timed(Table table, const NamedScan& scan, SpanRead& span) {
    span = imported::span_of(scan.number(0), scan.number(1));
    if (span.verdict == SpanRead::Verdict::kBad) writer_.lose(0, table, event::LossReason::kBadInput, 1);
    if (span.verdict == SpanRead::Verdict::kDisordered) writer_.lose(0, table, event::LossReason::kClockOrder, 1);
    return span.verdict != SpanRead::Verdict::kBad;
  }
  int64_t process_of(int64_t global) {
    if (global == kUnknown) return tracker_.process(kUnknown);
    const int64_t pid = pid_of(global);
    if (pid != last_pid_) static_cast<void>(facts_[last_pid_ = pid]);
    return tracker_.process(pid);
  }
  int64_t thread_of(int64_t global) {
    return tracker_.thread_track(process_of(global), global == kUnknown ? 0 : tid_of(global));
  }
  int64_t stream(int64_t global, int64_t device, int64_t context, int64_t stream) {
    int64_t& known = streams_[{process_of(global), device, context, stream}];
    if (known == 0)
      known = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                           .process = process_of(global),
                                           .device = device == kUnknown ? 0 : tracker_.device(device),
                                           .native = stream == kUnknown ? 0 : stream,
                                           .context = context == kUnknown ? 0 : context,
                                           .category = writer_.string("stream")});
    return known;
  }

  // Device work: a start and end of 0 far from all other times is no measurement.
  template <event::FactRow R>
  void work(const R& row) {
    if (imported::UnmeasuredRows::looks_so(row.start, row.duration)) {
      any_unmeasured_ = true;
      return unmeasured_.take(row);
    }
    unmeasured_.saw(row.start, row.duration);
    writer_.add(row);
  }
  // It lies at the end of its call, with an unknown duration.
  Status add_unmeasured() {
    if (!any_unmeasured_) return {};
    KeyIndex<int64_t, CallId> ends;
    TACHO_TRY(each(kCalls, {"end", "globalTid", "correlationId"}, [&](const NamedScan& scan) {
      if (scan.id(2) != 0 && scan.number(1) != kUnknown && scan.number(0) != kUnknown)
        ends.add({pid_of(scan.number(1)), scan.id(2)}, scan.number(0));
    }));
    TACHO_TRY(ends.finish());
    std::map<int64_t, int64_t> pids;  // by track
    for (const auto& [key, track] : streams_)
      for (const auto& [pid, facts] : facts_)
        if (tracker_.has_process(pid) && tracker_.process(pid) == key[0]) pids[track] = pid;
    return unmeasured_.finish(writer_, [&](int64_t track, int64_t correlation) {
      const auto* const call = correlation != 0 ? ends.find({pids[track], correlation}) : nullptr;
      return call != nullptr ? call->value : kUnknown;
    });
  }

  Status read_strings() {
    return each("StringIds", {"id", "value"},
                [&](const NamedScan& scan) { strings_[scan.number(0)] = writer_.string(scan.string(1)); });
  }

  Status read_session() {
    writer_.property(Table::kEnd, 0, "source", "nsys sqlite");
    writer_.property(Table::kEnd, 0, "source_file", db_.file().path());
    if (db_.file().unpacked()) writer_.note(0, event::NoteSeverity::kInfo, db_.file().unpacked_sentence());
    TACHO_TRY(each("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, [&](const NamedScan& scan) {
      if (const int64_t utc = scan.number(0); utc != kUnknown && utc > 0)
        writer_.add(row::Clock{.raw = 0, .realtime = utc});
    }));
    TACHO_TRY(each("TARGET_INFO_SYSTEM_ENV", {"name", "value"}, [&](const NamedScan& scan) {
      if (scan.string(0) == "Hostname") host_ = writer_.string(scan.string(1));
    }));
    return each("META_DATA_EXPORT", {"name", "value"}, [&](const NamedScan& scan) {
      if (scan.string(0) == "EXPORTED_BY") of_tacho_ = scan.string(1).starts_with("tacho");
      if (scan.string(0) != "EXPORT_SCHEMA_VERSION") return;
      const std::string version(scan.string(1));
      writer_.property(Table::kEnd, 0, "nsys.schema", version);
      if (!version.starts_with("2.") && !version.starts_with("3."))
        writer_.note(0, event::NoteSeverity::kWarning,
                     fmt::format("nsys' tables have schema version {}; tacho knows 2 and 3, and reads the columns that "
                                 "it knows",
                                 version));
    });
  }

  Status read_processes() {
    TACHO_TRY(each("PROCESSES", {"globalPid", "pid", "name"}, [&](const NamedScan& scan) {
      const int64_t pid = scan.number(1) != kUnknown ? scan.number(1) : pid_of(scan.number(0));
      if (pid <= 0) return;
      const int64_t name = writer_.string(scan.string(2)), before = facts_[pid].name;
      if (before != 0 && before != name) renamed_.insert(pid);
      facts_[pid].name = name;
    }));
    TACHO_TRY(each("MPI_RANKS", {"globalTid", "rank"}, [&](const NamedScan& scan) {
      if (scan.number(0) != kUnknown && scan.number(1) >= 0) facts_[pid_of(scan.number(0))].rank = scan.number(1);
    }));
    TACHO_TRY(each("TACHO_PROCESSES", {"globalPid", "origin"}, [&](const NamedScan& scan) {
      if (scan.number(0) != kUnknown) facts_[pid_of(scan.number(0))].origin = scan.string(1);
    }));
    return each("ThreadNames", {"nameId", "globalTid"}, [&](const NamedScan& scan) {
      if (const int64_t id = scan.number(1); id != kUnknown) thread_names_.emplace_back(id, text(scan.number(0)));
    });
  }
  // Of the system's processes only those that did something are part of the run.
  void describe_processes() {
    using P = event::column::Process;
    for (const auto& [pid, told] : facts_) {
      if (!tracker_.has_process(pid)) continue;
      if (renamed_.contains(pid) && folded_++ == 0) folded_pid_ = pid;
      const int64_t row = tracker_.process(pid);
      if (host_ != 0) writer_.update(Table::kProcess, row, P::host, host_);
      if (told.name != 0) writer_.update(Table::kProcess, row, P::name, told.name);
      if (told.rank != kUnknown) writer_.update(Table::kProcess, row, P::rank, told.rank);
      imported::set_process_origin(writer_, row, told.origin);
    }
  }
  void name_threads() {
    for (const auto& [global, name] : thread_names_)
      if (tracker_.has_process(pid_of(global))) tracker_.name_thread(thread_of(global), name);
  }

  Status read_devices() {
    std::map<int64_t, std::string> origins;
    TACHO_TRY(each("TACHO_DEVICES", {"id", "origin"}, [&](const NamedScan& scan) {
      if (origins.size() < 4096) origins.try_emplace(scan.number(0), scan.string(1));
    }));
    return each("TARGET_INFO_GPU",
                {"id", "name", "uuid", "totalMemory", "smCount", "clockRate", "busLocation", "chipName"},
                [&](const NamedScan& scan) {
                  const int64_t id = scan.number(0);
                  if (id == kUnknown || id < 0) return;
                  imported::DeviceHint hint{.name = std::string(scan.string(1)),
                                            .vendor = of_tacho_ ? "" : "NVIDIA",
                                            .uuid = std::string(scan.string(2))};
                  const auto fact = [&](std::string_view key, int column) {
                    if (const int64_t value = scan.number(column); value != kUnknown)
                      hint.properties.emplace_back(key, fmt::format("{}", value));
                  };
                  fact("memory_bytes", 3);
                  fact("multiprocessors", 4);
                  fact("core_clock_hz", 5);
                  if (!scan.string(6).empty()) hint.properties.emplace_back("pci", scan.string(6));
                  if (!scan.string(7).empty()) hint.properties.emplace_back("chip", scan.string(7));
                  if (const auto origin = origins.find(id); origin != origins.end()) hint.origin = origin->second;
                  tracker_.describe(id, std::move(hint));
                });
  }

  Status read_calls() {
    return each(kCalls, {"start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue"},
                [&](const NamedScan& scan) {
                  SpanRead span;
                  if (!timed(Table::kApi, scan, span)) return;
                  writer_.add(row::Api{.track = thread_of(scan.number(3)),
                                       .start = span.start,
                                       .duration = span.duration,
                                       .dim = function(scan.number(5), scan.number(2)),
                                       .correlation = scan.id(4),
                                       .result = scan.number(6)});
                });
  }
  int64_t function(int64_t id, int64_t event_class) {
    int64_t& known = functions_[id];
    if (known != 0) return known;
    if (!string_scan_) string_scan_ = std::make_unique<NamedScan>(db_, *db_.table("StringIds"), kStringColumns);
    const std::string own(string_scan_->place(0) == NamedScan::kRowid && string_scan_->find(id)
                              ? without_version(string_scan_->string(1))
                              : std::string_view());
    if (own.empty())
      return known = writer_.dimension(row::Function{.name = text(id), .domain = event::Domain::kUnknown});
    event::Domain domain = imported::domain_of_function(own);
    if (domain == event::Domain::kUnknown)
      domain = event_class == 1 ? event::Domain::kCudaDriver : event::Domain::kCudaRuntime;
    return known = writer_.dimension(row::Function{.name = writer_.string(own), .domain = domain});
  }

  Status read_kernels() {
    return each(kKernels,
                {"start",
                 "end",
                 "deviceId",
                 "contextId",
                 "streamId",
                 "correlationId",
                 "globalPid",
                 "demangledName",
                 "mangledName",
                 "registersPerThread",
                 "gridX",
                 "gridY",
                 "gridZ",
                 "blockX",
                 "blockY",
                 "blockZ",
                 "staticSharedMemory",
                 "dynamicSharedMemory",
                 "localMemoryPerThread",
                 "graphNodeId"},
                [&](const NamedScan& scan) {
                  SpanRead span;
                  if (!timed(Table::kDispatch, scan, span)) return;
                  const int64_t grid[] = {scan.number(10), scan.number(11), scan.number(12)};
                  const int64_t group[] = {scan.number(13), scan.number(14), scan.number(15)};
                  row::Kernel kernel = imported::launch_of(
                      text(scan.number(8) != kUnknown ? scan.number(8) : scan.number(7)), grid, group, false);
                  kernel.registers = scan.number(9);
                  kernel.shared_static = scan.number(16);
                  kernel.shared_dynamic = scan.number(17);
                  kernel.private_bytes = scan.number(18);
                  work(row::Dispatch{.track = stream(scan.number(6), scan.number(2), scan.number(3), scan.number(4)),
                                     .start = span.start,
                                     .duration = span.duration,
                                     .dim = kernels_.row(writer_, kernel),
                                     .correlation = scan.id(5),
                                     .graph_node = scan.id(19)});
                });
  }
  // With --cuda-graph-trace=graph nsys has one row for all nodes of a launch.
  Status read_graphs() {
    return each(kGraphs, {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphId"},
                [&](const NamedScan& scan) {
                  SpanRead span;
                  if (!timed(Table::kDispatch, scan, span)) return;
                  const row::Kernel shape{.name = writer_.string(fmt::format("CUDA graph {}", scan.id(7))),
                                          .kind = event::DispatchKind::kGraph,
                                          .graph = scan.id(7)};
                  work(row::Dispatch{.track = stream(scan.number(6), scan.number(2), scan.number(3), scan.number(4)),
                                     .start = span.start,
                                     .duration = span.duration,
                                     .dim = kernels_.row(writer_, shape),
                                     .correlation = scan.id(5)});
                });
  }

  Status read_copies() {
    return each(kCopies,
                {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "bytes", "copyKind",
                 "srcKind", "dstKind", "graphNodeId"},
                [&](const NamedScan& scan) {
                  SpanRead span;
                  if (!timed(Table::kCopy, scan, span)) return;
                  const int64_t device = scan.number(2) == kUnknown ? 0 : tracker_.device(scan.number(2));
                  const auto shape =
                      imported::copy_shape(word_of(kDirections, scan.number(8)), device,
                                           word_of(kMemories, scan.number(9)), word_of(kMemories, scan.number(10)));
                  work(row::Copy{.track = stream(scan.number(6), scan.number(2), scan.number(3), scan.number(4)),
                                 .start = span.start,
                                 .duration = span.duration,
                                 .dim = copies_.row(writer_, shape),
                                 .correlation = scan.id(5),
                                 .bytes = scan.number(7),
                                 .graph_node = scan.id(11)});
                });
  }

  Status read_fills() {
    return each(kFills,
                {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "value", "bytes",
                 "graphNodeId", "memKind"},
                [&](const NamedScan& scan) {
                  SpanRead span;
                  if (!timed(Table::kFill, scan, span)) return;
                  const row::FillShape shape{.memory = word_of(kMemories, scan.number(10)),
                                             .device = scan.number(2) == kUnknown ? 0 : tracker_.device(scan.number(2)),
                                             .value = scan.number(7)};
                  work(row::Fill{.track = stream(scan.number(6), scan.number(2), scan.number(3), scan.number(4)),
                                 .start = span.start,
                                 .duration = span.duration,
                                 .dim = writer_.dimension(shape),
                                 .correlation = scan.id(5),
                                 .bytes = scan.number(8),
                                 .graph_node = scan.id(9)});
                });
  }

  Status read_waits() {
    return each(
        kWaitTable, {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "syncType"},
        [&](const NamedScan& scan) {
          SpanRead span;
          if (!timed(Table::kSync, scan, span)) return;
          const row::SyncShape shape{.kind = word_of(kWaits, scan.number(7)),
                                     .device = scan.number(2) == kUnknown ? 0 : tracker_.device(scan.number(2))};
          writer_.add(row::Sync{.track = stream(scan.number(6), scan.number(2), scan.number(3), scan.number(4)),
                                .start = span.start,
                                .duration = span.duration,
                                .dim = writer_.dimension(shape),
                                .correlation = scan.id(5)});
        });
  }

  // A marker's text: its own, or that of a registered string.
  int64_t marker_text(std::string_view own, int64_t id) { return own.empty() ? text(id) : writer_.string(own); }

  Status read_names_of_markers() {
    return each(kMarkers, {"eventType", "globalTid", "domainId", "category", "text", "textId"},
                [&](const NamedScan& scan) {
                  const int64_t type = scan.number(0), pid = scan.number(1) == kUnknown ? 0 : pid_of(scan.number(1));
                  const int64_t domain = scan.id(2);
                  if (type == kNvtxDomain)
                    domains_[{pid, domain}] = marker_text(scan.string(4), scan.number(5));
                  else if (type == kNvtxCategory)
                    categories_[{pid, domain, scan.id(3)}] = marker_text(scan.string(4), scan.number(5));
                  else if (type == kNvtxThread && scan.number(1) != kUnknown)
                    thread_names_.emplace_back(scan.number(1), marker_text(scan.string(4), scan.number(5)));
                });
  }

  Status read_markers() {
    TACHO_TRY(each(
        kMarkers,
        {"start", "end", "eventType", "globalTid", "domainId", "category", "color", "text", "textId", "uint64Value",
         "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue", "jsonText", "jsonTextId"},
        [&](const NamedScan& scan) { read_marker(scan); }));
    name_threads();
    return {};
  }

  void read_marker(const NamedScan& scan) {
    // Ranges that were imported as text files are ranges, too.
    const int64_t told = scan.number(2), type = told == kNvtxtPushPop    ? kNvtxPushPop
                                                : told == kNvtxtStartEnd ? kNvtxStartEnd
                                                                         : told;
    if (type == kNvtxDomain || type == kNvtxCategory || type == kNvtxThread) return;
    const bool mark = type == kNvtxMark;
    if (!mark && type != kNvtxPushPop && type != kNvtxStartEnd)
      return tracker_.unread(fmt::format("NVTX events of type {}", type));
    SpanRead span;
    if (!timed(Table::kMarker, scan, span)) return;
    const int64_t global = scan.number(3), pid = global == kUnknown ? 0 : pid_of(global), domain = scan.id(4);
    row::Label label{.name = marker_text(scan.string(7), scan.number(8)),
                     .kind = mark                   ? event::MarkerKind::kMark
                             : type == kNvtxPushPop ? event::MarkerKind::kPushPop
                                                    : event::MarkerKind::kStartStop,
                     .color = scan.number(6)};
    const int64_t named = domains_[{pid, domain}];
    label.domain = named != 0 ? named : writer_.string(domain == 0 ? "NVTX" : fmt::format("NVTX domain {}", domain));
    if (const int64_t category = scan.id(5); category != 0) {
      const int64_t known = categories_[{pid, domain, category}];
      label.category = known != 0 ? known : writer_.string(fmt::format("{}", category));
    }
    int64_t payload = 0;
    for (const int at : {9, 10, 12, 13})
      if (scan.is_number_at(at)) label.payload = event::PayloadKind::kInteger, payload = scan.number(at);
    for (const int at : {11, 14})
      if (scan.is_number_at(at))
        label.payload = event::PayloadKind::kDouble, payload = std::bit_cast<int64_t>(scan.decimal(at));
    const int64_t fields =
        scan.string(15).empty() ? (scan.is_number_at(16) ? text(scan.number(16)) : 0) : writer_.string(scan.string(15));
    const int64_t track = label.kind == event::MarkerKind::kStartStop ? ranges_track(global) : thread_of(global);
    writer_.add(row::Marker{.track = track,
                            .start = span.start,
                            .duration = mark ? 0 : span.duration,
                            .dim = writer_.dimension(label),
                            .payload = payload,
                            .fields = fields});
    if (!mark && span.duration == kUnknown) writer_.lose(0, Table::kMarker, event::LossReason::kOpenAtExit, 1);
  }
  // Ranges on queues, as tacho writes them.
  Status read_gpu_ranges() {
    return each(
        kGpuRanges,
        {"start", "end", "eventType", "deviceId", "contextId", "streamId", "globalPid", "textId", "domainTextId",
         "categoryTextId", "color", "int64Value", "doubleValue", "jsonText"},
        [&](const NamedScan& scan) {
          SpanRead span;
          if (!timed(Table::kMarker, scan, span)) return;
          const int64_t type = scan.number(2);
          const bool mark = type == kNvtxMark, real = scan.is_number_at(12);
          const row::Label label{.name = text(scan.number(7)),
                                 .kind = mark                   ? event::MarkerKind::kMark
                                         : type == kNvtxPushPop ? event::MarkerKind::kPushPop
                                                                : event::MarkerKind::kStartStop,
                                 .domain = text(scan.number(8)),
                                 .category = text(scan.number(9)),
                                 .color = scan.number(10),
                                 .payload = real                    ? event::PayloadKind::kDouble
                                            : scan.is_number_at(11) ? event::PayloadKind::kInteger
                                                                    : event::PayloadKind::kNone};
          writer_.add(row::Marker{.track = stream(scan.number(6), scan.number(3), scan.number(4), scan.number(5)),
                                  .start = span.start,
                                  .duration = mark ? 0 : span.duration,
                                  .dim = writer_.dimension(label),
                                  .payload = real                    ? std::bit_cast<int64_t>(scan.decimal(12))
                                             : scan.is_number_at(11) ? scan.number(11)
                                                                     : 0,
                                  .fields = scan.string(13).empty() ? 0 : writer_.string(scan.string(13))});
          if (!mark && span.duration == kUnknown) writer_.lose(0, Table::kMarker, event::LossReason::kOpenAtExit, 1);
        });
  }

  int64_t ranges_track(int64_t global) {
    int64_t& known = ranges_[global];
    if (known == 0)
      known =
          writer_.dimension(row::Track{.kind = event::TrackKind::kRange,
                                       .process = process_of(global),
                                       .name = writer_.string(global == kUnknown || pid_of(global) == tid_of(global)
                                                                  ? "ranges"
                                                                  : fmt::format("ranges of thread {}", tid_of(global))),
                                       .category = writer_.string("range")});
    return known;
  }

  // Rows of tables of events that tacho does not read.
  Status count_unread() {
    for (const sqlite::StoredTable& table : db_.tables()) {
      const bool read =
          std::ranges::any_of(kRead, [&](std::string_view name) { return newest_table(db_, name) == &table; });
      if (read || table.column("start") < 0) continue;
      NamedScan scan(db_, table, {"start"});
      int64_t rows = 0;
      while (scan.next()) ++rows;
      TACHO_TRY(scan.status());
      if (rows > 0) tracker_.unread(fmt::format("rows of {}", table.name), rows);
    }
    return {};
  }

  const sqlite::Database& db_;
  trace::TraceWriter& writer_;
  imported::ImportTracker tracker_;
  tsl::robin_map<int64_t, int64_t> strings_;  // id -> row
  struct ProcessTold {
    int64_t name = 0, rank = kUnknown;
    std::string origin = {};
  };
  std::map<int64_t, ProcessTold> facts_;        // by pid, also of processes that do nothing
  int64_t last_pid_ = kUnknown, host_ = 0;      // host_: row of a string
  tsl::robin_map<int64_t, int64_t> functions_;  // by id of the name
  std::unique_ptr<NamedScan> string_scan_;
  tsl::robin_map<int64_t, int64_t> ranges_;  // by global id
  std::vector<std::pair<int64_t, int64_t>> thread_names_;
  NumberMap<4> streams_;
  NumberMap<2> domains_;
  NumberMap<3> categories_;
  imported::RecentRows<row::Kernel> kernels_;
  imported::RecentRows<row::CopyShape> copies_;
  struct CallId {
    int64_t pid, correlation;
    auto operator<=>(const CallId&) const = default;
  };
  imported::UnmeasuredRows unmeasured_;
  bool any_unmeasured_ = false;
  int64_t unnamed_ = 0;
  std::set<int64_t> renamed_;                   // pids with several names
  int64_t folded_ = 0, folded_pid_ = kUnknown;  // of these: how many have events, the first
  bool of_tacho_ = false;
};

bool is_export(const sqlite::Database& database) {
  if (database.table("StringIds") == nullptr) return false;
  for (const std::string_view name : kRead)
    if (newest_table(database, name) != nullptr) return true;
  return database.table("TARGET_INFO_SESSION_START_TIME") != nullptr;
}

}  // namespace

bool accepts(std::string_view path, std::string_view head, bool folder) {
  if (folder || !head.starts_with(sqlite::kDatabaseHead)) return false;
  const auto database = sqlite::Database::open(std::string(path));
  return database && is_export(*database);
}

Status read_into(const std::string& path, trace::TraceWriter& writer) {
  TACHO_ASSIGN(const sqlite::Database database, sqlite::Database::open(path));
  return Reader(database, writer).run();
}

Result<std::shared_ptr<const trace::Trace>> read(const std::string& path) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(read_into(path, *writer));
  return writer->finish_and_open(path);
}

}  // namespace tacho::format::nsys
