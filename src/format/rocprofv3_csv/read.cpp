// Translates the rows of rocprofv3's CSV files into tacho's terms (rocprofv3_csv.h).
#include <tsl/robin_map.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/format.h"
#include "base/number_map.h"
#include "base/text/csv.h"
#include "base/text/utf8.h"
#include "event/times.h"
#include "format/import/bad_rows.h"
#include "format/import/origin.h"
#include "format/import/ranges.h"
#include "format/import/times.h"
#include "format/import/words.h"
#include "format/json/members.h"
#include "format/rocprofv3_csv/csv_rows.h"
#include "format/rocprofv3_csv/rocprofv3_csv.h"
#include "format/shared/rocprof_words.h"
#include "format/source/names.h"
#include "trace/write/work_times.h"
#include "vendor/call_roles.h"
#include "walk/names/names.h"
#include "workload/import.h"

namespace tacho::format::rocprofv3_csv {
namespace {

namespace fs = std::filesystem;
using event::Domain;
using event::kUnknown;
using event::Table;
namespace row = event::row;

constexpr size_t kMostFiles = 100'000;

enum class Kind {
  kNone,
  kKernels,
  kCopies,
  kFills,
  kAllocations,
  kScratch,
  kCalls,
  kCounters,
  kAgents,
  kOwners,  // tacho's process_info.csv
  kWork,    // rocprof v2: what HIP did on the GPU, kernels and copies
  kRanges,  // rocprof v2's ROCTx file
};

struct Ending {
  std::string_view text;
  Kind kind;
};
constexpr Ending kEndings[] = {
    {"kernel_trace.csv", Kind::kKernels},
    {"memory_copy_trace.csv", Kind::kCopies},
    {"memory_fill_trace.csv", Kind::kFills},
    {"memory_allocation_trace.csv", Kind::kAllocations},
    {"scratch_memory_trace.csv", Kind::kScratch},
    {"counter_collection.csv", Kind::kCounters},
    {"agent_info.csv", Kind::kAgents},
    {"process_info.csv", Kind::kOwners},
    {"_api_trace.csv", Kind::kCalls},
};

// rocprof v2 has the process, or the name given with -o, behind: "hip_api_trace_4711.csv".
constexpr Ending kOlderBeginnings[] = {
    {"hip_api_trace_", Kind::kCalls},   {"hsa_api_trace_", Kind::kCalls}, {"hcc_ops_trace_", Kind::kWork},
    {"async_copy_trace_", Kind::kWork}, {"roctx_trace_", Kind::kRanges},  {"results_", Kind::kKernels},
};

// The kind of a file by its name, and what it shares with the other files of its process: their prefix, or for rocprof
// v2's files what they end in.
Kind kind_of(std::string_view name, std::string_view& prefix) {
  name = without_packing(name);
  for (const Ending& ending : kEndings) {
    if (!name.ends_with(ending.text)) continue;
    prefix = name.substr(0, name.size() - ending.text.size());
    if (ending.kind == Kind::kCalls) {
      // "123_hip", or "hip" without a prefix: the API's own name contains no underscore.
      const size_t at = prefix.rfind('_');
      if (prefix.empty()) continue;
      prefix = at == std::string_view::npos ? std::string_view() : prefix.substr(0, at + 1);
    } else if (!prefix.empty() && !prefix.ends_with('_')) {
      continue;
    }
    return ending.kind;
  }
  // After the endings: rocprofv3 -o results writes "results_kernel_trace.csv".
  for (const Ending& beginning : kOlderBeginnings) {
    if (!name.starts_with(beginning.text) || !name.ends_with(".csv")) continue;
    prefix = name.substr(beginning.text.size());
    return beginning.kind;
  }
  return Kind::kNone;
}

// The kind of a single file with any name, from its header. One time is enough: require() names the other.
Kind kind_of_header(const std::vector<std::string>& columns) {
  const auto has = [&](std::string_view name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  if (has("Counter_Name") && has("Counter_Value") && has("Dispatch_Id")) return Kind::kCounters;
  if (has("ROCTX_ID") && has("Message")) return Kind::kRanges;
  if (!has("Start_Timestamp") && !has("End_Timestamp")) return Kind::kNone;
  if (has("Kernel_Name") && !has("Domain")) return Kind::kKernels;
  if (has("Domain") && has("Operation")) return Kind::kWork;
  if (has("Domain") && has("Function")) return Kind::kCalls;
  if (has("Direction")) return Kind::kCopies;
  if (has("Alloc_Flags")) return Kind::kScratch;
  if (has("Operation")) return Kind::kAllocations;
  return has("Kind") && has("Size_Bytes") ? Kind::kFills : Kind::kNone;
}

Status require(const CsvRows& rows, Kind kind) {
  switch (kind) {
    case Kind::kKernels:
      return rows.require("a kernel trace", {"Kernel_Name", "Start_Timestamp", "End_Timestamp"});
    case Kind::kCopies:
      return rows.require("a trace of copies", {"Direction", "Start_Timestamp", "End_Timestamp"});
    case Kind::kFills:
      return rows.require("a trace of fills", {"Start_Timestamp", "End_Timestamp"});
    case Kind::kAllocations:
    case Kind::kScratch:
    case Kind::kWork:
      return rows.require("a trace of operations", {"Operation", "Start_Timestamp", "End_Timestamp"});
    case Kind::kCalls:
      return rows.require("a trace of calls", {"Domain", "Function", "Start_Timestamp", "End_Timestamp"});
    case Kind::kCounters:
      return rows.require("a file of counters", {"Counter_Name", "Counter_Value", "Dispatch_Id"});
    case Kind::kAgents:
      return rows.require("a list of agents", {"Node_Id"});
    case Kind::kOwners:
      return rows.require("tacho's facts about a process", {"Kind", "Id", "Facts"});
    case Kind::kRanges:
      return rows.require("a trace of ROCTx", {"ROCTX_ID", "Message", "Timestamp"});
    case Kind::kNone:
      break;
  }
  return {};
}

Table table_of(Kind kind) {
  switch (kind) {
    case Kind::kCopies:
      return Table::kCopy;
    case Kind::kFills:
      return Table::kFill;
    case Kind::kAllocations:
    case Kind::kScratch:
      return Table::kAllocation;
    case Kind::kCalls:
      return Table::kApi;
    case Kind::kCounters:
      return Table::kCounterValue;
    case Kind::kRanges:
      return Table::kMarker;
    default:
      return Table::kDispatch;
  }
}

struct Set {
  std::string host;  // the folder's name, if it is one level below the given one
  std::vector<std::pair<Kind, std::string>> files;
};

// The words of rocprofv3 and tacho's own files, or those of another version.
Domain domain_named(std::string_view name) {
  for (int64_t i = 0; i < static_cast<int64_t>(Domain::kEnd); ++i)
    if (const auto domain = static_cast<Domain>(i); domain != Domain::kUnknown && api_domain_name(domain) == name)
      return domain;
  return imported::domain_of_word(name);
}

// What tacho's process_info.csv tells, over the processes of a folder.
struct ToldDevice {
  row::Device row;
  std::string origin;
};
struct ToldOwners {
  std::map<std::pair<std::string, std::string>, int64_t> devices;  // by run and host, and origin: several may list one
  std::map<std::string, row::Device> unused;                       // by origin
  std::set<std::string> used;
  int64_t processes = 0;

  // The devices that nothing is on, each once.
  void finish(trace::TraceWriter& writer) const {
    for (const auto& [origin, device] : unused)
      if (!used.contains(origin)) imported::set_device_origin(writer, writer.dimension(device), origin);
  }
};

class Reader {
 public:
  Reader(trace::TraceWriter& writer, const Set& set, std::string_view prefix, ToldOwners& told)
      : writer_(writer), set_(set), told_(told) {
    int64_t number = 0;
    const std::string_view head = prefix.substr(0, prefix.find_first_of("_."));
    if (head.empty() || !whole(head, number) || number <= 0) return;
    pid_ = number;
    // "100.1_": so tacho names the second process of pid 100.
    prefix.remove_prefix(head.size());
    if (prefix.starts_with('.') && whole(prefix.substr(1, prefix.find('_') - 1), number)) run_ = number;
  }

  Status run() {
    // Agents first, then what others refer to: calls name the process, dispatches give counters their place.
    for (const Kind kind : {Kind::kOwners, Kind::kAgents, Kind::kCalls, Kind::kKernels, Kind::kWork, Kind::kCopies,
                            Kind::kFills, Kind::kAllocations, Kind::kScratch, Kind::kCounters, Kind::kRanges}) {
      for (const auto& [of, path] : set_.files)
        if (of == kind) TACHO_TRY(read(kind, path));
      if (kind == Kind::kCalls) TACHO_TRY(work_times_.calls_end(has(Kind::kCounters)));
    }
    TACHO_TRY(work_times_.work_ends());
    work_times_.finish(0);
    TACHO_TRY(call_ends_.finish());
    return unmeasured_.finish(writer_, [this](int64_t, int64_t correlation) {
      const auto* const call = call_ends_.find(correlation);
      return call == nullptr ? kUnknown : call->value;
    });
  }

 private:
  struct Times {
    int start, end;
  };

  bool has(Kind kind) const {
    return std::any_of(set_.files.begin(), set_.files.end(), [&](const auto& file) { return file.first == kind; });
  }

  Status read(Kind kind, const std::string& path) {
    TACHO_ASSIGN(CsvRows rows, CsvRows::open(path));
    TACHO_TRY(require(rows, kind));
    TACHO_TRY(rows_of(rows, kind));
    return rows.finish(writer_, table_of(kind));
  }
  Status rows_of(CsvRows& rows, Kind kind) {
    switch (kind) {
      case Kind::kAgents:
        return agents(rows);
      case Kind::kOwners:
        return owners(rows);
      case Kind::kCalls:
        return calls(rows);
      case Kind::kKernels:
        return kernels(rows);
      case Kind::kCopies:
        return copies(rows);
      case Kind::kFills:
        return fills(rows);
      case Kind::kAllocations:
        return allocations(rows, false);
      case Kind::kScratch:
        return allocations(rows, true);
      case Kind::kCounters:
        return counters(rows);
      case Kind::kWork:
        return work(rows);
      case Kind::kRanges:
        return ranges(rows);
      case Kind::kNone:
        break;
    }
    return {};
  }

  // Who and where

  int64_t process(int64_t pid) {
    if (pid == kUnknown || pid == 0) pid = pid_;
    const auto [found, fresh] = processes_.try_emplace(pid, 0);
    if (fresh)
      found->second = writer_.dimension(
          row::Process{.pid = pid, .host = set_.host.empty() ? 0 : writer_.string(set_.host), .run = run_});
    if (pid_ == 0) pid_ = pid;  // files without a number in their names belong to the process that another file names
    return found->second;
  }
  int64_t thread(int64_t owner, int64_t tid) {
    const auto [found, fresh] = threads_.try_emplace({owner, tid}, 0);
    if (fresh) found.value() = writer_.dimension(row::Thread{.process = owner, .tid = tid});
    return found->second;
  }
  int64_t thread_track(int64_t owner, int64_t tid) {
    const auto [found, fresh] = tracks_.try_emplace({owner, tid}, 0);
    if (fresh)
      found.value() = writer_.dimension(row::Track{.kind = event::TrackKind::kThread,
                                                   .process = owner,
                                                   .thread = thread(owner, tid),
                                                   .native = tid,
                                                   .category = writer_.string("thread")});
    return found->second;
  }
  // rocprofv3 gives a stream if its runtime reported one (else 0), and the queue that executed it.
  int64_t queue_track(int64_t owner, int64_t device, int64_t queue, int64_t stream) {
    const bool streamed = stream != kUnknown && stream != 0;
    if (queue == kUnknown) queue = 0;
    const auto [found, fresh] = queue_tracks_.try_emplace({owner, device, streamed ? stream : kUnknown, queue}, 0);
    if (fresh)
      found.value() = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                                   .process = owner,
                                                   .device = device,
                                                   .native = streamed ? stream : queue,
                                                   .context = streamed ? queue : 0,
                                                   .category = writer_.string(streamed ? "stream" : "queue")});
    return found->second;
  }

