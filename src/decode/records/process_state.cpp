// One process's records become rows (process_state.h).
#include "decode/records/process_state.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/cpu_events.h"
#include "base/format.h"
#include "decode/records/arguments.h"
#include "decode/records/samples.h"
#include "event/functions/functions.h"
#include "event/functions/functions_opencl.h"
#include "event/times.h"

namespace tacho::decode {

using event::kUnknown;
using event::kUnknown32;
using event::RecordHeader;
using event::RecordKind;
using event::Table;
namespace row = event::row;

namespace {

constexpr uint32_t kMostNumbers = 1u << 24;  // definitions of one kind in one process: more is nonsense
constexpr uint32_t kWidestGap = 1u << 12;

// Times are bounded, so that differences of two never overflow.
int64_t plausible(int64_t time) {
  return std::clamp(time, -event::kFarthestTime, event::kFarthestTime);
}

// What lasted from `start` to `end` on the host. The clocks of two CPUs differ by up to a few microseconds where the
// machine is a virtual one: a short range within which its thread moved may end before it began, and lasted next to
// nothing.
int64_t host_duration(int64_t start, int64_t end) {
  constexpr int64_t kBetweenCpus = 10'000;
  return end < start && start - end <= kBetweenCpus ? 0 : end - start;
}

int64_t known(uint32_t value) {
  return value == kUnknown32 ? kUnknown : static_cast<int64_t>(value);
}

template <typename E>
E checked(uint32_t value) {
  return value < static_cast<uint32_t>(E::kEnd) ? static_cast<E>(value) : E{};
}

std::vector<std::string> words(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    out.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

template <typename T>
const T& as(const std::byte* at) {
  return *reinterpret_cast<const T*>(at);  // records are 8-byte aligned in blocks
}

template <typename Vector>
bool reach(Vector& vector, uint32_t number) {
  // Numbers are given out one after another: one far behind the last is a lie, or what a dead run's pool no longer
  // holds.
  if (number >= kMostNumbers || number > vector.size() + kWidestGap) return false;
  if (vector.size() <= number) vector.resize(number + 1);
  return true;
}

}  // namespace

ProcessState::ProcessState(trace::TraceWriter& writer, ClockMap& clocks, ModuleCache& modules, uint32_t slot)
    : writer_(writer), clocks_(clocks), slot_(slot), modules_(modules) {}
ProcessState::~ProcessState() = default;

int64_t ProcessState::row() {
  if (row_ == 0)
    row_ = writer_.dimension(
        row::Process{.pid = 0, .parent_pid = 0, .start = 0, .name = writer_.string(fmt::format("process {}", slot_))});
  return row_;
}

ProcessSamples& ProcessState::samples() {
  if (!samples_) samples_ = std::make_unique<ProcessSamples>(*this, writer_, modules_, nullptr);
  return *samples_;
}

BlockDecoder* ProcessState::blocks(tape::BlockKind kind) {
  if (!tape::is_vendors(kind)) return nullptr;
  const auto found = blocks_.find(kind);
  if (found != blocks_.end()) return found->second.get();
  std::unique_ptr<BlockDecoder> made = make_block_decoder(kind, *this, writer_);
  return made != nullptr ? (blocks_[kind] = std::move(made)).get() : nullptr;
}

void ProcessState::count_bad(Table table) {
  writer_.lose(row(), table, event::LossReason::kBadInput, 1);
}

int64_t ProcessState::string(uint32_t number) const {
  return number < strings_.size() ? strings_[number].row : 0;
}
std::string_view ProcessState::text(uint32_t number) const {
  return number < strings_.size() ? std::string_view(strings_[number].text) : std::string_view();
}

int64_t ProcessState::host_time(uint64_t ticks) const {
  return plausible(tsc_ ? clocks_.from_tsc(ticks) : static_cast<int64_t>(ticks));
}

void ProcessState::describe(const event::ProcessRecord& record, const ProcessState* parent) {
  if (described_) return;
  if (parent != nullptr) {
    // A forked child goes on with its parent's numbers.
    const std::vector<Text> own = std::move(strings_);
    strings_ = parent->strings_;
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i].row != 0 && reach(strings_, static_cast<uint32_t>(i))) strings_[i] = own[i];
    kernels_ = parent->kernels_;
    cpu_events_ = parent->cpu_events_;
    devices_ = parent->devices_;
    communicators_ = parent->communicators_;
    device_clocks_ = parent->device_clocks_;
    if (parent->samples_ && !samples_)
      samples_ = std::make_unique<ProcessSamples>(*this, writer_, modules_, parent->samples_.get());
  }
  tsc_ = record.clock == static_cast<uint32_t>(event::HostClock::kTsc);
  if (tsc_ && record.ns_per_tick > 0 && record.ns_per_tick < 1000) clocks_.set_ns_per_tick(record.ns_per_tick);
  int64_t rank = kUnknown;
  const std::string_view rank_text = text(record.rank_text);
  std::from_chars(rank_text.data(), rank_text.data() + rank_text.size(), rank);
  const row::Process values{.pid = record.pid,
                            .parent_pid = record.parent_pid,
                            .start = static_cast<int64_t>(record.start_raw),
                            .name = string(record.name),
                            .command = string(record.command),
                            .host = string(record.host),
                            .rank = rank};
  if (row_ == 0) {
    row_ = writer_.dimension(values);
  } else {
    writer_.update(row_, values);
  }
  described_ = true;
  facts_.row = row_;
  facts_.pid = record.pid;
  facts_.name = text(record.name);
  facts_.hook_ns = record.hook_picoseconds / 1000.0;
  writer_.property(Table::kProcess, row_, "hook_ns", fmt::format("{:.1f}", facts_.hook_ns));
  writer_.property(Table::kProcess, row_, "host_clock", tsc_ ? "tsc" : "CLOCK_MONOTONIC_RAW");
}

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

