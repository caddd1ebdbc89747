// Translates the events of a Kineto trace into tacho's terms (kineto.h).
#include <tsl/robin_map.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/files/sorted_file.h"
#include "event/times.h"
#include "format/json/input.h"
#include "format/kineto/event.h"
#include "format/kineto/kineto.h"

namespace tacho::format::kineto {
namespace {

using event::Domain;
using event::kUnknown;
using event::Table;
using json::InputWindow;
using json::integer;
namespace column = event::column;
namespace row = event::row;

// Correlations of framework operators lie above those of API calls, which vendors count from 1.
constexpr int64_t kOperators = int64_t{1} << 48;
constexpr int64_t kLatest = event::kFarthestTime;

uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t hash = a * 0x9e3779b97f4a7c15ULL + b;
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93ULL;
  return hash ^ hash >> 29;
}
struct Hash {
  template <size_t N>
  size_t operator()(const std::array<int64_t, N>& key) const {
    uint64_t hash = 0;
    for (const int64_t part : key) hash = mixed(hash, static_cast<uint64_t>(part));
    return static_cast<size_t>(hash);
  }
};
template <size_t N>
using Map = tsl::robin_map<std::array<int64_t, N>, int64_t, Hash>;

class Reader {
 public:
  Reader(InputWindow& input, trace::TraceWriter& writer) : input_(input), writer_(writer) {}
  Status run();

 private:
  struct Deferred {  // a kernel whose launch shape stands in its API call
    int64_t correlation, track, start, duration, name, registers, shared, graph_node, arguments;
    bool operator<(const Deferred& other) const { return correlation < other.correlation; }
  };
  struct Flow {
    int64_t thread, time, id;
    int64_t begin;  // 1 = start, 0 = finish
    bool operator<(const Flow& other) const {
      return thread != other.thread ? thread < other.thread : time < other.time;
    }
  };
  struct Operator {
    int64_t thread, time, correlation;
    bool operator<(const Operator& other) const {
      return thread != other.thread ? thread < other.thread : time < other.time;
    }
  };
  struct End {
    int64_t id, begin, correlation;
    bool operator<(const End& other) const { return id != other.id ? id < other.id : begin > other.begin; }
  };

  Status top_level();
  Status events();
  Status error(const JsonTokens& json, const char* what) const;
  Status cut_off() const;
  Status member(const std::string& key);
  Status whole_value(std::string& text);
  void device_properties(std::string_view text);
  void take(Event& event);
  void complete(Event& event);
  void metadata(const Event& event);
  Status finish();

  int64_t process(const Id& id);
  int64_t cpu_process();
  int64_t thread_track(const Id& process, const Id& thread);
  int64_t device(int64_t index, bool nvidia);
  int64_t gpu_track(const Event& event);
  int64_t kernel(int64_t name, const int64_t* grid, const int64_t* block, int64_t registers, int64_t shared);
  int64_t collective(const Event& event);
  int64_t label(std::string_view name, std::string_view category, event::MarkerKind kind);
  int64_t function(std::string_view name, Domain domain);
  void bad(Table table) { writer_.lose(0, table, event::LossReason::kBadInput, 1); }