  // "Agent 4" (the logical number, or the absolute one with --agent-index absolute), "GPU 0", or a bare number.
  int64_t device(std::string_view label) {
    if (label.empty() || label == "nan") return 0;
    const auto known = devices_.find(std::string(label));
    if (known != devices_.end()) return known->second;
    int64_t number = 0, row = 0;
    const size_t space = label.rfind(' ');
    const std::string_view type = space == std::string_view::npos ? std::string_view() : label.substr(0, space);
    const bool numbered = whole(space == std::string_view::npos ? label : label.substr(space + 1), number);
    bool host = false;
    const auto look = [&](Numbering numbering) {
      const auto found = agents_.find({numbering, number});
      host |= hosts_.contains({numbering, number});
      if (row != 0 || found == agents_.end()) return;
      row = found->second >= 0 ? found->second : device_told(told_agents_[static_cast<size_t>(-found->second - 1)]);
    };
    if (numbered && (type == "GPU" || type == "CPU")) {
      look(type == "GPU" ? Numbering::kGpu : Numbering::kCpu);
    } else if (numbered) {
      look(Numbering::kLogical);
      look(Numbering::kNode);
    }
    if (row == 0 && !host) {
      const bool cpu = type == "CPU";
      row = writer_.dimension(row::Device{.kind = cpu ? event::DeviceKind::kCpu : event::DeviceKind::kGpu,
                                          .index = numbered ? number : 0,
                                          .name = writer_.string(label)});
    }
    devices_.emplace(std::string(label), row);
    return row;
  }