int64_t ProcessState::device_time(const Queue& queue, uint64_t value) const {
  const auto time = static_cast<int64_t>(value);
  switch (queue.clock) {
    case event::DeviceClock::kMonotonicRaw:
      return plausible(time);
    case event::DeviceClock::kMonotonic:
      return plausible(clocks_.from_monotonic(time));
    case event::DeviceClock::kRealtime:
      return plausible(clocks_.from_realtime(time));
    case event::DeviceClock::kHost:
      return host_time(value);
    case event::DeviceClock::kPaired:
      return plausible(queue.device_number < device_clocks_.size() ? device_clocks_[queue.device_number](time) : time);
  }
  return plausible(time);
}

ProcessState::DeviceTimes ProcessState::device_times(const Queue& queue, Table table, uint64_t queued, uint64_t submit,
                                                     uint64_t start, uint64_t end) {
  DeviceTimes times{device_time(queue, start), kUnknown, kUnknown, kUnknown};
  if (end != 0) times.duration = device_time(queue, end) - times.start;
  if (queued != 0) times.queued_ahead = times.start - device_time(queue, queued);
  if (submit != 0) times.submit_ahead = times.start - device_time(queue, submit);
  const bool disordered = (end != 0 && end < start) || (submit != 0 && submit > start) ||
                          (queued != 0 && queued > (submit != 0 ? submit : start));
  if (disordered) {
    writer_.lose(row(), table, event::LossReason::kClockOrder, 1);
    times.duration = event::known_duration(times.duration);
  }
  return times;
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

// PyTorch's emitter writes "aten::mm, seq = 7, op_id = 31", other numbers in every call. The name alone, and the
// sequence number (kUnknown = none); texts with more behind them stay as they are.
static std::string_view cut_torch_numbers(std::string_view text, int64_t& sequence) {
  sequence = kUnknown;
  std::string_view name = text;
  const auto number = [&](std::string_view label) -> std::optional<int64_t> {
    const size_t at = name.rfind(label);
    if (at == std::string_view::npos || at == 0) return std::nullopt;
    int64_t value = 0;
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + at + label.size(), end, value);
    if (error != std::errc() || stop != end || value < 0) return std::nullopt;
    name = name.substr(0, at);
    return value;
  };
  number(", op_id = ");
  if (const auto value = number(", seq = ")) sequence = *value;
  return name;
}

