// Reads rocpd databases: each recording (table suffix) separately, each big table once in rowid order. Finds an event,
// to which nearly every row refers, beside the row that it belongs to.
#include <tsl/robin_map.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/number_map.h"
#include "event/times.h"
#include "format/json/tokens.h"
#include "format/rocpd/rocpd.h"

namespace tacho::format::rocpd {
namespace {

using event::Domain;
using event::kUnknown;
using event::Table;
namespace row = event::row;
using sqlite::Database;
using sqlite::NamedScan;

constexpr std::string_view kMetadata = "rocpd_metadata";

bool sane(int64_t time) {
  return event::is_time(time);
}

// Sizes are NOT NULL: writers that do not know one, tacho among them, say 0.
int64_t known_size(int64_t size) {
  return size <= 0 ? kUnknown : size;
}

// The text of a member of a flat JSON object; false if the object lacks it.
bool member(std::string_view object, std::string_view key, std::string& value) {
  std::string text(object);
  text.append(64, '\0');
  json::JsonTokens json(text.data(), text.data() + object.size());
  using json::JsonOutcome;
  if (json.expect('{') != JsonOutcome::kOk) return false;
  while (json.peek() == '"') {
    std::string_view name, found;
    bool escaped;
    std::string buffer;
    if (json.raw_string(name, escaped) != JsonOutcome::kOk || json.expect(':') != JsonOutcome::kOk) return false;
    if (name == key && json.peek() == '"') {
      if (json.string(found, buffer) != JsonOutcome::kOk) return false;
      value = found;
      return true;
    }
    if (json.skip() != JsonOutcome::kOk) return false;
    if (json.peek() == ',') json.step();
  }
  return false;
}

Domain domain_of_category(std::string_view category, std::string_view function) {
  const auto has = [&](std::string_view part) { return category.find(part) != std::string_view::npos; };
  if (has("HIP_COMPILER")) return Domain::kHipCompiler;
  if (has("HIP")) return Domain::kHipRuntime;
  if (has("HSA")) return Domain::kHsa;
  if (has("RCCL")) return Domain::kRccl;
  if (has("OPENCL")) return Domain::kOpenCL;
  if (has("CUDA_DRIVER")) return Domain::kCudaDriver;
  if (has("CUDA")) return Domain::kCudaRuntime;
  if (has("OPERATOR")) return Domain::kOperator;
  if (has("PYTHON")) return Domain::kPython;
  if (has("MPI")) return Domain::kMpi;
  if (has("HOST")) return Domain::kHost;
  if (function.starts_with("hip")) return Domain::kHipRuntime;
  return Domain::kUnknown;
}

class Reader {
 public:
  Reader(const Database& database, trace::TraceWriter& writer, std::string suffix)
      : db_(database), writer_(writer), suffix_(std::move(suffix)) {}
  Status run();

 private:
  struct Event {
    int64_t category = 0, stack = 0;
    std::string_view extdata;
  };
  struct Process {
    int64_t row = 0;
  };
  const sqlite::StoredTable* table(std::string_view name) const { return db_.table(std::string(name) + suffix_); }
  Result<const sqlite::StoredTable*> required(std::string_view name) const {
    return db_.required(std::string(name) + suffix_);
  }
  /// Calls each(scan) for every row of a table, if the file has it.
  template <typename Each>
  Status rows(std::string_view name, std::initializer_list<std::string_view> columns, Each each) {
    const sqlite::StoredTable* const info = table(name);
    if (info == nullptr) return {};
    NamedScan scan(db_, *info, columns);
    while (scan.next())
      if (!each(scan)) break;
    return scan.status();
  }
  std::string_view text(int64_t id);
  int64_t text_row(int64_t id);
  const std::string& category(int64_t id);
  Event event(int64_t id);
  Status dimensions();
  Status regions();
  Status dispatches();
  Status copies();
  Status allocations();
  Status counters();
  int64_t process(int64_t id);
  int64_t thread_track(int64_t process_id, int64_t thread_id);
  int64_t queue_track(int64_t process_id, int64_t agent, int64_t queue, int64_t stream);
  int64_t label(int64_t text, event::MarkerKind kind, std::string_view category_text);
  void bad(Table of) { writer_.lose(0, of, event::LossReason::kBadInput, 1); }