  // What tacho tells about the process and its agents.
  Status owners(CsvRows& rows) {
    const int kind = rows.column("Kind"), id = rows.column("Id"), facts = rows.column("Facts");
    for (;;) {
      TACHO_ASSIGN(const bool more, rows.next());
      if (!more) return {};
      const int64_t number = rows.number(id, 0);
      if (rows.text(kind) == "Agent") {
        if (agent_origins_.size() < 65536) agent_origins_.try_emplace(number, rows.text(facts));
      } else if (rows.text(kind) == "Process") {
        run_ = told_.processes++;  // keeps processes of one pid apart until it is known whose they are
        const int64_t row = process(number);
        imported::set_process_origin(writer_, row, rows.text(facts));
        std::string host;
        json::text_member(rows.text(facts), "host", host);
        machine_ = fmt::format("{} {}", json::number_member(rows.text(facts), "run"), host);
      }
    }
  }

  int64_t device_told(const ToldDevice& device) {
    const auto [known, fresh] = told_.devices.try_emplace({machine_, device.origin}, 0);
    if (!fresh) return known->second;
    row::Device own = device.row;
    own.process = process(kUnknown);
    known->second = writer_.dimension(own);
    imported::set_device_origin(writer_, known->second, device.origin);
    told_.unused.erase(device.origin);
    told_.used.insert(device.origin);
    return known->second;
  }

  Status agents(CsvRows& rows) {
    const int node = rows.column("Node_Id");
    const int logical = rows.column("Logical_Node_Id"), type = rows.column("Agent_Type"), name = rows.column("Name"),
              vendor = rows.column("Vendor_Name"), product = rows.column("Product_Name"),
              model = rows.column("Model_Name");
    int64_t gpus = 0, cpus = 0;
    for (;;) {
      TACHO_ASSIGN(const bool more, rows.next());
      if (!more) return {};
      if (gpus + cpus >= 65536) return fail("{}: more agents than a machine can have", rows.name());
      const int64_t at_node = rows.number(node, 0), at_logical = rows.number(logical, at_node);
      const bool is_gpu = rows.text(type) == "GPU";
      const int64_t of_type = is_gpu ? gpus++ : cpus++;
      const std::string_view shown = !rows.text(product).empty() ? rows.text(product)
                                     : !rows.text(model).empty() ? rows.text(model)
                                                                 : rows.text(name);
      const auto origin = agent_origins_.find(at_logical);
      const bool told = origin != agent_origins_.end();
      const Numbering of_kind = is_gpu ? Numbering::kGpu : Numbering::kCpu;
      if (!told && !is_gpu && !machine_.empty()) {  // the host that tacho adds to the devices
        hosts_.insert({{of_kind, of_type}, {Numbering::kLogical, at_logical}, {Numbering::kNode, at_node}});
        continue;
      }
      // A file of tacho's names the product where it knows no architecture.
      const bool architecture = is_gpu && !(told && rows.text(name) == shown);
      const row::Device described{.kind = is_gpu ? event::DeviceKind::kGpu : event::DeviceKind::kCpu,
                                  .index = of_type,
                                  .name = writer_.string(shown),
                                  .vendor = writer_.string(rows.text(vendor)),
                                  .architecture = architecture ? writer_.string(rows.text(name)) : 0};
      if (told) {
        const int64_t later = -static_cast<int64_t>(told_agents_.size()) - 1;
        told_agents_.push_back({described, origin->second});
        told_.unused.try_emplace(origin->second, described);
        agents_.try_emplace({of_kind, of_type}, later);
        agents_.try_emplace({Numbering::kLogical, at_logical}, later);
        agents_.try_emplace({Numbering::kNode, at_node}, later);
        continue;
      }
      const int64_t agent = writer_.dimension(described);
      writer_.property(Table::kDevice, agent, "node_id", std::to_string(at_node));
      writer_.property(Table::kDevice, agent, "logical_node_id", std::to_string(at_logical));
      writer_.property(Table::kDevice, agent, "logical_node_type_id", std::to_string(of_type));
      // The first of a number has it.
      agents_.try_emplace({of_kind, of_type}, agent);
      agents_.try_emplace({Numbering::kLogical, at_logical}, agent);
      agents_.try_emplace({Numbering::kNode, at_node}, agent);
    }
  }

