// Turns the events of a Chrome trace into rows: Kineto's categories, and ranges with names for everything else.
#include "format/kineto/translator.h"

#include <algorithm>

#include "event/times.h"

namespace tacho::format::kineto {

using event::Domain;
using event::kUnknown;
using event::Table;
namespace column = event::column;
namespace row = event::row;

namespace {

// Correlations of framework operators lie above those of API calls, which vendors count from 1.
constexpr int64_t kOperators = int64_t{1} << 48;

bool is_time(int64_t time) {
  return time != kUnknown && time <= event::kFarthestTime && time >= -event::kFarthestTime;
}

}  // namespace

Translator::Translator(trace::TraceWriter& writer) : writer_(writer), next_operator_(kOperators) {}

// The number of an id; texts get numbers below -1.
int64_t Translator::number(const Id& id) {
  if (id.text.empty()) return id.number;
  return texts_.try_emplace(std::string(id.text), -static_cast<int64_t>(texts_.size()) - 2).first->second;
}

int64_t Translator::cpu_process() {
  if (cpu_process_ == 0) cpu_process_ = writer_.dimension(row::Process{.pid = 0});
  return cpu_process_;
}

// Processes by pid. Kineto puts GPU work under small pids, tacho under the process that launched it; Python functions
// of threads without a system id have pid 0.
int64_t Translator::process(const Id& id) {
  const int64_t key = number(id);
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

int64_t Translator::thread_track(const Id& process_id, const Id& thread_id) {
  const int64_t pid = number(process_id);
  const int64_t tid = number(thread_id);
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

int64_t Translator::device(int64_t index, bool nvidia) {
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

int64_t Translator::gpu_track(const Event& event) {
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

int64_t Translator::label(std::string_view name, std::string_view category, event::MarkerKind kind) {
  const int64_t text = writer_.string(name), group = writer_.string(category);
  const auto [found, fresh] = labels_.try_emplace({text, group, static_cast<int64_t>(kind)}, 0);
  if (fresh) found.value() = writer_.dimension(row::Label{.name = text, .kind = kind, .category = group});
  return found->second;
}

int64_t Translator::function(std::string_view name, Domain domain) {
  const int64_t text = writer_.string(name);
  const auto [found, fresh] = functions_.try_emplace({text, static_cast<int64_t>(domain), 0}, 0);
  if (fresh) found.value() = writer_.dimension(row::Function{.name = text, .domain = domain});
  return found->second;
}

// `grid` counts workgroups, as CUDA and HIP launches do.
int64_t Translator::kernel(int64_t name, const int64_t* grid, const int64_t* block, int64_t registers, int64_t shared) {
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
int64_t Translator::collective(const Event& event) {
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

namespace {

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

}  // namespace

void Translator::complete(Event& event) {
  if (!is_time(event.time)) return bad(table_of(event.category));
  if (event.duration < 0 && event.duration != kUnknown)
    writer_.lose(0, table_of(event.category), event::LossReason::kClockOrder, 1);
  event.duration = event::known_duration(event.duration);
  const std::string_view category = event.category;
  if (category == "kernel" || category == "Kernel") return kernel_event(event);
  if (category == "gpu_memcpy" || category == "Memcpy") return copy(event);
  if (category == "gpu_memset" || category == "Memset") return fill(event);
  if (category == "gpu_user_annotation") return range(event, gpu_track(event), event::MarkerKind::kStartStop);
  if (category == "cuda_profiler_range") return counters(event);
  const int64_t track = thread_track(event.process, event.thread);
  if (category == "cuda_runtime" || category == "cuda_driver" || category == "hip_runtime" || category == "Runtime")
    return call(event, track);
  if (category == "cpu_op" || category == "Operator") {
    const int64_t own = ++next_operator_;
    if (event.sequence != kUnknown) operators_.add({track, event.time, own});
    return api(event, track, Domain::kOperator, own);
  }
  if (category == "python_function") return api(event, track, Domain::kPython, 0);
  if (category == "overhead" || category == "Overhead") {
    const int64_t shape = writer_.dimension(
        row::OverheadShape{.kind = event::OverheadKind::kProfiler, .name = writer_.string(event.name)});
    writer_.add(row::Overhead{.track = track,
                              .start = event.time,
                              .duration = event.duration,
                              .dim = shape,
                              .correlation = known(event.correlation)});
    return;
  }
  if (category == "cuda_sync") return sync(event, track);
  // Anything else is a range with a name: user annotations, events without category, other tools' categories.
  range(event, track, event::MarkerKind::kPushPop);
}

void Translator::kernel_event(const Event& event) {
  const int64_t name = writer_.string(event.name), correlation = known(event.correlation);
  if (event.block[0] == kUnknown && correlation != 0) {
    deferred_.add({correlation, gpu_track(event), event.time, event.duration, name, event.registers, event.shared,
                   known(event.graph_node), collective(event)});
    return;
  }
  const int64_t row = kernel(name, event.grid, event.block, event.registers, event.shared);
  writer_.add(row::Dispatch{.track = gpu_track(event),
                            .start = event.time,
                            .duration = event.duration,
                            .dim = row,
                            .correlation = correlation,
                            .graph_node = known(event.graph_node),
                            .arguments = collective(event)});
}

void Translator::copy(const Event& event) {
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
                        .correlation = known(event.correlation),
                        .bytes = event.bytes,
                        .graph_node = known(event.graph_node)});
}

void Translator::fill(const Event& event) {
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
                        .correlation = known(event.correlation),
                        .bytes = event.bytes,
                        .graph_node = known(event.graph_node)});
}

// Counters of one replayed kernel: a range on the GPU with a value for each counter.
void Translator::counters(const Event& event) {
  const int64_t track = gpu_track(event);
  range(event, track, event::MarkerKind::kStartStop);
  for (const Event::Value& value : event.values) {
    const int64_t counter =
        writer_.dimension(row::Counter{.name = writer_.string(value.name), .block = writer_.string(event.category)});
    writer_.add(row::CounterValue{.track = track,
                                  .start = event.time,
                                  .ordinal = ordinal_,
                                  .dim = counter,
                                  .value = static_cast<int64_t>(__builtin_bit_cast(uint64_t, value.value))});
  }
  ++ordinal_;
}

void Translator::call(const Event& event, int64_t track) {
  const bool hip = event.name.starts_with("hip");
  const Domain domain = hip                               ? Domain::kHipRuntime
                        : event.category == "cuda_driver" ? Domain::kCudaDriver
                                                          : Domain::kCudaRuntime;
  if (event.block[0] != kUnknown && event.correlation != kUnknown)
    launches_.add(event.correlation, {{event.grid[0], event.grid[1], event.grid[2]},
                                      {event.block[0], event.block[1], event.block[2]},
                                      event.shared});
  api(event, track, domain, known(event.correlation));
}

void Translator::api(const Event& event, int64_t track, Domain domain, int64_t correlation) {
  writer_.add(row::Api{.track = track,
                       .start = event.time,
                       .duration = event.duration,
                       .dim = function(event.name, domain),
                       .correlation = correlation});
}

void Translator::sync(const Event& event, int64_t track) {
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
  writer_.add(row::Sync{.track = on,
                        .start = event.time,
                        .duration = event.duration,
                        .dim = shape,
                        .correlation = known(event.correlation)});
}

void Translator::range(const Event& event, int64_t track, event::MarkerKind kind) {
  writer_.add(row::Marker{
      .track = track, .start = event.time, .duration = event.duration, .dim = label(event.name, event.category, kind)});
}

// Memory that a framework's allocator gave to a tensor, or took back.
void Translator::tensor(const Event& event, int64_t track) {
  const bool freed = event.bytes < 0;
  const bool on_device = event.device_type != kUnknown && event.device_type != 0;
  const int64_t shape = writer_.dimension(row::AllocationShape{
      .operation = freed ? event::AllocationOperation::kFree : event::AllocationOperation::kAllocate,
      .memory = on_device ? event::MemoryKind::kDevice : event::MemoryKind::kHost,
      .device = on_device && event.device_id >= 0 ? device(event.device_id, false) : 0,
      .name = writer_.string("tensor")});
  writer_.add(row::Allocation{.track = track,
                              .start = event.time,
                              .duration = event.duration,
                              .dim = shape,
                              .bytes = freed ? -event.bytes : event.bytes,
                              .address = known(event.address)});
}

void Translator::metadata(const Event& event) {
  if (event.name == "process_name" && !event.label.empty()) {
    // Kineto also names pids that stand for GPUs; only those with threads become processes.
    const auto found = processes_.find(number(event.process));
    if (found != processes_.end() || event.process.number > 255)
      writer_.update(Table::kProcess, process(event.process), column::Process::name, writer_.string(event.label));
  } else if (event.name == "thread_name" && !event.label.empty()) {
    const int64_t pid = number(event.process);
    if (pid > 255 || threads_.contains({pid, number(event.thread), 0})) {
      const int64_t track = thread_track(event.process, event.thread);
      std::string_view name = event.label;
      while (name.ends_with(' ')) name.remove_suffix(1);
      writer_.update(Table::kThread, thread_rows_[track], column::Thread::name, writer_.string(name));
    }
  }
}

void Translator::take(Event& event) {
  switch (event.phase) {
    case 'X':
      return complete(event);
    case 'M':
      return metadata(event);
    case 'B': {
      if (!is_time(event.time)) return bad(Table::kMarker);
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
      const OpenRange open = found.value().back();
      found.value().pop_back();
      if (event.time < open.start) return bad(Table::kMarker);
      writer_.add(
          row::Marker{.track = track, .start = open.start, .duration = event.time - open.start, .dim = open.label});
      return;
    }
    case 'i':
    case 'I':
    case 'R': {
      if (!is_time(event.time)) return bad(Table::kMarker);
      event.duration = 0;
      const int64_t track = thread_track(event.process, event.thread);
      if (event.category == "cpu_instant_event" && event.bytes != kUnknown && event.name == "[memory]")
        return tensor(event, track);
      return range(event, track, event::MarkerKind::kMark);
    }
    case 'C': {
      if (!is_time(event.time)) return bad(Table::kReading);
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

Status Translator::finish() {
  for (const auto& [track, stack] : open_)
    for (const OpenRange& open : stack) {
      writer_.add(row::Marker{.track = track, .start = open.start, .dim = open.label});
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
  return {};
}

}  // namespace tacho::format::kineto