ProcessState::Open ProcessState::parse_marker(const std::byte* at, const RecordHeader& header, size_t fixed,
                                              event::MarkerKind kind, uint64_t time) {
  Open open{0, host_time(time), 0, 0};
  const std::byte* const end = at + header.size;
  const std::byte* field = at + fixed;
  // Programs repeat their markers: the same bytes became the same label before.
  constexpr size_t kCached = 1024;
  if (known_markers_.empty()) known_markers_.resize(kCached);
  const std::string_view bytes(reinterpret_cast<const char*>(field), static_cast<size_t>(end - field));
  KnownMarker& known_marker = known_markers_[(XXH3_64bits(bytes.data(), bytes.size()) ^ header.flags) % kCached];
  if ((header.flags & event::kMarkerInterned) == 0 && known_marker.label != 0 && known_marker.flags == header.flags &&
      known_marker.kind == kind && known_marker.bytes == bytes) {
    open.label = known_marker.label;
    open.payload = known_marker.payload;
    open.domain = known_marker.domain;
    return open;
  }
  int64_t name = 0, sequence = kUnknown;
  if ((header.flags & event::kMarkerInterned) != 0) {
    name = string(header.value);
  } else {
    const size_t room = static_cast<size_t>(end - field);
    const size_t length = header.value < room ? header.value : room;
    std::string_view text(reinterpret_cast<const char*>(field), length);
    if ((header.flags & (event::kMarkerInteger | event::kMarkerDouble)) == 0 && kind == event::MarkerKind::kPushPop)
      text = cut_torch_numbers(text, sequence);
    name = writer_.string(text);
    field += (length + 7) & ~size_t{7};
  }
  const auto next = [&]() -> uint64_t {
    uint64_t word = 0;
    if (end - field >= 8) std::memcpy(&word, field, 8);
    field += 8;
    return word;
  };
  int64_t domain = 0, category = 0, color = kUnknown;
  auto payload = event::PayloadKind::kNone;
  if ((header.flags & event::kMarkerDomain) != 0) {
    open.domain = static_cast<uint32_t>(next());
    domain = string(open.domain);
  }
  if ((header.flags & event::kMarkerCategory) != 0) category = string(static_cast<uint32_t>(next()));
  if ((header.flags & event::kMarkerColor) != 0) color = static_cast<uint32_t>(next());
  if ((header.flags & event::kMarkerInteger) != 0) {
    payload = event::PayloadKind::kInteger;
    open.payload = static_cast<int64_t>(next());
  } else if ((header.flags & event::kMarkerDouble) != 0) {
    payload = event::PayloadKind::kDouble;
    open.payload = static_cast<int64_t>(next());
  } else if (sequence != kUnknown) {
    payload = event::PayloadKind::kInteger;
    open.payload = sequence;
  }
  open.label = writer_.dimension(row::Label{
      .name = name, .kind = kind, .domain = domain, .category = category, .color = color, .payload = payload});
  if ((header.flags & event::kMarkerInterned) == 0 && bytes.size() <= 512)
    known_marker = {std::string(bytes), header.flags, kind, open.label, open.payload, open.domain};
  return open;
}

void ProcessState::marker(const tape::BlockHeader& block, const std::byte* at, const RecordHeader& header) {
  ++facts_.hooks;
  Thread& owner = thread(block);
  switch (header.kind) {
    case RecordKind::kPush:
      owner.stack.push_back(parse_marker(at, header, sizeof(event::PushRecord), event::MarkerKind::kPushPop,
                                         as<event::PushRecord>(at).time));
      break;
    case RecordKind::kPop: {
      size_t i = owner.stack.size();
      while (i > 0 && owner.stack[i - 1].domain != header.value) --i;
      if (i == 0) {
        count_bad(Table::kMarker);
        break;
      }
      const Open open = owner.stack[i - 1];
      owner.stack.erase(owner.stack.begin() + static_cast<ptrdiff_t>(i - 1));
      writer_.add(row::Marker{.track = owner.track,
                              .start = open.start,
                              .duration = host_duration(open.start, host_time(as<event::PopRecord>(at).time)),
                              .dim = open.label,
                              .payload = open.payload});
      break;
    }
    case RecordKind::kMark: {
      const Open open =
          parse_marker(at, header, sizeof(event::MarkRecord), event::MarkerKind::kMark, as<event::MarkRecord>(at).time);
      writer_.add(row::Marker{
          .track = owner.track, .start = open.start, .duration = 0, .dim = open.label, .payload = open.payload});
      break;
    }
    case RecordKind::kRangeStart: {
      const auto& record = as<event::RangeStartRecord>(at);
      const Open open = parse_marker(at, header, sizeof record, event::MarkerKind::kStartStop, record.time);
      ranges_.insert_or_assign(record.id, Range{open, ranges_track(owner.tid)});
      break;
    }
    case RecordKind::kRangeStop: {
      const auto& record = as<event::RangeStopRecord>(at);
      const auto found = ranges_.find(record.id);
      if (found == ranges_.end()) {
        count_bad(Table::kMarker);
        break;
      }
      const Open& open = found->second.open;
      writer_.add(row::Marker{.track = found->second.track,
                              .start = open.start,
                              .duration = host_duration(open.start, host_time(record.time)),
                              .dim = open.label,
                              .payload = open.payload});
      ranges_.erase(found);
      break;
    }
    default:
      break;
  }
}

