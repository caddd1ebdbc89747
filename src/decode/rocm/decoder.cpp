// Records of AMD's rocprofiler-sdk become rows (decoder.h).
#include "decode/rocm/decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/format.h"
#include "base/text/demangle.h"
#include "decode/records/arguments.h"
#include "event/times.h"
#include "vendor/call_roles.h"

namespace tacho::decode {

using event::Domain;
using event::Table;
namespace row = event::row;

namespace {

// An external correlation (capture/source/rocm/sdk/sdk_work.cpp).
constexpr uint64_t kStreamBits = 0xffffffff;
constexpr int kNodeShift = 32;

constexpr std::string_view kExtended = "_EXT";  // kinds of calls with arguments and result

// HIP's calls return an error code, except a few that only name things.
bool returns_status(std::string_view function) {
  for (const std::string_view other : {"hipApiName", "hipCreateChannelDesc", "hipGetErrorName", "hipGetErrorString",
                                       "hipGetStreamDeviceId", "hipKernelNameRef", "hipKernelNameRefByPtr"})
    if (function == other) return false;
  return function.starts_with("hip");
}

// "MEMORY_COPY_HOST_TO_DEVICE" and the like.
event::CopyDirection direction_of(std::string_view operation) {
  using event::CopyDirection;
  if (operation.ends_with("HOST_TO_HOST")) return CopyDirection::kHostToHost;
  if (operation.ends_with("HOST_TO_DEVICE")) return CopyDirection::kHostToDevice;
  if (operation.ends_with("DEVICE_TO_HOST")) return CopyDirection::kDeviceToHost;
  if (operation.ends_with("DEVICE_TO_DEVICE")) return CopyDirection::kDeviceToDevice;
  return CopyDirection::kUnknown;
}

uint64_t blend(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 32;
}

int64_t number_or_unknown(uint32_t value) {
  return value == event::kUnknown32 ? event::kUnknown : static_cast<int64_t>(value);
}

}  // namespace

RocprofilerDecoder::RocprofilerDecoder(ProcessContext& process, trace::TraceWriter& writer)
    : process_(process), writer_(writer), shapes_(kShapeSlots) {}
RocprofilerDecoder::~RocprofilerDecoder() = default;

std::unique_ptr<BlockDecoder> make_rocprofiler_decoder(ProcessContext& process, trace::TraceWriter& writer) {
  return std::make_unique<RocprofilerDecoder>(process, writer);
}

// The target's facts about its records

void RocprofilerDecoder::define(const std::byte* at, const event::RecordHeader& header) {
  const auto take = [at](auto& record) { std::memcpy(&record, at, sizeof record); };
  switch (header.kind) {
    case event::RecordKind::kName: {
      event::NameRecord record;
      take(record);
      if (static_cast<event::NameSpace>(header.value) == event::NameSpace::kOperation)
        operation(record.number, process_.text(record.text));
      break;
    }
    case event::RecordKind::kClockPair: {
      event::ClockPairRecord record;
      take(record);
      const int64_t host = process_.host_time(record.host);
      clock_.add(static_cast<int64_t>(record.device), host);
      writer_.add(row::Clock{.process = process_.row(), .raw = host, .vendor = static_cast<int64_t>(record.device)});
      break;
    }
    case event::RecordKind::kBlockFact: {
      event::BlockFactRecord record;
      take(record);
      fact(static_cast<event::BlockFact>(header.value), record.number, process_.text(record.text));
      break;
    }
    case event::RecordKind::kBlockObject: {
      event::BlockObjectRecord record;
      take(record);
      const std::span<const std::byte> bytes(at + sizeof record,
                                             std::min<size_t>(record.bytes, header.size - sizeof record));
      if (header.value == static_cast<uint32_t>(sdk::Object::kKernel))
        kernel(bytes, process_.text(record.texts[0]));
      else if (header.value == static_cast<uint32_t>(sdk::Object::kAgent))
        agent(bytes, process_.text(record.texts[0]), process_.text(record.texts[1]));
      break;
    }
    default:
      break;
  }
}

void RocprofilerDecoder::operation(uint64_t number, std::string_view text) {
  if (number >> 32 == static_cast<uint64_t>(sdk::kDeviceReadings)) {
    counter_names_[static_cast<uint32_t>(number)] = writer_.string(text);
    return;
  }
  const size_t slash = text.find('/');
  std::string_view kind = text.substr(0, slash);
  const std::string_view name = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  const bool extended = kind.ends_with(kExtended) && kind != sdk::kind::kHsaAmd;
  const auto at = static_cast<uint32_t>(number >> 32);
  if (at >= kMostKinds) return;
  const std::string_view plain = extended ? kind.substr(0, kind.size() - kExtended.size()) : kind;
  Kind& known = kinds_[at];
  const Role call = extended ? Role::kApiWithResult : Role::kApi;
  if (plain == sdk::kind::kHip)
    known = {call, Domain::kHipRuntime};
  else if (plain == sdk::kind::kHipCompiler)
    known = {call, Domain::kHipCompiler};
  else if (plain.starts_with("HSA_"))
    known = {Role::kApi, Domain::kHsa};
  else if (plain == sdk::kind::kRccl)
    known = {Role::kApi, Domain::kRccl};
  else if (plain == sdk::kind::kCopy)
    known.role = Role::kCopy;
  else if (plain == sdk::kind::kDispatch)
    known.role = Role::kDispatch;
  else if (plain == sdk::kind::kAllocation)
    known.role = Role::kAllocation;
  else if (plain == sdk::kind::kScratch)
    known.role = Role::kScratch;
  else if (plain == sdk::kind::kMigration)
    known.role = Role::kMigration;
  else if (plain == sdk::kind::kMigrationEvent)
    known.role = Role::kMigrationEvent;
  if (known.domain == Domain::kHsa) nested_calls_ = true;
  if (name.empty()) return;
  Operation& entry = operations_[number];
  entry.direction = direction_of(name);
  entry.frees = name.find("FREE") != std::string_view::npos;
  entry.begins = name.ends_with("PAGE_MIGRATE_START");
  entry.ends = name.ends_with("PAGE_MIGRATE_END");
  entry.has_result = known.role == Role::kApiWithResult && returns_status(name);
  if (known.role == Role::kApiWithResult && known.domain == Domain::kHipRuntime)
    entry.parameters = vendor::amd::find_hip_call(name);
  if (known.role == Role::kApi || known.role == Role::kApiWithResult)
    entry.row = writer_.dimension(row::Function{.name = writer_.string(name), .domain = known.domain});
  entry.name = name;
  entry.tells = vendor::call_role(name);
}

void RocprofilerDecoder::kernel(std::span<const std::byte> symbol, std::string_view name) {
  namespace f = sdk::kernel_symbol;
  if (symbol.size() < f::kLeast) return unknown(0, static_cast<uint32_t>(sdk::Object::kKernel));
  if (name.ends_with(".kd")) name.remove_suffix(3);
  const std::byte* const at = symbol.data();
  const size_t size = symbol.size();
  KernelFacts& facts = kernels_[f::id.read(at, size)];
  facts.name = writer_.string(name);
  facts.group_bytes = f::group_bytes.read(at, size);
  facts.scalar = f::scalar.read(at, size);
  facts.vector = f::vector.read(at, size);
  facts.accumulation = f::accumulation.read(at, size);
  facts.wanted = wanted(name);
  if (!facts.wanted) facts.left_out = name;
}

void RocprofilerDecoder::agent(std::span<const std::byte> bytes, std::string_view name, std::string_view product) {
  namespace f = sdk::agent;
  if (bytes.size() < f::kLeast) return unknown(0, static_cast<uint32_t>(sdk::Object::kAgent));
  const std::byte* const at = bytes.data();
  const size_t size = bytes.size();
  Agent& agent = agents_[f::id.read(at, size)];
  agent.gpu = f::type.read(at, size) == f::kGpu;
  if (!agent.gpu || agent.row != 0) return;
  const bool named = !product.empty() && product != "unknown";
  const int32_t index = f::logical_of_type.read(at, size);
  agent.index = std::max(index, 0);
  const uint64_t uuid = size >= f::kWithUuid ? f::uuid.read(at, size) : 0;
  // Of the machine, not of the process: the same device seen by several processes is one row.
  agent.row = writer_.dimension(row::Device{.kind = event::DeviceKind::kGpu,
                                            .index = std::max(index, 0),
                                            .name = writer_.string(named ? product : name),
                                            .vendor = writer_.string("Advanced Micro Devices, Inc."),
                                            .architecture = writer_.string(name),
                                            .uuid = uuid != 0 ? writer_.string(fmt::format("GPU-{:016x}", uuid)) : 0});
  const auto property = [&](std::string_view key, uint64_t value) {
    if (value != 0) writer_.property(Table::kDevice, agent.row, key, fmt::format("{}", value));
  };
  property("memory_bytes", f::memory_bytes.read(at, size));
  property("core_clock_hz", uint64_t{f::max_clock_mhz.read(at, size)} * 1'000'000);
  property("compute_units", f::units.read(at, size));
  property("simds", f::simds.read(at, size));
  property("shader_engines", f::shader_engines.read(at, size));
  property("xccs", f::xccs.read(at, size));
  property("wave_size", f::wave_size.read(at, size));
  property("max_waves_per_simd", f::waves_per_simd.read(at, size));
  property("lds_per_compute_unit_bytes", uint64_t{f::lds_kib.read(at, size)} * 1024);
}

void RocprofilerDecoder::fact(event::BlockFact which, uint64_t number, std::string_view text) {
  if (which == event::BlockFact::kRecordingStarts || which == event::BlockFact::kRecordingStops) {
    windows_.emplace_back(number, which == event::BlockFact::kRecordingStarts);
    std::stable_sort(windows_.begin(), windows_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return;
  }
  if (which != event::BlockFact::kKernelInclude && which != event::BlockFact::kKernelExclude) return;
  filter_.set(which == event::BlockFact::kKernelInclude ? NameFilter::Side::kInclude : NameFilter::Side::kExclude,
              std::string(text).c_str());
}

bool RocprofilerDecoder::paused(uint64_t correlation) const {
  const auto after = std::upper_bound(windows_.begin(), windows_.end(), correlation,
                                      [](uint64_t x, const auto& window) { return x < window.first; });
  return after != windows_.begin() && !(after - 1)->second;
}

bool RocprofilerDecoder::wanted(std::string_view name) const {
  return !filter_.given() || filter_.wants(std::string(name).c_str(), demangle(name).c_str());
}

// Rows that facts refer to

int64_t RocprofilerDecoder::time(uint64_t ns) {
  return clock_(static_cast<int64_t>(std::min<uint64_t>(ns, uint64_t{1} << 61)));
}

bool RocprofilerDecoder::device_times(Table table, uint64_t start, uint64_t end, Times& times) {
  if (start == 0 || end == 0) {
    writer_.lose(process_.row(), table, event::LossReason::kVendor, 1);
    return false;
  }
  times.start = time(start);
  times.duration = event::duration_between(times.start, time(end));
  if (times.duration == event::kUnknown) writer_.lose(process_.row(), table, event::LossReason::kClockOrder, 1);
  return true;
}

int64_t RocprofilerDecoder::thread(uint64_t tid) {
  if (tid != last_tid_) {
    last_thread_ = process_.thread_track(static_cast<uint32_t>(tid));
    last_tid_ = tid;
  }
  return last_thread_;
}

RocprofilerDecoder::Agent& RocprofilerDecoder::agent_of(uint64_t handle) {
  return agents_[handle];
}

// Called for agents with recorded work: such an agent is a GPU, even if undescribed.
int64_t RocprofilerDecoder::copies_track(uint64_t handle) {
  Agent& agent = agent_of(handle);
  if (agent.row == 0)
    agent.row = writer_.dimension(row::Device{.process = process_.row(),
                                              .kind = event::DeviceKind::kGpu,
                                              .name = writer_.string(fmt::format("AMD agent {}", handle)),
                                              .vendor = writer_.string("Advanced Micro Devices, Inc.")});
  if (agent.copies == 0)
    agent.copies = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                                .process = process_.row(),
                                                .device = agent.row,
                                                .name = writer_.string("copies"),
                                                .category = writer_.string("copy engine")});
  return agent.copies;
}

