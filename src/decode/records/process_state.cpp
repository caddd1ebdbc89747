// One process's records become rows (process_state.h).
#include "decode/records/process_state.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/cpu_events.h"
#include "base/format.h"
#include "base/saturating.h"
#include "decode/records/arguments.h"
#include "decode/records/record_values.h"
#include "decode/records/samples.h"
#include "event/call_result.h"
#include "event/functions/functions.h"
#include "vendor/call_roles.h"

namespace tacho::decode {

using event::kUnknown;
using event::kUnknown32;
using event::RecordHeader;
using event::RecordKind;
using event::Table;
namespace row = event::row;

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
  return plausible(tsc_ ? clocks_.from_tsc(ticks) : raw_time(static_cast<int64_t>(ticks)));
}

namespace {

// What the process's file says of its CLOCK_MONOTONIC and _RAW, which differ in a time namespace; 0 = nothing.
int64_t namespace_offset(const std::string& process) {
  std::FILE* const file = std::fopen(fmt::format("/proc/{}/timens_offsets", process).c_str(), "re");
  if (file == nullptr) return 0;
  char line[128];
  long long seconds = 0, ns = 0;
  const bool found = std::fgets(line, sizeof line, file) != nullptr &&
                     std::sscanf(line, "monotonic %lld %lld", &seconds, &ns) == 2 && std::abs(seconds) < 1LL << 33;
  std::fclose(file);
  return found ? static_cast<int64_t>(seconds) * 1'000'000'000 + ns : 0;
}

}  // namespace

// The process read its clocks at its start. The TSC is everybody's, so it says how far they are from tacho's.
void ProcessState::compare_clocks(const event::ProcessRecord& record) {
  constexpr int64_t kLeast = 1'000'000;  // ns; closer clocks are the same one
  int64_t ahead = 0;
  if (!tsc_)
    ahead = namespace_offset(fmt::format("{}", record.pid)) - namespace_offset("self");
  else if (!clocks_.tuples().empty())
    ahead = plausible(static_cast<int64_t>(record.start_raw)) - host_time(record.start);
  if (std::abs(ahead) < kLeast) return;
  ahead_ = ahead;
  writer_.property(Table::kProcess, row(), "clock_ahead_ns", fmt::format("{}", ahead));
  writer_.note(row(), event::NoteSeverity::kInfo,
               fmt::format("the clocks of process {} are {:.3f} s {} this machine's (a time namespace, or a changed "
                           "clock): its devices' times were moved by that",
                           record.pid, static_cast<double>(std::abs(ahead)) * 1e-9, ahead > 0 ? "ahead of" : "behind"));
}

void ProcessState::describe(const event::ProcessRecord& record, const ProcessState* parent,
                            const ProcessState* before) {
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
  } else if (before != nullptr && before->samples_ && before->samples_->cpu_time() != 0) {
    samples().continue_after_exec(before->samples_->cpu_time());
  }
  tsc_ = record.clock == static_cast<uint32_t>(event::HostClock::kTsc);
  if (tsc_ && record.ns_per_tick > 0 && record.ns_per_tick < 1000) clocks_.set_ns_per_tick(record.ns_per_tick);
  compare_clocks(record);
  int64_t rank = kUnknown;
  const std::string_view rank_text = text(record.rank_text);
  std::from_chars(rank_text.data(), rank_text.data() + rank_text.size(), rank);
  const row::Process values{.pid = record.pid,
                            .parent_pid = record.parent_pid,
                            .start = raw_time(static_cast<int64_t>(record.start_raw)),
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
  facts_.start = static_cast<int64_t>(record.start_raw);
  facts_.preloaded = (record.header.flags & event::kFlagPreloaded) != 0;
  writer_.property(Table::kProcess, row_, "hook_ns", fmt::format("{:.1f}", facts_.hook_ns));
  writer_.property(Table::kProcess, row_, "host_clock", tsc_ ? "tsc" : "CLOCK_MONOTONIC_RAW");
}

