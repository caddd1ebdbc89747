// Work that has ended, as HIP tells its tracer (late.h): kernels, copies, fills. On HIP's own threads.
#include <string.h>

#include <algorithm>
#include <string_view>

#include "base/clock.h"
#include "capture/kernel_filter.h"
#include "capture/room/lock.h"
#include "capture/source/rocm/late/late.h"
#include "capture/source/rocm/rocm.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

namespace sig = hsa::signature;

constexpr uint64_t kUnknownNumber = 1ull << 63;  // kUnknown, in a record's unsigned fields

constinit std::atomic<int64_t> g_kernels{0}, g_copies{0};  // made and not told
constinit std::atomic<uint64_t> g_begin{0};
constinit double g_ns_per_tick = 1;

// Devices and queues

struct LateDevice {
  hsa::Agent agent;
  uint32_t node;            // the driver's number
  uint32_t number, copies;  // in the pool: of the device, of its queue of copies
};
constexpr uint32_t kMostLateDevices = 64;
constinit LateDevice g_late_devices[kMostLateDevices] = {};
constinit std::atomic<uint32_t> g_late_device_count{0};

constexpr uint32_t kAgentDriverNode = 0xa004;

// Queues of HIP's by device and number.
struct HipQueue {
  uint64_t key;  // device's number << 32 | HIP's number; 0 = free
  uint32_t queue;
};
constexpr uint32_t kMostHipQueues = 4096;
constinit HipQueue g_hip_queues[kMostHipQueues] = {};
constinit LockWord g_tables_lock{0};

void define_clock(const LateDevice& device) {
  event::ClockPairRecord best{};
  best.uncertainty = ~0ull;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const int64_t raw = raw_now();
    const uint64_t before = host_ticks();
    const uint64_t theirs = hsa_now();
    if (theirs == 0) return;
    const uint64_t after = host_ticks();
    const auto uncertainty = static_cast<uint64_t>(raw_now() - raw) / 2;
    if (uncertainty >= best.uncertainty) continue;
    best.uncertainty = uncertainty;
    best.host = before + (after - before) / 2;
    best.device = theirs;
  }
  best.header = {event::RecordKind::kClockPair, 0, sizeof best, device.number};
  tape::define(&best.header);
}

uint32_t define_queue(const LateDevice& device, const char* name, const char* category, uint64_t native,
                      uint8_t flags) {
  event::QueueRecord record{};
  record.header = {event::RecordKind::kQueue, flags, sizeof record, tape::next_queue()};
  record.device = device.number;
  record.name = name != nullptr ? tape::intern(name) : 0;
  record.category = tape::intern(category);
  record.clock = static_cast<uint32_t>(event::DeviceClock::kPaired);
  record.native = native;
  tape::define(&record.header);
  return record.header.value;
}

hsa::Status add_late_device(hsa::Agent agent, void*) {
  uint32_t type = 0, node = 0;
  const auto info = [&](uint32_t what, void* into) {
    return call<sig::AgentInfo>(g_runtime.core.hsa_agent_get_info, agent, what, into) == hsa::kSuccess;
  };
  const uint32_t index = g_late_device_count.load(std::memory_order_relaxed);
  if (!info(hsa::kAgentDevice, &type) || type != hsa::kDeviceGpu || index == kMostLateDevices ||
      !info(kAgentDriverNode, &node))
    return hsa::kSuccess;
  char name[64] = {}, product[64] = {}, uuid[64] = {};
  info(hsa::kAgentName, name);
  info(hsa::kAgentProductName, product);
  info(hsa::kAgentUuid, uuid);
  LateDevice& device = g_late_devices[index];
  device = {agent, node, tape::next_device(), 0};
  event::DeviceRecord record{};
  record.header = {event::RecordKind::kDevice, 0, sizeof record, device.number};
  record.kind = static_cast<uint32_t>(event::DeviceKind::kGpu);
  record.index = index;
  record.name = tape::intern(product[0] != '\0' ? product : name);
  record.vendor = tape::intern("Advanced Micro Devices, Inc.");
  record.architecture = tape::intern(name);
  record.uuid = tape::intern(uuid);
  record.clock_error_ns = event::kUnknown32;
  tape::define(&record.header);
  define_clock(device);
  device.copies = define_queue(device, "copies", "copy engine", 0, 0);
  g_late_device_count.store(index + 1, std::memory_order_release);
  return hsa::kSuccess;
}