int64_t RocprofilerDecoder::queue_track(uint64_t agent, uint64_t queue, uint64_t stream) {
  const std::array<uint64_t, 3> key{agent, queue, stream};
  for (size_t at = queues_.size(); at-- > 0;)
    if (queues_[at].first == key) return queues_[at].second;
  copies_track(agent);  // makes its device known
  row::Track values{.kind = event::TrackKind::kQueue, .process = process_.row(), .device = agent_of(agent).row};
  if (stream != 0) {
    values.native = static_cast<int64_t>(stream - 1);
    values.context = static_cast<int64_t>(queue);
    values.category = writer_.string("stream");
  } else {
    values.native = static_cast<int64_t>(queue);
    values.category = writer_.string("queue");
  }
  const int64_t track = writer_.dimension(values);
  if (stream != 0 && queue != 0) writer_.property(Table::kTrack, track, "queue", fmt::format("{}", queue));
  queues_.emplace_back(key, track);
  return track;
}

RocprofilerDecoder::Operation& RocprofilerDecoder::operation_of(int32_t kind, int32_t operation) {
  Operation& entry = operations_[sdk::operation_number(kind, operation)];
  const Kind& known = kinds_[static_cast<uint32_t>(kind)];
  if (entry.row == 0 && (known.role == Role::kApi || known.role == Role::kApiWithResult))
    entry.row = writer_.dimension(
        row::Function{.name = writer_.string(fmt::format("{} function {}", event::to_string(known.domain), operation)),
                      .domain = known.domain});
  return entry;
}