int64_t ProcessState::device_time(const Queue& queue, uint64_t value) const {
  const auto time = static_cast<int64_t>(value);
  switch (queue.clock) {
    case event::DeviceClock::kMonotonicRaw:
      return plausible(raw_time(time));
    case event::DeviceClock::kMonotonic:
      return plausible(clocks_.from_monotonic(raw_time(time)));
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

// Copies that the host makes have its times.
trace::WorkTimes::Origin ProcessState::origin_of(const Queue& queue, uint64_t start) {
  return {.device = queue.device, .timed = start != 0 && queue.clock != event::DeviceClock::kHost};
}

template <typename Record>
void ProcessState::write_dispatch(const Record& record, const Shape& shape, const tape::BlockHeader& block) {
  ++commands_.rows[static_cast<size_t>(Table::kDispatch)];
  const Queue& on = queue(record.queue);
  const DeviceTimes times = device_times(on, Table::kDispatch, record.queued, record.submit, record.start, record.end);
  work_.dispatch(origin_of(on, record.start),
                 {.track = on.track,
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

void ProcessState::take(const event::ApiRecord& record, const tape::BlockHeader& block) {
  ++facts_.hooks;
  if (record.header.flags >= static_cast<uint8_t>(event::Domain::kEnd)) return count_bad(Table::kApi);
  const int64_t start = host_time(record.start);
  const int64_t duration = record.end == 0 ? kUnknown : host_duration(start, host_time(record.end));
  const auto domain = static_cast<event::Domain>(record.header.flags);
  const uint32_t number = record.header.value & 0xffff;
  Thread& caller = thread(block);
  const auto result = static_cast<int16_t>(record.header.value >> 16);
  const auto args =
      domain == event::Domain::kHipRuntime ? event::ArgumentsOf::kHipCall : event::ArgumentsOf::kOpenClCall;
  const bool told = result != event::kUntoldResult && event::function_has_result(domain, number);
  work_.call({.correlation = static_cast<int64_t>(record.correlation),
              .start = start,
              .end = duration == kUnknown ? kUnknown : start + duration,
              .role = result == 0 || result == event::kUntoldResult
                          ? vendor::call_role(event::function_name(domain, number))
                          : event::CallRole::kPlain});
  const row::Api row{.track = caller.track,
                     .start = start,
                     .duration = duration,
                     .dim = function(domain, number),
                     .correlation = static_cast<int64_t>(record.correlation),
                     .result = told ? result : kUnknown,
                     .arguments = domain == event::Domain::kMpi ? shown_messages(caller, record.correlation)
                                                                : caller.take(args, record.correlation)};
  writer_.add(row);
  memory_failures_.returned(domain, row, [&] { return event::function_name(domain, number); });
}

void ProcessState::take(const event::DispatchRecord& record, const tape::BlockHeader& block) {
  Shape shape{};
  for (int i = 0; i < 3; ++i) {
    shape.grid[i] = record.grid[i];
    shape.group[i] = record.group[i];
  }
  shape.shared_dynamic = (record.header.flags & event::kFlagNoDynamicShared) != 0 ? 0 : kUnknown32;
  write_dispatch(record, shape, block);
}

void ProcessState::take(const event::DispatchWideRecord& record, const tape::BlockHeader& block) {
  Shape shape{};
  for (int i = 0; i < 3; ++i) {
    shape.grid[i] = record.grid[i];
    shape.group[i] = record.group[i];
    shape.offset[i] = record.offset[i];
    shape.cluster[i] = record.cluster[i];
  }
  shape.shared_dynamic = record.shared_dynamic;
  write_dispatch(record, shape, block);
}

void ProcessState::take(const event::CopyRecord& record, const tape::BlockHeader& block) {
  ++commands_.rows[static_cast<size_t>(Table::kCopy)];
  Queue on = queue(record.queue);
  if ((record.header.flags & event::kTimesAreHost) != 0) on.clock = event::DeviceClock::kHost;
  const DeviceTimes times = device_times(on, Table::kCopy, record.queued, record.submit, record.start, record.end);
  const auto direction = checked<event::CopyDirection>(record.header.value & 0xff);
  const int64_t peer = record.peer_queue != 0 ? queue(record.peer_queue).device : on.device;
  const int64_t shape = writer_.dimension(
      row::CopyShape{.direction = direction,
                     .source_memory = checked<event::MemoryKind>(record.header.value >> 16 & 0xff),
                     .target_memory = checked<event::MemoryKind>(record.header.value >> 24),
                     .source_device = direction == event::CopyDirection::kHostToDevice ? 0 : on.device,
                     .target_device = direction == event::CopyDirection::kDeviceToHost ? 0 : peer,
                     .kind = checked<event::CopyKind>(record.header.value >> 8 & 0xff),
                     .asynchronous = record.header.flags & event::kCopyAsynchronous});
  trace::WorkTimes::Origin origin = origin_of(on, record.start);
  origin.to_host = direction == event::CopyDirection::kDeviceToHost;
  origin.blocking = (record.header.flags & event::kCopyAsynchronous) == 0;
  work_.copy(origin, {.track = on.track,
                      .start = times.start,
                      .duration = times.duration,
                      .dim = shape,
                      .correlation = static_cast<int64_t>(record.correlation),
                      .bytes = static_cast<int64_t>(record.bytes),
                      .queued_ahead = times.queued_ahead,
                      .submit_ahead = times.submit_ahead,
                      .graph_node = node_behind(record, event::kCopyGraph),
                      .arguments = thread(block).take(event::ArgumentsOf::kOpenClCall, record.correlation)});
}

void ProcessState::take(const event::FillRecord& record) {
  ++commands_.rows[static_cast<size_t>(Table::kFill)];
  Queue on = queue(record.queue);
  if ((record.header.flags & event::kTimesAreHost) != 0) on.clock = event::DeviceClock::kHost;
  const DeviceTimes times = device_times(on, Table::kFill, record.queued, record.submit, record.start, record.end);
  const int64_t shape = writer_.dimension(
      row::FillShape{.memory = checked<event::MemoryKind>(record.header.value),
                     .device = on.device,
                     .value = record.pattern_bytes <= 8 ? static_cast<int64_t>(record.pattern) : kUnknown});
  work_.fill(origin_of(on, record.start), {.track = on.track,
                                           .start = times.start,
                                           .duration = times.duration,
                                           .dim = shape,
                                           .correlation = static_cast<int64_t>(record.correlation),
                                           .bytes = static_cast<int64_t>(record.bytes),
                                           .queued_ahead = times.queued_ahead,
                                           .submit_ahead = times.submit_ahead});
}

void ProcessState::take(const event::AllocationRecord& record, const tape::BlockHeader& block) {
  const int64_t start = host_time(record.start);
  const int64_t shape = writer_.dimension(
      row::AllocationShape{.operation = checked<event::AllocationOperation>(record.header.value & 0xff),
                           .memory = checked<event::MemoryKind>(record.header.value >> 8 & 0xff),
                           .device = device_row(record.header.value >> 16),
                           .name = string(record.name)});
  writer_.add(row::Allocation{.track = thread(block).track,
                              .start = start,
                              .duration = record.end == 0 ? 0 : host_duration(start, host_time(record.end)),
                              .dim = shape,
                              .correlation = static_cast<int64_t>(record.correlation),
                              .bytes = record.bytes == ~0ULL ? kUnknown : static_cast<int64_t>(record.bytes),
                              .address = static_cast<int64_t>(record.address),
                              .stack = samples_ ? samples_->take_memory_stack(thread(block).tid) : 0});
}

void ProcessState::take(const event::SyncRecord& record, const tape::BlockHeader& block) {
  ++commands_.rows[static_cast<size_t>(Table::kSync)];
  const bool host = (record.header.flags & event::kTimesAreHost) != 0;
  const Queue* on = record.queue != 0 ? &queue(record.queue) : nullptr;
  const int64_t start = host || on == nullptr ? host_time(record.start) : device_time(*on, record.start);
  const int64_t end = host || on == nullptr ? host_time(record.end) : device_time(*on, record.end);
  const int64_t shape = writer_.dimension(
      row::SyncShape{.kind = checked<event::SyncKind>(record.header.value), .device = on != nullptr ? on->device : 0});
  const row::Sync row{.track = on != nullptr ? on->track : thread(block).track,
                      .start = start,
                      .duration = end - start,
                      .dim = shape,
                      .correlation = static_cast<int64_t>(record.correlation)};
  if (host && on != nullptr && record.header.value == static_cast<uint32_t>(event::SyncKind::kQueue))
    work_.queue_wait(0, on->track, start, end);
  if (host || on == nullptr)
    writer_.add(row);
  else
    work_.sync(origin_of(*on, record.start), row);
}

void ProcessState::take(const event::LossRecord& record) {
  const uint32_t table = record.header.value & 0xff;
  const auto reason = checked<event::LossReason>(record.header.value >> 8);
  if (reason == event::LossReason::kFiltered)
    commands_.filtered_said += record.count;
  else if (reason == event::LossReason::kKilled && table < event::kFactTables)
    commands_.said[table] += record.count;
  else if (reason == event::LossReason::kNoTimer)
    add_saturating(facts_.untimed_threads, static_cast<int64_t>(record.count));
  writer_.lose(row(), table < event::kFactTables ? static_cast<Table>(table) : Table::kEnd, reason,
               static_cast<int64_t>(record.count));
}

void ProcessState::record(const tape::BlockHeader& block, const std::byte* at, const RecordHeader& header) {
  switch (header.kind) {
    case RecordKind::kPad:
    case RecordKind::kProcess:
    case RecordKind::kEnd:
      return;
    case RecordKind::kString:
      return take(as<event::StringRecord>(at));
    case RecordKind::kThread:
      return take(as<event::ThreadRecord>(at));
    case RecordKind::kDevice:
      return take(as<event::DeviceRecord>(at));
    case RecordKind::kQueue:
      return take(as<event::QueueRecord>(at));
    case RecordKind::kKernel:
      return take(as<event::KernelRecord>(at));
    case RecordKind::kProperty:
      return take(as<event::PropertyRecord>(at));
    case RecordKind::kNote:
      return writer_.note(row(), checked<event::NoteSeverity>(header.value), text(as<event::NoteRecord>(at).text));
    case RecordKind::kClockPair:
      return header.flags != 0 ? define_for_blocks(at, header) : take(as<event::ClockPairRecord>(at));
    case RecordKind::kName:
    case RecordKind::kBlockClock:
    case RecordKind::kBlockSizes:
    case RecordKind::kBlockFact:
    case RecordKind::kBlockObject:
      return define_for_blocks(at, header);
    case RecordKind::kCommunicator:
      return take(as<event::CommunicatorRecord>(at));
    case RecordKind::kCounter:
      return take(as<event::ProgramCounterRecord>(at));
    case RecordKind::kFields:
      return take(as<event::FieldsRecord>(at));
    case RecordKind::kEnumeration:
      return take(as<event::EnumerationRecord>(at));
    case RecordKind::kReading:
      return take(as<event::ReadingRecord>(at));
    case RecordKind::kAttached:
      if (header.value < static_cast<uint32_t>(event::Domain::kEnd)) facts_.attached |= uint64_t{1} << header.value;
      return;
    case RecordKind::kMessage:
      return take(as<event::MessageRecord>(at), block);
    case RecordKind::kApi:
      return take(as<event::ApiRecord>(at), block);
    case RecordKind::kDispatch:
      return take(as<event::DispatchRecord>(at), block);
    case RecordKind::kDispatchWide:
      return take(as<event::DispatchWideRecord>(at), block);
    case RecordKind::kCopy:
      return take(as<event::CopyRecord>(at), block);
    case RecordKind::kFill:
      return take(as<event::FillRecord>(at));
    case RecordKind::kAllocation:
      return take(as<event::AllocationRecord>(at), block);
    case RecordKind::kBlockMemory:
      return take(as<event::BlockMemoryRecord>(at), block);
    case RecordKind::kSync:
      return take(as<event::SyncRecord>(at), block);
    case RecordKind::kPush:
    case RecordKind::kPop:
    case RecordKind::kMark:
    case RecordKind::kRangeStart:
    case RecordKind::kRangeStop:
      return marker(block, at, header);
    case RecordKind::kLoss:
      return take(as<event::LossRecord>(at));
    case RecordKind::kSample:
      if (const auto period = static_cast<int64_t>(as<event::SampleRecord>(at).period); period > 0)
        add_saturating(facts_.sampled_ns, period);
      if (!samples().sample(block, as<event::SampleRecord>(at), {at, header.size})) count_bad(Table::kSample);
      return;
    case RecordKind::kArguments:
      return take(as<event::ArgumentsRecord>(at), block);
    case RecordKind::kCounts:
      return take(as<event::CountsRecord>(at));
    case RecordKind::kModule:
      return samples().module(as<event::ModuleRecord>(at), text(as<event::ModuleRecord>(at).path));
    case RecordKind::kCode: {
      const auto& record = as<event::CodeRecord>(at);
      return samples().code(record, {at, header.size}, text(record.name), text(record.file));
    }
  }
}

void ProcessState::take(const event::ArgumentsRecord& record, const tape::BlockHeader& block) {
  const std::span<const std::byte> bytes{reinterpret_cast<const std::byte*>(&record + 1),
                                         record.header.size - sizeof record};
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

void ProcessState::take(const event::CountsRecord& record) {
  if (record.header.value > event::kMostCpuEvents ||
      record.header.size < sizeof record + record.header.value * sizeof(double) ||
      record.header.flags >= static_cast<uint8_t>(event::CountsOf::kEnd))
    return count_bad(Table::kReading);
  const bool call = record.header.flags == static_cast<uint8_t>(event::CountsOf::kCall);
  std::vector<int64_t>& tracks = lines(record.tid).counts[record.header.flags];
  tracks.resize(event::kMostCpuEvents);
  for (uint32_t i = 0; i < record.header.value; ++i) {
    double count;
    std::memcpy(&count, reinterpret_cast<const std::byte*>(&record + 1) + i * sizeof count, sizeof count);
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

void ProcessState::settle() {
  for (auto& [kind, decoder] : blocks_) decoder->settle();
  work_.settle();
}

void ProcessState::finish() {
  if (samples_) samples_->finish();
  finish_block_memory();
  for (auto& [kind, decoder] : blocks_) decoder->finish();
  work_.finish(row());
  int64_t open_ranges = 0;
  for (const auto& owner : threads_) {
    if (!owner) continue;
    for (const Open& open : owner->stack) {
      close(owner->track, open, kUnknown);
      ++open_ranges;
    }
  }
  for (const auto& [id, range] : ranges_) {
    close(range.track, range.open, kUnknown);
    ++open_ranges;
  }
  if (open_ranges != 0) writer_.lose(row(), Table::kMarker, event::LossReason::kOpenAtExit, open_ranges);
}

}  // namespace tacho::decode
