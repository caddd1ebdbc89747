// Objects that records refer to by number: strings, threads, devices, queues, kernels, functions, communicators
// (process_state.h).
#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "decode/records/process_state.h"
#include "decode/records/record_values.h"
#include "event/functions/functions.h"

namespace tacho::decode {

using event::kUnknown;
using event::kUnknown32;
using event::Table;
namespace row = event::row;

namespace {

std::vector<std::string> words(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    out.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

}  // namespace

ProcessState::Lines& ProcessState::lines(uint32_t tid) {
  const auto found = lines_.find(tid);
  if (found != lines_.end()) return found.value();
  Lines made;
  made.thread = writer_.dimension(row::Thread{.process = row(), .tid = tid});
  made.track = writer_.dimension(row::Track{.kind = event::TrackKind::kThread,
                                            .process = row(),
                                            .thread = made.thread,
                                            .native = tid,
                                            .category = writer_.string("thread")});
  return lines_.emplace(tid, made).first.value();
}

int64_t ProcessState::thread_track(uint32_t tid) {
  return lines(tid).track;
}

int64_t ProcessState::ranges_track(uint32_t tid) {
  Lines& of = lines(tid);
  if (of.ranges == 0)
    of.ranges = writer_.dimension(
        row::Track{.kind = event::TrackKind::kRange,
                   .process = row(),
                   .thread = of.thread,
                   .name = writer_.string(tid == facts_.pid ? "ranges" : fmt::format("ranges of thread {}", tid)),
                   .category = writer_.string("range")});
  return of.ranges;
}

ProcessState::Thread& ProcessState::thread(const tape::BlockHeader& block) {
  const uint32_t index = block.thread_index;
  static Thread nobody;  // only for blocks whose index is nonsense; its rows land on the thread of its tid
  if (!reach(threads_, index)) {
    nobody = Thread{thread_track(block.tid), block.tid, {}, {}, {}};
    return nobody;
  }
  if (!threads_[index]) {
    threads_[index] = std::make_unique<Thread>();
    threads_[index]->tid = block.tid;
    threads_[index]->track = thread_track(block.tid);
  }
  return *threads_[index];
}

const ProcessState::Queue& ProcessState::queue(uint32_t number) {
  static const Queue kNone;
  if (number < queues_.size() && queues_[number].track != 0) return queues_[number];
  if (!reach(queues_, number)) return kNone;
  Queue& fresh = queues_[number];
  fresh.track = writer_.dimension(row::Track{
      .kind = event::TrackKind::kQueue, .process = row(), .native = number, .category = writer_.string("queue")});
  return fresh;
}

ProcessState::Kernel& ProcessState::kernel(uint32_t number) {
  static Kernel nothing;
  if (!reach(kernels_, number)) return nothing;
  Kernel& kernel = kernels_[number];
  if (!kernel.defined) {
    kernel.defined = true;
    kernel.name = writer_.string(fmt::format("kernel #{}", number));
    kernel.record.registers = kernel.record.accum_registers = kernel.record.scalar_registers = kUnknown32;
    kernel.record.shared_static = kernel.record.private_bytes = kUnknown32;
  }
  return kernel;
}

int64_t ProcessState::device_row(uint32_t number) const {
  return number < devices_.size() ? devices_[number] : 0;
}

bool ProcessState::Shape::same(const Shape& other) const {
  return std::memcmp(grid, other.grid, sizeof grid) == 0 && std::memcmp(group, other.group, sizeof group) == 0 &&
         std::memcmp(offset, other.offset, sizeof offset) == 0 &&
         std::memcmp(cluster, other.cluster, sizeof cluster) == 0 && shared_dynamic == other.shared_dynamic;
}

int64_t ProcessState::kernel_row(Kernel& kernel, Shape shape) {
  for (const Shape& known_shape : kernel.shapes)
    if (known_shape.same(shape)) return known_shape.row;
  const event::KernelRecord& facts = kernel.record;
  const auto i = [](uint64_t value) { return static_cast<int64_t>(value); };
  const auto group = [](uint64_t value) { return value == 0 ? kUnknown : static_cast<int64_t>(value); };
  shape.row = writer_.dimension(row::Kernel{.name = kernel.name,
                                            .kind = checked<event::DispatchKind>(facts.kind),
                                            .grid_x = i(shape.grid[0]),
                                            .grid_y = i(shape.grid[1]),
                                            .grid_z = i(shape.grid[2]),
                                            .group_x = group(shape.group[0]),
                                            .group_y = group(shape.group[1]),
                                            .group_z = group(shape.group[2]),
                                            .offset_x = i(shape.offset[0]),
                                            .offset_y = i(shape.offset[1]),
                                            .offset_z = i(shape.offset[2]),
                                            .cluster_x = shape.cluster[0],
                                            .cluster_y = shape.cluster[1],
                                            .cluster_z = shape.cluster[2],
                                            .registers = known(facts.registers),
                                            .accum_registers = known(facts.accum_registers),
                                            .scalar_registers = known(facts.scalar_registers),
                                            .shared_static = known(facts.shared_static),
                                            .shared_dynamic = known(shape.shared_dynamic),
                                            .private_bytes = known(facts.private_bytes)});
  constexpr size_t kRemembered = 16;
  if (kernel.shapes.size() >= kRemembered) kernel.shapes.pop_back();
  kernel.shapes.insert(kernel.shapes.begin(), shape);
  return shape.row;
}

int64_t ProcessState::function(event::Domain domain, uint32_t number) {
  auto& rows = functions_[static_cast<size_t>(domain)];
  if (!reach(rows, number)) return 0;
  if (rows[number] == 0) {
    std::string_view name = event::function_name(domain, number);
    const std::string made =
        name.empty() ? fmt::format("{} function {}", event::to_string(domain), number) : std::string();
    rows[number] =
        writer_.dimension(row::Function{.name = writer_.string(name.empty() ? made : name), .domain = domain});
  }
  return rows[number];
}

void ProcessState::take(const event::StringRecord& record) {
  const uint32_t number = record.header.value;
  if (record.length > record.header.size - sizeof record || !reach(strings_, number)) return count_bad(Table::kEnd);
  const std::string_view text(reinterpret_cast<const char*>(&record + 1), record.length);
  strings_[number] = {writer_.string(text), std::string(text)};
}

void ProcessState::take(const event::ThreadRecord& record) {
  const int64_t thread_row = writer_.dimension(row::Thread{.process = row(), .tid = record.tid});
  writer_.update(Table::kThread, thread_row, event::column::Thread::name, string(record.name));
}

void ProcessState::take(const event::DeviceRecord& record) {
  if (!reach(devices_, record.header.value)) return count_bad(Table::kEnd);
  // Not per process: the same device seen by several processes is one row.
  devices_[record.header.value] = writer_.dimension(row::Device{.kind = checked<event::DeviceKind>(record.kind),
                                                                .index = record.index,
                                                                .name = string(record.name),
                                                                .vendor = string(record.vendor),
                                                                .architecture = string(record.architecture),
                                                                .driver = string(record.driver),
                                                                .uuid = string(record.uuid),
                                                                .clock_error = known(record.clock_error_ns)});
}

void ProcessState::take(const event::QueueRecord& record) {
  if (!reach(queues_, record.header.value)) return count_bad(Table::kEnd);
  Queue& queue = queues_[record.header.value];
  const int64_t category = record.category != 0 ? string(record.category) : writer_.string("queue");
  queue.device = device_row(record.device);
  queue.device_number = record.device;
  queue.clock = static_cast<event::DeviceClock>(record.clock);
  const bool numbered = (record.header.flags & event::kQueueNumbered) != 0;
  queue.track =
      writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                   .process = row(),
                                   .device = queue.device,
                                   .native = numbered ? static_cast<int64_t>(record.native) : record.header.value,
                                   .context = static_cast<int64_t>(record.context),
                                   .name = string(record.name),
                                   .category = category});
  if (record.properties != 0)
    writer_.property(Table::kTrack, queue.track, "properties", fmt::format("{:#x}", record.properties));
  if ((record.header.flags & event::kQueueStream) != 0 && record.context != 0)
    writer_.property(Table::kTrack, queue.track, "queue", fmt::format("{}", record.context));
}