  // What happened

  static Times times_of(const CsvRows& rows) { return {rows.column("Start_Timestamp"), rows.column("End_Timestamp")}; }
  // False, after counting the row as lost, if its start is impossible. An empty end means it never ended.
  bool span(CsvRows& rows, const Times& times, Table table, int64_t& start, int64_t& duration) {
    bool started, ended;
    start = rows.time(times.start, started);
    const int64_t end = rows.time(times.end, ended);
    const imported::SpanRead read = imported::span_of(start, end);
    if (read.verdict == imported::SpanRead::Verdict::kBad || (ended && end == kUnknown) ||
        rows.rounded_away(times.start, times.end)) {
      rows.refuse_time(start == kUnknown || !event::is_time(start) ? times.start : times.end);
      return false;
    }
    duration = read.duration;
    if (read.verdict == imported::SpanRead::Verdict::kDisordered)
      writer_.lose(0, table, event::LossReason::kClockOrder, 1);
    return true;
  }
  // Device work that was not measured waits for the other times.
  template <typename Row>
  void add_work(const Row& row, int64_t owner, int64_t device, bool to_host = false) {
    if (imported::UnmeasuredRows::looks_so(row.start, row.duration)) return unmeasured_.take(row);
    unmeasured_.saw(row.start, row.duration);
    work_times_.work({.process = owner, .device = device, .to_host = to_host}, row);
  }
  template <typename Each>
  Status each(CsvRows& rows, Each row) {
    for (;;) {
      TACHO_ASSIGN(const bool more, rows.next());
      if (!more) return {};
      row();
    }
  }
  static int64_t correlation_of(const CsvRows& rows, int column) { return rows.number(column, 0); }

  Status calls(CsvRows& rows) {
    const int domain = rows.column("Domain");
    const int function = rows.column("Function");
    const Times times = times_of(rows);
    const int pid = rows.column("Process_Id"), tid = rows.column("Thread_Id"),
              correlation = rows.column("Correlation_Id");
    return each(rows, [&] {
      int64_t start, duration;
      const bool marker = rows.text(domain).starts_with("MARKER");
      if (!span(rows, times, marker ? Table::kMarker : Table::kApi, start, duration)) return;
      const int64_t owner = process(rows.number(pid)), track = thread_track(owner, rows.number(tid, pid_));
      const int64_t name = writer_.string(rows.text(function));
      if (marker) {
        const auto kind = duration == 0 && rows.text(domain).find("RANGE") == std::string_view::npos
                              ? event::MarkerKind::kMark
                              : event::MarkerKind::kPushPop;
        const int64_t label =
            writer_.dimension(row::Label{.name = name, .kind = kind, .domain = writer_.string("roctx")});
        writer_.add(row::Marker{.track = track, .start = start, .duration = duration, .dim = label});
        return;
      }
      const auto [known, fresh] = domains_.try_emplace(std::string(rows.text(domain)), Domain::kUnknown);
      if (fresh) known->second = domain_named(rows.text(domain));
      const int64_t called = writer_.dimension(row::Function{.name = name, .domain = known->second});
      unmeasured_.saw(start, duration);
      const int64_t cause = correlation_of(rows, correlation);
      if (cause != 0) call_ends_.add(cause, start + std::max<int64_t>(duration, 0));
      work_times_.call({.process = owner,
                        .correlation = cause,
                        .start = start,
                        .end = duration == kUnknown ? kUnknown : start + duration,
                        .role = vendor::call_role(rows.text(function))});
      writer_.add(row::Api{.track = track, .start = start, .duration = duration, .dim = called, .correlation = cause});
    });
  }