  InputWindow& input_;
  trace::TraceWriter& writer_;
  bool seen_events_ = false;
  uint64_t count_ = 0;
  int64_t next_operator_ = kOperators;
  int64_t cpu_process_ = 0;
  bool cpu_described_ = false;
  tsl::robin_map<int64_t, int64_t> thread_rows_;  // of tracks
  Map<3> threads_, devices_, functions_, copy_shapes_;
  Map<4> gpu_tracks_;
  Map<2> text_ids_;
  tsl::robin_map<int64_t, int64_t> processes_;
  tsl::robin_map<std::string, int64_t> texts_;
  Map<3> labels_;
  Map<9> kernels_;
  struct Property {
    std::string name;
    int64_t units = 0, memory = 0;  // 0 = not told
  };
  tsl::robin_map<int64_t, Property> properties_;
  struct OpenRange {
    int64_t start;
    int64_t label;
  };
  tsl::robin_map<int64_t, std::vector<OpenRange>> open_;  // B without its E yet, by track
  struct Shape {
    int64_t grid[3], block[3], shared;
  };
  KeyIndex<Shape> launches_;
  SortedFile<Deferred> deferred_;
  bool any_deferred_ = false;
  SortedFile<Flow> flows_;
  SortedFile<Operator> operators_;
  bool any_flow_ = false;
  uint64_t unknown_phases_ = 0;
  std::string text_;  // of the collective at hand
  int64_t ordinal_ = 0;
};

int64_t Reader::cpu_process() {
  if (cpu_process_ == 0) cpu_process_ = writer_.dimension(row::Process{.pid = 0});
  return cpu_process_;
}

int64_t text_number(tsl::robin_map<std::string, int64_t>& texts, std::string_view text) {
  return texts.try_emplace(std::string(text), -static_cast<int64_t>(texts.size()) - 2).first->second;
}

// Processes by pid. Kineto puts GPU work under small pids, tacho under the process that launched it; Python functions
// of threads without a system id have pid 0.
int64_t Reader::process(const Id& id) {
  const int64_t key = id.text.empty() ? id.number : text_number(texts_, id.text);
  const auto [found, fresh] = processes_.try_emplace(key, 0);
  if (fresh) {
    if (!cpu_described_ && key > 0) {
      found.value() = cpu_process();
      writer_.update(Table::kProcess, cpu_process_, column::Process::pid, key);
      cpu_described_ = true;
    } else if (key == 0) {
      found.value() = cpu_process();
    } else {
      const int64_t pid = id.text.empty() ? id.number : 0;
      found.value() =
          writer_.dimension(row::Process{.pid = pid, .name = id.text.empty() ? 0 : writer_.string(id.text)});
    }
  }
  return found->second;
}

int64_t Reader::thread_track(const Id& process_id, const Id& thread_id) {
  const int64_t pid = process_id.text.empty() ? process_id.number : text_number(texts_, process_id.text);
  const int64_t tid = thread_id.text.empty() ? thread_id.number : text_number(texts_, thread_id.text);
  const auto [found, fresh] = threads_.try_emplace({pid, tid, 0}, 0);
  if (fresh) {
    const int64_t owner = process(process_id);
    const int64_t name = thread_id.text.empty() ? 0 : writer_.string(thread_id.text);
    const int64_t number = thread_id.text.empty() ? tid : 0;
    const int64_t thread = writer_.dimension(row::Thread{.process = owner, .tid = number, .name = name});
    found.value() = writer_.dimension(row::Track{.kind = event::TrackKind::kThread,
                                                 .process = owner,
                                                 .thread = thread,
                                                 .native = tid,
                                                 .category = writer_.string("thread")});
    thread_rows_[found->second] = thread;
  }
  return found->second;
}

int64_t Reader::device(int64_t index, bool nvidia) {
  const auto [found, fresh] = devices_.try_emplace({index, 0, 0}, 0);
  if (fresh) {
    auto property = properties_.find(index);
    // ROCm's Kineto numbers GPUs by agent in events and from 0 in properties. A single GPU must be the one.
    if (property == properties_.end() && properties_.size() == 1) property = properties_.begin();
    const std::string name = property != properties_.end() ? property->second.name : fmt::format("GPU {}", index);
    const bool amd = name.find("AMD") != std::string::npos;
    const bool green = !amd && (nvidia || name.find("NVIDIA") != std::string::npos);
    found.value() = writer_.dimension(row::Device{.kind = event::DeviceKind::kGpu,
                                                  .index = index,
                                                  .name = writer_.string(name),
                                                  .vendor = amd     ? writer_.string("AMD")
                                                            : green ? writer_.string("NVIDIA")
                                                                    : 0});
    if (property != properties_.end() && property->second.units > 0)
      writer_.property(Table::kDevice, found.value(), amd ? "compute_units" : "multiprocessors",
                       std::to_string(property->second.units));
    if (property != properties_.end() && property->second.memory > 0)
      writer_.property(Table::kDevice, found.value(), "memory_bytes", std::to_string(property->second.memory));
  }
  return found->second;
}

int64_t Reader::gpu_track(const Event& event) {
  const int64_t index = event.device != kUnknown ? event.device : event.process.number;
  const int64_t stream = event.stream != kUnknown ? event.stream : event.thread.number;
  const int64_t context = event.context != kUnknown ? event.context : 0;
  const auto [found, fresh] = gpu_tracks_.try_emplace({index, stream, context, 0}, 0);
  if (fresh)
    found.value() = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                                 .process = cpu_process(),
                                                 .device = device(index, event.context != kUnknown),
                                                 .native = stream,
                                                 .context = context,
                                                 .name = writer_.string(fmt::format("stream {}", stream))});
  return found->second;
}

int64_t Reader::label(std::string_view name, std::string_view category, event::MarkerKind kind) {
  const int64_t text = writer_.string(name), group = writer_.string(category);
  const auto [found, fresh] = labels_.try_emplace({text, group, static_cast<int64_t>(kind)}, 0);
  if (fresh) found.value() = writer_.dimension(row::Label{.name = text, .kind = kind, .category = group});
  return found->second;
}

