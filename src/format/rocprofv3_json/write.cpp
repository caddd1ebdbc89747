// Writes a trace as rocprofv3's JSON (rocprofv3_json.h), streamed record by record.
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/files/output_file.h"
#include "base/text/demangle.h"
#include "base/text/json_writer.h"
#include "format/csv/parts.h"
#include "format/import/origin.h"
#include "format/rocprofv3_json/bits.h"
#include "format/rocprofv3_json/rocprofv3_json.h"
#include "format/shared/rocprof_words.h"
#include "walk/calls/launches.h"
#include "walk/counters.h"
#include "walk/names/tracks.h"
#include "walk/time/clock.h"
#include "walk/timeline.h"

namespace tacho::format::rocprofv3 {

namespace column = event::column;
using event::Domain;
using event::kUnknown;
using event::Table;
using walk::Agent;
using walk::Agents;
using walk::check_has_events;
using walk::KernelNames;
using walk::Launch;
using walk::Launches;
using walk::OutputClock;
using walk::time_after;
using walk::Tracks;

namespace {

// Kinds of buffer records in rocprofv3's order; records refer to a kind by its number.
constexpr std::string_view kKinds[] = {"NONE",
                                       "HSA_CORE_API",
                                       "HSA_AMD_EXT_API",
                                       "HSA_IMAGE_EXT_API",
                                       "HSA_FINALIZE_EXT_API",
                                       "HIP_RUNTIME_API",
                                       "HIP_COMPILER_API",
                                       "MARKER_CORE_API",
                                       "MARKER_CONTROL_API",
                                       "MARKER_NAME_API",
                                       "MEMORY_COPY",
                                       "KERNEL_DISPATCH",
                                       "SCRATCH_MEMORY",
                                       "CORRELATION_ID_RETIREMENT",
                                       "RCCL_API",
                                       "OMPT",
                                       "MEMORY_ALLOCATION",
                                       "RUNTIME_INITIALIZATION",
                                       "ROCDECODE_API",
                                       "ROCJPEG_API",
                                       "HIP_STREAM",
                                       "HIP_RUNTIME_API_EXT",
                                       "HIP_COMPILER_API_EXT",
                                       "ROCDECODE_API_EXT",
                                       "KFD_EVENT_PAGE_MIGRATE",
                                       "KFD_EVENT_PAGE_FAULT",
                                       "KFD_EVENT_QUEUE",
                                       "KFD_EVENT_UNMAP_FROM_GPU",
                                       "KFD_EVENT_DROPPED_EVENTS",
                                       "KFD_PAGE_MIGRATE",
                                       "KFD_PAGE_FAULT",
                                       "KFD_QUEUE",
                                       "MARKER_CORE_RANGE_API"};
constexpr size_t kMarkerMark = 7, kMemoryCopy = 10, kKernelDispatch = 11, kMemoryAllocation = 16, kMarkerRange = 32;
constexpr std::string_view kCopyOperations[] = {"MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST",
                                                "MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_HOST",
                                                "MEMORY_COPY_DEVICE_TO_DEVICE"};
constexpr std::string_view kMarkerOperations[] = {"roctxMarkA", "roctxRangePushA", "roctxRangePop", "roctxRangeStartA",
                                                  "roctxRangeStop"};

// tacho's markers have no correlation id; the id of the label leads to the text.
constexpr int64_t kLabelIds = int64_t{1} << 62;

constexpr size_t kMostOfBeginning = 512;  // characters of the beginning of every record

// One element of the file: the records of the process options.process; 0 = those of no process.
class Exporter {
 public:
  Exporter(const trace::Trace& trace, const ExportOptions& options, OutputFile& file, JsonFileWriter& json,
           OutputClock clock)
      : trace_(trace),
        options_(options),
        file_(file),
        json_(json),
        clock_(std::move(clock)),
        agents_(trace, options.process),
        tracks_(trace, agents_, options),
        kernels_(trace, options) {}