  const Database& db_;
  trace::TraceWriter& writer_;
  std::string suffix_;
  std::unique_ptr<NamedScan> strings_, events_;
  tsl::robin_map<int64_t, int64_t> text_rows_, processes_, agents_, threads_;
  tsl::robin_map<int64_t, std::string> categories_, hosts_;
  tsl::robin_map<int64_t, std::array<int64_t, 7>> symbols_;  // name, lds, scratch, sgpr, vgpr, agpr, unused
  NumberMap<4> tracks_, queue_tracks_;
  struct Place {
    int64_t track, start, ordinal;
  };
  KeyIndex<Place> dispatch_of_event_;
  bool counters_ = false;
};

std::string_view Reader::text(int64_t id) {
  return strings_->seek(id) ? strings_->string(1) : std::string_view();
}

int64_t Reader::text_row(int64_t id) {
  const auto [found, fresh] = text_rows_.try_emplace(id, 0);
  if (fresh) found.value() = writer_.string(text(id));
  return found->second;
}

const std::string& Reader::category(int64_t id) {
  const auto found = categories_.find(id);
  if (found != categories_.end()) return found->second;
  return categories_.emplace(id, std::string(text(id))).first->second;
}

Reader::Event Reader::event(int64_t id) {
  if (!events_) return {};
  const bool here = events_->rows() > 0 && events_->rowid() == id;
  const bool next =
      !here && events_->rows() > 0 && events_->rowid() == id - 1 && events_->next() && events_->rowid() == id;
  if (!here && !next && !events_->seek(id)) return {};
  return {events_->number(1), events_->number(2), events_->string(3)};
}

int64_t Reader::process(int64_t id) {
  const auto found = processes_.find(id);
  if (found != processes_.end()) return found->second;
  const int64_t row = writer_.dimension(row::Process{.pid = id});
  processes_.emplace(id, row);
  return row;
}

int64_t Reader::thread_track(int64_t process_id, int64_t thread_id) {
  const auto [found, fresh] = tracks_.try_emplace({process_id, thread_id, 0, 0}, 0);
  if (fresh) {
    const int64_t owner = process(process_id);
    const auto known = threads_.find(thread_id);
    const int64_t thread =
        known != threads_.end() ? known->second : writer_.dimension(row::Thread{.process = owner, .tid = thread_id});
    found.value() = writer_.dimension(row::Track{.kind = event::TrackKind::kThread,
                                                 .process = owner,
                                                 .thread = thread,
                                                 .native = thread_id,
                                                 .category = writer_.string("thread")});
  }
  return found->second;
}

int64_t Reader::queue_track(int64_t process_id, int64_t agent, int64_t queue, int64_t stream) {
  const auto [found, fresh] = queue_tracks_.try_emplace({process_id, agent, queue, stream}, 0);
  if (fresh) {
    const auto device = agents_.find(agent);
    found.value() = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                                 .process = process(process_id),
                                                 .device = device != agents_.end() ? device->second : 0,
                                                 .native = stream != 0 ? stream : queue});
  }
  return found->second;
}