int64_t Reader::function(std::string_view name, Domain domain) {
  const int64_t text = writer_.string(name);
  const auto [found, fresh] = functions_.try_emplace({text, static_cast<int64_t>(domain), 0}, 0);
  if (fresh) found.value() = writer_.dimension(row::Function{.name = text, .domain = domain});
  return found->second;
}

// `grid` counts workgroups, as CUDA and HIP launches do.
int64_t Reader::kernel(int64_t name, const int64_t* grid, const int64_t* block, int64_t registers, int64_t shared) {
  const auto [found, fresh] =
      kernels_.try_emplace({name, grid[0], grid[1], grid[2], block[0], block[1], block[2], registers, shared}, 0);
  if (fresh) {
    int64_t items[3];
    for (int i = 0; i < 3; ++i)
      if (grid[i] == kUnknown || block[i] == kUnknown || __builtin_mul_overflow(grid[i], block[i], &items[i]))
        items[i] = kUnknown;
    found.value() = writer_.dimension(row::Kernel{.name = name,
                                                  .kind = event::DispatchKind::kKernel,
                                                  .grid_x = items[0],
                                                  .grid_y = items[1],
                                                  .grid_z = items[2],
                                                  .group_x = block[0],
                                                  .group_y = block[1],
                                                  .group_z = block[2],
                                                  .registers = registers,
                                                  .shared_dynamic = shared});
  }
  return found->second;
}

// What torch.distributed says about a collective, as the arguments of its kernel: src/ranks reads them back
// (told_by()).
int64_t Reader::collective(const Event& event) {
  const Event::Collective& told = event.collective;
  if (told.name.empty()) return 0;
  text_.clear();
  const auto add = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    if (!text_.empty()) text_ += ", ";
    text_.append(name).append("=").append(value);
  };
  const auto add_number = [&](std::string_view name, int64_t value) {
    if (value != kUnknown) add(name, std::to_string(value));
  };
  add("Collective name", told.name);
  add_number("In msg nelems", told.in_elements);
  add_number("Out msg nelems", told.out_elements);
  add_number("Group size", told.group_size);
  add("dtype", told.type);
  add("Process Group Name", told.group);
  add("Process Group Description", told.group_description);
  add("Process Group Ranks", told.members);
  return writer_.string(text_);
}

event::MemoryKind memory_kind(std::string_view word) {
  if (word == "Pageable") return event::MemoryKind::kPageable;
  if (word == "Pinned") return event::MemoryKind::kPinned;
  if (word == "Device") return event::MemoryKind::kDevice;
  if (word == "Array") return event::MemoryKind::kArray;
  if (word == "Managed" || word == "Unified") return event::MemoryKind::kManaged;
  if (word == "Host") return event::MemoryKind::kHost;
  return event::MemoryKind::kUnknown;
}

// The table that an event of this category would have gone to.
Table table_of(std::string_view category) {
  if (category == "kernel" || category == "Kernel") return Table::kDispatch;
  if (category == "gpu_memcpy" || category == "Memcpy") return Table::kCopy;
  if (category == "gpu_memset" || category == "Memset") return Table::kFill;
  const bool call = category == "cuda_runtime" || category == "cuda_driver" || category == "hip_runtime" ||
                    category == "Runtime" || category == "cpu_op" || category == "Operator" ||
                    category == "python_function";
  return call ? Table::kApi : Table::kMarker;
}