const RocprofilerDecoder::KernelFacts& RocprofilerDecoder::kernel_of(uint64_t id) {
  KernelFacts& facts = kernels_[id];
  if (facts.name == 0) {
    const std::string name = fmt::format("kernel #{}", id);
    facts.name = writer_.string(name);
    facts.wanted = !filter_.includes();
    if (!facts.wanted) facts.left_out = name;
  }
  return facts;
}

int64_t RocprofilerDecoder::kernel_row(const Shape& shape, const KernelFacts& facts) {
  uint64_t hash = blend(0x2545f4914f6cdd1dULL, shape.kernel);
  for (const uint32_t word : shape.words) hash = blend(hash, word);
  ShapeSlot& slot = shapes_[hash % kShapeSlots];
  if (slot.row != 0 && slot.shape == shape) return slot.row;
  const auto word = [&](size_t at) { return int64_t{shape.words[at]}; };
  slot.shape = shape;
  slot.row = writer_.dimension(row::Kernel{.name = facts.name,
                                           .kind = event::DispatchKind::kKernel,
                                           .grid_x = word(0),
                                           .grid_y = word(1),
                                           .grid_z = word(2),
                                           .group_x = word(3),
                                           .group_y = word(4),
                                           .group_z = word(5),
                                           .registers = number_or_unknown(facts.vector),
                                           .accum_registers = number_or_unknown(facts.accumulation),
                                           .scalar_registers = number_or_unknown(facts.scalar),
                                           .shared_static = std::min<int64_t>(facts.group_bytes, word(6)),
                                           .shared_dynamic = std::max<int64_t>(word(6) - facts.group_bytes, 0),
                                           .private_bytes = word(7)});
  return slot.row;
}