  Status run() {
    write_metadata();
    write_agents();
    write_counters();
    TACHO_TRY(write_strings());
    write_symbols();
    json_.newline().name("host_functions").begin_array().end_array().name("summary").begin_array().end_array();
    TACHO_TRY(write_callback_records());
    json_.newline().name("buffer_records").begin_object();
    TACHO_TRY(write_dispatches());
    TACHO_TRY(write_calls());
    TACHO_TRY(write_markers());
    TACHO_TRY(write_copies());
    TACHO_TRY(write_fills());
    TACHO_TRY(write_allocations());
    for (const char* empty :
         {"scratch_memory", "rocdecode_api", "rocjpeg_api", "pc_sample_host_trap", "pc_sample_stochastic"})
      json_.newline().key(empty).begin_array().end_array();
    json_.end_object().end_object();
    return {};
  }

 private:
  bool of_process(int64_t track) const { return std::max<int64_t>(tracks_.process(track), 0) == options_.process; }
  int64_t handle(int64_t device) const { return agents_.of(device).logical + 1; }
  static int64_t known(int64_t value) { return value == kUnknown ? 0 : value; }
  int64_t end_of(int64_t start, int64_t duration) const {
    return duration == kUnknown ? 0 : clock_(time_after(start, duration));
  }
  // Puts each record on its own line.
  JsonFileWriter& record() {
    json_.newline_between();
    return json_;
  }
  template <typename Json, std::integral Number>
  static void put_handle(Json& json, JsonLiteral name, Number value) {
    json.name(name).begin_object().member("handle", value).end_object();
  }

  void write_metadata() {
    const auto cell = [&](int at) { return trace_.cell(Table::kProcess, options_.process, at); };
    const auto [first, last] = trace_.time_range();
    record().begin_object().name("metadata").begin_object().name("node").begin_object().member("id", 0);
    json_.member("hostname", trace_.string(cell(column::Process::host))).end_object();
    json_.member("pid", known(cell(column::Process::pid)));
    json_.member("init_time", clock_(first)).member("fini_time", clock_(last));
    json_.name("command").begin_array();
    const std::string_view command = trace_.string(cell(column::Process::command));
    for (size_t begin = 0; begin < command.size();) {
      const size_t end = std::min(command.find(' ', begin), command.size());
      json_.value(command.substr(begin, end - begin));
      begin = end + 1;
    }
    json_.end_array().name("config").begin_object();
    json_.member("producer", fmt::format("tacho {}", TACHO_PROGRAM_VERSION)).end_object();
    json_.name("tacho").ready(options_.process > 0 ? imported::process_origin(trace_, options_.process) : "{}");
    json_.end_object();
  }

  void write_agents() {
    json_.newline().name("agents").begin_array();
    for (const Agent& agent : agents_.all()) {
      const auto text = [&](int at) { return trace_.text(Table::kDevice, agent.device, at); };
      const bool host = agent.device == 0;
      const std::string name(host ? trace_.property(Table::kEnd, 0, "machine").value_or("host")
                                  : text(column::Device::name));
      const std::string architecture(text(column::Device::architecture));
      put_handle(record().begin_object(), "id", handle(agent.device));
      json_.member("type", agent.kind == event::DeviceKind::kGpu ? 2 : agent.kind == event::DeviceKind::kCpu ? 1 : 0);
      json_.member("name", architecture.empty() ? name : architecture).member("product_name", name);
      json_.member("vendor_name", host ? std::string_view("CPU") : text(column::Device::vendor));
      json_.member("model_name", trace_.property(Table::kDevice, agent.device, "model_name").value_or(""));
      json_.member("node_id", agent.node).member("logical_node_id", agent.logical);
      json_.member("logical_node_type_id", agent.of_type);
      if (!host) json_.name("tacho").ready(imported::device_origin(trace_, agent.device));
      std::map<std::string, std::vector<std::pair<char, uint64_t>>> extents;
      for (const auto& [column, value] : csv::agent_facts(trace_, agent)) {
        std::string member(column);
        for (char& c : member) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        if (const auto fields = bit_fields(member); !fields.empty()) {
          json_.key(member).begin_object();
          int at = 0;
          for (const BitField& field : fields) {
            json_.key(field.name).value(value >> at & ((uint64_t{1} << field.width) - 1));
            at += field.width;
          }
          json_.end_object();
        } else if (member.find("_max_dim_") != std::string::npos) {
          extents[member.substr(0, member.size() - 2)].emplace_back(member.back(), value);
        } else {
          json_.key(member).value(value);
        }
      }
      for (const auto& [member, extent] : extents) {
        json_.key(member).begin_object();
        for (const auto& [axis, size] : extent) json_.key({&axis, 1}).value(size);
        json_.end_object();
      }
      json_.end_object();
    }
    json_.end_array();
  }