void ProcessState::define(const std::byte* at, const RecordHeader& header, const tape::BlockHeader& block) {
  switch (header.kind) {
    case RecordKind::kString: {
      const auto& record = as<event::StringRecord>(at);
      if (record.length > header.size - sizeof record || !reach(strings_, header.value)) return count_bad(Table::kEnd);
      const std::string_view text(reinterpret_cast<const char*>(at + sizeof record), record.length);
      strings_[header.value] = {writer_.string(text), std::string(text)};
      break;
    }
    case RecordKind::kThread: {
      const auto& record = as<event::ThreadRecord>(at);
      const int64_t thread_row = writer_.dimension(row::Thread{.process = row(), .tid = record.tid});
      writer_.update(Table::kThread, thread_row, event::column::Thread::name, string(record.name));
      break;
    }
    case RecordKind::kDevice: {
      const auto& record = as<event::DeviceRecord>(at);
      if (!reach(devices_, header.value)) return count_bad(Table::kEnd);
      // Not per process: the same device seen by several processes is one row.
      devices_[header.value] = writer_.dimension(row::Device{.kind = checked<event::DeviceKind>(record.kind),
                                                             .index = record.index,
                                                             .name = string(record.name),
                                                             .vendor = string(record.vendor),
                                                             .architecture = string(record.architecture),
                                                             .driver = string(record.driver),
                                                             .uuid = string(record.uuid),
                                                             .clock_error = known(record.clock_error_ns)});
      break;
    }
    case RecordKind::kQueue: {
      const auto& record = as<event::QueueRecord>(at);
      if (!reach(queues_, header.value)) return count_bad(Table::kEnd);
      Queue& queue = queues_[header.value];
      const int64_t category = record.category != 0 ? string(record.category) : writer_.string("queue");
      queue.device = device_row(record.device);
      queue.device_number = record.device;
      queue.clock = static_cast<event::DeviceClock>(record.clock);
      const bool numbered = (header.flags & event::kQueueNumbered) != 0;
      queue.track =
          writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                       .process = row(),
                                       .device = queue.device,
                                       .native = numbered ? static_cast<int64_t>(record.native) : header.value,
                                       .context = static_cast<int64_t>(record.context),
                                       .name = string(record.name),
                                       .category = category});
      if (record.properties != 0)
        writer_.property(Table::kTrack, queue.track, "properties", fmt::format("{:#x}", record.properties));
      if ((header.flags & event::kQueueStream) != 0 && record.context != 0)
        writer_.property(Table::kTrack, queue.track, "queue", fmt::format("{}", record.context));
      break;
    }
    case RecordKind::kKernel: {
      const auto& record = as<event::KernelRecord>(at);
      if (!reach(kernels_, header.value)) return count_bad(Table::kEnd);
      Kernel& kernel = kernels_[header.value];
      kernel.defined = true;
      kernel.record = record;
      kernel.name = string(record.name);
      kernel.shapes.clear();
      break;
    }
    case RecordKind::kProperty: {
      const auto& record = as<event::PropertyRecord>(at);
      auto table = static_cast<Table>(header.value);
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
      break;
    }
    case RecordKind::kNote: {
      const auto& record = as<event::NoteRecord>(at);
      writer_.note(row(), checked<event::NoteSeverity>(header.value), text(record.text));
      break;
    }
    case RecordKind::kClockPair: {
      const auto& record = as<event::ClockPairRecord>(at);
      if (header.flags != 0) return define_for_blocks(at, header);
      if (!reach(device_clocks_, header.value)) return count_bad(Table::kEnd);
      const int64_t raw = host_time(record.host);
      device_clocks_[header.value].add(static_cast<int64_t>(record.device), raw);
      writer_.add(row::Clock{.process = row(),
                             .raw = raw,
                             .vendor = static_cast<int64_t>(record.device),
                             .device = device_row(header.value)});
      break;
    }
    case RecordKind::kName:
    case RecordKind::kBlockClock:
    case RecordKind::kBlockSizes:
    case RecordKind::kBlockFact:
    case RecordKind::kBlockObject:
      return define_for_blocks(at, header);
    case RecordKind::kCommunicator: {
      const auto& record = as<event::CommunicatorRecord>(at);
      if (!reach(communicators_, header.value)) return count_bad(Table::kMessage);
      communicators_[header.value] = writer_.dimension(row::Communicator{
          .identity = static_cast<int64_t>(record.id),
          .name = string(record.name),
          .size = record.size,
          .members = string(record.members),
          .origin = record.origin == 0 ? 0 : writer_.string(event::function_name(event::Domain::kMpi, record.origin))});
      break;
    }
    case RecordKind::kAttached:
      if (header.value < static_cast<uint32_t>(event::Domain::kEnd)) facts_.attached |= uint64_t{1} << header.value;
      break;
    default:
      break;
  }
  static_cast<void>(block);
}

void ProcessState::define_for_blocks(const std::byte* at, const RecordHeader& header) {
  if (BlockDecoder* const decoder = blocks(static_cast<tape::BlockKind>(header.flags)); decoder != nullptr)
    decoder->define(at, header);
  else
    count_bad(Table::kEnd);
}

namespace {

// The number of a graph's node behind a record, where `flag` says that there is one.
template <typename Record>
int64_t node_behind(const Record& record, uint8_t flag) {
  if ((record.header.flags & flag) == 0 || record.header.size < sizeof record + sizeof(uint64_t)) return 0;
  return static_cast<int64_t>(as<uint64_t>(reinterpret_cast<const std::byte*>(&record + 1)));
}

}  // namespace