  // Grid and group as far as the file gives them; counter_collection.csv has only their products.
  struct Shape {
    int kernel, lds, scratch, vgpr, agpr, sgpr, group[3], grid[3];
  };
  static Shape shape_of(const CsvRows& rows) {
    Shape shape = {rows.column("Kernel_Name"),
                   rows.column("LDS_Block_Size"),
                   rows.column("Scratch_Size"),
                   rows.column("VGPR_Count"),
                   rows.column("Accum_VGPR_Count"),
                   rows.column("SGPR_Count"),
                   {rows.column("Workgroup_Size_X"), rows.column("Workgroup_Size_Y"), rows.column("Workgroup_Size_Z")},
                   {rows.column("Grid_Size_X"), rows.column("Grid_Size_Y"), rows.column("Grid_Size_Z")}};
    if (shape.group[0] < 0) shape.group[0] = rows.column("Workgroup_Size");
    if (shape.grid[0] < 0) shape.grid[0] = rows.column("Grid_Size");
    return shape;
  }
  int64_t kernel_row(const CsvRows& rows, const Shape& shape) {
    const auto cell = [&](int at, int64_t missing) { return rows.number(at, missing); };
    const auto side = [&](const int(&at)[3], int i) {
      return cell(at[i], i > 0 && at[0] >= 0 && rows.number(at[0]) != kUnknown ? 1 : kUnknown);
    };
    return writer_.dimension(row::Kernel{.name = writer_.string(imported::kernel_of_symbol(rows.text(shape.kernel))),
                                         .kind = event::DispatchKind::kKernel,
                                         .grid_x = side(shape.grid, 0),
                                         .grid_y = side(shape.grid, 1),
                                         .grid_z = side(shape.grid, 2),
                                         .group_x = side(shape.group, 0),
                                         .group_y = side(shape.group, 1),
                                         .group_z = side(shape.group, 2),
                                         .registers = cell(shape.vgpr, kUnknown),
                                         .accum_registers = cell(shape.agpr, kUnknown),
                                         .scalar_registers = cell(shape.sgpr, kUnknown),
                                         .shared_static = cell(shape.lds, kUnknown),
                                         .private_bytes = cell(shape.scratch, kUnknown)});
  }

  Status kernels(CsvRows& rows) {
    const Times times = times_of(rows);
    const Shape shape = shape_of(rows);
    const int agent = rows.column("Agent_Id"), queue = rows.column("Queue_Id"), stream = rows.column("Stream_Id"),
              id = rows.column("Dispatch_Id"), correlation = rows.column("Correlation_Id"),
              pid = rows.column("Process_Id"), gpu = rows.column("Gpu_Id");
    TACHO_TRY(each(rows, [&] {
      int64_t start, duration;
      if (!span(rows, times, Table::kDispatch, start, duration)) return;
      const int64_t on =
          agent < 0 && gpu >= 0 ? device(fmt::format("Agent {}", rows.text(gpu))) : device(rows.text(agent));
      const int64_t owner = process(rows.number(pid));
      const int64_t track = queue_track(owner, on, rows.number(queue), rows.number(stream));
      const int64_t number = rows.number(id), ordinal = number == kUnknown ? kUnknown : number - 1;
      add_work(row::Dispatch{.track = track,
                             .start = start,
                             .duration = duration,
                             .dim = kernel_row(rows, shape),
                             .correlation = correlation_of(rows, correlation),
                             .ordinal = ordinal},
               owner, on);
      if (ordinal != kUnknown) places_.add(ordinal, {track, start, owner, on});
    }));
    return {};
  }

  Status copies(CsvRows& rows) {
    const int direction = rows.column("Direction");
    const Times times = times_of(rows);
    const int stream = rows.column("Stream_Id"), source = rows.column("Source_Agent_Id"),
              target = rows.column("Destination_Agent_Id"), correlation = rows.column("Correlation_Id"),
              bytes = rows.column("Size_Bytes");
    return each(rows, [&] {
      int64_t start, duration;
      if (!span(rows, times, Table::kCopy, start, duration)) return;
      using event::CopyDirection;
      const std::string_view name = rows.text(direction);
      const CopyDirection way = imported::copy_direction(name);
      const bool from_host = way == CopyDirection::kHostToDevice || way == CopyDirection::kHostToHost,
                 to_host = way == CopyDirection::kDeviceToHost || way == CopyDirection::kHostToHost;
      const int64_t from = device(rows.text(source)), to = device(rows.text(target));
      const int64_t shape = writer_.dimension(
          row::CopyShape{.direction = way, .source_device = from_host ? 0 : from, .target_device = to_host ? 0 : to});
      // A copy is shown on the line of the GPU that takes part.
      const int64_t owner = process(kUnknown), on = way == CopyDirection::kDeviceToHost ? from : to;
      const int64_t track = queue_track(owner, on, kUnknown, rows.number(stream));
      add_work(row::Copy{.track = track,
                         .start = start,
                         .duration = duration,
                         .dim = shape,
                         .correlation = correlation_of(rows, correlation),
                         .bytes = rows.number(bytes)},
               owner, on, way == CopyDirection::kDeviceToHost);
    });
  }