  void write_counters() {
    json_.newline().name("counters").begin_array();
    for (int64_t counter = 1; counter < trace_.rows(Table::kCounter); ++counter) {
      const auto text = [&](int at) { return trace_.text(Table::kCounter, counter, at); };
      put_handle(record().begin_object(), "id", counter);
      json_.member("name", text(column::Counter::name)).member("description", text(column::Counter::text));
      json_.member("block", text(column::Counter::block)).end_object();
    }
    json_.end_array();
  }

  // Names that records refer to by number

  struct FunctionPlace {
    size_t kind = 0;
    size_t operation = 0;
  };

  size_t kind_of(Domain domain) {
    switch (domain) {
      case Domain::kHsa:
        return 1;
      case Domain::kHipRuntime:
        return 5;
      case Domain::kHipCompiler:
        return 6;
      case Domain::kRccl:
        return 14;
      default:
        break;
    }
    return further_kind(std::string(api_domain_name(domain)));
  }

  // The number of a kind that rocprofv3 does not have.
  size_t further_kind(const std::string& name) {
    for (size_t i = 0; i < further_kinds_.size(); ++i)
      if (further_kinds_[i] == name) return std::size(kKinds) + i;
    further_kinds_.push_back(name);
    return std::size(kKinds) + further_kinds_.size() - 1;
  }