void Reader::complete(Event& event) {
  if (event.time == kUnknown || event.time > kLatest || event.time < -kLatest) return bad(table_of(event.category));
  if (event.duration < 0 && event.duration != kUnknown)
    writer_.lose(0, table_of(event.category), event::LossReason::kClockOrder, 1);
  event.duration = event::known_duration(event.duration);
  const std::string_view category = event.category;
  const int64_t correlation = event.correlation != kUnknown ? event.correlation : 0;
  if (category == "kernel" || category == "Kernel") {
    const int64_t name = writer_.string(event.name);
    const int64_t node = event.graph_node != kUnknown ? event.graph_node : 0;
    if (event.block[0] == kUnknown && correlation != 0) {
      deferred_.add({correlation, gpu_track(event), event.time, event.duration, name, event.registers, event.shared,
                     node, collective(event)});
      any_deferred_ = true;
      return;
    }
    const int64_t row = kernel(name, event.grid, event.block, event.registers, event.shared);
    writer_.add(row::Dispatch{.track = gpu_track(event),
                              .start = event.time,
                              .duration = event.duration,
                              .dim = row,
                              .correlation = correlation,
                              .graph_node = node,
                              .arguments = collective(event)});
    return;
  }
  if (category == "gpu_memcpy" || category == "Memcpy") {
    using event::CopyDirection;
    const auto has = [&](std::string_view part) { return event.name.find(part) != std::string_view::npos; };
    const CopyDirection direction = has("HtoD")   ? CopyDirection::kHostToDevice
                                    : has("DtoH") ? CopyDirection::kDeviceToHost
                                    : has("DtoD") ? CopyDirection::kDeviceToDevice
                                    : has("HtoH") ? CopyDirection::kHostToHost
                                    : has("PtoP") ? CopyDirection::kPeerToPeer
                                                  : CopyDirection::kUnknown;
    event::MemoryKind from = event::MemoryKind::kUnknown, to = event::MemoryKind::kUnknown;
    const size_t open = event.name.find('('), arrow = event.name.find(" -> "), close = event.name.find(')');
    if (open != std::string_view::npos && arrow != std::string_view::npos && close != std::string_view::npos &&
        open < arrow && arrow < close) {
      from = memory_kind(event.name.substr(open + 1, arrow - open - 1));
      to = memory_kind(event.name.substr(arrow + 4, close - arrow - 4));
    }
    const int64_t track = gpu_track(event);
    const int64_t unit =
        device(event.device != kUnknown ? event.device : event.process.number, event.context != kUnknown);
    const auto [found, fresh] = copy_shapes_.try_emplace(
        {static_cast<int64_t>(direction), unit, static_cast<int64_t>(from) * 100 + static_cast<int64_t>(to)}, 0);
    if (fresh) {
      const bool source = direction == CopyDirection::kDeviceToHost || direction == CopyDirection::kDeviceToDevice;
      const bool target = direction == CopyDirection::kHostToDevice || direction == CopyDirection::kDeviceToDevice;
      found.value() = writer_.dimension(row::CopyShape{.direction = direction,
                                                       .source_memory = from,
                                                       .target_memory = to,
                                                       .source_device = source ? unit : 0,
                                                       .target_device = target ? unit : 0});
    }
    writer_.add(row::Copy{.track = track,
                          .start = event.time,
                          .duration = event.duration,
                          .dim = found->second,
                          .correlation = correlation,
                          .bytes = event.bytes,
                          .graph_node = event.graph_node != kUnknown ? event.graph_node : 0});
    return;
  }
  if (category == "gpu_memset" || category == "Memset") {
    const size_t open = event.name.find('('), close = event.name.find(')');
    const auto memory = open != std::string_view::npos && close != std::string_view::npos && open < close
                            ? memory_kind(event.name.substr(open + 1, close - open - 1))
                            : event::MemoryKind::kUnknown;
    const int64_t track = gpu_track(event);
    const int64_t unit =
        device(event.device != kUnknown ? event.device : event.process.number, event.context != kUnknown);
    const int64_t shape = writer_.dimension(row::FillShape{.memory = memory, .device = unit});
    writer_.add(row::Fill{.track = track,
                          .start = event.time,
                          .duration = event.duration,
                          .dim = shape,
                          .correlation = correlation,
                          .bytes = event.bytes,
                          .graph_node = event.graph_node != kUnknown ? event.graph_node : 0});
    return;
  }
  if (category == "gpu_user_annotation") {
    writer_.add(row::Marker{.track = gpu_track(event),
                            .start = event.time,
                            .duration = event.duration,
                            .dim = label(event.name, category, event::MarkerKind::kStartStop)});
    return;
  }
  if (category == "cuda_profiler_range") {
    // Counters of one replayed kernel: a range on the GPU with a value for each counter.
    const int64_t track = gpu_track(event);
    writer_.add(row::Marker{.track = track,
                            .start = event.time,
                            .duration = event.duration,
                            .dim = label(event.name, category, event::MarkerKind::kStartStop)});
    for (const Event::Value& value : event.values) {
      const int64_t counter =
          writer_.dimension(row::Counter{.name = writer_.string(value.name), .block = writer_.string(category)});
      writer_.add(row::CounterValue{.track = track,
                                    .start = event.time,
                                    .ordinal = ordinal_,
                                    .dim = counter,
                                    .value = static_cast<int64_t>(__builtin_bit_cast(uint64_t, value.value))});
    }
    ++ordinal_;
    return;
  }
  const int64_t track = thread_track(event.process, event.thread);
  if (category == "cuda_runtime" || category == "cuda_driver" || category == "hip_runtime" || category == "Runtime") {
    const bool hip = event.name.starts_with("hip");
    const Domain domain = hip                         ? Domain::kHipRuntime
                          : category == "cuda_driver" ? Domain::kCudaDriver
                                                      : Domain::kCudaRuntime;
    if (event.block[0] != kUnknown && event.correlation != kUnknown)
      launches_.add(event.correlation, {{event.grid[0], event.grid[1], event.grid[2]},
                                        {event.block[0], event.block[1], event.block[2]},
                                        event.shared});
    writer_.add(row::Api{.track = track,
                         .start = event.time,
                         .duration = event.duration,
                         .dim = function(event.name, domain),
                         .correlation = correlation});
    return;
  }
  if (category == "cpu_op" || category == "Operator") {
    const int64_t own = ++next_operator_;
    if (event.sequence != kUnknown) operators_.add({track, event.time, own});
    writer_.add(row::Api{.track = track,
                         .start = event.time,
                         .duration = event.duration,
                         .dim = function(event.name, Domain::kOperator),
                         .correlation = own});
    return;
  }
  if (category == "python_function") {
    writer_.add(row::Api{
        .track = track, .start = event.time, .duration = event.duration, .dim = function(event.name, Domain::kPython)});
    return;
  }
  if (category == "overhead" || category == "Overhead") {
    const int64_t shape = writer_.dimension(
        row::OverheadShape{.kind = event::OverheadKind::kProfiler, .name = writer_.string(event.name)});
    writer_.add(row::Overhead{
        .track = track, .start = event.time, .duration = event.duration, .dim = shape, .correlation = correlation});
    return;
  }
  if (category == "cuda_sync") {
    const int64_t on = event.device != kUnknown ? gpu_track(event) : track;
    const auto has = [&](std::string_view part) { return event.name.find(part) != std::string_view::npos; };
    using event::SyncKind;
    const SyncKind kind = has("Stream Wait") ? SyncKind::kQueueWaitEvent
                          : has("Stream")    ? SyncKind::kQueue
                          : has("Event")     ? SyncKind::kEvent
                          : has("Context")   ? SyncKind::kContext
                          : has("Device")    ? SyncKind::kDevice
                                             : SyncKind::kUnknown;
    const int64_t shape = writer_.dimension(
        row::SyncShape{.kind = kind, .device = event.device != kUnknown ? device(event.device, true) : 0});
    writer_.add(row::Sync{
        .track = on, .start = event.time, .duration = event.duration, .dim = shape, .correlation = correlation});
    return;
  }
  // Anything else is a range with a name: user annotations, events without category, other tools' categories.
  writer_.add(row::Marker{.track = track,
                          .start = event.time,
                          .duration = event.duration,
                          .dim = label(event.name, category, event::MarkerKind::kPushPop)});
}