const LateDevice* late_device(int32_t node) {
  for (uint32_t at = 0; at < g_late_device_count.load(std::memory_order_acquire); ++at)
    if (g_late_devices[at].node == static_cast<uint32_t>(node)) return &g_late_devices[at];
  return nullptr;
}

// The pool's queue for a queue of HIP's; the device's copies' where there are too many.
uint32_t queue_of(const LateDevice& device, uint64_t queue) {
  const uint64_t key = uint64_t{device.number} << 32 | (queue & 0xffffffff);
  const Guard lock(g_tables_lock);
  for (uint32_t tried = 0, at = static_cast<uint32_t>(key * 0x9e3779b97f4a7c15ull >> 52); tried < kMostHipQueues;
       ++tried, at = (at + 1) % kMostHipQueues) {
    HipQueue& here = g_hip_queues[at];
    if (here.key == 0) here = {key, define_queue(device, nullptr, "HIP queue", queue, event::kQueueNumbered)};
    if (here.key == key) return here.queue;
  }
  return device.copies;
}

// Kernels, by two hashes of their names

struct NamedKernel {
  uint64_t hash, other;  // 0, 0 = free
  uint32_t number;
  bool wanted;
};
constexpr uint32_t kMostKernels = 1 << 14;
constinit NamedKernel g_named_kernels[kMostKernels] = {};

uint64_t hash_of(std::string_view text, uint64_t start, uint64_t factor) {
  for (const char each : text) start = (start ^ static_cast<unsigned char>(each)) * factor;
  return start | 1;
}

NamedKernel define_kernel(std::string_view name) {
  event::KernelRecord record{};
  record.header = {event::RecordKind::kKernel, 0, sizeof record, tape::next_kernel()};
  record.name = tape::intern(name);
  record.kind = static_cast<uint32_t>(event::DispatchKind::kKernel);
  record.registers = record.accum_registers = record.scalar_registers = event::kUnknown32;
  record.shared_static = record.private_bytes = event::kUnknown32;
  tape::define(&record.header);
  return {0, 0, record.header.value, kernel_included(name)};
}

NamedKernel kernel_named(std::string_view name) {
  const uint64_t hash = hash_of(name, 0xcbf29ce484222325ull, 0x100000001b3ull);
  const uint64_t other = hash_of(name, 0x9e3779b97f4a7c15ull, 0xff51afd7ed558ccdull);
  const Guard lock(g_tables_lock);
  for (uint32_t tried = 0, at = static_cast<uint32_t>(hash >> 50); tried < 64; ++tried, at = (at + 1) % kMostKernels) {
    NamedKernel& here = g_named_kernels[at];
    if (here.hash == hash && here.other == other) return here;
    if (here.hash != 0) continue;
    here = define_kernel(name);
    here.hash = hash;
    here.other = other;
    return here;
  }
  return define_kernel(name);
}

// Records

void write_kernel(const tracer::Record& from, const LateLaunch* launch, const LateDevice& device) {
  const std::string_view name = from.kernel != nullptr ? from.kernel : "";
  const NamedKernel kernel = kernel_named(name.substr(0, tape::kLongestText));
  if (!kernel.wanted) {
    tape::loss(event::Table::kDispatch, event::LossReason::kFiltered, 1);
    return tell_left_out(name);
  }
  const bool graph = launch != nullptr && launch->graph;
  auto* const record =
      tape::begin<event::DispatchWideRecord>(event::RecordKind::kDispatchWide, event::Table::kDispatch, kernel.number,
                                             graph ? event::kFlagGraph : 0, graph ? sizeof(uint64_t) : 0);
  if (record == nullptr) return;
  const bool shaped = launch != nullptr && launch->shaped;
  record->correlation = launch != nullptr ? launch->correlation : 0;
  record->queued = record->submit = 0;
  record->start = from.begin;
  record->end = from.end;
  record->queue =
      queue_of_stream(queue_of(device, from.queue), device.number, 0, launch != nullptr ? launch->stream : kNoStream);
  record->ordinal = launch != nullptr ? launch->ordinal : 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    record->grid[axis] = shaped ? launch->grid[axis] : kUnknownNumber;
    record->group[axis] = shaped ? launch->group[axis] : 0;
    record->offset[axis] = record->cluster[axis] = 0;
  }
  record->shared_dynamic = shaped ? launch->shared_dynamic : event::kUnknown32;
  if (graph) {
    const uint64_t node = launch->told.load(std::memory_order_relaxed);
    memcpy(record + 1, &node, sizeof node);
  }
  tape::commit();
}