template <typename Record>
void ProcessState::write_dispatch(const Record& record, const Shape& shape, const tape::BlockHeader& block) {
  ++commands_.rows[static_cast<size_t>(Table::kDispatch)];
  const Queue& on = queue(record.queue);
  const DeviceTimes times = device_times(on, Table::kDispatch, record.queued, record.submit, record.start, record.end);
  writer_.add(row::Dispatch{.track = on.track,
                            .start = times.start,
                            .duration = times.duration,
                            .dim = kernel_row(kernel(record.header.value), shape),
                            .correlation = static_cast<int64_t>(record.correlation),
                            .queued_ahead = times.queued_ahead,
                            .submit_ahead = times.submit_ahead,
                            .ordinal = record.ordinal,
                            .graph_node = node_behind(record, event::kFlagGraph),
                            .arguments = thread(block).take(event::ArgumentsOf::kOpenClKernel, record.correlation)});
}

void ProcessState::record(const tape::BlockHeader& block, const std::byte* at, const RecordHeader& header) {
  switch (header.kind) {
    case RecordKind::kPad:
    case RecordKind::kProcess:
    case RecordKind::kEnd:
      break;
    case RecordKind::kString:
    case RecordKind::kThread:
    case RecordKind::kDevice:
    case RecordKind::kQueue:
    case RecordKind::kKernel:
    case RecordKind::kProperty:
    case RecordKind::kNote:
    case RecordKind::kClockPair:
    case RecordKind::kName:
    case RecordKind::kAttached:
    case RecordKind::kBlockClock:
    case RecordKind::kBlockSizes:
    case RecordKind::kBlockFact:
    case RecordKind::kBlockObject:
    case RecordKind::kCommunicator:
      define(at, header, block);
      break;
    case RecordKind::kMessage:
      message(block, as<event::MessageRecord>(at));
      break;
    case RecordKind::kApi: {
      const auto& record = as<event::ApiRecord>(at);
      ++facts_.hooks;
      if (header.flags >= static_cast<uint8_t>(event::Domain::kEnd)) return count_bad(Table::kApi);
      const int64_t start = host_time(record.start);
      const int64_t duration = record.end == 0 ? kUnknown : host_duration(start, host_time(record.end));
      const auto domain = static_cast<event::Domain>(header.flags);
      const uint32_t number = header.value & 0xffff;
      Thread& caller = thread(block);
      writer_.add(row::Api{
          .track = caller.track,
          .start = start,
          .duration = duration,
          .dim = function(domain, number),
          .correlation = static_cast<int64_t>(record.correlation),
          .result = event::function_has_result(domain, number) ? static_cast<int16_t>(header.value >> 16) : kUnknown,
          .arguments = domain == event::Domain::kMpi
                           ? shown_messages(caller, record.correlation)
                           : caller.take(domain == event::Domain::kHipRuntime ? event::ArgumentsOf::kHipCall
                                                                              : event::ArgumentsOf::kOpenClCall,
                                         record.correlation)});
      break;
    }
    case RecordKind::kDispatch: {
      const auto& record = as<event::DispatchRecord>(at);
      Shape shape{};
      for (int i = 0; i < 3; ++i) {
        shape.grid[i] = record.grid[i];
        shape.group[i] = record.group[i];
      }
      shape.shared_dynamic = (header.flags & event::kFlagNoDynamicShared) != 0 ? 0 : kUnknown32;
      write_dispatch(record, shape, block);
      break;
    }
    case RecordKind::kDispatchWide: {
      const auto& record = as<event::DispatchWideRecord>(at);
      Shape shape{};
      for (int i = 0; i < 3; ++i) {
        shape.grid[i] = record.grid[i];
        shape.group[i] = record.group[i];
        shape.offset[i] = record.offset[i];
        shape.cluster[i] = record.cluster[i];
      }
      shape.shared_dynamic = record.shared_dynamic;
      write_dispatch(record, shape, block);
      break;
    }
    case RecordKind::kCopy: {
      const auto& record = as<event::CopyRecord>(at);
      ++commands_.rows[static_cast<size_t>(Table::kCopy)];
      Queue on = queue(record.queue);
      if ((header.flags & event::kTimesAreHost) != 0) on.clock = event::DeviceClock::kHost;
      const DeviceTimes times = device_times(on, Table::kCopy, record.queued, record.submit, record.start, record.end);
      const auto direction = checked<event::CopyDirection>(header.value & 0xff);
      const int64_t peer = record.peer_queue != 0 ? queue(record.peer_queue).device : on.device;
      const int64_t shape = writer_.dimension(
          row::CopyShape{.direction = direction,
                         .source_memory = checked<event::MemoryKind>(header.value >> 16 & 0xff),
                         .target_memory = checked<event::MemoryKind>(header.value >> 24),
                         .source_device = direction == event::CopyDirection::kHostToDevice ? 0 : on.device,
                         .target_device = direction == event::CopyDirection::kDeviceToHost ? 0 : peer,
                         .kind = checked<event::CopyKind>(header.value >> 8 & 0xff),
                         .asynchronous = header.flags & event::kCopyAsynchronous});
      writer_.add(row::Copy{.track = on.track,
                            .start = times.start,
                            .duration = times.duration,
                            .dim = shape,
                            .correlation = static_cast<int64_t>(record.correlation),
                            .bytes = static_cast<int64_t>(record.bytes),
                            .queued_ahead = times.queued_ahead,
                            .submit_ahead = times.submit_ahead,
                            .graph_node = node_behind(record, event::kCopyGraph),
                            .arguments = thread(block).take(event::ArgumentsOf::kOpenClCall, record.correlation)});
      break;
    }
    case RecordKind::kFill: {
      const auto& record = as<event::FillRecord>(at);
      ++commands_.rows[static_cast<size_t>(Table::kFill)];
      Queue on = queue(record.queue);
      if ((header.flags & event::kTimesAreHost) != 0) on.clock = event::DeviceClock::kHost;
      const DeviceTimes times = device_times(on, Table::kFill, record.queued, record.submit, record.start, record.end);
      const int64_t shape = writer_.dimension(
          row::FillShape{.memory = checked<event::MemoryKind>(header.value),
                         .device = on.device,
                         .value = record.pattern_bytes <= 8 ? static_cast<int64_t>(record.pattern) : kUnknown});
      writer_.add(row::Fill{.track = on.track,
                            .start = times.start,
                            .duration = times.duration,
                            .dim = shape,
                            .correlation = static_cast<int64_t>(record.correlation),
                            .bytes = static_cast<int64_t>(record.bytes),
                            .queued_ahead = times.queued_ahead,
                            .submit_ahead = times.submit_ahead});
      break;
    }
    case RecordKind::kAllocation: {
      const auto& record = as<event::AllocationRecord>(at);
      const int64_t start = host_time(record.start);
      const int64_t shape =
          writer_.dimension(row::AllocationShape{.operation = checked<event::AllocationOperation>(header.value & 0xff),
                                                 .memory = checked<event::MemoryKind>(header.value >> 8 & 0xff),
                                                 .device = device_row(header.value >> 16),
                                                 .name = string(record.name)});
      writer_.add(row::Allocation{.track = thread(block).track,
                                  .start = start,
                                  .duration = record.end == 0 ? 0 : host_duration(start, host_time(record.end)),
                                  .dim = shape,
                                  .correlation = static_cast<int64_t>(record.correlation),
                                  .bytes = record.bytes == ~0ULL ? kUnknown : static_cast<int64_t>(record.bytes),
                                  .address = static_cast<int64_t>(record.address)});
      break;
    }
    case RecordKind::kSync: {
      const auto& record = as<event::SyncRecord>(at);
      ++commands_.rows[static_cast<size_t>(Table::kSync)];
      const bool host = (header.flags & event::kTimesAreHost) != 0;
      const Queue* on = record.queue != 0 ? &queue(record.queue) : nullptr;
      const int64_t start = host || on == nullptr ? host_time(record.start) : device_time(*on, record.start);
      const int64_t end = host || on == nullptr ? host_time(record.end) : device_time(*on, record.end);
      const int64_t shape = writer_.dimension(
          row::SyncShape{.kind = checked<event::SyncKind>(header.value), .device = on != nullptr ? on->device : 0});
      writer_.add(row::Sync{.track = on != nullptr ? on->track : thread(block).track,
                            .start = start,
                            .duration = end - start,
                            .dim = shape,
                            .correlation = static_cast<int64_t>(record.correlation)});
      break;
    }
    case RecordKind::kPush:
    case RecordKind::kPop:
    case RecordKind::kMark:
    case RecordKind::kRangeStart:
    case RecordKind::kRangeStop:
      marker(block, at, header);
      break;
    case RecordKind::kLoss: {
      const auto& record = as<event::LossRecord>(at);
      const uint32_t table = header.value & 0xff;
      const auto reason = checked<event::LossReason>(header.value >> 8);
      if (reason == event::LossReason::kFiltered)
        commands_.filtered_said += record.count;
      else if (reason == event::LossReason::kKilled && table < event::kFactTables)
        commands_.said[table] += record.count;
      writer_.lose(row(), table < event::kFactTables ? static_cast<Table>(table) : Table::kEnd, reason,
                   static_cast<int64_t>(record.count));
      break;
    }
    case RecordKind::kSample:
      if (!samples().sample(block, as<event::SampleRecord>(at), {at, header.size})) count_bad(Table::kSample);
      break;
    case RecordKind::kArguments: {
      const auto& record = as<event::ArgumentsRecord>(at);
      arguments(block, record, {at + sizeof record, header.size - sizeof record});
      break;
    }
    case RecordKind::kCounts: {
      const auto& record = as<event::CountsRecord>(at);
      if (header.value > event::kMostCpuEvents || header.size < sizeof record + header.value * sizeof(double) ||
          header.flags >= static_cast<uint8_t>(event::CountsOf::kEnd))
        count_bad(Table::kReading);
      else
        counts(record, at + sizeof record);
      break;
    }
    case RecordKind::kModule: {
      const auto& record = as<event::ModuleRecord>(at);
      samples().module(record, text(record.path));
      break;
    }
    case RecordKind::kCode: {
      const auto& record = as<event::CodeRecord>(at);
      samples().code(record, {at, header.size}, text(record.name), text(record.file));
      break;
    }
  }
}