  // rocprof v2: "KernelExecution", "CopyHostToDevice", "FillBuffer" and so on, without a GPU or a queue.
  Status work(CsvRows& rows) {
    const int operation = rows.column("Operation");
    const Times times = times_of(rows);
    const int name = rows.column("Kernel_Name"), correlation = rows.column("Correlation_Id");
    const bool has_kernels = has(Kind::kKernels);
    int64_t barriers = 0, unknown = 0;
    std::string first_unknown;
    TACHO_TRY(each(rows, [&] {
      const std::string_view what = rows.text(operation);
      const auto says = [&](std::string_view part) { return what.find(part) != std::string_view::npos; };
      const bool copy = says("Copy") || says("copy") || says("Memcpy"), fill = says("Fill");
      const bool kernel = !copy && !fill && !rows.text(name).empty();
      if (kernel && has_kernels) return;  // results_*.csv says more
      if (!copy && !fill && !kernel) {
        if (says("Marker") || says("Barrier"))
          ++barriers;
        else if (unknown++ == 0)
          first_unknown = valid_utf8(what.substr(0, 80));
        return;
      }
      int64_t start, duration;
      if (!span(rows, times, copy ? Table::kCopy : fill ? Table::kFill : Table::kDispatch, start, duration)) return;
      const int64_t on = device("GPU 0"), cause = correlation_of(rows, correlation), owner = process(kUnknown);
      const int64_t track = queue_track(owner, on, kUnknown, kUnknown);
      if (kernel) {
        const int64_t dim = writer_.dimension(row::Kernel{
            .name = writer_.string(imported::kernel_of_symbol(rows.text(name))), .kind = event::DispatchKind::kKernel});
        add_work(row::Dispatch{.track = track,
                               .start = start,
                               .duration = duration,
                               .dim = dim,
                               .correlation = cause,
                               .ordinal = kUnknown},
                 owner, on);
      } else if (copy) {
        const event::CopyDirection way = imported::copy_direction(what);
        const int64_t dim = writer_.dimension(row::CopyShape{.direction = way});
        add_work(row::Copy{.track = track, .start = start, .duration = duration, .dim = dim, .correlation = cause},
                 owner, on, way == event::CopyDirection::kDeviceToHost);
      } else {
        const int64_t dim = writer_.dimension(row::FillShape{.memory = event::MemoryKind::kDevice, .device = on});
        add_work(row::Fill{.track = track, .start = start, .duration = duration, .dim = dim, .correlation = cause},
                 owner, on);
      }
    }));
    if (barriers != 0)
      writer_.note(0, event::NoteSeverity::kInfo,
                   fmt::format("{}: {} barrier{}, which {} no work, {} left out", rows.name(), barriers,
                               barriers == 1 ? "" : "s", barriers == 1 ? "is" : "are", barriers == 1 ? "was" : "were"));
    if (unknown == 0) return {};
    writer_.lose(0, Table::kEnd, event::LossReason::kUnknownRecord, unknown);
    writer_.note(0, event::NoteSeverity::kInfo,
                 fmt::format("{}: {} operation{} that {} no copy, no fill and no named kernel {} not read; the first "
                             "is \"{}\"",
                             rows.name(), unknown, unknown == 1 ? "" : "s", unknown == 1 ? "is" : "are",
                             unknown == 1 ? "was" : "were", first_unknown));
    return {};
  }

  struct Said {
    int64_t time, id, name;  // name 0 = no message
    int64_t sort_key() const { return time; }
    bool operator<(const Said& other) const { return time < other.time; }
  };
  // rocprof v2's ROCTx file names neither the thread nor the function. A row with an id and a message is a
  // roctxRangeStart, one with an id alone its end. With id 0, no message is a roctxRangePop, and a message a
  // roctxRangePush or a roctxMark: the ranges can be put together where every message has its pop, and else the
  // messages are shown as marks. The order of rows is not that of time.
  Status ranges(CsvRows& rows) {
    const int id = rows.column("ROCTX_ID");
    const int message = rows.column("Message");
    const int time = rows.column("Timestamp");
    SortedFile<Said> said_rows;
    TACHO_TRY(each(rows, [&] {
      const Said said{rows.number(time), rows.number(id),
                      rows.text(message).empty() ? 0 : writer_.string(rows.text(message))};
      if (said.time == kUnknown || !event::is_time(said.time) || said.id == kUnknown)
        writer_.lose(0, Table::kMarker, event::LossReason::kBadInput, 1);
      else
        said_rows.add(said);
    }));
    TACHO_TRY(said_rows.finish_indexed());
    int64_t depth = 0;
    uint64_t messages = 0, pops = 0;
    bool paired = true;
    for (const Said& said : said_rows.all()) {
      if (said.id != 0) continue;
      ++(said.name != 0 ? messages : pops);
      depth += said.name != 0 ? 1 : -1;
      paired = paired && depth >= 0;
    }
    paired = paired && depth == 0;
    using event::MarkerKind;
    const int64_t owner = process(kUnknown), own = thread_track(owner, pid_);
    int64_t beside = 0;  // the line of ranges that are started and stopped
    const auto label = [&](const Said& said, MarkerKind kind) {
      return writer_.dimension(row::Label{.name = said.name, .kind = kind, .domain = writer_.string("roctx")});
    };
    imported::RangePairs pairs;  // by id; pushes have none
    for (const Said& said : said_rows.all()) {
      if (said.id == 0 && !paired) {
        if (said.name != 0)
          writer_.add(
              row::Marker{.track = own, .start = said.time, .duration = 0, .dim = label(said, MarkerKind::kMark)});
      } else if (said.name == 0) {
        pairs.end(said.id, said.time);
      } else if (said.id == 0) {
        pairs.begin(0, said.time, own, label(said, MarkerKind::kPushPop));
      } else {
        if (beside == 0)
          beside = writer_.dimension(row::Track{.kind = event::TrackKind::kRange,
                                                .process = owner,
                                                .thread = thread(owner, pid_),
                                                .name = writer_.string("ranges"),
                                                .category = writer_.string("range")});
        pairs.begin(said.id, said.time, beside, label(said, MarkerKind::kStartStop));
      }
    }
    imported::BadRows bad;
    TACHO_TRY(pairs.finish(writer_, bad));
    bad.say(writer_);
    if (messages + pops == 0) return {};
    writer_.add(row::Note{
        .severity = paired || pops == 0 ? event::NoteSeverity::kInfo : event::NoteSeverity::kWarning,
        .text = writer_.string(
            paired      ? fmt::format("{}: rocprof v2 does not say which thread pushed and popped a ROCTx range: "
                                           "they are put together as those of one thread",
                                      rows.name())
            : pops == 0 ? fmt::format("{}: rocprof v2 does not tell ROCTx marks from ranges; none of these {} "
                                      "was popped, so they are shown as marks",
                                      rows.name(), messages)
                        : fmt::format("{}: rocprof v2 does not tell ROCTx marks from ranges, and there are {} "
                                      "messages and {} pops: all messages are shown as marks",
                                      rows.name(), messages, pops))});
    return {};
  }

