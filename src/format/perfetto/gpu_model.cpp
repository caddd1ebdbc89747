// Writes device work as Perfetto's model of GPUs has it (gpu_model.h).
#include "format/perfetto/gpu_model.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "format/perfetto/counter_units.h"
#include "format/perfetto/encode.h"
#include "format/shared/rocprof_words.h"
#include "trace/read/rows.h"
#include "vendor/vendor.h"

namespace tacho::format::perfetto {

namespace column = event::column;
namespace row = event::row;
using event::kUnknown;
using event::Table;
using walk::Happening;

namespace {

// Up to this many rows of a dimension, keeps what is encoded. Beyond it, encodes each time.
constexpr int64_t kMostEncoded = 1 << 18;
// Groups of counters that are ours count from here; Perfetto's own are below.
constexpr uint32_t kFirstGroup = 1000;

// The 16 bytes of "GPU-12345678-1234-1234-1234-123456789abc"; "" for ids of other lengths.
std::string uuid_bytes(std::string_view text) {
  if (const size_t dash = text.find('-'); dash != std::string_view::npos && dash <= 3) text.remove_prefix(dash + 1);
  std::string digits, bytes;
  for (const char c : text)
    if (c != '-') digits += c;
  if (digits.size() != 32) return {};
  for (size_t at = 0; at < digits.size(); at += 2) {
    unsigned value = 0;
    const char* const begin = digits.data() + at;
    if (std::from_chars(begin, begin + 2, value, 16).ptr != begin + 2) return {};
    bytes += static_cast<char>(value);
  }
  return bytes;
}

// Workgroups of a kernel's grid in one dimension; 0 where the grid is not made of whole ones.
int64_t groups_of(int64_t items, int64_t group) {
  if (items == kUnknown || group == kUnknown || group <= 0 || items <= 0 || items % group != 0) return 0;
  return items / group <= UINT32_MAX && group <= UINT32_MAX ? items / group : 0;
}

// The product of three extents; kUnknown if one is not known or it is too large.
int64_t product_of(const std::array<int64_t, 3>& extents) {
  int64_t product = 1;
  for (const int64_t extent : extents)
    if (extent == kUnknown || __builtin_mul_overflow(product, extent, &product)) return kUnknown;
  return product;
}

void add_extents(std::string& to, uint32_t field, const std::array<int64_t, 3>& extents) {
  std::string message;
  for (uint32_t at = 0; at < 3; ++at) add_number(message, at + 1, static_cast<uint64_t>(extents[at]));
  add_bytes(to, field, message);
}

}  // namespace

// LaunchArguments

void LaunchArguments::put(std::string_view message) {
  add_bytes(bytes_, launch_arguments, message);
}

void LaunchArguments::add(std::string_view name, int64_t value) {
  if (value == kUnknown) return;
  char bytes[40];
  char* at = put_number(bytes, argument_name_iid, name_of(name));
  // Negative numbers are rare, and take ten bytes.
  at = put_number(at, value < 0 ? argument_int : argument_uint, static_cast<uint64_t>(value));
  put({bytes, static_cast<size_t>(at - bytes)});
}

void LaunchArguments::add_real(std::string_view name, double value) {
  char bytes[40];
  char* at = put_number(bytes, argument_name_iid, name_of(name));
  at = put_tag2(at, argument_double, 1);
  std::memcpy(at, &value, 8);
  put({bytes, static_cast<size_t>(at + 8 - bytes)});
}

void LaunchArguments::add_text(std::string_view name, std::string_view text) {
  std::string message;
  add_number(message, argument_name_iid, name_of(name));
  perfetto::add_text(message, argument_string, text);
  put(message);
}

void LaunchArguments::add_repeated(std::string_view name, std::string_view text) {
  char bytes[40];
  char* at = put_number(bytes, argument_name_iid, name_of(name));
  at = put_number(at, argument_string_iid, packets_.intern(interned_annotation_strings, text));
  put({bytes, static_cast<size_t>(at - bytes)});
}

// Devices

GpuModel::GpuModel(Scene scene, Packets& packets)
    : scene_(scene), packets_(packets), names_(scene.trace.rows(Table::kString)), arguments_(packets) {
  places_.resize(static_cast<size_t>(std::max<int64_t>(scene.trace.rows(Table::kTrack), 1)));
  for (const int64_t pid : scene.pids) processes_.push_back(pid != 0);
  several_processes_ = std::count(processes_.begin() + 1, processes_.end(), true) > 1;
  number_devices();
}

// GPUs keep their index where they can, because people know them by it. A device that several processes name by the
// same id is one; everything else follows behind.
void GpuModel::number_devices() {
  constexpr int64_t kMostIndex = 256;
  const trace::Trace& trace = scene_.trace;
  const int64_t rows = std::max<int64_t>(trace.rows(Table::kDevice), 1);
  gpus_.assign(static_cast<size_t>(rows), kUnknown);
  const auto give = [&](int64_t device, int64_t gpu) {
    gpus_[static_cast<size_t>(device)] = gpu;
    if (static_cast<int64_t>(device_of_gpu_.size()) <= gpu) device_of_gpu_.resize(static_cast<size_t>(gpu) + 1);
    int64_t& known = device_of_gpu_[static_cast<size_t>(gpu)];
    if (known == 0) known = device;
  };
  std::map<std::pair<std::string_view, int64_t>, int64_t> by_uuid;
  std::vector<int64_t> later;
  for (int64_t device = 1; device < rows; ++device) {
    const auto at = trace::row<row::Device>(trace, device);
    if (!processes_[static_cast<size_t>(at.process)]) continue;
    const std::string_view uuid = trace.string(at.uuid);
    if (!uuid.empty()) {
      const auto [same, fresh] = by_uuid.try_emplace({uuid, at.index}, device);
      if (!fresh) {
        later.push_back(device);
        continue;
      }
    }
    const bool free =
        at.kind == event::DeviceKind::kGpu && at.index >= 0 && at.index < kMostIndex &&
        (static_cast<int64_t>(device_of_gpu_.size()) <= at.index || device_of_gpu_[static_cast<size_t>(at.index)] == 0);
    if (free)
      give(device, at.index);
    else
      later.push_back(device);
  }
  for (const int64_t device : later) {
    const auto at = trace::row<row::Device>(trace, device);
    const auto same = by_uuid.find({trace.string(at.uuid), at.index});
    const bool known = same != by_uuid.end() && same->second != device;
    const int64_t gpu = known ? gpus_[static_cast<size_t>(same->second)] : kUnknown;
    give(device, gpu != kUnknown ? gpu : static_cast<int64_t>(device_of_gpu_.size()));
  }
}

// Work of a device that the trace does not name is the first GPU's.
int64_t GpuModel::gpu_of(int64_t device) const {
  if (device <= 0 || device >= static_cast<int64_t>(gpus_.size())) return 0;
  const int64_t gpu = gpus_[static_cast<size_t>(device)];
  return gpu == kUnknown ? 0 : gpu;
}

std::string GpuModel::gpu_message(int64_t device, bool several_of_name) const {
  std::string message;
  if (device == 0) return message;
  const trace::Trace& trace = scene_.trace;
  const auto at = trace::row<row::Device>(trace, device);
  const auto text = [&](uint32_t field, std::string_view value) {
    if (!value.empty()) add_text(message, field, value);
  };
  const std::string_view called = trace.string(at.name), uuid = trace.string(at.uuid);
  text(gpu_name, several_of_name ? fmt::format("{} #{}", called, gpu_of(device)) : std::string(called));
  text(gpu_vendor, trace.string(at.vendor));
  text(gpu_model, called);
  text(gpu_architecture, trace.string(at.architecture));
  if (const std::string bytes = uuid_bytes(uuid); !bytes.empty()) add_bytes(message, gpu_uuid, bytes);
  const auto number = [&](std::string_view key) {
    const auto value = trace.property(Table::kDevice, device, key);
    uint32_t parsed = 0;
    const bool good = value && std::from_chars(value->data(), value->data() + value->size(), parsed).ec == std::errc();
    return good ? std::optional(parsed) : std::nullopt;
  };
  // Bus, device and function are packed as in the kernel's topology.
  if (const auto location = number("location_id"))
    text(gpu_pci, fmt::format("{:04x}:{:02x}:{:02x}.{:x}", number("domain").value_or(0), *location >> 8 & 0xff,
                              *location >> 3 & 0x1f, *location & 7));
  const auto extra = [&](std::string_view key, std::string_view value) {
    if (value.empty()) return;
    std::string entry;
    add_text(entry, gpu_extra_key, key);
    add_text(entry, gpu_extra_value, value);
    add_bytes(message, gpu_extra, entry);
  };
  if (at.kind == event::DeviceKind::kCpu) extra("type", "CPU");
  extra("uuid", uuid);
  extra("driver", trace.string(at.driver));
  // What lines about it that are no queues of this model call it.
  extra(kGpuAgent, scene_.agents.label(device, scene_.options.agent_index));
  if (at.index >= 0 && at.index != gpu_of(device)) extra(kGpuIndex, std::to_string(at.index));
  const int64_t properties = trace.rows(Table::kProperty);
  for (int64_t property = 1; property < properties; ++property) {
    const auto fact = trace::row<row::Property>(trace, property);
    if (fact.table == Table::kDevice && fact.row == device) extra(trace.string(fact.key), trace.string(fact.value));
  }
  return message;
}

Status GpuModel::describe() {
  std::map<std::string_view, int> names;
  for (const int64_t device : device_of_gpu_)
    if (device != 0) ++names[trace::text<column::Device::name>(scene_.trace, device)];
  std::string info;
  for (const int64_t device : device_of_gpu_) {
    const std::string_view called = trace::text<column::Device::name>(scene_.trace, device);
    add_bytes(info, gpu_info_gpus, gpu_message(device, device != 0 && names[called] > 1));
  }
  if (!info.empty()) packets_.fact(packet_gpu_info, info);
  return find_counters();
}

// Work

uint32_t GpuModel::queue(int64_t line) {
  uint32_t& iid = queues_[line];
  if (iid != 0) return iid;
  iid = ++specifications_;
  const auto at = trace::row<row::Track>(scene_.trace, line);
  const int64_t stream = scene_.tracks.stream(line);
  const bool streamed = stream != kUnknown && !scene_.options.group_by_queue;
  std::string name(scene_.trace.string(at.name));
  const std::string number = streamed ? fmt::format("Stream {}", stream) : fmt::format("Queue {}", at.native);
  if (name.empty())
    name = number;
  else if (!name.starts_with(number))
    name = fmt::format("{} {}", number, name);
  if (several_processes_ && at.process != 0)
    name += fmt::format(" of {} ({})", scene_.tracks.process_name(at.process), pid(at.process));
  std::string message;
  add_number(message, interned_iid, iid);
  add_text(message, specification_name, name);
  packets_.intern_message(interned_specifications, message);
  return iid;
}

uint32_t GpuModel::context(int64_t process, int64_t device, int64_t number) {
  uint32_t& iid = contexts_[{process, device, number}];
  if (iid != 0) return iid;
  iid = packets_.new_context();
  std::string message;
  add_number(message, interned_iid, iid);
  if (process != 0) add_number(message, context_pid, static_cast<uint64_t>(pid(process)));
  const uint32_t api = vendor::viewer_api(trace::text<column::Device::vendor>(scene_.trace, device),
                                          scene_.trace.property(Table::kDevice, device, "api").value_or(""));
  if (api != 0) add_number(message, context_api, api);
  packets_.intern_message(interned_contexts, message);
  return iid;
}

uint32_t GpuModel::stage(Table table) {
  uint32_t& iid = stages_[static_cast<int64_t>(table)];
  if (iid != 0) return iid;
  iid = ++specifications_;
  const bool kernels = table == Table::kDispatch;
  std::string message;
  add_number(message, interned_iid, iid);
  add_text(message, specification_name, kernels ? "Kernel" : table == Table::kCopy ? "Memcpy" : "Memset");
  add_text(message, specification_text,
           kernels                 ? "A kernel"
           : table == Table::kCopy ? "A copy of memory"
                                   : "A fill of memory");
  add_number(message, specification_category, kernels ? kStageCompute : kStageOther);
  packets_.intern_message(interned_specifications, message);
  return iid;
}

GpuModel::Place& GpuModel::place(int64_t track, int64_t line) {
  Place& known = places_[static_cast<size_t>(track)];
  if (known.made) return known;
  known.made = true;
  const auto at = trace::row<row::Track>(scene_.trace, track);
  const int64_t gpu = gpu_of(at.device);
  add_number(known.head, stage_context, context(at.process, at.device, at.context));
  add_number(known.head, stage_gpu, static_cast<uint64_t>(gpu));
  add_number(known.head, stage_queue_iid, queue(line));
  const std::string_view architecture = trace::text<column::Device::architecture>(scene_.trace, at.device);
  const auto found = std::find(architectures_.begin(), architectures_.end(), architecture);
  known.architecture = static_cast<size_t>(found - architectures_.begin());
  if (found == architectures_.end()) {
    architectures_.push_back(architecture);
    kernels_.emplace_back(scene_.trace.rows(Table::kString));
  }
  LaunchArguments arguments(packets_);
  // Perfetto puts what has both of these under its process, device, context and stream.
  arguments.add("device", gpu);
  const int64_t stream = scene_.tracks.stream(track), queue = scene_.tracks.queue(track);
  if (stream != kUnknown && !scene_.options.group_by_queue) arguments.add("stream", stream);
  if (queue != kUnknown && queue != stream) arguments.add("queue", queue);
  arguments.add("context", std::max<int64_t>(at.context, 0));
  if (const int64_t tid = scene_.tracks.tid(track); tid > 0) arguments.add("tid", tid);
  if (at.process != 0) {
    arguments.add("process_id", pid(at.process));
    arguments.add_repeated("process_name", keep(scene_.tracks.process_name(at.process)));
  }
  known.arguments = std::move(arguments.bytes());
  return known;
}

uint32_t GpuModel::kernel(int64_t dim, size_t architecture) {
  const int64_t string = trace::cell<column::Kernel::name>(scene_.trace, dim);
  int64_t& iid = kernels_[architecture].of(string);
  if (iid != 0) return static_cast<uint32_t>(iid);
  iid = ++kernel_entries_;
  std::string message;
  add_number(message, interned_iid, static_cast<uint64_t>(iid));
  const std::string_view mangled = scene_.trace.string(string), shown = scene_.kernels.name(dim);
  add_text(message, kernel_mangled, mangled);
  if (shown != mangled) add_text(message, kernel_demangled, shown);
  if (!architectures_[architecture].empty()) add_text(message, kernel_architecture, architectures_[architecture]);
  packets_.intern_message(interned_kernels, message);
  return static_cast<uint32_t>(iid);
}

// The launch of a row of table kernel: extents, then arguments. The extents of the grid are workgroups; a grid that is
// not made of whole ones is an argument, in work-items.
std::string_view GpuModel::shape(int64_t dim) {
  const bool remembered = scene_.options.annotations && dim < kMostEncoded;
  if (remembered && static_cast<int64_t>(shapes_.size()) <= dim) shapes_.resize(static_cast<size_t>(dim) + 1);
  if (remembered && !shapes_[static_cast<size_t>(dim)].empty()) return shapes_[static_cast<size_t>(dim)];
  const auto at = trace::row<row::Kernel>(scene_.trace, dim);
  const std::array<int64_t, 3> grid = {at.grid_x, at.grid_y, at.grid_z}, group = {at.group_x, at.group_y, at.group_z};
  std::array<int64_t, 3> groups{};
  for (size_t i = 0; i < 3; ++i) groups[i] = groups_of(grid[i], group[i]);
  const bool whole = std::find(groups.begin(), groups.end(), 0) == groups.end();
  const int64_t items = product_of(grid);
  scratch_.clear();
  if (whole) add_extents(scratch_, launch_grid, groups);
  const auto fits = [](int64_t extent) { return extent > 0 && extent <= UINT32_MAX; };
  if (std::all_of(group.begin(), group.end(), fits)) add_extents(scratch_, launch_group, group);
  LaunchArguments arguments(packets_);
  arguments.add("workgroup_size", product_of(group));
  if (whole) arguments.add("grid_size", product_of(groups));
  arguments.add("thread_count", items);
  if (!whole && items != kUnknown) arguments.add_text("grid", fmt::format("({},{},{})", grid[0], grid[1], grid[2]));
  arguments.add("registers_per_thread", at.registers);
  arguments.add("shared_mem_static", at.shared_static);
  arguments.add("shared_mem_dynamic", at.shared_dynamic);
  arguments.add("local_memory_per_thread", at.private_bytes);
  arguments.add("Accum_VGPR_Count", at.accum_registers);
  arguments.add("SGPR_Count", at.scalar_registers);
  if (at.cluster_x > 0)
    arguments.add_text("cluster", fmt::format("({},{},{})", at.cluster_x, at.cluster_y, at.cluster_z));
  if (at.offset_x != 0 || at.offset_y != 0 || at.offset_z != 0)
    arguments.add_text("offset", fmt::format("({},{},{})", at.offset_x, at.offset_y, at.offset_z));
  if (at.graph != 0) arguments.add("graph", at.graph);
  scratch_ += arguments.bytes();
  if (!remembered) return scratch_;
  return shapes_[static_cast<size_t>(dim)] = scratch_;
}

std::string_view GpuModel::device_word(int64_t device) {
  if (device == 0) return "CPU-0";
  return keep(fmt::format("GPU-{}", gpu_of(device)));
}

// The ends of a copy, as arguments.
std::string_view GpuModel::copy(int64_t dim) {
  if (static_cast<int64_t>(copies_.size()) <= dim) copies_.resize(static_cast<size_t>(dim) + 1);
  std::string& known = copies_[static_cast<size_t>(dim)];
  if (!known.empty()) return known;
  const auto at = trace::row<row::CopyShape>(scene_.trace, dim);
  LaunchArguments arguments(packets_);
  arguments.add_repeated("src_agent", device_word(at.source_device));
  arguments.add_repeated("dst_agent", device_word(at.target_device));
  return known = std::move(arguments.bytes());
}

// Adds the name to head_.
void GpuModel::name(int64_t dim, std::string_view renamed, Table table) {
  if (!renamed.empty()) return add_text(head_, stage_name, renamed);
  uint32_t iid = 0;
  if (table == Table::kDispatch) {
    int64_t& known = names_.of(trace::cell<column::Kernel::name>(scene_.trace, dim));
    if (known == 0) known = packets_.intern_fresh(interned_event_names, scene_.kernels.name(dim));
    iid = static_cast<uint32_t>(known);
  } else {
    const event::Code<event::CopyDirection> direction =
        table == Table::kCopy ? trace::cell<column::CopyShape::direction>(scene_.trace, dim)
                              : event::Code<event::CopyDirection>();
    iid = packets_.intern(interned_event_names, table == Table::kCopy
                                                    ? copy_direction_name(static_cast<int64_t>(direction.value))
                                                    : std::string_view("MEMORY_FILL"));
  }
  add_number(head_, stage_name_iid, iid);
}

void GpuModel::work(const Happening& what, int64_t time, int64_t line, std::string_view renamed) {
  const Place& where = place(what.track, line);
  const bool kernel = what.table == Table::kDispatch;
  const int64_t process = scene_.tracks.process(what.track);
  head_.clear();
  add_number(head_, stage_event_id, scene_.ids.next(process, what.correlation));
  if (what.end != kUnknown)
    add_number(head_, stage_duration, static_cast<uint64_t>(std::max<int64_t>(what.end - what.start, 0)));
  add_number(head_, stage_stage_iid, stage(what.table));
  name(what.dim, renamed, what.table);
  if (kernel) add_number(head_, stage_kernel_iid, this->kernel(what.dim, where.architecture));
  launch_.clear();
  if (!scene_.options.annotations) {
    packets_.message(time, packet_render_stage, {head_, where.head});
    return;
  }
  arguments_.clear();
  if (what.correlation != 0) arguments_.add("correlation", what.correlation);
  const auto text = [&](int64_t string) {
    if (string != 0) arguments_.add_text("arguments", scene_.trace.string(string));
  };
  std::string_view fixed;
  int64_t node = 0;
  if (kernel) {
    fixed = shape(what.dim);
    arguments_.add("dispatch_id", dispatch_id(what.cell<column::Dispatch::ordinal>()));
    node = what.cell<column::Dispatch::graph_node>();
    text(what.cell<column::Dispatch::arguments>());
  } else if (what.table == Table::kCopy) {
    fixed = copy(what.dim);
    arguments_.add("bytes", what.cell<column::Copy::bytes>());
    node = what.cell<column::Copy::graph_node>();
    text(what.cell<column::Copy::arguments>());
  } else {
    arguments_.add("bytes", what.cell<column::Fill::bytes>());
    node = what.cell<column::Fill::graph_node>();
    const auto memory = event::from_cell(trace::cell<column::FillShape::memory>(scene_.trace, what.dim));
    if (memory != event::MemoryKind::kUnknown) arguments_.add_text("memory kind", event::to_string(memory));
  }
  if (node != 0) arguments_.add("graph_node", node);
  if (what.end == kUnknown) arguments_.add("end_not_recorded", 1);
  const size_t content = fixed.size() + where.arguments.size() + arguments_.bytes().size();
  char tag[16];
  const char* const behind = put_varint(put_tag2(tag, stage_launch, 2), content);
  packets_.message(
      time, packet_render_stage,
      {head_, where.head, {tag, static_cast<size_t>(behind - tag)}, fixed, where.arguments, arguments_.bytes()});
}

// Counters

Status GpuModel::find_counters() {
  const trace::Trace& trace = scene_.trace;
  using V = column::CounterValue;
  const auto mine = [&](int64_t process) {
    return processes_[static_cast<size_t>(process)] &&
           (scene_.options.process == 0 || scene_.options.process == process || process == 0);
  };
  if (scene_.options.wants(Table::kCounterValue) && trace.rows(Table::kCounterValue) > 0) {
    Status status;
    std::set<std::pair<int64_t, int64_t>> found;  // GPU and counter
    int64_t last_track = kUnknown, last_counter = kUnknown;
    for (const auto& values : trace::chunks<V::track, V::dim>(trace, status))
      for (size_t i = 0; i < values.size(); ++i) {
        if (values.track[i] == last_track && values.dim[i] == last_counter) continue;
        last_track = values.track[i];
        last_counter = values.dim[i];
        const auto at = trace::row<row::Track>(trace, last_track);
        if (mine(at.process)) found.emplace(gpu_of(at.device), last_counter);
      }
    TACHO_TRY(status);
    for (const auto& [gpu, counter] : found) {
      Counters& counters = kernel_counters_[gpu];
      counters.ids[counter] = static_cast<uint32_t>(counters.rows.size());
      counters.rows.push_back(counter);
    }
  }
  if (!scene_.options.wants(Table::kReading)) return {};
  std::map<std::pair<int64_t, std::string>, int> taken;
  for (int64_t track = 1; track < trace.rows(Table::kTrack); ++track) {
    const auto at = trace::row<row::Track>(trace, track);
    const bool gpu = at.kind == event::TrackKind::kCounter && at.device > 0 && mine(at.process) &&
                     gpus_[static_cast<size_t>(at.device)] != kUnknown &&
                     trace::row<row::Device>(trace, at.device).kind == event::DeviceKind::kGpu;
    if (!gpu) continue;
    const int64_t number = gpu_of(at.device);
    std::string name(trace.string(at.name));
    if (name.empty()) name = trace::text<column::Counter::name>(trace, at.counter);
    if (name.empty()) name = fmt::format("counter {}", at.counter);
    // Perfetto knows a GPU's counters by name.
    if (const int same = taken[{number, name}]++; same > 0) name += fmt::format(" ({})", same + 1);
    Counters& counters = telemetry_[number];
    const auto id = static_cast<uint32_t>(counters.rows.size());
    counters.rows.push_back(track);
    readings_[track] = {number, id};
    reading_names_[track] = std::move(name);
  }
  return {};
}

// Writes the names of a GPU's counters, with the next packet.
void GpuModel::describe_counters(Counters& counters, int64_t gpu, bool of_kernels) {
  const trace::Trace& trace = scene_.trace;
  counters.descriptor = ++descriptors_;
  counters.written.assign(counters.rows.size(), INT64_MIN);
  std::string descriptor;
  std::map<std::string, std::vector<uint32_t>> groups;
  for (size_t id = 0; id < counters.rows.size(); ++id) {
    const int64_t counter =
        of_kernels ? counters.rows[id] : trace::cell<column::Track::counter>(trace, counters.rows[id]);
    const auto at = trace::row<row::Counter>(trace, counter);
    const CounterUnits units = counter_units(trace.string(at.unit));
    std::string spec, text(trace.string(at.text));
    if (!units.known) text += fmt::format("{}{}{}", text.empty() ? "" : " ", kUnitBefore, trace.string(at.unit));
    add_number(spec, spec_id, id);
    add_text(spec, spec_name, of_kernels ? trace.string(at.name) : reading_names_[counters.rows[id]]);
    if (!text.empty()) add_text(spec, spec_text, text);
    if (units.numerator != 0) add_number(spec, spec_numerators, units.numerator);
    if (units.denominator != 0) add_number(spec, spec_denominators, units.denominator);
    add_number(spec, spec_groups, of_kernels ? kGroupCompute : units.bytes ? kGroupMemory : kGroupSystem);
    add_number(spec, spec_direction, kForwardsLooking);
    add_bytes(descriptor, descriptor_specs, spec);
    std::string group(trace.string(at.block));
    if (group.empty()) group = of_kernels ? kGroupOfKernels : kGroupOfTelemetry;
    groups[group].push_back(static_cast<uint32_t>(id));
  }
  uint32_t number = kFirstGroup * counters.descriptor;
  for (const auto& [name, ids] : groups) {
    std::string group;
    add_number(group, counter_group_id, number++);
    add_text(group, counter_group_name, name);
    for (const uint32_t id : ids) add_number(group, counter_group_counters, id);
    add_bytes(descriptor, descriptor_groups, group);
  }
  std::string message;
  add_number(message, interned_iid, counters.descriptor);
  add_bytes(message, counter_descriptor, descriptor);
  add_number(message, counter_descriptor_gpu, static_cast<uint64_t>(gpu));
  packets_.intern_message(interned_counter_descriptors, message);
}

void GpuModel::put_counters(int64_t time, Counters& counters, const std::vector<std::pair<uint32_t, double>>& values) {
  scratch_.clear();
  add_number(scratch_, gpu_event_descriptor_iid, counters.descriptor);
  for (const auto& [id, value] : values) {
    char bytes[40];
    char* at = put_number(bytes, gpu_counter_id, id);
    at = put_tag2(at, gpu_counter_double, 1);
    std::memcpy(at, &value, 8);
    add_bytes(scratch_, gpu_event_counters, {bytes, static_cast<size_t>(at + 8 - bytes)});
  }
  packets_.message(time, packet_gpu_counters, {scratch_});
}

void GpuModel::kernel_counters(int64_t track, int64_t time, int64_t end,
                               const std::vector<std::pair<int64_t, double>>& values) {
  const int64_t gpu = gpu_of(trace::cell<column::Track::device>(scene_.trace, track));
  Counters& counters = kernel_counters_[gpu];
  if (counters.descriptor == 0) describe_counters(counters, gpu, true);
  values_.clear();
  Fall fall{end, time, gpu, {}};
  for (const auto& [counter, value] : values) {
    const uint32_t id = counters.ids[counter];
    values_.emplace_back(id, value);
    counters.written[id] = time;
    fall.ids.push_back(id);
  }
  put_counters(time, counters, values_);
  if (end != kUnknown && end > time) falls_.push(std::move(fall));
}

// A kernel that began in the meantime has set its own value, which the page of kernels would take this 0 for.
void GpuModel::fall(int64_t until) {
  while (!falls_.empty() && falls_.top().time < until) {
    const Fall& due = falls_.top();
    Counters& counters = kernel_counters_[due.gpu];
    values_.clear();
    for (const uint32_t id : due.ids)
      if (counters.written[id] <= due.since) values_.emplace_back(id, 0.0);
    if (!values_.empty()) put_counters(due.time, counters, values_);
    falls_.pop();
  }
}

void GpuModel::reading(int64_t track, int64_t time, double value) {
  const auto [gpu, id] = readings_.at(track);
  Counters& counters = telemetry_[gpu];
  if (counters.descriptor == 0) describe_counters(counters, gpu, false);
  put_counters(time, counters, {{id, value}});
}

}  // namespace tacho::format::perfetto