void Reader::metadata(const Event& event) {
  if (event.name == "process_name" && !event.label.empty()) {
    // Kineto also names pids that stand for GPUs; only those with threads become processes.
    const auto found =
        processes_.find(event.process.text.empty() ? event.process.number : text_number(texts_, event.process.text));
    if (found != processes_.end() || event.process.number > 255)
      writer_.update(Table::kProcess, process(event.process), column::Process::name, writer_.string(event.label));
  } else if (event.name == "thread_name" && !event.label.empty()) {
    const int64_t pid = event.process.text.empty() ? event.process.number : text_number(texts_, event.process.text);
    if (pid > 255 ||
        threads_.contains(
            {pid, event.thread.text.empty() ? event.thread.number : text_number(texts_, event.thread.text), 0})) {
      const int64_t track = thread_track(event.process, event.thread);
      std::string_view name = event.label;
      while (name.ends_with(' ')) name.remove_suffix(1);
      writer_.update(Table::kThread, thread_rows_[track], column::Thread::name, writer_.string(name));
    }
  }
}

void Reader::take(Event& event) {
  ++count_;
  switch (event.phase) {
    case 'X':
      return complete(event);
    case 'M':
      return metadata(event);
    case 'B': {
      if (event.time == kUnknown || event.time > kLatest || event.time < -kLatest) return bad(Table::kMarker);
      const int64_t track = thread_track(event.process, event.thread);
      auto& stack = open_[track];
      if (stack.size() >= 100000) return bad(Table::kMarker);
      stack.push_back({event.time, label(event.name, event.category, event::MarkerKind::kPushPop)});
      return;
    }
    case 'E': {
      const int64_t track = thread_track(event.process, event.thread);
      auto found = open_.find(track);
      if (event.time == kUnknown || found == open_.end() || found.value().empty()) return bad(Table::kMarker);
      const OpenRange range = found.value().back();
      found.value().pop_back();
      if (event.time < range.start) return bad(Table::kMarker);
      writer_.add(
          row::Marker{.track = track, .start = range.start, .duration = event.time - range.start, .dim = range.label});
      return;
    }
    case 'i':
    case 'I':
    case 'R': {
      if (event.time == kUnknown || event.time > kLatest || event.time < -kLatest) return bad(Table::kMarker);
      const int64_t track = thread_track(event.process, event.thread);
      if (event.category == "cpu_instant_event" && event.bytes != kUnknown && event.name == "[memory]") {
        const bool freed = event.bytes < 0;
        const bool on_device = event.device_type != kUnknown && event.device_type != 0;
        const int64_t shape = writer_.dimension(row::AllocationShape{
            .operation = freed ? event::AllocationOperation::kFree : event::AllocationOperation::kAllocate,
            .memory = on_device ? event::MemoryKind::kDevice : event::MemoryKind::kHost,
            .device = on_device && event.device_id >= 0 ? device(event.device_id, false) : 0,
            .name = writer_.string("tensor")});
        writer_.add(row::Allocation{.track = track,
                                    .start = event.time,
                                    .duration = 0,
                                    .dim = shape,
                                    .bytes = freed ? -event.bytes : event.bytes,
                                    .address = event.address != kUnknown ? event.address : 0});
        return;
      }
      writer_.add(row::Marker{.track = track,
                              .start = event.time,
                              .duration = 0,
                              .dim = label(event.name, event.category, event::MarkerKind::kMark)});
      return;
    }
    case 'C': {
      if (event.time == kUnknown || event.time > kLatest || event.time < -kLatest) return bad(Table::kReading);
      for (const Event::Value& value : event.values) {
        const int64_t counter = writer_.dimension(
            row::Counter{.name = writer_.string(event.name), .block = writer_.string(event.category)});
        const int64_t name = event.values.size() > 1 ? writer_.string(value.name) : 0;
        const int64_t track = writer_.dimension(row::Track{.kind = event::TrackKind::kCounter,
                                                           .process = process(event.process),
                                                           .name = name,
                                                           .category = writer_.string("counter"),
                                                           .counter = counter});
        writer_.add(row::Reading{.track = track,
                                 .start = event.time,
                                 .value = static_cast<int64_t>(__builtin_bit_cast(uint64_t, value.value))});
      }
      return;
    }
    case 's':
    case 'f':
    case 't':
      // ac2g arrows repeat the correlations; fwdbwd arrows tie a backward operator to its forward operator.
      if (event.category == "fwdbwd" && event.time != kUnknown && event.id.given && event.phase != 't') {
        flows_.add(
            {thread_track(event.process, event.thread), event.time, event.id.number, event.phase == 's' ? 1 : 0});
        any_flow_ = true;
      }
      return;
    case 0:
      return;  // "{}" fills gaps in some writers' arrays
    default:
      ++unknown_phases_;
  }
}