void write_fill(const tracer::Record& from, const LateLaunch* launch, const LateDevice& device, uint32_t queue) {
  static_cast<void>(device);
  auto* const record = tape::begin<event::FillRecord>(event::RecordKind::kFill, event::Table::kFill,
                                                      static_cast<uint32_t>(event::MemoryKind::kUnknown));
  if (record == nullptr) return;
  record->correlation = launch != nullptr ? launch->correlation : 0;
  record->queued = record->submit = 0;
  record->start = from.begin;
  record->end = from.end;
  record->bytes = from.kind == tracer::kFillBuffer ? from.bytes : kUnknownNumber;
  record->pattern = 0;
  record->pattern_bytes = 16;  // not told
  record->queue = queue;
  tape::commit();
}

struct CopyFacts {
  event::CopyDirection direction;
  event::CopyKind kind;
  bool sized;
};
// HIP says only of memory that it stages itself whether it is the host's: pinned memory is like a device's.
CopyFacts facts_of(uint32_t kind, event::CopyDirection between) {
  using Direction = event::CopyDirection;
  using Kind = event::CopyKind;
  switch (kind) {
    case tracer::kReadBuffer:
      return {Direction::kDeviceToHost, Kind::kPlain, false};
    case tracer::kWriteBuffer:
      return {Direction::kHostToDevice, Kind::kPlain, false};
    case tracer::kCopyBuffer:
      return {between, Kind::kPlain, true};
    case tracer::kReadRectangle:
      return {Direction::kDeviceToHost, Kind::kRectangle, false};
    case tracer::kWriteRectangle:
      return {Direction::kHostToDevice, Kind::kRectangle, false};
    case tracer::kCopyRectangle:
      return {between, Kind::kRectangle, true};
    case tracer::kReadImage:
      return {Direction::kDeviceToHost, Kind::kImage, false};
    case tracer::kWriteImage:
      return {Direction::kHostToDevice, Kind::kImage, false};
    case tracer::kCopyImage:
      return {between, Kind::kImage, false};
    case tracer::kImageToBuffer:
      return {between, Kind::kImageToBuffer, false};
    case tracer::kBufferToImage:
      return {between, Kind::kBufferToImage, false};
    default:
      return {Direction::kUnknown, Kind::kUnknown, false};
  }
}

void write_copy(const tracer::Record& from, const LateLaunch* launch, uint32_t queue) {
  const bool graph = launch != nullptr && launch->graph;
  const CopyFacts facts = facts_of(from.kind, launch != nullptr ? launch->direction : event::CopyDirection::kUnknown);
  const bool asynchronous = graph || (launch != nullptr && launch->asynchronous);
  auto* const record = tape::begin<event::CopyRecord>(
      event::RecordKind::kCopy, event::Table::kCopy,
      static_cast<uint32_t>(facts.direction) | static_cast<uint32_t>(facts.kind) << 8,
      static_cast<uint8_t>((asynchronous ? event::kCopyAsynchronous : 0) | (graph ? event::kCopyGraph : 0)),
      graph ? sizeof(uint64_t) : 0);
  if (record == nullptr) return;
  record->correlation = launch != nullptr ? launch->correlation : 0;
  record->queued = record->submit = 0;
  record->start = from.begin;
  record->end = from.end;
  // HIP's own number is that of another field where it has pinned memory or stages the copy.
  if (launch != nullptr && !graph && launch->bytes != 0)
    record->bytes = launch->bytes;
  else
    record->bytes = facts.sized && from.bytes != 0 ? from.bytes : kUnknownNumber;
  record->queue = queue;
  record->peer_queue = 0;
  if (graph) {
    const uint64_t node = launch->told.load(std::memory_order_relaxed);
    memcpy(record + 1, &node, sizeof node);
  }
  tape::commit();
}