  Status write_strings() {
    std::map<size_t, std::vector<std::string_view>> operations;
    functions_.resize(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kFunction), 1)));
    for (size_t row = 1; row < functions_.size(); ++row) {
      const auto at = static_cast<int64_t>(row);
      const size_t kind =
          kind_of(event::from_cell<event::Domain>(trace_.cell(Table::kFunction, at, column::Function::domain)));
      functions_[row] = {kind, operations[kind].size()};
      operations[kind].push_back(trace_.text(Table::kFunction, at, column::Function::name));
    }
    if (options_.wants(Table::kFill) && trace_.rows(Table::kFill) > 0) {
      fill_kind_ = further_kind("MEMORY_FILL");
      operations[fill_kind_] = {"MEMORY_FILL_NONE", "MEMORY_FILL"};
    }
    operations[kMemoryCopy].assign(std::begin(kCopyOperations), std::end(kCopyOperations));
    operations[kMarkerMark].assign(std::begin(kMarkerOperations), std::end(kMarkerOperations));
    operations[kMarkerRange] = operations[kMarkerMark];
    operations[kKernelDispatch] = {"KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"};
    operations[kMemoryAllocation] = {"MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE",
                                     "MEMORY_ALLOCATION_VMEM_ALLOCATE", "MEMORY_ALLOCATION_FREE"};
    json_.newline().name("strings").begin_object().name("callback_records").begin_array().end_array();
    json_.name("buffer_records").begin_array();
    for (size_t kind = 0; kind < std::size(kKinds) + further_kinds_.size(); ++kind) {
      record().begin_object().member(
          "kind", kind < std::size(kKinds) ? kKinds[kind] : further_kinds_[kind - std::size(kKinds)]);
      json_.name("operations").begin_array();
      for (const std::string_view operation : operations[kind]) json_.value(operation);
      json_.end_array().end_object();
    }
    json_.end_array().name("marker_api").begin_array();
    const auto message = [&](int64_t id, int64_t label) {
      record().begin_object().member("key", id);
      json_.member("value", trace_.text(Table::kLabel, label, column::Label::name)).end_object();
    };
    for (int64_t label = 1; label < trace_.rows(Table::kLabel); ++label) message(kLabelIds + label, label);
    if (options_.wants(Table::kMarker)) {
      using M = column::Marker;
      trace::RowCursor<M::track, M::start, M::dim, M::correlation> cursor(trace_);
      while (trace_.rows(Table::kMarker) > 0 && cursor.next())
        if (const auto& row = *cursor; of_process(row.track) && row.correlation != 0) message(row.correlation, row.dim);
      if (trace_.rows(Table::kMarker) > 0) TACHO_TRY(cursor.status());
    }
    const auto empty = [&](JsonLiteral name) { json_.name(name).begin_array().end_array(); };
    json_.end_array().name("counters").begin_object();
    empty("dimension_ids");
    json_.end_object().name("correlation_id").begin_object();
    empty("external");
    json_.end_object();
    empty("pc_sample_instructions");
    empty("pc_sample_comments");
    json_.end_object();
    return {};
  }

  void write_symbols() {
    json_.newline().name("code_objects").begin_array().end_array();
    json_.newline().name("kernel_symbols").begin_array();
    std::unordered_map<int64_t, bool> seen;
    for (int64_t kernel = 1; kernel < trace_.rows(Table::kKernel); ++kernel) {
      const int64_t id = kernels_.id(kernel);
      if (!seen.try_emplace(id, true).second) continue;
      const auto cell = [&](int at) { return trace_.cell(Table::kKernel, kernel, at); };
      const std::string_view raw = trace_.string(cell(column::Kernel::name));
      const std::string plain = demangle(raw);
      record().begin_object().member("kernel_id", id).member("code_object_id", 0).member("kernel_name", raw);
      const auto number = [&](JsonLiteral name, int64_t value) {
        if (value != kUnknown) json_.member(name, value);
      };
      number("group_segment_size", cell(column::Kernel::shared_static));
      number("private_segment_size", cell(column::Kernel::private_bytes));
      number("sgpr_count", cell(column::Kernel::scalar_registers));
      number("arch_vgpr_count", cell(column::Kernel::registers));
      number("accum_vgpr_count", cell(column::Kernel::accum_registers));
      json_.member("formatted_kernel_name", kernels_.name(kernel)).member("demangled_kernel_name", plain);
      json_.member("truncated_kernel_name", short_name(plain)).end_object();
    }
    json_.end_array();
  }

  // Records

  template <typename Json>
  void put_times(Json& json, int64_t start, int64_t duration) const {
    json.member("start_timestamp", clock_(start)).member("end_timestamp", end_of(start, duration));
  }
  template <typename Json>
  static void put_correlation(Json& json, int64_t correlation) {
    json.name("correlation_id").begin_object().member("internal", static_cast<uint64_t>(correlation));
    json.member("external", 0).end_object();
  }
  // Writes the beginning that every record has; the record's object stays open.
  void begin_record(size_t kind, size_t operation, int64_t thread, int64_t correlation, int64_t start,
                    int64_t duration) {
    json_.burst(kMostOfBeginning, [&](auto& json) {
      json.newline_between().begin_object();
      json.member("kind", kind).member("operation", operation).member("thread_id", thread);
      put_correlation(json, correlation);
      put_times(json, start, duration);
    });
  }
  int64_t thread_of(int64_t track) const {
    const int64_t tid = tracks_.tid(track);
    return tid > 0 ? tid : 0;
  }

  using D = column::Dispatch;
  using Dispatches =
      trace::RowCursor<D::track, D::start, D::duration, D::dim, D::correlation, D::ordinal, D::graph_node>;
  using DispatchRow = Dispatches::Row;

  // Omits unknown values, since they are not 0.
  void put_dispatch_info(const DispatchRow& row) {
    const auto cell = [&](int at) { return trace_.cell(Table::kKernel, row.dim, at); };
    json_.name("dispatch_info").begin_object();
    put_handle(json_, "agent_id", handle(trace_.cell(Table::kTrack, row.track, column::Track::device)));
    put_handle(json_, "queue_id", static_cast<uint64_t>(known(tracks_.queue(row.track))));
    json_.member("kernel_id", kernels_.id(row.dim));
    const auto number = [&](JsonLiteral name, int64_t value) {
      if (value != kUnknown) json_.member(name, value);
    };
    const auto extent = [&](JsonLiteral name, int first) {
      if (cell(first) == kUnknown || cell(first + 1) == kUnknown || cell(first + 2) == kUnknown) return;
      json_.name(name).begin_object().member("x", cell(first)).member("y", cell(first + 1));
      json_.member("z", cell(first + 2)).end_object();
    };
    number("dispatch_id", dispatch_id(row.ordinal));
    number("private_segment_size", cell(column::Kernel::private_bytes));
    const int64_t fixed = cell(column::Kernel::shared_static), dynamic = cell(column::Kernel::shared_dynamic);
    number("group_segment_size", fixed == kUnknown && dynamic == kUnknown ? kUnknown : known(fixed) + known(dynamic));
    extent("workgroup_size", column::Kernel::group_x);
    extent("grid_size", column::Kernel::grid_x);
    json_.end_object();
  }
  void put_graph(const DispatchRow& row) {
    const int64_t graph = trace_.cell(Table::kKernel, row.dim, column::Kernel::graph);
    if (graph != 0) put_handle(json_, "graph_exec_id", static_cast<uint64_t>(graph));
    if (row.graph_node != 0) put_handle(json_, "graph_node_id", static_cast<uint64_t>(row.graph_node));
  }
  void put_stream(int64_t track) {
    const int64_t stream = tracks_.stream(track);
    put_handle(json_, "stream_id", stream == kUnknown ? 0 : stream);
  }

  void write_dispatch(const DispatchRow& row, Launches& launches) {
    const Launch* const launch = launches.find(tracks_.process(row.track), row.correlation, row.start);
    begin_record(kKernelDispatch, 2, thread_of(launch != nullptr ? launch->track : row.track), row.correlation,
                 row.start, row.duration);
    put_dispatch_info(row);
    put_graph(row);
    put_stream(row.track);
    json_.end_object();
  }

  Status write_dispatches() {
    json_.name("kernel_dispatch").begin_array();
    if (options_.wants(Table::kDispatch) && trace_.rows(Table::kDispatch) > 0) {
      Dispatches cursor(trace_);
      Launches launches(trace_, Launches::Around::kNothing);
      while (cursor.next() && !file_.failed())
        if (of_process(cursor->track)) write_dispatch(*cursor, launches);
      TACHO_TRY(cursor.status());
      TACHO_TRY(launches.status());
      options_.remark_forgotten(launches.forgotten());
    }
    json_.end_array();
    return {};
  }

  // Counters come with their dispatch: both tables are in the order of the dispatches' starts.
  Status write_callback_records() {
    json_.newline().name("callback_records").begin_object().name("counter_collection").begin_array();
    if (options_.wants(Table::kCounterValue) && trace_.rows(Table::kCounterValue) > 0) {
      using C = column::CounterValue;
      TACHO_ASSIGN(const walk::FirstPasses passes, walk::FirstPasses::make(trace_));
      trace::RowCursor<C::track, C::start, C::ordinal, C::dim, C::pass, C::value> values(trace_);
      Dispatches dispatches(trace_);
      Launches launches(trace_, Launches::Around::kNothing);
      bool more = values.next();
      while (more && dispatches.next() && !file_.failed()) {
        const DispatchRow& row = *dispatches;
        while (more && values.start() < row.start) more = values.next();  // of a dispatch without a row
        std::string values_json;
        JsonWriter records(values_json, kCompactJson);
        while (more && values.start() == row.start) {
          const auto& value = *values;
          if (value.track != row.track || value.ordinal != row.ordinal) break;
          if (passes.count(value.track, value.start, value.ordinal, value.dim, value.pass)) {
            put_handle(records.begin_object(), "counter_id", value.dim);
            records.member("value", value.value.value()).end_object();
          }
          more = values.next();
        }
        if (values_json.empty() || !of_process(row.track)) continue;
        const Launch* const launch = launches.find(tracks_.process(row.track), row.correlation, row.start);
        record().begin_object().member("thread_id", thread_of(launch != nullptr ? launch->track : row.track));
        json_.name("dispatch_data").begin_object();
        put_correlation(json_, row.correlation);
        put_times(json_, row.start, row.duration);
        put_dispatch_info(row);
        put_graph(row);
        json_.end_object().name("records").begin_array().splice(values_json).end_array().end_object();
      }
      TACHO_TRY(values.status());
      TACHO_TRY(dispatches.status());
    }
    json_.end_array().end_object();
    return {};
  }

  // One buffer per API, each in its own pass, because JSON needs them one after the other.
  Status write_calls() {
    std::map<std::string, uint64_t> buffers = {{"hip_api", 0}, {"hsa_api", 0}, {"rccl_api", 0}};
    for (size_t row = 1; row < functions_.size(); ++row) {
      const auto domain = event::from_cell<event::Domain>(
          trace_.cell(Table::kFunction, static_cast<int64_t>(row), column::Function::domain));
      // "marker_api" contains ranges and marks.
      const std::string_view api = domain == Domain::kMarker ? "marker_core" : api_of(domain);
      if (options_.wants(domain))
        buffers[fmt::format("{}_api", api.empty() ? "unknown" : api)] |= uint64_t{1} << static_cast<unsigned>(domain);
    }
    for (const auto& [name, domains] : buffers) {
      json_.newline().key(name).begin_array();
      if (domains != 0 && options_.wants(Table::kApi) && trace_.rows(Table::kApi) > 0) {
        using A = column::Api;
        trace::RowCursor<A::track, A::start, A::duration, A::dim, A::correlation> cursor(trace_);
        while (cursor.next() && !file_.failed()) {
          const auto& row = *cursor;
          const auto domain =
              event::from_cell<event::Domain>(trace_.cell(Table::kFunction, row.dim, column::Function::domain));
          if (!of_process(row.track) || (domains >> static_cast<unsigned>(domain) & 1) == 0) continue;
          const FunctionPlace& place =
              functions_[row.dim > 0 && row.dim < static_cast<int64_t>(functions_.size()) ? static_cast<size_t>(row.dim)
                                                                                          : 0];
          begin_record(place.kind, place.operation, thread_of(row.track), row.correlation, row.start, row.duration);
          json_.end_object();
        }
        TACHO_TRY(cursor.status());
      }
      json_.end_array();
    }
    return {};
  }

  template <auto... columns, typename Write>
  Status records(std::string_view name, Write write) {
    json_.newline().key(name).begin_array();
    trace::RowCursor<columns...> cursor(trace_);
    if (options_.wants(decltype(cursor)::Row::kTable))
      while (cursor.next() && !file_.failed())
        if (of_process(cursor->track)) write(*cursor);
    json_.end_array();
    return cursor.status();
  }

  Status write_markers() {
    using M = column::Marker;
    return records<M::track, M::start, M::duration, M::dim, M::correlation>("marker_api", [&](const auto& row) {
      const auto kind = static_cast<event::MarkerKind>(trace_.cell(Table::kLabel, row.dim, column::Label::kind));
      const size_t operation = kind == event::MarkerKind::kMark ? 0 : kind == event::MarkerKind::kStartStop ? 3 : 1;
      begin_record(kind == event::MarkerKind::kMark ? kMarkerMark : kMarkerRange, operation, thread_of(row.track),
                   row.correlation != 0 ? row.correlation : kLabelIds + row.dim, row.start, row.duration);
      json_.end_object();
    });
  }

  Status write_copies() {
    using C = column::Copy;
    return records<C::track, C::start, C::duration, C::dim, C::correlation, C::bytes>(
        "memory_copy", [&](const auto& row) {
          const auto cell = [&](int at) { return trace_.cell(Table::kCopyShape, row.dim, at); };
          const std::string_view direction = copy_direction_name(cell(column::CopyShape::direction));
          size_t operation = 0;
          for (size_t i = 0; i < std::size(kCopyOperations); ++i)
            if (kCopyOperations[i] == direction) operation = i;
          if (cell(column::CopyShape::direction) == static_cast<int64_t>(event::CopyDirection::kPeerToPeer))
            operation = 4;
          begin_record(kMemoryCopy, operation, thread_of(row.track), row.correlation, row.start, row.duration);
          put_handle(json_, "src_agent_id", handle(cell(column::CopyShape::source_device)));
          put_handle(json_, "dst_agent_id", handle(cell(column::CopyShape::target_device)));
          if (row.bytes != kUnknown) json_.member("bytes", row.bytes);
          put_stream(row.track);
          json_.end_object();
        });
  }

  // rocprofv3 has no records of fills, so a run without any has no such buffer.
  Status write_fills() {
    if (fill_kind_ == 0) return {};
    using F = column::Fill;
    return records<F::track, F::start, F::duration, F::dim, F::correlation, F::bytes>(
        "memory_fill", [&](const auto& row) {
          begin_record(fill_kind_, 1, thread_of(row.track), row.correlation, row.start, row.duration);
          put_handle(json_, "agent_id", handle(trace_.cell(Table::kFillShape, row.dim, column::FillShape::device)));
          if (row.bytes != kUnknown) json_.member("bytes", row.bytes);
          put_stream(row.track);
          json_.end_object();
        });
  }

  Status write_allocations() {
    using A = column::Allocation;
    return records<A::track, A::start, A::duration, A::dim, A::correlation, A::bytes, A::address>(
        "memory_allocation", [&](const auto& row) {
          const auto cell = [&](int at) { return trace_.cell(Table::kAllocationShape, row.dim, at); };
          begin_record(kMemoryAllocation, is_free(cell(column::AllocationShape::operation)) ? 3 : 1,
                       thread_of(row.track), row.correlation, row.start, row.duration);
          put_handle(json_, "agent_id", handle(cell(column::AllocationShape::device)));
          json_.member("address", fmt::format("{:#x}", static_cast<uint64_t>(row.address)));
          if (row.bytes != kUnknown) json_.member("allocation_size", row.bytes);
          json_.end_object();
        });
  }

  const trace::Trace& trace_;
  ExportOptions options_;
  OutputFile& file_;
  JsonFileWriter& json_;
  OutputClock clock_;
  Agents agents_;
  Tracks tracks_;
  KernelNames kernels_;
  std::vector<std::string> further_kinds_;
  size_t fill_kind_ = 0;  // 0 = there are no fills
  std::vector<FunctionPlace> functions_;
};