void ProcessState::message(const tape::BlockHeader& block, const event::MessageRecord& record) {
  const auto kind = checked<event::MessageKind>(record.header.flags);
  const auto bytes = [](uint64_t value) {
    return value > static_cast<uint64_t>(INT64_MAX) ? kUnknown : static_cast<int64_t>(value);
  };
  Thread& caller = thread(block);
  const int64_t start = host_time(record.start);
  const int64_t communicator = record.communicator < communicators_.size() ? communicators_[record.communicator] : 0;
  const std::string_view function = event::function_name(event::Domain::kMpi, record.header.value & 0xffff);
  writer_.add(row::Message{.track = caller.track,
                           .start = start,
                           .duration = host_duration(start, host_time(record.end)),
                           .dim = communicator,
                           .correlation = static_cast<int64_t>(record.correlation),
                           .kind = kind,
                           .function = writer_.string(function),
                           .sent = bytes(record.sent),
                           .received = bytes(record.received),
                           .peer = record.peer == event::kNoPeer ? kUnknown : record.peer,
                           .tag = record.tag == event::kNoTag ? kUnknown : record.tag,
                           .sequence = kind == event::MessageKind::kCollective ? record.sequence : kUnknown,
                           .begun_ahead = std::max<int64_t>(start - host_time(record.begun), 0)});
  if ((record.header.value & event::kMessageShown) == 0) return;
  if (caller.messages.correlation != record.correlation) caller.messages = {record.correlation, 0, {}};
  constexpr size_t kMostShown = 4;
  if (++caller.messages.count > kMostShown) return;
  std::string& text = caller.messages.text;
  if (!text.empty()) text += "; ";
  const auto number = [](int64_t value, int64_t none) {
    return value == none ? std::string("unknown") : std::to_string(value);
  };
  if (kind == event::MessageKind::kCollective) {
    text += fmt::format("sent={}, received={}", number(bytes(record.sent), kUnknown),
                        number(bytes(record.received), kUnknown));
    if (record.peer != event::kNoPeer) text += fmt::format(", root={}", record.peer);
  } else if (kind == event::MessageKind::kFileRead || kind == event::MessageKind::kFileWrite) {
    text += fmt::format("bytes={}", number(bytes(std::max(record.sent, record.received)), kUnknown));
    return;
  } else if (kind == event::MessageKind::kPut || kind == event::MessageKind::kGet ||
             kind == event::MessageKind::kUpdate) {
    text += fmt::format("{}={}, bytes={}", kind == event::MessageKind::kGet ? "from" : "to",
                        number(record.peer, event::kNoPeer),
                        number(bytes(std::max(record.sent, record.received)), kUnknown));
  } else {
    const bool send = kind == event::MessageKind::kSend;
    text +=
        fmt::format("{}={}, bytes={}, tag={}", send ? "to" : "from", number(record.peer, event::kNoPeer),
                    number(bytes(send ? record.sent : record.received), kUnknown), number(record.tag, event::kNoTag));
  }
  text += fmt::format(", communicator={}", record.communicator);
}