  Status fills(CsvRows& rows) {
    const Times times = times_of(rows);
    const int agent = rows.column("Agent_Id"), stream = rows.column("Stream_Id"),
              correlation = rows.column("Correlation_Id"), bytes = rows.column("Size_Bytes");
    return each(rows, [&] {
      int64_t start, duration;
      if (!span(rows, times, Table::kFill, start, duration)) return;
      const int64_t where = device(rows.text(agent));
      const int64_t shape = writer_.dimension(row::FillShape{.memory = event::MemoryKind::kDevice, .device = where});
      const int64_t owner = process(kUnknown);
      add_work(row::Fill{.track = queue_track(owner, where, kUnknown, rows.number(stream)),
                         .start = start,
                         .duration = duration,
                         .dim = shape,
                         .correlation = correlation_of(rows, correlation),
                         .bytes = rows.number(bytes)},
               owner, where);
    });
  }

  Status allocations(CsvRows& rows, bool scratch) {
    const int operation = rows.column("Operation");
    const Times times = times_of(rows);
    const int agent = rows.column("Agent_Id"), bytes = rows.column("Allocation_Size"), address = rows.column("Address"),
              correlation = rows.column("Correlation_Id"), tid = rows.column("Thread_Id");
    return each(rows, [&] {
      int64_t start, duration;
      if (!span(rows, times, Table::kAllocation, start, duration)) return;
      const std::string_view name = rows.text(operation);
      const bool freed = name.ends_with("FREE") || name.find("RECLAIM") != std::string_view::npos;
      const int64_t shape = writer_.dimension(row::AllocationShape{
          .operation = freed ? event::AllocationOperation::kFree : event::AllocationOperation::kAllocate,
          .memory = event::MemoryKind::kDevice,
          .device = device(rows.text(agent)),
          .name = scratch ? writer_.string("scratch") : 0});
      const int64_t owner = process(kUnknown);
      writer_.add(row::Allocation{.track = thread_track(owner, rows.number(tid, pid_)),
                                  .start = start,
                                  .duration = duration,
                                  .dim = shape,
                                  .correlation = correlation_of(rows, correlation),
                                  .bytes = rows.number(bytes),
                                  .address = rows.number(address, 0)});
    });
  }

  Status counters(CsvRows& rows) {
    const int name = rows.column("Counter_Name");
    const int value = rows.column("Counter_Value");
    const int id = rows.column("Dispatch_Id");
    const bool timed = rows.column("Start_Timestamp") >= 0 && rows.column("End_Timestamp") >= 0;
    const Times times{rows.column("Start_Timestamp"), rows.column("End_Timestamp")};
    const Shape shape = shape_of(rows);
    const int agent = rows.column("Agent_Id"), queue = rows.column("Queue_Id"), pid = rows.column("Process_Id"),
              correlation = rows.column("Correlation_Id");
    // kernel_trace.csv describes the dispatches. Without it, their first row here does.
    TACHO_TRY(places_.finish());
    int64_t last = kUnknown, track = 0, start = 0, owner = 0, on = 0;
    std::string counter;
    return each(rows, [&] {
      const int64_t number = rows.number(id);
      if (number == kUnknown) {
        writer_.lose(0, Table::kCounterValue, event::LossReason::kBadInput, 1);
        return;
      }
      if (number != last) {
        if (const auto* const place = places_.find(number - 1)) {
          track = place->value.track;
          start = place->value.start;
          owner = place->value.process;
          on = place->value.device;
        } else {
          int64_t duration = kUnknown;
          if (!timed || !span(rows, times, Table::kDispatch, start, duration)) {
            if (!timed) writer_.lose(0, Table::kCounterValue, event::LossReason::kBadInput, 1);
            return;
          }
          owner = process(rows.number(pid));
          on = device(rows.text(agent));
          track = queue_track(owner, on, rows.number(queue), kUnknown);
          if (seen_.try_emplace(number, true).second)
            add_work(row::Dispatch{.track = track,
                                   .start = start,
                                   .duration = duration,
                                   .dim = kernel_row(rows, shape),
                                   .correlation = correlation_of(rows, correlation),
                                   .ordinal = number - 1},
                     owner, on);
        }
        last = number;
      }
      const CellNumber cell = parse_number(rows.text(value));
      if (!cell.ok) {
        writer_.lose(0, Table::kCounterValue, event::LossReason::kBadInput, 1);
        return;
      }
      const int64_t info = writer_.dimension(row::Counter{.name = writer_.string(rows.text(name))});
      work_times_.counter_value({.process = owner, .device = on},
                                {.track = track,
                                 .start = start,
                                 .ordinal = number - 1,
                                 .dim = info,
                                 .value = static_cast<int64_t>(__builtin_bit_cast(uint64_t, cell.value))});
    });
  }