// Errors of reading are told by those who read the rows.
bool has_rows_without_process(const trace::Trace& trace) {
  bool found = false;
  for (const Table table :
       {Table::kDispatch, Table::kCopy, Table::kFill, Table::kAllocation, Table::kApi, Table::kMarker})
    static_cast<void>(trace.visit_summaries(table, [&](std::span<const trace::Summary> summaries) {
      for (const trace::Summary& summary : summaries)
        found |= trace.cell(Table::kTrack, summary.track, column::Track::process) <= 0;
    }));
  return found;
}

}  // namespace

Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written) {
  TACHO_TRY(check_has_events(trace));
  TACHO_ASSIGN(OutputFile file, OutputFile::create(target.file, options.overwrite));
  JsonFileWriter json(file, kCompactJson);
  json.begin_object().name("rocprofiler-sdk-tool").begin_array();
  std::vector<int64_t> processes;
  if (options.process != 0) processes = {options.process};
  for (int64_t process = 1; options.process == 0 && process < trace.rows(Table::kProcess); ++process)
    processes.push_back(process);
  if (options.process == 0 && (processes.empty() || has_rows_without_process(trace))) processes.push_back(0);
  for (size_t i = 0; i < processes.size(); ++i) {
    ExportOptions one = options;
    one.process = processes[i];
    TACHO_ASSIGN(OutputClock clock, OutputClock::make(trace, OutputClock::Clock::kBoottime));
    Exporter exporter(trace, one, file, json, std::move(clock));
    TACHO_TRY(exporter.run());
  }
  json.end_array().end_object().end_line();
  TACHO_TRY(file.commit());
  written.push_back(target.file);
  return {};
}

}  // namespace tacho::format::rocprofv3