int64_t ProcessState::shown_messages(Thread& caller, uint64_t correlation) {
  if (caller.messages.correlation != correlation || caller.messages.text.empty()) return 0;
  std::string text = std::exchange(caller.messages.text, {});
  if (caller.messages.count > 4) text += fmt::format("; and {} more", caller.messages.count - 4);
  return writer_.string(text);
}

void ProcessState::arguments(const tape::BlockHeader& block, const event::ArgumentsRecord& record,
                             std::span<const std::byte> bytes) {
  const uint32_t value = record.header.value;
  std::string text;
  switch (static_cast<event::ArgumentsOf>(record.header.flags)) {
    case event::ArgumentsOf::kOpenClCall:
    case event::ArgumentsOf::kHipCall: {
      std::vector<uint64_t> words(bytes.size() / sizeof(uint64_t));
      if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(uint64_t));
      text = record.header.flags == static_cast<uint8_t>(event::ArgumentsOf::kHipCall)
                 ? hip_call_text(event::function_name(event::Domain::kHipRuntime, value), words)
                 : opencl_call_text(static_cast<uint16_t>(value), words);
      break;
    }
    case event::ArgumentsOf::kOpenClKernel: {
      std::vector<event::KernelArgument> given(std::min<size_t>(value, bytes.size() / sizeof(event::KernelArgument)));
      if (!given.empty()) std::memcpy(given.data(), bytes.data(), given.size() * sizeof(event::KernelArgument));
      text = kernel_arguments_text(given);
      break;
    }
    case event::ArgumentsOf::kVendorCall:
      if (BlockDecoder* const decoder = blocks(static_cast<tape::BlockKind>(value)))
        decoder->arguments(record.correlation, bytes);
      return;
    case event::ArgumentsOf::kEnd:
    default:
      return count_bad(Table::kApi);
  }
  thread(block).arguments = {record.correlation, static_cast<event::ArgumentsOf>(record.header.flags),
                             text.empty() ? 0 : writer_.string(text)};
}