// Work and the calls around it

// A kernel launched by HIP has the number of the HSA call that rang the doorbell, where HSA's calls are recorded. It is
// to belong to HIP's call, as without.
bool RocprofilerDecoder::outermost(uint64_t correlation, uint64_t& found) const {
  constexpr int kDeepest = 16;
  found = correlation;
  for (int depth = 0; depth < kDeepest; ++depth) {
    const auto call = around_.find(found);
    if (call == around_.end()) return depth != 0;  // the call around ends later: its record comes last
    if (call->second == 0) return true;
    found = call->second;
  }
  return true;
}

void RocprofilerDecoder::write_work(const row::Dispatch& row, const trace::WorkTimes::Origin& origin) {
  work_.dispatch(origin, row);
}
void RocprofilerDecoder::write_work(const row::Copy& row, const trace::WorkTimes::Origin& origin) {
  work_.copy(origin, row);
}

template <typename Row>
void RocprofilerDecoder::add_work(Row row, uint64_t correlation, const trace::WorkTimes::Origin& origin) {
  uint64_t found = correlation;
  if (nested_calls_ && correlation != 0 && !outermost(correlation, found)) {
    auto& held = [this]() -> std::vector<Held<Row>>& {
      if constexpr (std::is_same_v<Row, row::Dispatch>)
        return held_dispatches_;
      else
        return held_copies_;
    }();
    held.push_back({row, correlation, origin});
    if (held.size() >= kMostHeld) release(held, true);
    return;
  }
  row.correlation = static_cast<int64_t>(found);
  write_work(row, origin);
}

template <typename Row>
void RocprofilerDecoder::release(std::vector<Held<Row>>& held, bool all) {
  size_t kept = 0;
  for (Held<Row>& work : held) {
    uint64_t found = work.correlation;
    if (!outermost(work.correlation, found) && !all) {
      held[kept++] = work;
      continue;
    }
    work.row.correlation = static_cast<int64_t>(found);
    write_work(work.row, work.origin);
  }
  held.resize(kept);
}

// Records

