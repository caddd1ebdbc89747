// rocprofv3's JSON from a trace (rocprofv3_json.h): streamed, record by record.
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/decimal.h"
#include "base/demangle.h"
#include "base/output_file.h"
#include "format/csv/parts.h"
#include "format/rocprofv3_json/bits.h"
#include "format/rocprofv3_json/rocprofv3_json.h"
#include "format/view/clock.h"
#include "format/view/launches.h"
#include "format/view/timeline.h"
#include "format/view/tracks.h"
#include "report/text.h"

namespace tacho::format::rocprofv3 {

namespace column = event::column;
using event::Domain;
using event::kUnknown;
using event::Table;

namespace {

std::string quoted(std::string_view text) {
  return report::json_quoted(text);
}

// Kinds of buffer records in rocprofv3's order; records refer to them by number.
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
constexpr size_t kMarkerMark = 7, kMemoryCopy = 10, kKernelDispatch = 11, kMemoryAllocation = 16,
                 kMarkerRange = 32;
constexpr std::string_view kCopyOperations[] = {"MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST",
                                                "MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_HOST",
                                                "MEMORY_COPY_DEVICE_TO_DEVICE"};
constexpr std::string_view kMarkerOperations[] = {"roctxMarkA", "roctxRangePushA", "roctxRangePop",
                                                  "roctxRangeStartA", "roctxRangeStop"};

// A marker of ours has no correlation id; its text is found by its label's.
constexpr int64_t kLabelIds = int64_t{1} << 62;

class Exporter {
 public:
  Exporter(const trace::Trace& trace, const ExportOptions& options, OutputFile& file, ClockMap clock)
      : trace_(trace),
        options_(options),
        file_(file),
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
    file_.write(",\n\"host_functions\":[],\"summary\":[]");
    TACHO_TRY(write_callback_records());
    file_.write(",\n\"buffer_records\":{");
    TACHO_TRY(write_dispatches());
    TACHO_TRY(write_calls());
    TACHO_TRY(write_markers());
    TACHO_TRY(write_copies());
    TACHO_TRY(write_allocations());
    for (const char* empty :
         {"scratch_memory", "rocdecode_api", "rocjpeg_api", "pc_sample_host_trap", "pc_sample_stochastic"})
      file_.write(fmt::format(",\n\"{}\":[]", empty));
    file_.write("}}");
    return {};
  }

 private:
  bool of_process(int64_t track) const {
    return options_.process == 0 || tracks_.process(track) == options_.process;
  }
  int64_t handle(int64_t device) const { return agents_.of(device).logical + 1; }
  static int64_t known(int64_t value) { return value == kUnknown ? 0 : value; }
  int64_t end_of(int64_t start, int64_t duration) const {
    return duration == kUnknown ? 0 : clock_(time_after(start, duration));
  }
  void comma(bool& first) {
    if (!first) file_.write(",\n");
    first = false;
  }

  void write_metadata() {
    const int64_t process = options_.process != 0 ? options_.process : 1;
    const auto cell = [&](int at) { return trace_.cell(Table::kProcess, process, at); };
    const auto [first, last] = trace_.time_range();
    file_.write(
        fmt::format("{{\"metadata\":{{\"node\":{{\"id\":0,\"hostname\":{}}},\"pid\":{},\"init_time\":{},"
                    "\"fini_time\":{},\"command\":[",
                    quoted(trace_.string(cell(column::Process::host))), known(cell(column::Process::pid)),
                    clock_(first), clock_(last)));
    const std::string_view command = trace_.string(cell(column::Process::command));
    bool any = false;
    for (size_t begin = 0; begin < command.size();) {
      const size_t end = std::min(command.find(' ', begin), command.size());
      file_.write(fmt::format("{}{}", any ? "," : "", quoted(command.substr(begin, end - begin))));
      any = true;
      begin = end + 1;
    }
    file_.write(fmt::format("],\"config\":{{\"producer\":\"tacho {}\"}}}}", TACHO_PROGRAM_VERSION));
  }