Status Reader::error(const JsonTokens& json, const char* what) const {
  const auto at = static_cast<uint64_t>(json.at() - input_.begin()) + input_.offset();
  return fail("{}: not valid JSON near byte {}: {}", input_.path(), at, what);
}

Status Reader::cut_off() const {
  TACHO_TRY(Status(input_.status()));
  if (static_cast<size_t>(input_.end() - input_.begin()) >= InputWindow::kLongest)
    return fail("{}: one event at byte {} is longer than {} MiB", input_.path(), input_.offset(),
                InputWindow::kLongest >> 20);
  return fail("{}: the file is cut off ({} events were read before its end)", input_.path(), count_);
}

// Reads the events of an array after its '['.
Status Reader::events() {
  Event event;
  bool first = true;
  while (true) {
    JsonTokens json(input_.begin(), input_.end());
    while (true) {
      char c = json.peek();
      if (c == ',' && !first) {
        json.step();
        c = json.peek();
      }
      if (c == ']') {
        json.step();
        input_.consume(json.at());
        return {};
      }
      if (json.at_end()) break;
      if (c != '{') return error(json, "an event was expected");
      const char* const start = json.at();
      const JsonOutcome outcome = parse_event(json, event);
      if (outcome == JsonOutcome::kBad) return error(json, json.what());
      if (outcome == JsonOutcome::kMore) {
        json = JsonTokens(start, input_.end());
        break;
      }
      first = false;
      take(event);
      input_.consume(json.at());
    }
    // Only the start of a value is left; keeps a comma already passed. more() moves the text, so json ends.
    const bool nothing_left = json.at_end();
    if (!input_.more()) {
      if (input_.status() && input_.at_end() && nothing_left && count_ > 0) {
        // Chrome's own format lets the closing bracket be missing: tracers that were killed leave such files.
        writer_.note(0, event::NoteSeverity::kWarning,
                     "the JSON ends without closing its array: its writer was probably killed");
        input_.consume(input_.end());
        return {};
      }
      return cut_off();
    }
  }
}