  enum class Numbering : uint8_t { kNode, kLogical, kGpu, kCpu };  // what a label counts
  struct Place {
    int64_t track, start, process, device;
  };
  trace::TraceWriter& writer_;
  const Set& set_;
  int64_t pid_ = 0;
  std::map<std::pair<Numbering, int64_t>, int64_t> agents_;  // rows; below 0, places in told_agents_
  std::vector<ToldDevice> told_agents_;
  std::set<std::pair<Numbering, int64_t>> hosts_;
  ToldOwners& told_;
  std::map<int64_t, std::string> agent_origins_;  // by Logical_Node_Id
  std::string machine_;
  int64_t run_ = 0;
  std::map<std::string, int64_t> devices_;
  std::map<int64_t, int64_t> processes_;
  std::map<std::string, Domain> domains_;
  NumberMap<2> threads_, tracks_;
  NumberMap<4> queue_tracks_;
  KeyIndex<Place> places_;
  KeyIndex<int64_t> call_ends_;  // by correlation
  imported::UnmeasuredRows unmeasured_;
  trace::WorkTimes work_times_{writer_, trace::WorkTimes::Calls::kApart};
  tsl::robin_map<int64_t, bool> seen_;  // dispatches known only from their counters
};

// Files of a folder and its direct subfolders, by host and prefix.
std::map<std::pair<std::string, std::string>, Set> sets_in(const std::string& folder) {
  std::map<std::pair<std::string, std::string>, Set> sets;
  size_t files = 0;
  const auto look = [&](const fs::path& where, const std::string& host) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(where, error)) {
      if (++files > kMostFiles) return;
      std::error_code ignored;
      std::string_view prefix;
      const std::string name = entry.path().filename().string();
      const Kind kind = kind_of(name, prefix);
      if (kind == Kind::kNone || !entry.is_regular_file(ignored)) continue;
      Set& set = sets[{host, std::string(prefix)}];
      set.host = host;
      set.files.emplace_back(kind, entry.path().string());
    }
  };
  look(folder, "");
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (++files > kMostFiles) break;
    if (entry.is_directory(ignored)) look(entry.path(), entry.path().filename().string());
  }
  for (auto& [key, set] : sets) std::sort(set.files.begin(), set.files.end());
  // A set with only agent_info.csv has no events; profile folders have rocprof v2's results_*.csv, too, with counters.
  std::erase_if(sets, [](const auto& set) {
    const bool older = set.first.second.ends_with(".csv");
    return std::all_of(set.second.files.begin(), set.second.files.end(), [&](const auto& file) {
      if (!older || file.first != Kind::kKernels) return file.first == Kind::kAgents || file.first == Kind::kOwners;
      const auto rows = CsvRows::open(file.second);
      return !rows || kind_of_header(rows->columns()) != Kind::kKernels || workload::holds_counters(file.second);
    });
  });
  return sets;
}

}  // namespace

bool accepts(std::string_view path, std::string_view head, bool folder) {
  if (folder) return !sets_in(std::string(path)).empty();
  const auto next_line = [&] {
    head.remove_prefix(std::min(head.size(), head.find_first_not_of("\r\n")));
    const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
    head.remove_prefix(line.size());
    return line;
  };
  const auto is_header = [&](std::string_view line, std::string text) {
    if (line.find(csv_separator(text)) == std::string_view::npos) return false;
    CsvReader reader = CsvReader::from_text(std::move(text), std::string(path));
    std::vector<std::string_view> fields;
    const auto row = reader.next(fields);
    if (!row || !*row) return false;
    std::vector<std::string> columns;
    for (const std::string_view field : fields) columns.emplace_back(column_name(field));
    return kind_of_header(columns) != Kind::kNone;
  };
  for (int64_t at = 0; at <= kMostLinesBefore && !head.empty(); ++at) {
    std::string_view line = next_line();
    std::string text;
    if (line.starts_with("sep=")) text.append(line).append("\n").append(line = next_line());
    if (is_header(line, text.empty() ? std::string(line) : std::move(text))) return true;
  }
  return false;
}

std::optional<std::string_view> run_of_part(std::string_view name) {
  std::string_view prefix;
  const Kind kind = kind_of(name, prefix);
  if (kind == Kind::kNone || kind == Kind::kAgents || kind == Kind::kOwners || kind == Kind::kCounters)
    return std::nullopt;
  return prefix;
}

Status read_into(const std::string& path, trace::TraceWriter& writer) {
  std::error_code error;
  ToldOwners told;
  if (fs::is_directory(path, error)) {
    const auto sets = sets_in(path);
    if (sets.empty()) return fail("{}: no *_trace.csv or *counter_collection.csv of rocprofv3 in it", path);
    for (const auto& [key, set] : sets) TACHO_TRY(Reader(writer, set, key.second, told).run());
  } else {
    TACHO_ASSIGN(const CsvRows rows, CsvRows::open(path));
    const Kind kind = kind_of_header(rows.columns());
    if (kind == Kind::kNone) return fail("{}: its header is not that of one of rocprofv3's traces", path);
    std::string_view prefix;
    const std::string name = fs::path(path).filename().string();
    kind_of(name, prefix);
    Set set;
    set.files = {{kind, path}};
    // Agents' numbers mean something only together with the lists beside the file.
    for (const auto& [of, list] : {std::pair(Kind::kAgents, "agent_info.csv"), {Kind::kOwners, "process_info.csv"}}) {
      const fs::path beside = fs::path(path).parent_path() / (std::string(prefix) + list);
      if (fs::is_regular_file(beside, error)) set.files.emplace_back(of, beside.string());
    }
    TACHO_TRY(Reader(writer, set, prefix, told).run());
  }
  told.finish(writer);
  writer.property(Table::kEnd, 0, "source", "rocprofv3 csv");
  writer.property(Table::kEnd, 0, "source_file", path);
  writer.property(Table::kEnd, 0, "clock", "CLOCK_BOOTTIME");
  return {};
}

Result<std::shared_ptr<const trace::Trace>> read(const std::string& path) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(read_into(path, *writer));
  return writer->finish_and_open(path);
}

}  // namespace tacho::format::rocprofv3_csv