  void write_agents() {
    file_.write(",\n\"agents\":[");
    bool first = true;
    for (const Agent& agent : agents_.all()) {
      comma(first);
      const auto text = [&](int at) { return trace_.text(Table::kDevice, agent.device, at); };
      const bool host = agent.device == 0;
      const std::string name(host ? trace_.property(Table::kEnd, 0, "machine").value_or("host")
                                  : text(column::Device::name));
      const std::string architecture(text(column::Device::architecture));
      file_.write(
          fmt::format("{{\"id\":{{\"handle\":{}}},\"type\":{},\"name\":{},\"product_name\":{},\"vendor_"
                      "name\":{},\"model_name\":{},"
                      "\"node_id\":{},\"logical_node_id\":{},\"logical_node_type_id\":{}",
                      handle(agent.device),
                      agent.kind == event::DeviceKind::kGpu   ? 2
                      : agent.kind == event::DeviceKind::kCpu ? 1
                                                              : 0,
                      quoted(architecture.empty() ? name : architecture), quoted(name),
                      quoted(host ? "CPU" : text(column::Device::vendor)),
                      quoted(trace_.property(Table::kDevice, agent.device, "model_name").value_or("")),
                      agent.node, agent.logical, agent.of_type));
      std::map<std::string, std::string> extents;
      for (const auto& [column, value] : csv::agent_facts(trace_, agent)) {
        std::string member(column);
        for (char& c : member) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        if (const auto fields = bit_fields(member); !fields.empty()) {
          file_.write(fmt::format(",\"{}\":{{", member));
          int at = 0;
          for (const BitField& field : fields) {
            file_.write(fmt::format("{}\"{}\":{}", at == 0 ? "" : ",", field.name,
                                    value >> at & ((uint64_t{1} << field.width) - 1)));
            at += field.width;
          }
          file_.write("}");
        } else if (member.find("_max_dim_") != std::string::npos) {
          std::string& extent = extents[member.substr(0, member.size() - 2)];
          extent += fmt::format("{}\"{}\":{}", extent.empty() ? "" : ",", member.back(), value);
        } else {
          file_.write(fmt::format(",\"{}\":{}", member, value));
        }
      }
      for (const auto& [member, extent] : extents) file_.write(fmt::format(",\"{}\":{{{}}}", member, extent));
      file_.write("}");
    }
    file_.write("]");
  }

  void write_counters() {
    file_.write(",\n\"counters\":[");
    bool first = true;
    for (int64_t counter = 1; counter < trace_.rows(Table::kCounter); ++counter) {
      comma(first);
      const auto text = [&](int at) { return quoted(trace_.text(Table::kCounter, counter, at)); };
      file_.write(fmt::format("{{\"id\":{{\"handle\":{}}},\"name\":{},\"description\":{},\"block\":{}}}",
                              counter, text(column::Counter::name), text(column::Counter::text),
                              text(column::Counter::block)));
    }
    file_.write("]");
  }