Status Reader::dimensions() {
  TACHO_ASSIGN(const sqlite::StoredTable* const strings, required("rocpd_string"));
  strings_ = std::make_unique<NamedScan>(db_, *strings, std::initializer_list<std::string_view>{"id", "string"});
  if (const sqlite::StoredTable* const events = table("rocpd_event"))
    events_ = std::make_unique<NamedScan>(
        db_, *events, std::initializer_list<std::string_view>{"id", "category_id", "stack_id", "extdata"});
  constexpr size_t kMost = 1 << 22;  // rows in a table of descriptions
  const auto full = [&](size_t size) { return size >= kMost; };
  TACHO_TRY(rows("rocpd_info_node", {"id", "hostname"}, [&](NamedScan& scan) {
    hosts_.emplace(scan.number(0), std::string(scan.string(1)));
    return !full(hosts_.size());
  }));
  TACHO_TRY(rows("rocpd_info_process", {"id", "nid", "ppid", "pid", "start", "command"}, [&](NamedScan& scan) {
    const auto host = hosts_.find(scan.number(1));
    const std::string_view command = scan.string(5);
    std::string_view name = command.substr(0, command.find(' '));
    if (const size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
    const int64_t start = scan.number(4, kUnknown);
    row::Process found{.pid = scan.number(3),
                       .parent_pid = scan.number(2, kUnknown),
                       .start = sane(start) ? start : kUnknown,
                       .name = writer_.string(name),
                       .command = writer_.string(command),
                       .host = host != hosts_.end() ? writer_.string(host->second) : 0};
    int64_t row = writer_.dimension(found);
    // Merged databases may have one process in each run, all with the same facts.
    while (std::any_of(processes_.begin(), processes_.end(), [&](const auto& known) { return known.second == row; }) &&
           found.run < 4096) {
      ++found.run;
      row = writer_.dimension(found);
    }
    processes_.emplace(scan.number(0), row);
    return !full(processes_.size());
  }));
  TACHO_TRY(rows("rocpd_info_thread", {"id", "pid", "tid", "name"}, [&](NamedScan& scan) {
    threads_.emplace(scan.number(0), writer_.dimension(row::Thread{.process = process(scan.number(1)),
                                                                   .tid = scan.number(2),
                                                                   .name = writer_.string(scan.string(3))}));
    return !full(threads_.size());
  }));
  TACHO_TRY(rows("rocpd_info_agent",
                 {"id", "type", "absolute_index", "logical_index", "type_index", "name", "model_name", "vendor_name",
                  "product_name"},
                 [&](NamedScan& scan) {
                   const bool gpu = scan.string(1) == "GPU";
                   const std::string_view product = scan.string(8).empty()
                                                        ? scan.string(6).empty() ? scan.string(5) : scan.string(6)
                                                        : scan.string(8);
                   const int64_t row =
                       writer_.dimension(row::Device{.kind = gpu ? event::DeviceKind::kGpu : event::DeviceKind::kCpu,
                                                     .index = scan.number(4),
                                                     .name = writer_.string(product),
                                                     .vendor = writer_.string(scan.string(7)),
                                                     .architecture = gpu ? writer_.string(scan.string(5)) : 0});
                   writer_.property(Table::kDevice, row, "node_id", std::to_string(scan.number(2)));
                   writer_.property(Table::kDevice, row, "logical_node_id", std::to_string(scan.number(3)));
                   writer_.property(Table::kDevice, row, "logical_node_type_id", std::to_string(scan.number(4)));
                   agents_.emplace(scan.number(0), row);
                   return !full(agents_.size());
                 }));
  return rows("rocpd_info_kernel_symbol",
              {"id", "kernel_name", "display_name", "group_segment_size", "private_segment_size", "sgpr_count",
               "arch_vgpr_count", "accum_vgpr_count"},
              [&](NamedScan& scan) {
                // Prefers the mangled name: it is shown demangled anyway.
                const std::string_view name = scan.string(1).empty() ? scan.string(2) : scan.string(1);
                symbols_.emplace(scan.number(0),
                                 std::array<int64_t, 7>{writer_.string(name), scan.number(3, kUnknown),
                                                        scan.number(4, kUnknown), scan.number(5, kUnknown),
                                                        scan.number(6, kUnknown), scan.number(7, kUnknown), 0});
                return !full(symbols_.size());
              });
}

int64_t Reader::label(int64_t text_of, event::MarkerKind kind, std::string_view) {
  return writer_.dimension(row::Label{.name = text_of, .kind = kind, .domain = writer_.string("roctx")});
}

Status Reader::regions() {
  NumberMap<2> functions;
  std::string message;
  int64_t disordered = 0;
  TACHO_TRY(rows("rocpd_region", {"id", "pid", "tid", "start", "end", "name_id", "event_id"}, [&](NamedScan& scan) {
    const int64_t start = scan.number(3, kUnknown), end = scan.number(4, kUnknown);
    if (!sane(start) || !sane(end)) {
      bad(Table::kApi);
      return true;
    }
    const int64_t duration = event::duration_between(start, end);
    disordered += duration == kUnknown;
    const Event about = event(scan.number(6));
    const int64_t track = thread_track(scan.number(1), scan.number(2));
    const int64_t name = scan.number(5);
    const std::string& kind = category(about.category);
    if (kind.starts_with("MARKER")) {
      // ROCTx: the event's data holds the text; ranges are roctxThreadRange or roctxProcessRange.
      const std::string_view call = text(name);
      const int64_t row = member(about.extdata, "message", message) ? writer_.string(message) : text_row(name);
      writer_.add(
          row::Marker{.track = track,
                      .start = start,
                      .duration = duration,
                      .dim = label(row,
                                   call.find("ProcessRange") != std::string_view::npos ? event::MarkerKind::kStartStop
                                                                                       : event::MarkerKind::kPushPop,
                                   kind)});
      return true;
    }
    const auto [found, fresh] = functions.try_emplace({name, about.category}, 0);
    if (fresh) {
      const std::string function(text(name));
      found.value() = writer_.dimension(
          row::Function{.name = writer_.string(function), .domain = domain_of_category(kind, function)});
    }
    writer_.add(row::Api{
        .track = track, .start = start, .duration = duration, .dim = found->second, .correlation = about.stack});
    return true;
  }));
  if (disordered > 0) writer_.lose(0, Table::kApi, event::LossReason::kClockOrder, disordered);
  // Marks, and calls that took no time.
  struct Line {
    int64_t process, thread, name;
  };
  tsl::robin_map<int64_t, Line> lines;
  TACHO_TRY(rows("rocpd_track", {"id", "pid", "tid", "name_id"}, [&](NamedScan& scan) {
    lines.emplace(scan.number(0), Line{scan.number(1), scan.number(2), scan.number(3)});
    return lines.size() < (1u << 22);
  }));
  return rows("rocpd_sample", {"track_id", "timestamp", "event_id"}, [&](NamedScan& scan) {
    const int64_t time = scan.number(1, kUnknown);
    const auto line = lines.find(scan.number(0));
    if (!sane(time) || line == lines.end()) {
      bad(Table::kMarker);
      return true;
    }
    const Event about = event(scan.number(2));
    const int64_t track = thread_track(line->second.process, line->second.thread);
    const int64_t row =
        member(about.extdata, "message", message) ? writer_.string(message) : text_row(line->second.name);
    writer_.add(
        row::Marker{.track = track, .start = time, .duration = 0, .dim = label(row, event::MarkerKind::kMark, {})});
    return true;
  });
}

Status Reader::dispatches() {
  counters_ = table("rocpd_pmc_event") != nullptr;
  NumberMap<9> kernels;
  int64_t disordered = 0;
  TACHO_TRY(rows(
      "rocpd_kernel_dispatch",
      {"pid", "agent_id", "kernel_id", "dispatch_id", "queue_id", "stream_id", "start", "end", "private_segment_size",
       "group_segment_size", "workgroup_size_x", "workgroup_size_y", "workgroup_size_z", "grid_size_x", "grid_size_y",
       "grid_size_z", "event_id"},
      [&](NamedScan& scan) {
        const int64_t start = scan.number(6, kUnknown), end = scan.number(7, kUnknown);
        if (!sane(start) || !sane(end)) {
          bad(Table::kDispatch);
          return true;
        }
        const int64_t duration = event::duration_between(start, end);
        disordered += duration == kUnknown;
        std::array<int64_t, 9> key;
        key[0] = scan.number(2);
        for (int i = 0; i < 8; ++i) key[static_cast<size_t>(1 + i)] = scan.number(8 + i, kUnknown);
        const auto [found, fresh] = kernels.try_emplace(key, 0);
        if (fresh) {
          const auto symbol = symbols_.find(key[0]);
          std::array<int64_t, 7> about = {
              writer_.string(fmt::format("kernel {}", key[0])), kUnknown, kUnknown, kUnknown, kUnknown, kUnknown, 0};
          if (symbol != symbols_.end()) about = symbol->second;
          // The dispatch's group segment is the total; the symbol gives the static part.
          const int64_t fixed = about[1], all = key[2],
                        dynamic = all == kUnknown     ? kUnknown
                                  : fixed == kUnknown ? all
                                  : all >= fixed      ? all - fixed
                                                      : 0;
          found.value() = writer_.dimension(row::Kernel{.name = about[0],
                                                        .kind = event::DispatchKind::kKernel,
                                                        .grid_x = key[6],
                                                        .grid_y = key[7],
                                                        .grid_z = key[8],
                                                        .group_x = key[3],
                                                        .group_y = key[4],
                                                        .group_z = key[5],
                                                        .registers = about[4],
                                                        .accum_registers = about[5],
                                                        .scalar_registers = about[3],
                                                        .shared_static = fixed,
                                                        .shared_dynamic = dynamic,
                                                        .private_bytes = key[1]});
        }
        const int64_t id = scan.number(16);
        const Event about = event(id);
        const int64_t track = queue_track(scan.number(0), scan.number(1), scan.number(4), scan.number(5)),
                      ordinal = scan.number(3) - 1;
        writer_.add(row::Dispatch{.track = track,
                                  .start = start,
                                  .duration = duration,
                                  .dim = found->second,
                                  .correlation = about.stack,
                                  .ordinal = ordinal});
        if (counters_) dispatch_of_event_.add(id, {track, start, ordinal});
        return true;
      }));
  if (disordered > 0) writer_.lose(0, Table::kDispatch, event::LossReason::kClockOrder, disordered);
  return dispatch_of_event_.finish();
}

Status Reader::copies() {
  NumberMap<4> shapes;
  return rows(
      "rocpd_memory_copy",
      {"pid", "start", "end", "name_id", "dst_agent_id", "src_agent_id", "size", "queue_id", "stream_id", "event_id"},
      [&](NamedScan& scan) {
        const int64_t start = scan.number(1, kUnknown), end = scan.number(2, kUnknown);
        if (!sane(start) || !sane(end)) {
          bad(Table::kCopy);
          return true;
        }
        if (end < start) writer_.lose(0, Table::kCopy, event::LossReason::kClockOrder, 1);
        const int64_t duration = event::duration_between(start, end);
        const int64_t target = scan.number(4), source = scan.number(5);
        const auto [found, fresh] = shapes.try_emplace({scan.number(3), target, source, 0}, 0);
        const std::string_view name = text(scan.number(3));
        const bool fill = name == "MEMORY_FILL";
        using event::CopyDirection;
        const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
        const CopyDirection direction = has("HOST_TO_DEVICE")     ? CopyDirection::kHostToDevice
                                        : has("DEVICE_TO_HOST")   ? CopyDirection::kDeviceToHost
                                        : has("DEVICE_TO_DEVICE") ? CopyDirection::kDeviceToDevice
                                        : has("HOST_TO_HOST")     ? CopyDirection::kHostToHost
                                        : has("PEER")             ? CopyDirection::kPeerToPeer
                                                                  : CopyDirection::kUnknown;
        const auto device = [&](int64_t agent) {
          const auto known = agents_.find(agent);
          return known != agents_.end() ? known->second : 0;
        };
        if (fresh) {
          const bool from_host = direction == CopyDirection::kHostToDevice || direction == CopyDirection::kHostToHost;
          const bool to_host = direction == CopyDirection::kDeviceToHost || direction == CopyDirection::kHostToHost;
          found.value() =
              fill ? writer_.dimension(row::FillShape{.memory = event::MemoryKind::kDevice, .device = device(target)})
                   : writer_.dimension(row::CopyShape{.direction = direction,
                                                      .source_device = from_host ? 0 : device(source),
                                                      .target_device = to_host ? 0 : device(target)});
        }
        const Event about = event(scan.number(9));
        // A copy is shown on the line of the GPU that takes part.
        const int64_t agent = direction == CopyDirection::kDeviceToHost ? source : target;
        const int64_t track = queue_track(scan.number(0), agent, scan.number(7), scan.number(8));
        const int64_t bytes = known_size(scan.number(6, kUnknown));
        if (fill) {
          writer_.add(row::Fill{.track = track,
                                .start = start,
                                .duration = duration,
                                .dim = found->second,
                                .correlation = about.stack,
                                .bytes = bytes});
        } else {
          writer_.add(row::Copy{.track = track,
                                .start = start,
                                .duration = duration,
                                .dim = found->second,
                                .correlation = about.stack,
                                .bytes = bytes});
        }
        return true;
      });
}

Status Reader::allocations() {
  return rows("rocpd_memory_allocate",
              {"pid", "tid", "agent_id", "type", "level", "start", "end", "address", "size", "event_id"},
              [&](NamedScan& scan) {
                const int64_t start = scan.number(5, kUnknown), end = scan.number(6, kUnknown);
                if (!sane(start) || !sane(end)) {
                  bad(Table::kAllocation);
                  return true;
                }
                const bool freed = scan.string(3) == "FREE" || scan.string(3) == "RECLAIM";
                const auto known = agents_.find(scan.number(2));
                std::string level(scan.string(4));
                for (char& c : level) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
                const int64_t shape = writer_.dimension(row::AllocationShape{
                    .operation = freed ? event::AllocationOperation::kFree : event::AllocationOperation::kAllocate,
                    .memory = event::MemoryKind::kDevice,
                    .device = known != agents_.end() ? known->second : 0,
                    .name = writer_.string(level)});
                const Event about = event(scan.number(9));
                writer_.add(row::Allocation{.track = thread_track(scan.number(0), scan.number(1)),
                                            .start = start,
                                            .duration = end < start ? kUnknown : end - start,
                                            .dim = shape,
                                            .correlation = about.stack,
                                            .bytes = known_size(scan.number(8, kUnknown)),
                                            .address = scan.number(7)});
                return true;
              });
}

Status Reader::counters() {
  tsl::robin_map<int64_t, int64_t> infos;
  TACHO_TRY(rows("rocpd_info_pmc", {"id", "name", "units", "description", "block"}, [&](NamedScan& scan) {
    infos.emplace(scan.number(0), writer_.dimension(row::Counter{.name = writer_.string(scan.string(1)),
                                                                 .unit = writer_.string(scan.string(2)),
                                                                 .text = writer_.string(scan.string(3)),
                                                                 .block = writer_.string(scan.string(4))}));
    return infos.size() < (1u << 20);
  }));
  // Several values of one counter and dispatch are its instances, numbered in the file's order.
  int64_t last_event = kUnknown, last_pmc = kUnknown, instance = 0;
  return rows("rocpd_pmc_event", {"event_id", "pmc_id", "value"}, [&](NamedScan& scan) {
    const auto* const dispatch = dispatch_of_event_.find(scan.number(0, kUnknown));
    const auto info = infos.find(scan.number(1));
    if (dispatch == nullptr || info == infos.end()) {
      bad(Table::kCounterValue);
      return true;
    }
    instance = scan.number(0) == last_event && scan.number(1) == last_pmc ? instance + 1 : 0;
    last_event = scan.number(0);
    last_pmc = scan.number(1);
    writer_.add(row::CounterValue{.track = dispatch->value.track,
                                  .start = dispatch->value.start,
                                  .ordinal = dispatch->value.ordinal,
                                  .dim = info->second,
                                  .instance = instance,
                                  .value = static_cast<int64_t>(__builtin_bit_cast(uint64_t, scan.decimal(2)))});
    return true;
  });
}

Status Reader::run() {
  TACHO_TRY(dimensions());
  TACHO_TRY(regions());
  TACHO_TRY(dispatches());
  TACHO_TRY(copies());
  TACHO_TRY(allocations());
  TACHO_TRY(counters());
  TACHO_TRY(strings_->status());
  return events_ ? events_->status() : Status();
}

Status read_database(const std::string& path, trace::TraceWriter& writer) {
  TACHO_ASSIGN(const Database database, Database::open(path));
  const std::vector<std::string> found = suffixes(database);
  if (found.empty()) return fail("{}: not a rocpd database: it has no table rocpd_metadata_<uuid>", path);
  for (const std::string& suffix : found) TACHO_TRY(Reader(database, writer, suffix).run());
  return {};
}

std::vector<std::string> databases_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".db" && entry.is_regular_file(error)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<std::string> suffixes(const Database& database) {
  std::vector<std::string> found;
  for (const sqlite::StoredTable& table : database.tables())
    if (table.name.starts_with(kMetadata) && table.name.size() > kMetadata.size() &&
        table.name[kMetadata.size()] == '_') {
      std::string suffix = table.name.substr(kMetadata.size());
      if (database.table("rocpd_string" + suffix) != nullptr && found.size() < 1000) found.push_back(std::move(suffix));
    }
  // Some converters write a single recording without a suffix.
  if (found.empty() && database.table(kMetadata) != nullptr && database.table("rocpd_kernel_dispatch") != nullptr &&
      database.table("rocpd_string") != nullptr)
    found.emplace_back();
  return found;
}

bool accepts(std::string_view path, std::string_view head, bool folder) {
  if (folder) {
    const std::vector<std::string> files = databases_in(std::string(path));
    return !files.empty() && accepts(files[0], std::string_view("SQLite format 3\0", 16), false);
  }
  if (!head.starts_with(std::string_view("SQLite format 3\0", 16))) return false;
  const auto database = Database::open(std::string(path));
  return database && !suffixes(*database).empty();
}

Status read_into(const std::string& path, trace::TraceWriter& writer) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    for (const std::string& file : databases_in(path)) TACHO_TRY(read_database(file, writer));
  else
    TACHO_TRY(read_database(path, writer));
  writer.property(Table::kEnd, 0, "source", "rocpd");
  writer.property(Table::kEnd, 0, "source_file", path);
  writer.property(Table::kEnd, 0, "clock", "CLOCK_BOOTTIME");
  return {};
}

Result<std::shared_ptr<const trace::Trace>> read(const std::string& path) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(read_into(path, *writer));
  return writer->finish_and_open(path);
}

}  // namespace tacho::format::rocpd