void RocprofilerDecoder::api(const Kind& kind, const std::byte* at, size_t size) {
  const bool wide = size >= sdk::Api::kWide;
  const sdk::Api& f = wide ? sdk::kApiWide : sdk::kApiNarrow;
  const uint64_t start = f.start.read(at, size), end = f.end.read(at, size);
  const uint64_t correlation = sdk::any::correlation.read(at, size);
  if (paused(correlation)) return;
  if (start == 0 || end < start) return writer_.lose(process_.row(), Table::kApi, event::LossReason::kVendor, 1);
  const Operation& operation = operation_of(sdk::any::kind.read(at, size), sdk::any::operation.read(at, size));
  if (nested_calls_ && wide) {
    if (around_.size() >= kMostNested) {
      release(held_dispatches_, true);
      release(held_copies_, true);
      around_.clear();
    }
    around_[correlation] = sdk::Api::ancestor.read(at, size);
  }
  int64_t result = event::kUnknown;
  if (kind.role == Role::kApiWithResult && operation.has_result && size >= sdk::Api::kWide + sdk::Api::kResultBytes)
    result = sdk::Member<int32_t>{static_cast<uint32_t>(size - sdk::Api::kResultBytes)}.read(at, size);
  // Between the call and its result, with --api-args.
  std::string arguments;
  if (operation.parameters != nullptr && size > sdk::Api::kWide + sdk::Api::kResultBytes)
    arguments = call_structure_text(*operation.parameters,
                                    {at + sdk::Api::kWide, size - sdk::Api::kWide - sdk::Api::kResultBytes});
  const int64_t from = time(start);
  const bool failed = result != event::kUnknown && result != 0;
  work_.call({.correlation = static_cast<int64_t>(correlation),
              .start = from,
              .end = time(end),
              .role = failed ? event::CallRole::kPlain : operation.tells});
  const row::Api row{.track = thread(f.thread.read(at, size)),
                     .start = from,
                     .duration = time(end) - from,
                     .dim = operation.row,
                     .correlation = static_cast<int64_t>(correlation),
                     .result = result,
                     .arguments = arguments.empty() ? 0 : writer_.string(arguments)};
  writer_.add(row);
  memory_failures_.returned(kinds_[static_cast<uint32_t>(sdk::any::kind.read(at, size))].domain, row,
                            [&] { return std::string_view(operation.name); });
}

void RocprofilerDecoder::dispatch(const std::byte* at, size_t size) {
  namespace f = sdk::dispatch;
  process_.received(Table::kDispatch);
  if (paused(sdk::any::correlation.read(at, size))) return;
  const KernelFacts& facts = kernel_of(f::kernel.read(at, size));
  if (!facts.wanted) {
    ++filtered_;
    left_out_.add(facts.left_out);
    return;
  }
  Times times;
  if (!device_times(Table::kDispatch, f::start.read(at, size), f::end.read(at, size), times)) return;
  const Shape shape{f::kernel.read(at, size),
                    {f::grid_x.read(at, size), f::grid_y.read(at, size), f::grid_z.read(at, size),
                     f::group_x.read(at, size), f::group_y.read(at, size), f::group_z.read(at, size),
                     f::group_bytes.read(at, size), f::private_bytes.read(at, size)}};
  const uint64_t number = f::number.read(at, size);
  add_work(row::Dispatch{.track = queue_track(f::agent.read(at, size), f::queue.read(at, size),
                                              f::external.read(at, size) & kStreamBits),
                         .start = times.start,
                         .duration = times.duration,
                         .dim = kernel_row(shape, facts),
                         .ordinal = number != 0 ? static_cast<int64_t>(number - 1) : event::kUnknown,
                         .graph_node = static_cast<int64_t>(f::external.read(at, size) >> kNodeShift)},
           sdk::any::correlation.read(at, size), {.device = agent_of(f::agent.read(at, size)).row});
}

