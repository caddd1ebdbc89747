// Writes nsys' tables (nsys.h). Rows come in the order of their times.
#include <algorithm>
#include <bit>
#include <ctime>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/saturating.h"
#include "base/text/demangle.h"
#include "base/text/how_many.h"
#include "base/text/utf8.h"
#include "format/import/origin.h"
#include "format/nsys/nsys.h"
#include "format/nsys/schema.h"
#include "format/nsys/words.h"
#include "format/sqlite/bulk.h"
#include "format/sqlite/output.h"
#include "trace/read/rows.h"
#include "walk/hash_ids.h"
#include "walk/names/agents.h"
#include "walk/names/tracks.h"
#include "walk/time/clock.h"
#include "walk/time/span.h"

namespace tacho::format::nsys {

namespace {

using event::kUnknown;
using event::Table;
using sqlite::BulkTable;
namespace column = event::column;

struct EnumValue {
  int64_t id;
  std::string_view name, label;
};
// CUPTI's numbers (CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind, CUpti_ActivitySynchronizationType) and
// nsys' own.
constexpr EnumValue kCopyKinds[] = {
    {0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"},     {1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"},
    {2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"}, {8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"},
    {9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"},   {10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"}};
constexpr EnumValue kMemoryKinds[] = {{0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"},
                                      {1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"},
                                      {2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"},
                                      {3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array"},
                                      {4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"},
                                      {5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static"},
                                      {6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static"},
                                      {65535, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"}};
constexpr EnumValue kSyncTypes[] = {
    {0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown"},
    {1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event synchronize"},
    {2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait event"},
    {3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream synchronize"},
    {4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context synchronize"}};
// In the order of their numbers.
constexpr EnumValue kEventTypes[] = {{kNvtxCategory, "NvtxCategory", "NvtxCategory"},
                                     {kNvtxMark, "NvtxMark", "NvtxMark"},
                                     {kNvtxPushPop, "NvtxPushPopRange", "NvtxPushPopRange"},
                                     {kNvtxStartEnd, "NvtxStartEndRange", "NvtxStartEndRange"},
                                     {kNvtxDomain, "NvtxDomainCreate", "NvtxDomainCreate"}};

class Writer {
 public:
  Writer(const trace::Trace& trace, const ExportOptions& options, sqlite::BulkFile& file)
      : trace_(trace),
        options_(options),
        file_(file),
        agents_(trace, options.process),
        tracks_(trace, agents_, options),
        zero_(walk::timeline_span(trace).first) {
    for (int64_t row = 1; row < trace.rows(Table::kDevice); ++row) {
      const auto device = trace::row<event::row::Device>(trace, row);
      const bool wanted = options.process == 0 || device.process <= 0 || device.process == options.process;
      if (wanted && device.kind != event::DeviceKind::kCpu) number_of(row);
    }
  }

  Status run() {
    TACHO_TRY(kernels());
    TACHO_TRY(copies());
    TACHO_TRY(fills());
    TACHO_TRY(syncs());
    TACHO_TRY(calls());
    TACHO_TRY(markers());
    devices();
    processes();
    enums();
    TACHO_TRY(session());
    if (unsized_ > 0)
      options_.remark(how_many(unsized_, "copy or fill has", "copies and fills have") +
                      " no size: nsys' tables have 0 there");
    if (functions_ > 0)
      options_.remark(
          functions_ == 1
              ? "1 operator or function of Python is no API call: nsys' tables have no place for it"
              : fmt::format("{} operators and functions of Python are no API calls: nsys' tables have no place for "
                            "them",
                            functions_));
    if (gpu_ranges_ > 0)
      options_.remark(fmt::format(
          "{} in table TACHO_GPU_RANGES: NVTX_EVENTS has ranges of the host alone",
          gpu_ranges_ == 1 ? "1 range of the GPU lies" : fmt::format("{} ranges of GPUs lie", gpu_ranges_)));
    if (unended_ > 0)
      options_.remark(how_many(unended_, "row has no end: nsys' tables have its start there",
                               "rows have no end: nsys' tables have their start there"));
    return file_.status();
  }

 private:
  struct Place {
    bool wanted = false;
    int64_t pid = 0, device = 0, context = 0, stream = 0;
  };

  int64_t time(int64_t ns) const { return saturating_add(ns, zero_ == kUnknown ? 0 : -zero_); }
  int64_t end_of(int64_t start, int64_t duration) {
    if (duration != kUnknown && duration >= 0) return time(walk::time_after(start, duration));
    ++unended_;
    return time(start);
  }
  int64_t text(std::string_view value) {
    int64_t& known = texts_.of(value);
    if (known != 0) return known;
    const int64_t id = known = ++last_text_;
    BulkTable& table = file_.table("StringIds");
    table.begin(id);
    table.null().text(valid_utf8(value)).end();
    return id;
  }
  // A device's id: its index, or the next free number where another device has that. Scripts join by the id alone, so
  // no two devices share one; processes that name the same uuid and index mean the same device. All devices but
  // CPUs have one; a CPU gets one when work ran on it (OpenCL).
  int64_t number_of(int64_t row) {
    if (const auto known = numbers_.find(row); known != numbers_.end()) return known->second;
    const auto device = trace::row<event::row::Device>(trace_, row);
    const std::string_view uuid = trace_.string(device.uuid);
    for (const auto& [id, other] : devices_) {
      const auto known = trace::row<event::row::Device>(trace_, other);
      if (!uuid.empty() && trace_.string(known.uuid) == uuid && known.index == device.index) return numbers_[row] = id;
    }
    int64_t id = std::max<int64_t>(device.index, 0);
    while (devices_.contains(id)) ++id;
    devices_[id] = row;
    return numbers_[row] = id;
  }
  Place place(int64_t track) {
    Place out;
    const auto stored = trace::row<event::row::Track>(trace_, track);
    out.wanted = options_.process == 0 || options_.process == stored.process;
    out.pid = stored.process > 0 ? tracks_.pid(stored.process) : 0;
    out.device = stored.device > 0 && out.wanted ? number_of(stored.device) : 0;
    out.context = std::max<int64_t>(stored.context, 0);
    out.stream = std::max<int64_t>(stored.native, 0);
    return out;
  }
  int64_t thread(int64_t track) const { return global_id(tracks_.pid(tracks_.process(track)), tracks_.tid(track)); }
  BulkTable& begin(const char* table) {
    BulkTable& out = file_.table(table);
    out.begin(out.rows() + 1);
    return out;
  }
  // start, end, deviceId, contextId, greenContextId, streamId, correlationId, globalPid
  template <typename Row>
  BulkTable& device_row(const char* table, const Row& row, const Place& at) {
    BulkTable& out = begin(table);
    out.integer(time(row.start)).integer(end_of(row.start, row.duration)).integer(at.device).integer(at.context).null();
    out.integer(at.stream);
    correlation(out, row.correlation);
    return out.integer(global_id(at.pid, 0));
  }
  static void correlation(BulkTable& table, int64_t id) {
    if (id > 0)
      table.integer(id);
    else
      table.null();
  }
  int64_t size(int64_t bytes) {
    if (bytes != kUnknown) return bytes;
    ++unsized_;
    return 0;
  }

  Status kernels() {
    using D = column::Dispatch;
    if (!options_.wants(Table::kDispatch)) return {};
    Status status;
    for (const auto& row :
         trace::rows<D::track, D::start, D::duration, D::dim, D::correlation, D::graph_node>(trace_, status)) {
      const Place at = place(row.track);
      if (!at.wanted) continue;
      const auto kernel = trace::row<event::row::Kernel>(trace_, row.dim);
      const std::string_view mangled = trace_.string(kernel.name);
      const std::string name = demangle(mangled);
      BulkTable& table = device_row("CUPTI_ACTIVITY_KIND_KERNEL", row, at);
      table.integer(text(name)).integer(text(short_name(name))).integer(text(mangled)).null().null();
      table.integer(std::max<int64_t>(kernel.registers, 0));
      const auto blocks = [](int64_t items, int64_t each) {
        if (items < 0) return int64_t{0};
        return each > 0 ? (items + each - 1) / each : items;
      };
      table.integer(blocks(kernel.grid_x, kernel.group_x)).integer(blocks(kernel.grid_y, kernel.group_y));
      table.integer(blocks(kernel.grid_z, kernel.group_z));
      for (const int64_t each : {kernel.group_x, kernel.group_y, kernel.group_z, kernel.shared_static,
                                 kernel.shared_dynamic, kernel.private_bytes})
        table.integer(std::max<int64_t>(each, 0));
      table.integer(0).integer(table.rows() + 1).null();
      correlation(table, row.graph_node);
      table.null().end();
    }
    return status;
  }

  Status copies() {
    using C = column::Copy;
    if (!options_.wants(Table::kCopy)) return {};
    Status status;
    for (const auto& row :
         trace::rows<C::track, C::start, C::duration, C::dim, C::correlation, C::bytes, C::graph_node>(trace_,
                                                                                                       status)) {
      const Place at = place(row.track);
      if (!at.wanted) continue;
      const auto shape = trace::row<event::row::CopyShape>(trace_, row.dim);
      BulkTable& table = device_row("CUPTI_ACTIVITY_KIND_MEMCPY", row, at);
      table.integer(size(row.bytes)).integer(number_of_word(kDirections, event::from_cell(shape.direction))).null();
      table.integer(number_of_word(kMemories, event::from_cell(shape.source_memory)))
          .integer(number_of_word(kMemories, event::from_cell(shape.target_memory)));
      device(table, shape.source_device);
      table.null();
      device(table, shape.target_device);
      table.null().null();
      correlation(table, row.graph_node);
      table.null().end();
    }
    return status;
  }
  void device(BulkTable& table, int64_t row) {
    const auto known = numbers_.find(row);
    table.known(known == numbers_.end() ? kUnknown : known->second);
  }

  Status fills() {
    using F = column::Fill;
    if (!options_.wants(Table::kFill)) return {};
    Status status;
    for (const auto& row :
         trace::rows<F::track, F::start, F::duration, F::dim, F::correlation, F::bytes, F::graph_node>(trace_,
                                                                                                       status)) {
      const Place at = place(row.track);
      if (!at.wanted) continue;
      const auto shape = trace::row<event::row::FillShape>(trace_, row.dim);
      BulkTable& table = device_row("CUPTI_ACTIVITY_KIND_MEMSET", row, at);
      table.integer(shape.value == kUnknown ? 0 : shape.value).integer(size(row.bytes));
      correlation(table, row.graph_node);
      table.integer(number_of_word(kMemories, event::from_cell(shape.memory))).end();
    }
    return status;
  }

  Status syncs() {
    using S = column::Sync;
    if (!options_.wants(Table::kSync)) return {};
    Status status;
    for (const auto& row : trace::rows<S::track, S::start, S::duration, S::dim, S::correlation>(trace_, status)) {
      const Place at = place(row.track);
      if (!at.wanted) continue;
      device_row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", row, at)
          .integer(number_of_word(kWaits, event::from_cell(trace::row<event::row::SyncShape>(trace_, row.dim).kind)))
          .integer(0)
          .end();
    }
    return status;
  }

  // Functions of a framework or of Python are no calls of an API.
  bool is_call(int64_t function) {
    const auto domain =
        event::from_cell<event::Domain>(trace_.cell(Table::kFunction, function, column::Function::domain));
    if (!options_.wants(domain)) return false;
    if (domain != event::Domain::kOperator && domain != event::Domain::kPython) return true;
    ++functions_;
    return false;
  }
  Status calls() {
    using A = column::Api;
    if (!options_.wants(Table::kApi)) return {};
    Status status;
    for (const auto& row :
         trace::rows<A::track, A::start, A::duration, A::dim, A::correlation, A::result>(trace_, status)) {
      if (!place(row.track).wanted || !is_call(row.dim)) continue;
      const bool driver = trace::cell<column::Function::domain>(trace_, row.dim) == event::Domain::kCudaDriver;
      BulkTable& table = begin("CUPTI_ACTIVITY_KIND_RUNTIME");
      table.integer(time(row.start)).integer(end_of(row.start, row.duration)).integer(driver ? 1 : 0);
      table.integer(thread(row.track));
      correlation(table, row.correlation);
      table.integer(text(trace::text<column::Function::name>(trace_, row.dim)));
      table.integer(row.result == kUnknown ? 0 : row.result).null().end();
    }
    return status;
  }

  Status markers() {
    using M = column::Marker;
    if (!options_.wants(Table::kMarker)) return {};
    Status status;
    for (const auto& row :
         trace::rows<M::track, M::start, M::duration, M::dim, M::payload, M::fields>(trace_, status)) {
      if (!place(row.track).wanted) continue;
      const auto label = trace::row<event::row::Label>(trace_, row.dim);
      if (trace::cell<column::Track::kind>(trace_, row.track) == event::TrackKind::kQueue) {
        gpu_range(row, label);
        continue;
      }
      const int64_t domain = named(kNvtxDomain, domains_, label.domain, row.track, row.start);
      const int64_t category = named(kNvtxCategory, categories_, label.category, row.track, row.start, domain);
      const std::string_view name = trace_.string(label.name), fields = trace_.string(row.fields);
      const int64_t name_id = text(name);
      BulkTable& table = begin("NVTX_EVENTS");
      range(table, row, label.kind);
      table.null().known(category).known(label.color).text(valid_utf8(name)).integer(thread(row.track));
      table.null().integer(name_id).integer(domain == kUnknown ? 0 : domain).null();
      payload(table, row.payload, label.payload);
      table.null().null().null().null();
      text_or_null(table, fields);
      table.null().end();
    }
    return status;
  }
  // start, end, eventType
  template <typename Row>
  void range(BulkTable& table, const Row& row, event::Code<event::MarkerKind> kind) {
    const bool mark = kind == event::MarkerKind::kMark;
    table.integer(time(row.start));
    table.known(mark || row.duration == kUnknown ? kUnknown : time(walk::time_after(row.start, row.duration)));
    table.integer(mark ? kNvtxMark : kind == event::MarkerKind::kStartStop ? kNvtxStartEnd : kNvtxPushPop);
  }
  // int64Value, doubleValue
  static void payload(BulkTable& table, int64_t value, event::Code<event::PayloadKind> kind) {
    table.known(kind == event::PayloadKind::kInteger ? value : kUnknown);
    if (kind == event::PayloadKind::kDouble)
      table.real(std::bit_cast<double>(value));
    else
      table.null();
  }
  static void text_or_null(BulkTable& table, std::string_view value) {
    if (value.empty())
      table.null();
    else
      table.text(valid_utf8(value));
  }

  // NVTX_EVENTS has ranges of the host alone: scripts project them onto GPUs by the work that they launched. What a
  // trace has on a queue lies in a table of tacho's own.
  template <typename Row>
  void gpu_range(const Row& row, const event::row::Label& label) {
    const Place at = place(row.track);
    const auto text_id = [&](int64_t string) { return string > 0 ? text(trace_.string(string)) : kUnknown; };
    const int64_t name = text(trace_.string(label.name)), domain = text_id(label.domain),
                  category = text_id(label.category);
    BulkTable& table = begin("TACHO_GPU_RANGES");
    range(table, row, label.kind);
    table.known(trace::cell<column::Track::device>(trace_, row.track) > 0 ? at.device : kUnknown);
    table.integer(at.context).integer(at.stream).integer(global_id(at.pid, 0));
    table.integer(name).known(domain).known(category).known(label.color);
    payload(table, row.payload, label.payload);
    text_or_null(table, trace_.string(row.fields));
    table.end();
    ++gpu_ranges_;
  }

  // The number of a domain or category, by the string that names it; its own row of NVTX_EVENTS says the name. kUnknown
  // for none, and for NVTX's default domain, which has none either.
  int64_t named(int64_t type, std::map<std::pair<int64_t, int64_t>, int64_t>& known, int64_t string, int64_t track,
                int64_t start, int64_t domain = kUnknown) {
    const std::string_view name = trace_.string(string);
    if (name.empty() || (type == kNvtxDomain && name == "NVTX")) return kUnknown;
    const auto [place, fresh] =
        known.try_emplace({tracks_.process(track), string}, static_cast<int64_t>(known.size()) + 1);
    if (!fresh) return place->second;
    const int64_t name_id = text(name);
    BulkTable& table = begin("NVTX_EVENTS");
    table.integer(time(start)).null().integer(type).null();
    table.known(type == kNvtxCategory ? place->second : kUnknown).null().text(valid_utf8(name));
    table.integer(thread(track)).null().integer(name_id);
    table.integer(type == kNvtxDomain ? place->second : domain == kUnknown ? 0 : domain);
    for (int i = 0; i < 9; ++i) table.null();
    table.end();
    return place->second;
  }

  void devices() {
    for (const auto& [id, device_row] : devices_) {
      const int64_t row = device_row;
      const auto device = trace::row<event::row::Device>(trace_, row);
      const auto number = [&](std::initializer_list<std::string_view> keys) -> int64_t {
        for (const std::string_view key : keys)
          if (const auto value = trace_.property(Table::kDevice, row, key))
            return std::atoll(std::string(*value).c_str());
        return kUnknown;
      };
      BulkTable& table = begin("TARGET_INFO_GPU");
      table.integer(0).integer(id).text(valid_utf8(trace_.string(device.name))).null().null();
      table.null().known(number({"memory_bytes", "global memory bytes"})).null().known(number({"core_clock_hz"}));
      table.known(number({"multiprocessors", "compute_units", "compute units"})).null();
      table.text(valid_utf8(trace_.string(device.uuid))).null().text(valid_utf8(trace_.string(device.architecture)));
      table.integer(std::max<int64_t>(device.index, 0));
      for (int i = 0; i < 26; ++i) table.null();
      table.end();
      begin("TACHO_DEVICES").integer(id).text(imported::device_origin(trace_, row)).end();
    }
  }

  void processes() {
    for (int64_t row = 1; row < trace_.rows(Table::kProcess); ++row) {
      const int64_t pid = tracks_.pid(row);
      BulkTable& table = begin("PROCESSES");
      table.integer(global_id(pid, 0)).integer(pid).text(valid_utf8(tracks_.process_name(row))).end();
      begin("TACHO_PROCESSES").integer(global_id(pid, 0)).text(imported::process_origin(trace_, row)).end();
      if (const int64_t rank = trace::cell<event::column::Process::rank>(trace_, row); rank != kUnknown)
        begin("MPI_RANKS").integer(global_id(pid, pid)).integer(rank).end();
    }
    for (int64_t row = 1; row < trace_.rows(Table::kThread); ++row) {
      const auto thread = trace::row<event::row::Thread>(trace_, row);
      const std::string_view name = trace_.string(thread.name);
      if (name.empty() || thread.process <= 0) continue;
      BulkTable& table = begin("ThreadNames");
      table.integer(text(name)).null().integer(global_id(tracks_.pid(thread.process), thread.tid)).end();
    }
  }

  void enums() {
    const auto fill = [&](const char* name, std::span<const EnumValue> values) {
      for (const EnumValue& value : values) {
        BulkTable& table = file_.table(name);
        table.begin(value.id);
        table.null().text(value.name).text(value.label).end();
      }
    };
    fill("ENUM_CUDA_MEMCPY_OPER", kCopyKinds);
    fill("ENUM_CUDA_MEM_KIND", kMemoryKinds);
    fill("ENUM_CUPTI_SYNC_TYPE", kSyncTypes);
    fill("ENUM_NSYS_EVENT_TYPE", kEventTypes);
  }

  Status session() {
    TACHO_ASSIGN(const walk::OutputClock utc, walk::OutputClock::make(trace_, walk::OutputClock::Clock::kRealtime));
    const walk::Span whole = walk::timeline_span(trace_);
    if (utc.known()) {
      const int64_t ns = utc(whole.first);
      const std::time_t seconds = ns / 1'000'000'000;
      std::tm parts{};
      gmtime_r(&seconds, &parts);
      char text[64] = {};
      std::strftime(text, sizeof text, "%F %T", &parts);
      begin("TARGET_INFO_SESSION_START_TIME").integer(ns).text(text).text(text).end();
    }
    begin("ANALYSIS_DETAILS").integer(0).integer(whole.length()).integer(0).integer(whole.length()).end();
    begin("META_DATA_EXPORT").text("EXPORTED_BY").text("tacho " TACHO_PROGRAM_VERSION).end();
    begin("TARGET_INFO_SYSTEM_ENV").integer(0).text("tacho").text("Exporter").integer(0).text("tacho").end();
    return {};
  }

  const trace::Trace& trace_;
  const ExportOptions& options_;
  sqlite::BulkFile& file_;
  walk::Agents agents_;
  walk::Tracks tracks_;
  int64_t zero_;
  walk::HashIds texts_;
  std::map<int64_t, int64_t> devices_;                                   // id -> row
  std::unordered_map<int64_t, int64_t> numbers_;                         // row -> id
  std::map<std::pair<int64_t, int64_t>, int64_t> domains_, categories_;  // (process, string) -> number
  int64_t last_text_ = 0, unsized_ = 0, unended_ = 0, functions_ = 0, gpu_ranges_ = 0;
};

}  // namespace

Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written) {
  if (trace.aggregated())
    return fail("{}: recorded with --aggregate: it holds no events that nsys' tables could hold", trace.path());
  TACHO_ASSIGN(sqlite::DatabaseOutput output, sqlite::DatabaseOutput::create(target.file, options.overwrite));
  TACHO_ASSIGN(const std::unique_ptr<sqlite::BulkFile> file,
               sqlite::BulkFile::create(output, std::string(kNsysSchema)));
  TACHO_TRY(Writer(trace, options, *file).run());
  TACHO_TRY(file->finish(""));
  TACHO_TRY(output.commit());
  written.push_back(target.file);
  return {};
}

}  // namespace tacho::format::nsys