void ProcessState::counts(const event::CountsRecord& record, const std::byte* at) {
  const bool call = record.header.flags == static_cast<uint8_t>(event::CountsOf::kCall);
  std::vector<int64_t>& tracks = lines(record.tid).counts[record.header.flags];
  tracks.resize(event::kMostCpuEvents);
  for (uint32_t i = 0; i < record.header.value; ++i) {
    double count;
    std::memcpy(&count, at + i * sizeof count, sizeof count);
    if (!(count >= 0)) continue;
    if (tracks[i] == 0) {
      const std::string name = i < cpu_events_.size() ? cpu_events_[i] : fmt::format("CPU event {}", i);
      const CpuEvent* const known = find_cpu_event(name);
      const int64_t counter = writer_.dimension(
          row::Counter{.name = writer_.string(call ? name + " in launching calls" : name),
                       .unit = writer_.string(known != nullptr ? known->unit : ""),
                       .text = writer_.string(fmt::format(
                           "{}, {}", known != nullptr ? known->text : name,
                           call ? "during each call that launches device work" : "since the thread's sample before")),
                       .block = writer_.string("cpu")});
      tracks[i] = writer_.dimension(row::Track{
          .kind = event::TrackKind::kCounter,
          .process = row(),
          .thread = lines(record.tid).thread,
          .name = writer_.string(fmt::format("{}{} of thread {}", name, call ? " in launching calls" : "", record.tid)),
          .category = writer_.string("cpu counter"),
          .counter = counter});
    }
    writer_.add(
        row::Reading{.track = tracks[i], .start = host_time(record.time), .value = std::bit_cast<int64_t>(count)});
  }
}

void ProcessState::vendor_buffer(const tape::BlockHeader& block, std::span<const std::byte> bytes) {
  BlockDecoder* const decoder = blocks(block.kind);
  if (decoder == nullptr) {
    writer_.lose(row(), Table::kEnd, event::LossReason::kUnknownRecord, 1);
  } else if (!bytes.empty()) {
    // A buffer that its library still held when the process ended has no committed length.
    decoder->block(block, bytes, block.committed.load(std::memory_order_relaxed) != 0);
  }
}

void ProcessState::progress(std::span<const std::byte> bytes) {
  tape::CommandCounts at{};
  if (bytes.size() < sizeof at) return;
  std::memcpy(static_cast<void*>(&at), bytes.data(), sizeof at);
  commands_.known = true;
  commands_.ended = at.ended.load(std::memory_order_relaxed) != 0;
  commands_.filtered = at.filtered.load(std::memory_order_relaxed);
  for (size_t table = 0; table < event::kFactTables; ++table)
    commands_.issued[table] = at.issued[table].load(std::memory_order_relaxed);
}

void ProcessState::finish() {
  if (samples_) samples_->finish();
  for (auto& [kind, decoder] : blocks_) decoder->finish();
  int64_t open_ranges = 0;
  for (const auto& owner : threads_) {
    if (!owner) continue;
    for (const Open& open : owner->stack) {
      writer_.add(row::Marker{.track = owner->track, .start = open.start, .dim = open.label, .payload = open.payload});
      ++open_ranges;
    }
  }
  for (const auto& [id, range] : ranges_) {
    writer_.add(row::Marker{
        .track = range.track, .start = range.open.start, .dim = range.open.label, .payload = range.open.payload});
    ++open_ranges;
  }
  if (open_ranges != 0) writer_.lose(row(), Table::kMarker, event::LossReason::kOpenAtExit, open_ranges);
}

}  // namespace tacho::decode