void RocprofilerDecoder::copy(const std::byte* at, size_t size) {
  namespace f = sdk::copy;
  process_.received(Table::kCopy);
  if (paused(sdk::any::correlation.read(at, size))) return;
  Times times;
  if (!device_times(Table::kCopy, f::start.read(at, size), f::end.read(at, size), times)) return;
  using Direction = event::CopyDirection;
  const uint64_t source = f::source.read(at, size), target = f::target.read(at, size);
  Direction direction = operation_of(sdk::any::kind.read(at, size), sdk::any::operation.read(at, size)).direction;
  if (direction == Direction::kDeviceToDevice && source != target) direction = Direction::kPeerToPeer;
  const bool from_device = direction != Direction::kHostToDevice && direction != Direction::kHostToHost;
  const bool to_device = direction != Direction::kDeviceToHost && direction != Direction::kHostToHost;
  const uint64_t external = f::external.read(at, size), stream = external & kStreamBits;
  const uint64_t on = from_device ? source : target;
  const int64_t track = direction == Direction::kHostToHost ? thread(f::thread.read(at, size))
                        : stream != 0                       ? queue_track(on, 0, stream)
                                                            : copies_track(on);
  if (to_device) copies_track(target);
  const int64_t shape = writer_.dimension(row::CopyShape{.direction = direction,
                                                         .source_device = from_device ? agent_of(source).row : 0,
                                                         .target_device = to_device ? agent_of(target).row : 0,
                                                         .kind = event::CopyKind::kPlain,
                                                         .asynchronous = 1});
  add_work(row::Copy{.track = track,
                     .start = times.start,
                     .duration = times.duration,
                     .dim = shape,
                     .bytes = static_cast<int64_t>(f::bytes.read(at, size)),
                     .graph_node = static_cast<int64_t>(external >> kNodeShift)},
           sdk::any::correlation.read(at, size),
           {.device = direction == Direction::kHostToHost ? 0 : agent_of(on).row,
            .to_host = direction == Direction::kDeviceToHost,
            .timed = direction != Direction::kHostToHost});
}

void RocprofilerDecoder::allocation(const std::byte* at, size_t size) {
  if (paused(sdk::any::correlation.read(at, size))) return;
  const sdk::Allocation& f = size >= sdk::Allocation::kWide ? sdk::kAllocationWide : sdk::kAllocationNarrow;
  const uint64_t start = f.start.read(at, size), end = f.end.read(at, size), address = f.address.read(at, size);
  if (start == 0 || end < start) return writer_.lose(process_.row(), Table::kAllocation, event::LossReason::kVendor, 1);
  const bool frees = operation_of(sdk::any::kind.read(at, size), sdk::any::operation.read(at, size)).frees;
  Memory memory{f.bytes.read(at, size), f.agent.read(at, size)};
  bool known = !frees;
  if (!frees) {
    if (address != 0) allocated_[address] = memory;
  } else if (const auto found = allocated_.find(address); found != allocated_.end()) {
    memory = found->second;  // a free's record says neither how much nor where
    known = true;
    allocated_.erase(found);
  }
  const auto on = agents_.find(memory.agent);
  const bool device = known && on != agents_.end() && on->second.gpu && on->second.row != 0;
  const int64_t shape = writer_.dimension(row::AllocationShape{
      .operation = frees ? event::AllocationOperation::kFree : event::AllocationOperation::kAllocate,
      .memory = device                         ? event::MemoryKind::kDevice
                : known && on != agents_.end() ? event::MemoryKind::kPinned
                                               : event::MemoryKind::kUnknown,
      .device = device ? on->second.row : 0});
  const int64_t from = time(start);
  writer_.add(row::Allocation{.track = thread(f.thread.read(at, size)),
                              .start = from,
                              .duration = time(end) - from,
                              .dim = shape,
                              .correlation = static_cast<int64_t>(sdk::any::correlation.read(at, size)),
                              .bytes = known ? static_cast<int64_t>(memory.bytes) : event::kUnknown,
                              .address = static_cast<int64_t>(address)});
}

void RocprofilerDecoder::scratch(uint32_t version, const std::byte* at, size_t size) {
  const sdk::SdkScratch& f = size >= sdk::SdkScratch::kWide ? sdk::kScratchWide
                             : version < 500                ? sdk::kScratchOldest
                                                            : sdk::kScratchNarrow;
  const uint64_t start = f.start.read(at, size), end = f.end.read(at, size);
  if (start == 0 || end < start) return writer_.lose(process_.row(), Table::kAllocation, event::LossReason::kVendor, 1);
  const uint64_t agent = f.agent.read(at, size);
  const bool frees = operation_of(sdk::any::kind.read(at, size), sdk::any::operation.read(at, size)).frees;
  copies_track(agent);
  const int64_t shape = writer_.dimension(row::AllocationShape{
      .operation = frees ? event::AllocationOperation::kFree : event::AllocationOperation::kAllocate,
      .memory = event::MemoryKind::kDevice,
      .device = agent_of(agent).row,
      .name = writer_.string("scratch")});
  const int64_t from = time(start);
  const uint64_t bytes = f.bytes.read(at, size);
  writer_.add(row::Allocation{.track = thread(f.thread.read(at, size)),
                              .start = from,
                              .duration = time(end) - from,
                              .dim = shape,
                              .correlation = static_cast<int64_t>(f.correlation.read(at, size)),
                              .bytes = bytes != 0 ? static_cast<int64_t>(bytes) : event::kUnknown});
}