  // ---- names that records refer to by number

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
    const std::string name(api_domain_name(domain));
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
      const size_t kind = kind_of(domain_of(trace_.cell(Table::kFunction, at, column::Function::domain)));
      functions_[row] = {kind, operations[kind].size()};
      operations[kind].push_back(trace_.text(Table::kFunction, at, column::Function::name));
    }
    operations[kMemoryCopy].assign(std::begin(kCopyOperations), std::end(kCopyOperations));
    operations[kMarkerMark].assign(std::begin(kMarkerOperations), std::end(kMarkerOperations));
    operations[kMarkerRange] = operations[kMarkerMark];
    operations[kKernelDispatch] = {"KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE",
                                   "KERNEL_DISPATCH_COMPLETE"};
    operations[kMemoryAllocation] = {"MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE",
                                     "MEMORY_ALLOCATION_VMEM_ALLOCATE", "MEMORY_ALLOCATION_FREE"};
    file_.write(",\n\"strings\":{\"callback_records\":[],\"buffer_records\":[");
    bool first = true;
    for (size_t kind = 0; kind < std::size(kKinds) + further_kinds_.size(); ++kind) {
      comma(first);
      file_.write(fmt::format(
          "{{\"kind\":{},\"operations\":[",
          quoted(kind < std::size(kKinds) ? kKinds[kind]
                                          : std::string_view(further_kinds_[kind - std::size(kKinds)]))));
      bool any = false;
      for (const std::string_view operation : operations[kind]) {
        file_.write(fmt::format("{}{}", any ? "," : "", quoted(operation)));
        any = true;
      }
      file_.write("]}");
    }
    file_.write("],\"marker_api\":[");
    first = true;
    const auto message = [&](int64_t id, int64_t label) {
      comma(first);
      file_.write(fmt::format("{{\"key\":{},\"value\":{}}}", id,
                              quoted(trace_.text(Table::kLabel, label, column::Label::name))));
    };
    for (int64_t label = 1; label < trace_.rows(Table::kLabel); ++label) message(kLabelIds + label, label);
    if (options_.wants(Table::kMarker)) {
      static constexpr int kColumns[] = {column::Marker::track, column::Marker::start, column::Marker::dim,
                                         column::Marker::correlation};
      trace::TimeCursor cursor(trace_, Table::kMarker, kColumns);
      while (trace_.rows(Table::kMarker) > 0 && cursor.next())
        if (const auto row = cursor.row(); of_process(row[0]) && row[3] != 0) message(row[3], row[2]);
      if (trace_.rows(Table::kMarker) > 0) TACHO_TRY(cursor.status());
    }
    file_.write(
        "],\"counters\":{\"dimension_ids\":[]},\"correlation_id\":{\"external\":[]},\"pc_sample_"
        "instructions\":[],\"pc_sample_comments\":[]}");
    return {};
  }

  void write_symbols() {
    file_.write(",\n\"code_objects\":[],\n\"kernel_symbols\":[");
    bool first = true;
    std::unordered_map<int64_t, bool> seen;
    for (int64_t kernel = 1; kernel < trace_.rows(Table::kKernel); ++kernel) {
      const int64_t id = kernels_.id(kernel);
      if (!seen.try_emplace(id, true).second) continue;
      comma(first);
      const auto cell = [&](int at) { return trace_.cell(Table::kKernel, kernel, at); };
      const std::string_view raw = trace_.string(cell(column::Kernel::name));
      const std::string plain = demangle(raw);
      file_.write(fmt::format("{{\"kernel_id\":{},\"code_object_id\":0,\"kernel_name\":{}", id, quoted(raw)));
      const auto number = [&](const char* name, int64_t value) {
        if (value != kUnknown) file_.write(fmt::format(",\"{}\":{}", name, value));
      };
      number("group_segment_size", cell(column::Kernel::shared_static));
      number("private_segment_size", cell(column::Kernel::private_bytes));
      number("sgpr_count", cell(column::Kernel::scalar_registers));
      number("arch_vgpr_count", cell(column::Kernel::registers));
      number("accum_vgpr_count", cell(column::Kernel::accum_registers));
      file_.write(fmt::format(
          ",\"formatted_kernel_name\":{},\"demangled_kernel_name\":{},\"truncated_kernel_name\":{}}}",
          quoted(kernels_.name(kernel)), quoted(plain), quoted(short_name(plain))));
    }
    file_.write("]");
  }

  // ---- records

  void write_times(int64_t start, int64_t duration) {
    char* const begin = file_.reserve(128);
    char* at = begin;
    const auto text = [&](std::string_view part) {
      std::memcpy(at, part.data(), part.size());
      at += part.size();
    };
    text("\"start_timestamp\":");
    at = write_signed(at, clock_(start));
    text(",\"end_timestamp\":");
    at = write_signed(at, end_of(start, duration));
    file_.advance(static_cast<size_t>(at - begin));
  }
  void write_head(bool& first, size_t kind, size_t operation, int64_t thread, int64_t correlation) {
    comma(first);
    file_.write(
        fmt::format("{{\"kind\":{},\"operation\":{},\"thread_id\":{},\"correlation_id\":{{\"internal\":{},"
                    "\"external\":0}},",
                    kind, operation, thread, static_cast<uint64_t>(correlation)));
  }
  int64_t thread_of(int64_t track) const {
    const int64_t tid = tracks_.tid(track);
    return tid > 0 ? tid : 0;
  }

  struct DispatchRow {
    int64_t track, start, duration, dim, correlation, ordinal;
  };
  static constexpr int kDispatchColumns[] = {column::Dispatch::track,       column::Dispatch::start,
                                             column::Dispatch::duration,    column::Dispatch::dim,
                                             column::Dispatch::correlation, column::Dispatch::ordinal};

  // What is not known is left out: it is not 0.
  std::string dispatch_info(const DispatchRow& row) {
    const auto cell = [&](int at) { return trace_.cell(Table::kKernel, row.dim, at); };
    std::string out = fmt::format(
        "\"dispatch_info\":{{\"agent_id\":{{\"handle\":{}}},\"queue_id\":{{\"handle\":{}}},\"kernel_id\":{}",
        handle(trace_.cell(Table::kTrack, row.track, column::Track::device)),
        static_cast<uint64_t>(known(tracks_.queue(row.track))), kernels_.id(row.dim));
    const auto number = [&](const char* name, int64_t value) {
      if (value != kUnknown) out += fmt::format(",\"{}\":{}", name, value);
    };
    const auto extent = [&](const char* name, int first) {
      if (cell(first) == kUnknown || cell(first + 1) == kUnknown || cell(first + 2) == kUnknown) return;
      out += fmt::format(",\"{}\":{{\"x\":{},\"y\":{},\"z\":{}}}", name, cell(first), cell(first + 1),
                         cell(first + 2));
    };
    number("dispatch_id", row.ordinal == kUnknown ? kUnknown : row.ordinal + 1);
    number("private_segment_size", cell(column::Kernel::private_bytes));
    const int64_t fixed = cell(column::Kernel::shared_static), dynamic = cell(column::Kernel::shared_dynamic);
    number("group_segment_size",
           fixed == kUnknown && dynamic == kUnknown ? kUnknown : known(fixed) + known(dynamic));
    extent("workgroup_size", column::Kernel::group_x);
    extent("grid_size", column::Kernel::grid_x);
    return out + "}";
  }

  void write_dispatch(bool& first, const DispatchRow& row, Launches& launches) {
    const Launch* const launch = launches.find(tracks_.process(row.track), row.correlation, row.start);
    write_head(first, kKernelDispatch, 2, thread_of(launch != nullptr ? launch->track : row.track),
               row.correlation);
    write_times(row.start, row.duration);
    file_.write(",");
    file_.write(dispatch_info(row));
    const int64_t stream = tracks_.stream(row.track);
    file_.write(fmt::format(",\"stream_id\":{{\"handle\":{}}}}}", stream == kUnknown ? 0 : stream));
  }

  Status write_dispatches() {
    file_.write("\"kernel_dispatch\":[");
    if (options_.wants(Table::kDispatch) && trace_.rows(Table::kDispatch) > 0) {
      trace::TimeCursor cursor(trace_, Table::kDispatch, kDispatchColumns);
      Launches launches(trace_, false);
      bool first = true;
      while (cursor.next() && !file_.failed()) {
        const auto row = cursor.row();
        if (of_process(row[0]))
          write_dispatch(first, {row[0], row[1], row[2], row[3], row[4], row[5]}, launches);
      }
      TACHO_TRY(cursor.status());
      TACHO_TRY(launches.status());
    }
    file_.write("]");
    return {};
  }

  // Counters come with their dispatch: both tables are in the order of the dispatches' starts.
  Status write_callback_records() {
    file_.write(",\n\"callback_records\":{\"counter_collection\":[");
    if (options_.wants(Table::kCounterValue) && trace_.rows(Table::kCounterValue) > 0) {
      static constexpr int kValues[] = {column::CounterValue::track, column::CounterValue::start,
                                        column::CounterValue::ordinal, column::CounterValue::dim,
                                        column::CounterValue::value};
      trace::TimeCursor values(trace_, Table::kCounterValue, kValues),
          dispatches(trace_, Table::kDispatch, kDispatchColumns);
      Launches launches(trace_, false);
      bool more = values.next(), first = true;
      while (more && dispatches.next() && !file_.failed()) {
        const auto at = dispatches.row();
        const DispatchRow row{at[0], at[1], at[2], at[3], at[4], at[5]};
        while (more && values.start() < row.start) more = values.next();  // of a dispatch that has no row
        std::string records;
        while (more && values.start() == row.start) {
          const auto value = values.row();
          if (value[0] != row.track || value[2] != row.ordinal) break;
          const auto number = std::bit_cast<double>(value[4]);
          records +=
              fmt::format("{}{{\"counter_id\":{{\"handle\":{}}},\"value\":{}}}", records.empty() ? "" : ",",
                          value[3], std::isfinite(number) ? fmt::format("{}", number) : "null");
          more = values.next();
        }
        if (records.empty() || !of_process(row.track)) continue;
        const Launch* const launch = launches.find(tracks_.process(row.track), row.correlation, row.start);
        comma(first);
        file_.write(fmt::format(
            "{{\"thread_id\":{},\"dispatch_data\":{{\"correlation_id\":{{\"internal\":{},\"external\":0}},",
            thread_of(launch != nullptr ? launch->track : row.track),
            static_cast<uint64_t>(row.correlation)));
        write_times(row.start, row.duration);
        file_.write(",");
        file_.write(dispatch_info(row));
        file_.write("},\"records\":[");
        file_.write(records);
        file_.write("]}");
      }
      TACHO_TRY(values.status());
      TACHO_TRY(dispatches.status());
    }
    file_.write("]}");
    return {};
  }

  // One buffer per API, each in a pass of its own: JSON wants them one after the other.
  Status write_calls() {
    std::map<std::string, uint64_t> buffers = {{"hip_api", 0}, {"hsa_api", 0}, {"rccl_api", 0}};
    for (size_t row = 1; row < functions_.size(); ++row) {
      const auto domain =
          domain_of(trace_.cell(Table::kFunction, static_cast<int64_t>(row), column::Function::domain));
      const std::string_view api = api_of(domain);
      if (options_.wants(domain))
        buffers[fmt::format("{}_api", api.empty() ? "unknown" : api)] |= uint64_t{1}
                                                                         << static_cast<unsigned>(domain);
    }
    for (const auto& [name, domains] : buffers) {
      file_.write(fmt::format(",\n\"{}\":[", name));
      if (domains != 0 && options_.wants(Table::kApi) && trace_.rows(Table::kApi) > 0) {
        static constexpr int kColumns[] = {column::Api::track, column::Api::start, column::Api::duration,
                                           column::Api::dim, column::Api::correlation};
        trace::TimeCursor cursor(trace_, Table::kApi, kColumns);
        bool first = true;
        while (cursor.next() && !file_.failed()) {
          const auto row = cursor.row();
          const auto domain = domain_of(trace_.cell(Table::kFunction, row[3], column::Function::domain));
          if (!of_process(row[0]) || (domains >> static_cast<unsigned>(domain) & 1) == 0) continue;
          const FunctionPlace& place =
              functions_[row[3] > 0 && row[3] < static_cast<int64_t>(functions_.size())
                             ? static_cast<size_t>(row[3])
                             : 0];
          write_head(first, place.kind, place.operation, thread_of(row[0]), row[4]);
          write_times(row[1], row[2]);
          file_.write("}");
        }
        TACHO_TRY(cursor.status());
      }
      file_.write("]");
    }
    return {};
  }

  template <typename Write>
  Status records(std::string_view name, Table table, std::span<const int> columns, Write write) {
    file_.write(fmt::format(",\n\"{}\":[", name));
    if (options_.wants(table) && trace_.rows(table) > 0) {
      trace::TimeCursor cursor(trace_, table, columns);
      bool first = true;
      while (cursor.next() && !file_.failed())
        if (const auto row = cursor.row(); of_process(row[0])) write(first, row);
      TACHO_TRY(cursor.status());
    }
    file_.write("]");
    return {};
  }

  Status write_markers() {
    static constexpr int kColumns[] = {column::Marker::track, column::Marker::start, column::Marker::duration,
                                       column::Marker::dim, column::Marker::correlation};
    return records("marker_api", Table::kMarker, kColumns, [&](bool& first, std::span<const int64_t> row) {
      const auto kind =
          static_cast<event::MarkerKind>(trace_.cell(Table::kLabel, row[3], column::Label::kind));
      const size_t operation = kind == event::MarkerKind::kMark        ? 0
                               : kind == event::MarkerKind::kStartStop ? 3
                                                                       : 1;
      write_head(first, kind == event::MarkerKind::kMark ? kMarkerMark : kMarkerRange, operation,
                 thread_of(row[0]), row[4] != 0 ? row[4] : kLabelIds + row[3]);
      write_times(row[1], row[2]);
      file_.write("}");
    });
  }

  Status write_copies() {
    static constexpr int kColumns[] = {column::Copy::track, column::Copy::start,       column::Copy::duration,
                                       column::Copy::dim,   column::Copy::correlation, column::Copy::bytes};
    return records("memory_copy", Table::kCopy, kColumns, [&](bool& first, std::span<const int64_t> row) {
      const auto cell = [&](int at) { return trace_.cell(Table::kCopyShape, row[3], at); };
      const std::string_view direction = copy_direction_name(cell(column::CopyShape::direction));
      size_t operation = 0;
      for (size_t i = 0; i < std::size(kCopyOperations); ++i)
        if (kCopyOperations[i] == direction) operation = i;
      if (cell(column::CopyShape::direction) == static_cast<int64_t>(event::CopyDirection::kPeerToPeer))
        operation = 4;
      write_head(first, kMemoryCopy, operation, thread_of(row[0]), row[4]);
      write_times(row[1], row[2]);
      const int64_t stream = tracks_.stream(row[0]);
      file_.write(fmt::format(
          ",\"src_agent_id\":{{\"handle\":{}}},\"dst_agent_id\":{{\"handle\":{}}},\"bytes\":{},\"stream_id\":"
          "{{\"handle\":{}}}}}",
          handle(cell(column::CopyShape::source_device)), handle(cell(column::CopyShape::target_device)),
          known(row[5]), stream == kUnknown ? 0 : stream));
    });
  }

  Status write_allocations() {
    static constexpr int kColumns[] = {column::Allocation::track,       column::Allocation::start,
                                       column::Allocation::duration,    column::Allocation::dim,
                                       column::Allocation::correlation, column::Allocation::bytes,
                                       column::Allocation::address};
    return records(
        "memory_allocation", Table::kAllocation, kColumns, [&](bool& first, std::span<const int64_t> row) {
          const auto cell = [&](int at) { return trace_.cell(Table::kAllocationShape, row[3], at); };
          write_head(first, kMemoryAllocation, is_free(cell(column::AllocationShape::operation)) ? 3 : 1,
                     thread_of(row[0]), row[4]);
          write_times(row[1], row[2]);
          file_.write(fmt::format(
              ",\"agent_id\":{{\"handle\":{}}},\"address\":\"{:#x}\",\"allocation_size\":{}}}",
              handle(cell(column::AllocationShape::device)), static_cast<uint64_t>(row[6]), known(row[5])));
        });
  }

  const trace::Trace& trace_;
  ExportOptions options_;
  OutputFile& file_;
  ClockMap clock_;
  Agents agents_;
  Tracks tracks_;
  KernelNames kernels_;
  std::vector<std::string> further_kinds_;
  std::vector<FunctionPlace> functions_;
};

}  // namespace

Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written) {
  TACHO_TRY(check_has_events(trace));
  TACHO_ASSIGN(OutputFile file, OutputFile::create(target.file, options.overwrite));
  file.write("{\"rocprofiler-sdk-tool\":[");
  std::vector<int64_t> processes;
  if (options.process != 0) processes = {options.process};
  for (int64_t process = 1; options.process == 0 && process < trace.rows(Table::kProcess); ++process)
    processes.push_back(process);
  for (size_t i = 0; i < processes.size(); ++i) {
    if (i > 0) file.write(",\n");
    ExportOptions one = options;
    one.process = processes[i];
    TACHO_ASSIGN(ClockMap clock, ClockMap::make(trace, ClockMap::Clock::kBoottime));
    Exporter exporter(trace, one, file, std::move(clock));
    TACHO_TRY(exporter.run());
  }
  file.write("]}\n");
  TACHO_TRY(file.commit());
  written.push_back(target.file);
  return {};
}

}  // namespace tacho::format::rocprofv3