void ProcessState::take(const event::KernelRecord& record) {
  if (!reach(kernels_, record.header.value)) return count_bad(Table::kEnd);
  kernels_[record.header.value] = {.defined = true, .name = string(record.name), .record = record, .shapes = {}};
}

void ProcessState::take(const event::PropertyRecord& record) {
  auto table = static_cast<Table>(record.header.value);
  int64_t object = 0;
  if (record.object == 0) {
    table = Table::kProcess;
    object = row();
  } else if (table == Table::kDevice) {
    object = device_row(record.object);
  } else if (table == Table::kTrack) {
    object = queue(record.object).track;
  } else {
    return count_bad(Table::kEnd);
  }
  const std::string_view key = text(record.key);
  if (record.object == 0 && key == "cpu events") cpu_events_ = words(text(record.text));
  writer_.property(table, object, key, text(record.text));
}

void ProcessState::take(const event::ClockPairRecord& record) {
  const uint32_t device = record.header.value;
  if (!reach(device_clocks_, device)) return count_bad(Table::kEnd);
  const int64_t raw = host_time(record.host);
  device_clocks_[device].add(static_cast<int64_t>(record.device), raw);
  writer_.add(row::Clock{
      .process = row(), .raw = raw, .vendor = static_cast<int64_t>(record.device), .device = device_row(device)});
}

void ProcessState::take(const event::CommunicatorRecord& record) {
  if (!reach(communicators_, record.header.value)) return count_bad(Table::kMessage);
  communicators_[record.header.value] = writer_.dimension(row::Communicator{
      .identity = static_cast<int64_t>(record.id),
      .name = string(record.name),
      .size = record.size,
      .members = string(record.members),
      .origin = record.origin == 0 ? 0 : writer_.string(event::function_name(event::Domain::kMpi, record.origin))});
}

}  // namespace tacho::decode