// The whole value at the input's place; it must fit the window, so only for small values.
Status Reader::whole_value(std::string& text) {
  while (true) {
    JsonTokens json(input_.begin(), input_.end());
    json.skip_space();
    const char* const start = json.at();
    const JsonOutcome outcome = json.skip();
    if (outcome == JsonOutcome::kBad) return error(json, json.what());
    if (outcome == JsonOutcome::kOk) {
      text.assign(start, json.at());
      input_.consume(json.at());
      return {};
    }
    if (!input_.more()) return cut_off();
  }
}

void Reader::device_properties(std::string_view value) {
  std::string text(value);
  text.append(InputWindow::kPadding, '\0');
  JsonTokens json(text.data(), text.data() + value.size());
  if (json.expect('[') != JsonOutcome::kOk) return;
  // [{"id": 0, "name": "...", ...}, ...]
  while (json.peek() == '{') {
    json.step();
    int64_t id = kUnknown;
    Property property;
    while (json.peek() == '"') {
      std::string_view key, word;
      std::string buffer;
      bool escaped;
      if (json.raw_string(key, escaped) != JsonOutcome::kOk || json.expect(':') != JsonOutcome::kOk) return;
      if (key == "name" && json.peek() == '"') {
        if (json.string(word, buffer) != JsonOutcome::kOk) return;
        property.name = word;
      } else if (key == "id" && json.peek() != '"' && json.peek() != '{' && json.peek() != '[') {
        if (json.word(word) != JsonOutcome::kOk) return;
        integer(word, id);
      } else if ((key == "numSms" || key == "totalGlobalMem") && json.peek() != '"' && json.peek() != '{' &&
                 json.peek() != '[') {
        if (json.word(word) != JsonOutcome::kOk) return;
        integer(word, key == "numSms" ? property.units : property.memory);
      } else if (json.skip() != JsonOutcome::kOk) {
        return;
      }
      if (json.peek() == ',') json.step();
    }
    if (json.expect('}') != JsonOutcome::kOk) return;
    if (id != kUnknown && properties_.size() < 4096) properties_[id] = property;
    if (json.peek() == ',') json.step();
  }
}

Status Reader::member(const std::string& key) {
  if (key == "traceEvents") {
    while (true) {
      JsonTokens json(input_.begin(), input_.end());
      const char c = json.peek();
      if (c == '[') {
        json.step();
        input_.consume(json.at());
        seen_events_ = true;
        return events();
      }
      if (!json.at_end()) return error(json, "traceEvents is not an array");
      if (!input_.more()) return cut_off();
    }
  }
  std::string text;
  TACHO_TRY(whole_value(text));
  if (key == "deviceProperties") device_properties(text);
  if (key == "distributedInfo") {
    const auto number = [&](std::string_view name) {
      const size_t at = text.find(name);
      const size_t colon = at != std::string::npos ? text.find(':', at) : std::string::npos;
      int64_t value = kUnknown;
      if (colon == std::string::npos) return value;
      const char* digits = text.data() + colon + 1;
      while (*digits == ' ') ++digits;
      if (std::from_chars(digits, text.data() + text.size(), value).ec != std::errc() || value < 0) value = kUnknown;
      return value;
    };
    if (const int64_t rank = number("\"rank\""); rank != kUnknown)
      writer_.update(Table::kProcess, cpu_process(), column::Process::rank, rank);
    if (const int64_t size = number("\"world_size\""); size != kUnknown)
      writer_.property(Table::kEnd, 0, "kineto.world_size", std::to_string(size));
  }
  if (text.size() <= 200 && !text.empty() && text[0] != '{' && text[0] != '[') {
    if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
    writer_.property(Table::kEnd, 0, "kineto." + key, text);
  }
  return {};
}