// Pages that the driver moved are copies of kind "migrate", on a line of their own: the driver moves them beside what
// the copy engines do for the program.
void RocprofilerDecoder::migration(const Migration& moved) {
  if (moved.start == 0 || moved.end < moved.start || moved.address_end < moved.address)
    return writer_.lose(process_.row(), Table::kCopy, event::LossReason::kVendor, 1);
  const auto gpu = [this](uint64_t handle) {
    const auto found = agents_.find(handle);
    return found != agents_.end() && found->second.gpu && found->second.row != 0;
  };
  using Direction = event::CopyDirection;
  const bool from = gpu(moved.source), to = gpu(moved.target);
  int64_t track = 0;
  if (from || to) {
    Agent& agent = agent_of(from ? moved.source : moved.target);
    if (agent.migrations == 0)
      agent.migrations = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                                      .process = process_.row(),
                                                      .device = agent.row,
                                                      .name = writer_.string("page migrations"),
                                                      .category = writer_.string("copy engine")});
    track = agent.migrations;
  }
  const int64_t shape = writer_.dimension(row::CopyShape{.direction = from && to ? Direction::kPeerToPeer
                                                                      : to       ? Direction::kHostToDevice
                                                                      : from     ? Direction::kDeviceToHost
                                                                                 : Direction::kHostToHost,
                                                         .source_device = from ? agent_of(moved.source).row : 0,
                                                         .target_device = to ? agent_of(moved.target).row : 0,
                                                         .kind = event::CopyKind::kMigrate,
                                                         .asynchronous = 1});
  const int64_t begin = time(moved.start);
  writer_.add(row::Copy{.track = track,
                        .start = begin,
                        .duration = time(moved.end) - begin,
                        .dim = shape,
                        .bytes = static_cast<int64_t>(moved.address_end - moved.address)});
}

// 0.x reports a migration's begin and end. Its other events (faults, queues, unmapping) have no row.
void RocprofilerDecoder::migration_event(const std::byte* at, size_t size) {
  namespace f = sdk::migration_event;
  constexpr size_t kMostOpen = 1 << 16;
  const Operation& operation = operation_of(sdk::any::kind.read(at, size), sdk::any::operation.read(at, size));
  const uint64_t address = f::address.read(at, size);
  if (operation.begins) {
    if (migrating_.size() < kMostOpen) migrating_[address] = f::time.read(at, size);
  } else if (const auto begun = migrating_.find(address); operation.ends && begun != migrating_.end()) {
    const uint64_t start = begun->second;
    migrating_.erase(begun);
    migration({start, f::time.read(at, size), address, f::address_end.read(at, size) + 1, f::source.read(at, size),
               f::target.read(at, size)});
  }
}

// A counter grows from reading to reading: the row has its growth per second since the reading before.
void RocprofilerDecoder::reading(const std::byte* at, size_t size) {
  sdk::DeviceReading reading;
  if (size < sizeof reading) return unknown(sdk::category::kCounters, sdk::kDeviceReading);
  std::memcpy(&reading, at, sizeof reading);
  Counted& counted = device_counts_[{reading.agent, reading.counter}];
  if (counted.track == 0) {
    const auto name = counter_names_.find(reading.counter);
    const int64_t called =
        name != counter_names_.end() ? name->second : writer_.string(fmt::format("counter {}", reading.counter));
    const int64_t counter = writer_.dimension(
        row::Counter{.name = called,
                     .unit = writer_.string("1/s"),
                     .text = writer_.string("growth of a hardware counter, summed over the GPU's units"),
                     .block = writer_.string("rocprofiler-sdk")});
    const Agent& agent = agent_of(reading.agent);
    counted.track = writer_.dimension(row::Track{.kind = event::TrackKind::kCounter,
                                                 .process = process_.row(),
                                                 .device = agent.row,
                                                 .native = agent.index + 1,
                                                 .name = called,
                                                 .category = writer_.string("telemetry.gpu"),
                                                 .counter = counter});
  } else if (reading.time > counted.time) {
    // One that is smaller than before began anew.
    const double growth = reading.value >= counted.value ? reading.value - counted.value : reading.value;
    const double rate = growth * 1e9 / static_cast<double>(reading.time - counted.time);
    writer_.add(row::Reading{.track = counted.track,
                             .start = time(reading.time),
                             .value = static_cast<int64_t>(std::bit_cast<uint64_t>(rate))});
  }
  counted.time = reading.time;
  counted.value = reading.value;
}