// Of a call whose correlation HIP has lost, or of none.
bool wanted_without_call(const tracer::Record& record, uint64_t source) {
  return tape::enabled(source) && record.begin >= g_begin.load(std::memory_order_relaxed);
}

void write_work(const tracer::Record& record, const LateLaunch* launch, bool dispatch) {
  const LateDevice* const device = late_device(record.device);
  const event::Table table = dispatch ? event::Table::kDispatch : event::Table::kCopy;
  // An end before the beginning is the decoder's business: it keeps the row and counts it.
  if (device == nullptr || record.begin == 0 || record.end == 0)
    return tape::loss(table, event::LossReason::kVendor, 1);
  if (dispatch) return write_kernel(record, launch, *device);
  const uint32_t queue =
      queue_of_stream(device->copies, device->number, 0, launch != nullptr ? launch->stream : kNoStream);
  if (record.kind == tracer::kFillBuffer || record.kind == tracer::kFillImage)
    return write_fill(record, launch, *device, queue);
  write_copy(record, launch, queue);
}

}  // namespace

void record_work(const tracer::Record& record) {
  const bool dispatch = record.operation == static_cast<uint32_t>(tracer::TracedWork::kDispatch);
  if (!dispatch && record.operation != static_cast<uint32_t>(tracer::TracedWork::kCopy)) return;
  LateLaunch* const launch = launch_of(record.correlation);
  const bool wanted =
      launch == nullptr ? wanted_without_call(record, dispatch ? tape::source_bit::kDispatch : tape::source_bit::kCopy)
      : dispatch        ? launch->dispatches
                        : launch->copies;
  const bool first = launch != nullptr && launch->told.fetch_add(1, std::memory_order_relaxed) == 0;
  tape::ThreadState& state = tape::t_state;
  const uint16_t before = state.hidden;
  state.hidden = 1;  // no samples in here
  if (wanted) write_work(record, launch, dispatch);
  state.hidden = before;
  if (!dispatch) work_told(true);
  if (dispatch && launch != nullptr && launch->kernel) work_told(false);
  if (first) end_launch(*launch);
}

void use_hsa(const HsaFunctions& functions) {
  g_runtime.core.hsa_system_get_info = functions.system;
  g_runtime.core.hsa_iterate_agents = functions.agents;
  g_runtime.core.hsa_agent_get_info = functions.agent;
}

uint64_t hsa_now() {
  uint64_t ticks = 0;
  if (call<sig::SystemInfo>(g_runtime.core.hsa_system_get_info, hsa::kSystemTimestamp, &ticks) != hsa::kSuccess)
    return 0;
  return static_cast<uint64_t>(static_cast<double>(ticks) * g_ns_per_tick);
}

void find_late_devices() {
  g_late_device_count.store(0);
  memset(static_cast<void*>(g_hip_queues), 0, sizeof g_hip_queues);
  memset(static_cast<void*>(g_named_kernels), 0, sizeof g_named_kernels);
  uint64_t frequency = 0;
  if (call<sig::SystemInfo>(g_runtime.core.hsa_system_get_info, hsa::kSystemTimestampFrequency, &frequency) ==
          hsa::kSuccess &&
      frequency != 0)
    g_ns_per_tick = 1e9 / static_cast<double>(frequency);
  call<sig::IterateAgents>(g_runtime.core.hsa_iterate_agents, add_late_device, nullptr);
}

void define_late_clocks() {
  for (uint32_t at = 0; at < g_late_device_count.load(std::memory_order_acquire); ++at)
    define_clock(g_late_devices[at]);
}

void work_made(bool copy) {
  (copy ? g_copies : g_kernels).fetch_add(1, std::memory_order_relaxed);
}
void work_told(bool copy) {
  (copy ? g_copies : g_kernels).fetch_sub(1, std::memory_order_relaxed);
}

Unfinished unfinished_work() {
  const auto left = [](const std::atomic<int64_t>& made) {
    return static_cast<uint64_t>(std::max<int64_t>(made.load(std::memory_order_relaxed), 0));
  };
  return {left(g_kernels), left(g_copies)};
}

void begin_work(uint64_t now) {
  g_kernels.store(0);
  g_copies.store(0);
  g_begin.store(now);
}

}  // namespace tacho::capture::rocm