Status Reader::top_level() {
  bool first = true;
  while (true) {
    JsonTokens json(input_.begin(), input_.end());
    char c = json.peek();
    if (json.at_end()) {
      if (input_.more()) continue;
      return cut_off();
    }
    if (first) {
      if (c == '[') {
        json.step();
        input_.consume(json.at());
        seen_events_ = true;
        return events();
      }
      if (c != '{') return fail("{}: not a JSON trace: it starts neither with {{ nor with [", input_.path());
      json.step();
      input_.consume(json.at());
      first = false;
      continue;
    }
    if (c == '}') {
      json.step();
      input_.consume(json.at());
      return {};
    }
    if (c == ',') {
      json.step();
      input_.consume(json.at());
      continue;
    }
    std::string_view key;
    bool escaped;
    JsonOutcome outcome = json.raw_string(key, escaped);
    const std::string name(outcome == JsonOutcome::kOk ? key : std::string_view());
    if (outcome == JsonOutcome::kOk) outcome = json.expect(':');
    if (outcome == JsonOutcome::kBad) return error(json, json.what());
    if (outcome == JsonOutcome::kMore) {
      if (input_.more()) continue;
      return cut_off();
    }
    input_.consume(json.at());
    TACHO_TRY(member(name));
  }
}

Status Reader::finish() {
  for (const auto& [track, stack] : open_)
    for (const OpenRange& range : stack) {
      writer_.add(row::Marker{.track = track, .start = range.start, .dim = range.label});
      writer_.lose(0, Table::kMarker, event::LossReason::kOpenAtExit, 1);
    }
  TACHO_TRY(launches_.finish());
  TACHO_TRY(deferred_.finish());
  Deferred waiting;
  static constexpr int64_t kNothing[3] = {kUnknown, kUnknown, kUnknown};
  while (deferred_.next(waiting)) {
    const auto* const launch = launches_.find(waiting.correlation);
    const int64_t row = launch != nullptr
                            ? kernel(waiting.name, launch->value.grid, launch->value.block, waiting.registers,
                                     waiting.shared != kUnknown ? waiting.shared : launch->value.shared)
                            : kernel(waiting.name, kNothing, kNothing, waiting.registers, waiting.shared);
    writer_.add(row::Dispatch{.track = waiting.track,
                              .start = waiting.start,
                              .duration = waiting.duration,
                              .dim = row,
                              .correlation = waiting.correlation,
                              .graph_node = waiting.graph_node,
                              .arguments = waiting.arguments});
  }
  if (any_flow_) {
    // An arrow's ends are at the starts of its operators; both lists come in order of (thread, time).
    TACHO_TRY(flows_.finish());
    TACHO_TRY(operators_.finish());
    SortedFile<End> ends;
    Flow flow;
    Operator op{}, candidate;
    bool have = operators_.next(candidate);
    while (flows_.next(flow)) {
      while (have &&
             (candidate.thread < flow.thread || (candidate.thread == flow.thread && candidate.time <= flow.time))) {
        op = candidate;
        have = operators_.next(candidate);
      }
      if (op.correlation != 0 && op.thread == flow.thread && op.time == flow.time)
        ends.add({flow.id, flow.begin, op.correlation});
    }
    TACHO_TRY(ends.finish());
    End end, begin{};
    bool open = false;
    while (ends.next(end)) {
      if (end.begin == 1) {
        begin = end;
        open = true;
      } else if (open && begin.id == end.id) {
        writer_.add(row::Link{.kind = event::LinkKind::kFlow,
                              .process = cpu_process(),
                              .from = begin.correlation,
                              .to = end.correlation});
      }
    }
  }
  if (unknown_phases_ > 0)
    writer_.lose(0, Table::kEnd, event::LossReason::kUnknownRecord, static_cast<int64_t>(unknown_phases_));
  writer_.property(Table::kEnd, 0, "source", "Chrome JSON");
  writer_.property(Table::kEnd, 0, "source_file", input_.path());
  return {};
}

Status Reader::run() {
  TACHO_TRY(top_level());
  TACHO_TRY(Status(input_.status()));
  if (!seen_events_) return fail("{}: JSON without traceEvents: not a trace", input_.path());
  return finish();
}

}  // namespace

bool accepts(std::string_view path, std::string_view head, bool folder) {
  if (folder) return false;
  const std::string text = json::unpacked_head(head);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || (text[first] != '{' && text[first] != '[')) return false;
  if (text.find("\"rocprofiler-sdk-tool\"") != std::string::npos) return false;
  return text.find("traceEvents") != std::string::npos || text.find("\"ph\"") != std::string::npos ||
         path.ends_with(".json") || path.ends_with(".json.gz");
}

Status read_into(const std::string& path, trace::TraceWriter& writer) {
  TACHO_ASSIGN(const std::unique_ptr<InputWindow> input, InputWindow::open(path));
  return Reader(*input, writer).run();
}

Result<std::shared_ptr<const trace::Trace>> read(const std::string& path) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(read_into(path, *writer));
  return writer->finish_and_open(path);
}

}  // namespace tacho::format::kineto