void RocprofilerDecoder::unknown(uint32_t category, uint32_t kind) {
  constexpr size_t kMostTold = 256;
  const uint64_t key = uint64_t{category} << 32 | kind;
  if (unknown_.size() < kMostTold || unknown_.contains(key)) ++unknown_[key];
  writer_.lose(process_.row(), Table::kEnd, event::LossReason::kUnknownRecord, 1);
}

void RocprofilerDecoder::tracing(uint32_t version, const std::byte* at, size_t size) {
  const auto number = static_cast<uint32_t>(sdk::any::kind.read(at, size));
  const Kind kind = number < kMostKinds ? kinds_[number] : Kind{};
  const auto fits = [&](size_t least) {
    if (size >= least) return true;
    unknown(sdk::category::kTracing, number);
    return false;
  };
  switch (kind.role) {
    case Role::kApi:
    case Role::kApiWithResult:
      if (fits(sdk::Api::kNarrow)) api(kind, at, size);
      break;
    case Role::kDispatch:
      if (fits(sdk::dispatch::kLeast)) dispatch(at, size);
      break;
    case Role::kCopy:
      if (fits(sdk::copy::kLeast)) copy(at, size);
      break;
    case Role::kAllocation:
      if (fits(sdk::Allocation::kNarrow)) allocation(at, size);
      break;
    case Role::kScratch:
      if (fits(sdk::SdkScratch::kNarrow)) scratch(version, at, size);
      break;
    case Role::kMigration: {
      namespace f = sdk::migration;
      if (fits(f::kLeast))
        migration({f::start.read(at, size), f::end.read(at, size), f::address.read(at, size),
                   f::address_end.read(at, size), f::source.read(at, size), f::target.read(at, size)});
      break;
    }
    case Role::kMigrationEvent:
      if (fits(sdk::migration_event::kLeast)) migration_event(at, size);
      break;
    case Role::kUnknown:
      unknown(sdk::category::kTracing, number);
      break;
  }
}

void RocprofilerDecoder::record(uint32_t version, const sdk::PieceHeader& header, std::span<const std::byte> bytes) {
  if (header.category == sdk::category::kTracing && bytes.size() >= 24)
    tracing(version, bytes.data(), bytes.size());
  else if (header.category == sdk::category::kCounters && header.kind == sdk::kDeviceReading)
    reading(bytes.data(), bytes.size());
  else if (header.category == sdk::category::kCounters)
    ++counter_records_;
  else
    unknown(header.category, header.kind);
}

void RocprofilerDecoder::block(const tape::BlockHeader& header, std::span<const std::byte> bytes, bool completed) {
  if (!completed) return;  // its length was never stated: the process ended while the records were copied
  size_t at = 0;
  while (bytes.size() - at >= sizeof(sdk::PieceHeader)) {
    sdk::PieceHeader piece;
    std::memcpy(&piece, bytes.data() + at, sizeof piece);
    at += sizeof piece;
    if (piece.bytes > bytes.size() - at) return unknown(piece.category, piece.kind);
    record(header.vendor_version, piece, bytes.subspan(at, piece.bytes));
    at = std::min(bytes.size(), at + ((piece.bytes + 7) & ~uint64_t{7}));
  }
  if (!held_dispatches_.empty()) release(held_dispatches_, false);
  if (!held_copies_.empty()) release(held_copies_, false);
}

void RocprofilerDecoder::finish() {
  release(held_dispatches_, true);
  release(held_copies_, true);
  work_.finish(process_.row());
  for (const auto& [key, count] : unknown_)
    writer_.property(Table::kProcess, process_.row(),
                     fmt::format("rocm.unknown_records.{}.{}", key >> 32, key & 0xffffffff), fmt::format("{}", count));
  if (counter_records_ != 0)
    writer_.property(Table::kProcess, process_.row(), "rocm.counter_records", fmt::format("{}", counter_records_));
  if (filtered_ != 0) writer_.lose(process_.row(), Table::kDispatch, event::LossReason::kFiltered, filtered_);
  left_out_.write(writer_, process_.row());
}

}  // namespace tacho::decode
