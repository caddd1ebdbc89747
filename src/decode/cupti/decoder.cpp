// CUPTI activity buffers become rows (cupti.h).
#include "decode/cupti/decoder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/format.h"
#include "base/text/demangle.h"
#include "base/text/how_many.h"
#include "decode/cupti/arguments.h"
#include "event/times.h"
#include "vendor/call_roles.h"

namespace tacho::decode {

using event::BlockClock;
using event::kUnknown;
namespace row = event::row;
using event::Table;
namespace k = cupti::kind;

namespace {

// Set in the correlation of a driver call that shares its number with the runtime call around it, so that the two stay
// apart; CUPTI's own numbers have 32 bits and are widened by a count of wraps that never reaches this.
constexpr uint64_t kNestedBit = 1ull << 40;

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 32;
}

uint64_t parse_number(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The function as the user wrote it: without the version that CUPTI appends to runtime functions ("_v7000") and the
// suffixes of per-thread default streams.
std::string_view plain_name(std::string_view name, bool driver) {
  if (!driver) {
    const size_t version = name.rfind("_v");
    if (version != std::string_view::npos && version + 2 < name.size() &&
        std::all_of(name.begin() + static_cast<ptrdiff_t>(version) + 2, name.end(),
                    [](char c) { return c >= '0' && c <= '9'; }))
      name = name.substr(0, version);
  }
  for (const std::string_view suffix : {"_ptsz", "_ptds"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

event::MemoryKind memory_kind(uint32_t value) {
  using event::MemoryKind;
  static constexpr MemoryKind kKinds[] = {MemoryKind::kUnknown,      MemoryKind::kPageable,     MemoryKind::kPinned,
                                          MemoryKind::kDevice,       MemoryKind::kArray,        MemoryKind::kManaged,
                                          MemoryKind::kDeviceStatic, MemoryKind::kManagedStatic};
  return value < std::size(kKinds) ? kKinds[value] : MemoryKind::kUnknown;
}

event::CopyDirection copy_direction(uint8_t value) {
  using event::CopyDirection;
  // CUPTI_ACTIVITY_MEMCPY_KIND_*: UNKNOWN HTOD DTOH HTOA ATOH ATOA ATOD DTOA DTOD HTOH PTOP
  static constexpr CopyDirection kDirections[] = {
      CopyDirection::kUnknown,        CopyDirection::kHostToDevice,   CopyDirection::kDeviceToHost,
      CopyDirection::kHostToDevice,   CopyDirection::kDeviceToHost,   CopyDirection::kDeviceToDevice,
      CopyDirection::kDeviceToDevice, CopyDirection::kDeviceToDevice, CopyDirection::kDeviceToDevice,
      CopyDirection::kHostToHost,     CopyDirection::kPeerToPeer};
  return value < std::size(kDirections) ? kDirections[value] : CopyDirection::kUnknown;
}

std::string uuid_text(const std::byte* bytes, const char* prefix) {
  std::string text = prefix;
  for (int at = 0; at < 16; ++at) {
    if (at == 4 || at == 6 || at == 8 || at == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned>(bytes[at]));
  }
  return text;
}

// The name of a graph's span, from the target's description of the graph: the number of nodes, then a line "count <tab>
// type <tab> kernel name" for every group of equal nodes.
std::string graph_title(std::string_view text) {
  const auto cut = [](std::string_view& rest, char at) {
    const size_t found = rest.find(at);
    const std::string_view part = rest.substr(0, found);
    rest = found == std::string_view::npos ? std::string_view() : rest.substr(found + 1);
    return part;
  };
  const uint64_t nodes = parse_number(cut(text, '\n'));
  std::string title = fmt::format("graph of {} {}", nodes, nodes == 1 ? "node" : "nodes");
  constexpr int kShown = 6;
  for (int shown = 0; !text.empty(); ++shown) {
    if (shown == kShown) {
      title += ", ...";
      break;
    }
    std::string_view line = cut(text, '\n');
    const uint64_t count = parse_number(cut(line, '\t'));
    const std::string_view type = cut(line, '\t');
    title += shown == 0 ? ": " : ", ";
    title += line.empty() ? std::string(type) : short_name(demangle(line));
    if (count > 1) title += fmt::format(" x{}", count);
  }
  return title;
}

constexpr uint32_t kNoStream = 0xffffffff;

}  // namespace

CuptiDecoder::CuptiDecoder(ProcessContext& process, trace::TraceWriter& writer)
    : process_(process), writer_(writer), kernel_slots_(kKernelSlots) {}
CuptiDecoder::~CuptiDecoder() = default;

std::unique_ptr<BlockDecoder> make_cupti_decoder(ProcessContext& process, trace::TraceWriter& writer) {
  return std::make_unique<CuptiDecoder>(process, writer);
}

// The target's facts about its buffers

void CuptiDecoder::name(event::NameSpace space, uint64_t number, std::string_view text) {
  switch (space) {
    case event::NameSpace::kRuntimeFunction:
    case event::NameSpace::kDriverFunction: {
      if (number >= 1u << 16) return;
      const bool driver = space == event::NameSpace::kDriverFunction;
      Callback& entry = callback(driver, static_cast<uint32_t>(number));
      const std::string_view plain = plain_name(text, driver);
      entry.row = writer_.dimension(row::Function{
          .name = writer_.string(plain), .domain = driver ? event::Domain::kCudaDriver : event::Domain::kCudaRuntime});
      entry.name = plain;
      using Role = Callback::Role;
      const auto starts = [&](std::string_view prefix) { return plain.starts_with(prefix); };
      entry.tells = vendor::call_role(plain);
      entry.role = Role::kPlain;
      if (starts("cudaLaunchHostFunc") || starts("cuLaunchHostFunc"))
        entry.role = Role::kPlain;
      else if (starts("cudaLaunch") || starts("cuLaunch"))
        entry.role = Role::kLaunch;
      else if (starts("cudaGraphLaunch") || starts("cuGraphLaunch"))
        entry.role = Role::kGraphLaunch;
      else if (starts("cudaStreamBeginCapture") || starts("cuStreamBeginCapture"))
        entry.role = Role::kBeginCapture;
      else if (starts("cudaStreamEndCapture") || starts("cuStreamEndCapture"))
        entry.role = Role::kEndCapture;
      break;
    }
    case event::NameSpace::kKernel: {
      const int64_t row = writer_.string(text);
      if (filter_.given()) names_.insert_or_assign(number, std::string(text));
      const auto [at, fresh] = texts_.try_emplace(number, row);
      if (fresh || at->second == row) break;
      at.value() = row;  // the text's memory was used again, for another name
      for (KernelSlot& slot : kernel_slots_) slot = KernelSlot{};
      break;
    }
    case event::NameSpace::kGraph:
      graph_names_.insert_or_assign(static_cast<uint32_t>(number), graph_title(text));
      break;
    default:
      break;
  }
}

void CuptiDecoder::define(const std::byte* at, const event::RecordHeader& header) {
  const auto copy = [at](auto& record) { std::memcpy(&record, at, sizeof record); };
  switch (header.kind) {
    case event::RecordKind::kName: {
      event::NameRecord record;
      copy(record);
      return name(static_cast<event::NameSpace>(header.value), record.number, process_.text(record.text));
    }
    case event::RecordKind::kClockPair: {
      event::ClockPairRecord record;
      copy(record);
      return clock_pair(record.host, record.device);
    }
    case event::RecordKind::kBlockClock: {
      event::BlockClockRecord record;
      copy(record);
      return clock(record);
    }
    case event::RecordKind::kBlockSizes: {
      event::BlockSizesRecord record;
      copy(record);
      std::vector<event::BlockSize> sizes(
          std::min<uint64_t>(record.count, (header.size - sizeof record) / sizeof(event::BlockSize)));
      if (!sizes.empty()) std::memcpy(sizes.data(), at + sizeof record, sizes.size() * sizeof(event::BlockSize));
      return record_sizes(sizes);
    }
    case event::RecordKind::kBlockFact: {
      event::BlockFactRecord record;
      copy(record);
      return fact(static_cast<event::BlockFact>(header.value), record.number, process_.text(record.text));
    }
    default:
      break;
  }
}

void CuptiDecoder::record_sizes(std::span<const event::BlockSize> sizes) {
  for (const event::BlockSize& size : sizes)
    if (size.kind < cupti::kKinds && size.bytes >= 8 && size.bytes <= 4096 && size.bytes % 8 == 0)
      sizes_[size.kind] = size.bytes;
}

void CuptiDecoder::clock(const event::BlockClockRecord& record) {
  base_ticks_ = record.base_ticks;
  base_ns_ = record.base_ns;
  multiplier_ = record.multiplier;
  shift_ = static_cast<int>(record.shift);
  // A tick of any real counter lasts between 1/16 and 64 ns.
  const bool sane = shift_ == 32 && multiplier_ >= 1ull << 28 && multiplier_ <= 1ull << 38;
  const auto stated = static_cast<event::BlockClock>(record.header.value);
  const bool scaled = stated == BlockClock::kScaled && sane;
  clock_ = scaled || stated == BlockClock::kPaired ? stated : BlockClock::kMonotonicRaw;
  segments_.fill(Segment{});
  const char* const name = stated == BlockClock::kScaled ? "tsc" : stated == BlockClock::kPaired ? "cupti" : "raw";
  writer_.property(Table::kProcess, process_.row(), "cupti.clock",
                   fmt::format("{} {} {} {} {}", name, base_ticks_, base_ns_, multiplier_, record.shift));
}

void CuptiDecoder::fact(event::BlockFact which, uint64_t number, std::string_view text) {
  const auto show = [&](const char* key, std::string_view value) {
    writer_.property(Table::kProcess, process_.row(), key, value);
  };
  switch (which) {
    case event::BlockFact::kThreadIds:
      thread_ids_ = number == 1;
      show("cupti.thread_ids", thread_ids_ ? "kernel" : "buffer");
      break;
    case event::BlockFact::kDriver:
      driver_version_ = text;
      show("cupti.driver", text);
      break;
    case event::BlockFact::kKernelInclude:
    case event::BlockFact::kKernelExclude: {
      const bool include = which == event::BlockFact::kKernelInclude;
      show(include ? "cupti.kernel_include" : "cupti.kernel_exclude", text);
      filter_.set(include ? NameFilter::Side::kInclude : NameFilter::Side::kExclude, std::string(text).c_str());
      break;
    }
    case event::BlockFact::kRecordingStarts:
    case event::BlockFact::kRecordingStops:
      windows_.emplace_back(widen(static_cast<uint32_t>(number)), which == event::BlockFact::kRecordingStarts);
      // In a program that tacho attached to: closed from the first call on, until this one.
      if (which == event::BlockFact::kRecordingStarts && late_begin_ == 0 &&
          windows_.front() == std::pair(uint64_t{0}, false))
        late_begin_ = windows_.back().first;
      std::stable_sort(windows_.begin(), windows_.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      break;
    case event::BlockFact::kSpansStart:
    case event::BlockFact::kSpansStop:
      span_windows_.emplace_back(process_.host_time(number), which == event::BlockFact::kSpansStart);
      break;
    case event::BlockFact::kEnd:
      break;
  }
}

void CuptiDecoder::clock_pair(uint64_t host_ticks, uint64_t cupti_ns) {
  if (!pairs_.empty() && cupti_ns <= pairs_.back().first) return;
  pairs_.emplace_back(cupti_ns, process_.host_time(host_ticks));
  segments_.fill(Segment{});
}

uint32_t CuptiDecoder::record_size(uint32_t record_kind, uint32_t version) const {
  if (record_kind >= cupti::kKinds) return 0;
  return sizes_[record_kind] != 0 ? sizes_[record_kind] : cupti::size_by_version(record_kind, version);
}

// Time

int64_t CuptiDecoder::convert(uint64_t cupti_ns) const {
  switch (clock_) {
    case BlockClock::kMonotonicRaw:
      return process_.raw_time(static_cast<int64_t>(cupti_ns));
    case BlockClock::kScaled: {
      // The inverse of the multiplication in the target.
      const bool before = cupti_ns < base_ns_;
      const uint64_t distance = before ? base_ns_ - cupti_ns : cupti_ns - base_ns_;
      const auto ticks = static_cast<uint64_t>((static_cast<unsigned __int128>(distance) << shift_) / multiplier_);
      return process_.host_time(before ? base_ticks_ - ticks : base_ticks_ + ticks);
    }
    case BlockClock::kPaired: {
      if (pairs_.empty()) return static_cast<int64_t>(cupti_ns);
      if (pairs_.size() == 1) return pairs_[0].second + static_cast<int64_t>(cupti_ns - pairs_[0].first);
      auto after = std::upper_bound(pairs_.begin(), pairs_.end(), cupti_ns,
                                    [](uint64_t x, const auto& pair) { return x < pair.first; });
      after = std::clamp(after, pairs_.begin() + 1, pairs_.end() - 1);
      const auto before = after - 1;
      const double slope =
          static_cast<double>(after->second - before->second) / static_cast<double>(after->first - before->first);
      return before->second + std::llround(static_cast<double>(static_cast<int64_t>(cupti_ns - before->first)) * slope);
    }
  }
  return static_cast<int64_t>(cupti_ns);
}

int64_t CuptiDecoder::time(uint64_t cupti_ns) {
  // A time decades away from the start of the process is invalid: kept where arithmetic on it is safe.
  constexpr uint64_t kDecades = 1'000'000'000'000'000'000;
  const uint64_t origin = clock_ == BlockClock::kScaled                      ? base_ns_
                          : clock_ == BlockClock::kPaired && !pairs_.empty() ? pairs_.front().first
                                                                             : 0;
  if (cupti_ns - origin > kDecades && origin - cupti_ns > kDecades) cupti_ns = origin;
  if (clock_ == BlockClock::kMonotonicRaw) return static_cast<int64_t>(cupti_ns);
  // Linear within segments of 2 ms: the clocks bend far more slowly, and records of many threads and devices
  // interleave, so several segments are kept.
  constexpr int kLengthBits = 21;
  const uint64_t number = cupti_ns >> kLengthBits;
  Segment& segment = segments_[number % kSegments];
  if (segment.number != number) {
    const int64_t end = convert((number + 1) << kLengthBits);
    segment.number = number;
    segment.base = convert(number << kLengthBits);
    segment.slope = static_cast<double>(end - segment.base) / static_cast<double>(1ull << kLengthBits);
  }
  const auto within = static_cast<double>(cupti_ns & ((1ull << kLengthBits) - 1));
  // Never negative.
  return segment.base + static_cast<int64_t>(within * segment.slope + 0.5);  // NOLINT(bugprone-incorrect-roundings)
}

bool CuptiDecoder::paused(uint64_t correlation) const {
  auto after = std::upper_bound(windows_.begin(), windows_.end(), correlation,
                                [](uint64_t x, const auto& window) { return x < window.first; });
  return after != windows_.begin() && !(after - 1)->second;
}

// CUPTI 13.0 no longer counts the calls of a program that made or launched graphs in an earlier attach: the kernels of
// a thread have the number of its last call before this one. Each call launches one kernel.
bool CuptiDecoder::is_numberless(uint64_t correlation) {
  constexpr size_t kMost = 4096;  // threads, and kernels that were in flight when tacho came
  if (correlation >= late_begin_ || windows_.empty() || !paused(correlation)) return false;
  if (std::find(left_out_calls_.begin(), left_out_calls_.end(), correlation) != left_out_calls_.end()) return true;
  if (left_out_calls_.size() < kMost) left_out_calls_.push_back(correlation);
  return false;
}

bool CuptiDecoder::leaves_out(uint64_t correlation) {
  if (windows_.empty() || !paused(correlation)) return false;
  if (correlation < late_begin_) ++facts_.before_attach;
  return true;
}

void CuptiDecoder::miss(Table table) {
  writer_.lose(process_.row(), table, missing_, 1);
}

CuptiDecoder::Times CuptiDecoder::device_times(Table table, uint64_t start, uint64_t end) {
  if (start == 0 || end == 0) {
    ++(missing_ == event::LossReason::kKilled ? facts_.in_flight : facts_.without_time);
    miss(table);
    return {0, 0, false};
  }
  const int64_t from = time(start);
  const int64_t duration = event::duration_between(from, time(end));
  if (duration == kUnknown) writer_.lose(process_.row(), table, event::LossReason::kClockOrder, 1);
  return {from, duration, true};
}

uint64_t CuptiDecoder::widen(uint32_t correlation) {
  if (correlation == 0) return 0;
  // Buffers come out of order, but never by 2^31 calls: take the value nearest to the newest one.
  const auto distance = static_cast<int32_t>(correlation - static_cast<uint32_t>(newest_correlation_));
  if (distance < 0 && static_cast<uint64_t>(-static_cast<int64_t>(distance)) > newest_correlation_) return correlation;
  const uint64_t wide = newest_correlation_ + static_cast<uint64_t>(static_cast<int64_t>(distance));
  newest_correlation_ = std::max(newest_correlation_, wide);
  return wide;
}

// Rows that facts refer to

int64_t CuptiDecoder::device_row(uint32_t number) {
  const auto found = devices_.find(number);
  if (found != devices_.end()) return found->second;
  // Unique by its process until its own record describes it.
  const int64_t row = writer_.dimension(row::Device{.process = process_.row(),
                                                    .kind = event::DeviceKind::kGpu,
                                                    .index = number,
                                                    .name = writer_.string(fmt::format("CUDA device {}", number)),
                                                    .vendor = writer_.string("NVIDIA"),
                                                    .driver = writer_.string(driver_version_)});
  devices_.emplace(number, row);
  return row;
}

int64_t CuptiDecoder::device_of_context(uint32_t context) {
  const auto found = contexts_.find(context);
  return found == contexts_.end() ? 0 : device_row(found->second);
}

int64_t CuptiDecoder::stream_track(uint32_t device, uint32_t context, uint32_t stream) {
  const uint64_t key = uint64_t{context} << 32 | stream;
  if (key == last_stream_key_) return last_stream_;
  int64_t track;
  if (const auto found = streams_.find(key); found != streams_.end()) {
    track = found->second;
  } else {
    track = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                         .process = process_.row(),
                                         .device = device_row(device),
                                         .native = stream,
                                         .context = context,
                                         .name = writer_.string(fmt::format("Stream {}", stream)),
                                         .category = writer_.string("stream")});
    streams_.emplace(key, track);
    contexts_.try_emplace(context, device);
  }
  last_stream_key_ = key;
  last_stream_ = track;
  return track;
}

int64_t CuptiDecoder::text(uint64_t pointer) const {
  if (pointer == 0) return 0;
  const auto found = texts_.find(pointer);
  if (found != texts_.end()) return found->second;
  return writer_.string(fmt::format("unnamed {:#x}", pointer));
}

CuptiDecoder::Thread& CuptiDecoder::thread(uint32_t tid) {
  if (last_thread_ != nullptr && tid == last_tid_) return *last_thread_;
  std::unique_ptr<Thread>& slot = threads_[tid];
  if (!slot) {
    slot = std::make_unique<Thread>();
    slot->track = process_.thread_track(tid);
    slot->held.reserve(kMostHeld);
  }
  last_thread_ = slot.get();
  last_tid_ = tid;
  return *slot;
}

CuptiDecoder::Callback& CuptiDecoder::callback(bool driver, uint32_t number) {
  std::vector<Callback>& list = callbacks_[driver];
  number = std::min(number, (1u << 16) - 1);  // a larger number is nonsense
  if (list.size() <= number) list.resize(number + 1);
  Callback& entry = list[number];
  if (entry.row == 0)
    entry.row = writer_.dimension(
        row::Function{.name = writer_.string(fmt::format("CUDA {} function {}", driver ? "driver" : "runtime", number)),
                      .domain = driver ? event::Domain::kCudaDriver : event::Domain::kCudaRuntime});
  return entry;
}

bool CuptiDecoder::wanted(uint64_t name) const {
  if (!filter_.given()) return true;
  const auto found = names_.find(name);
  if (found == names_.end()) return !filter_.includes();
  return filter_.wants(found->second.c_str(), demangle(found->second).c_str());
}

int64_t CuptiDecoder::kernel_row(const KernelKey& key) {
  uint64_t hash = mix(0x2545f4914f6cdd1dULL, key.name);
  for (size_t at = 0; at < 9; at += 3)
    hash = mix(hash, key.shape[at] | uint64_t{key.shape[at + 1]} << 20 | uint64_t{key.shape[at + 2]} << 40);
  hash = mix(hash, key.cluster[0] ^ uint64_t{key.graph} << 32 ^ uint64_t{key.registers} << 16);
  KernelSlot& slot = kernel_slots_[hash % kKernelSlots];
  if (slot.row != 0 && slot.key == key) return slot.row;
  const auto word = [&](size_t at) { return int64_t{key.shape[at]}; };
  const auto items = [&](size_t grid, size_t group) {
    return static_cast<int64_t>(uint64_t{key.shape[grid]} * key.shape[group]);
  };
  const row::Kernel row{.name = text(key.name),
                        .kind = event::DispatchKind::kKernel,
                        .grid_x = items(0, 3),
                        .grid_y = items(1, 4),
                        .grid_z = items(2, 5),
                        .group_x = word(3),
                        .group_y = word(4),
                        .group_z = word(5),
                        .cluster_x = key.cluster[0],
                        .cluster_y = key.cluster[1],
                        .cluster_z = key.cluster[2],
                        .registers = key.registers,
                        .shared_static = word(6),
                        .shared_dynamic = word(7),
                        .private_bytes = word(8),
                        .cache_config = key.cache_config,
                        .carveout = key.carveout == 0xff ? kUnknown : int64_t{key.carveout},
                        .graph = key.graph};
  // The name of a one-span launch of the graph, so that traces of both kinds name it alike.
  if (const auto title = graph_names_.find(key.graph);
      key.graph != 0 && title != graph_names_.end() && graphs_told_.insert(key.graph).second)
    writer_.property(Table::kProcess, process_.row(), fmt::format("cuda.graph.{}", key.graph), title->second);
  slot.key = key;
  slot.row = wanted(key.name) ? writer_.dimension(row) : kFilteredOut;
  if (const auto name = names_.find(key.name); slot.row == kFilteredOut && name != names_.end())
    left_out_.add(demangle(name->second));
  return slot.row;
}

// Records

void CuptiDecoder::match(uint64_t correlation, int64_t side) {
  if (!matching_) return;
  const auto [at, fresh] = unmatched_.try_emplace(correlation, side);
  if (fresh) {
    if (unmatched_.size() > kMostUnmatched) {
      matching_ = false;
      unmatched_ = {};
    }
    return;
  }
  if ((at->second == kKernelSide) != (side == kKernelSide)) unmatched_.erase(at);
}

void CuptiDecoder::follow_launch(const Callback& callback, const Call& call, uint64_t correlation) {
  if (call.result != 0) return;
  switch (callback.role) {
    case Callback::Role::kPlain:
      break;
    case Callback::Role::kLaunch:
      ++facts_.launches;
      match(correlation, call.start);
      break;
    case Callback::Role::kGraphLaunch:
      ++facts_.graph_launches;
      break;
    case Callback::Role::kBeginCapture:
      captures_.emplace_back(call.start, 1);
      break;
    case Callback::Role::kEndCapture:
      captures_.emplace_back(call.end != kUnknown ? call.end : call.start, -1);
      break;
  }
}

void CuptiDecoder::emit_call(const Thread& owner, bool driver, const Call& call, uint64_t correlation) {
  const row::Api row{.track = owner.track,
                     .start = call.start,
                     .duration = call.end == kUnknown ? kUnknown : call.end - call.start,
                     .dim = callback(driver, call.callback).row,
                     .correlation = static_cast<int64_t>(correlation),
                     .result = call.result,
                     .arguments = arguments_of(call.correlation, driver)};
  work_.call({.correlation = row.correlation,
              .start = call.start,
              .end = call.end,
              .role = call.result == 0 ? callback(driver, call.callback).tells : event::CallRole::kPlain});
  writer_.add(row);
  memory_failures_.returned(driver ? event::Domain::kCudaDriver : event::Domain::kCudaRuntime, row,
                            [&] { return std::string_view(callback(driver, call.callback).name); });
}

// The number of the string that names the function, 0 or 1 for a call of the runtime or the driver, then the
// parameters.
void CuptiDecoder::arguments(uint64_t correlation, std::span<const std::byte> bytes) {
  uint64_t words[2];
  if (bytes.size() < sizeof words) return;
  std::memcpy(words, bytes.data(), sizeof words);
  const std::string text = cuda_call_text(process_.text(static_cast<uint32_t>(words[0])), bytes.subspan(sizeof words));
  if (text.empty()) return;
  if (arguments_.size() >= kMostArguments) {
    older_arguments_ = std::move(arguments_);
    arguments_.clear();
  }
  arguments_[(correlation & 0xffffffff) << 1 | (words[1] & 1)] = writer_.string(text);
}

int64_t CuptiDecoder::arguments_of(uint64_t correlation, bool driver) const {
  const uint64_t key = (correlation & 0xffffffff) << 1 | (driver ? 1 : 0);
  if (const auto found = arguments_.find(key); found != arguments_.end()) return found->second;
  const auto found = older_arguments_.find(key);
  return found != older_arguments_.end() ? found->second : 0;
}

// Decides about the driver calls held back: those inside `outer` (a runtime call of the thread) belong to it.
void CuptiDecoder::release(Thread& owner, const Call* outer) {
  const uint64_t outer_correlation = outer != nullptr ? widen(outer->correlation) : 0;
  for (const Call& call : owner.held) {
    uint64_t correlation = widen(call.correlation);
    const bool nested = outer != nullptr && call.start >= outer->start && call.end <= outer->end;
    if (nested) {
      if (correlation == outer_correlation) correlation |= kNestedBit;
      const row::Link link{.kind = event::LinkKind::kNestedApi,
                           .process = process_.row(),
                           .from = static_cast<int64_t>(outer_correlation),
                           .to = static_cast<int64_t>(correlation)};
      writer_.add(link);
    }
    emit_call(owner, true, call, correlation);
    if (!nested || (correlation & kNestedBit) == 0) follow_launch(callback(true, call.callback), call, correlation);
  }
  owner.held.clear();
}

// The call by which tacho learned the number from which recording begins.
bool CuptiDecoder::is_tachos_own(const std::byte* record) {
  constexpr uint32_t kSize = 40;
  return late_begin_ != 0 && widen(cupti::api::correlation.read(record, kSize)) == late_begin_ &&
         callback(true, cupti::api::callback.read(record, kSize)).name == "cuDriverGetVersion";
}

void CuptiDecoder::api(const std::byte* record, bool driver, uint32_t block_tid) {
  constexpr uint32_t kSize = 40;
  api_seen_ = true;
  Thread& owner = thread(thread_ids_ ? cupti::api::thread.read(record, kSize) : block_tid);
  if (!windows_.empty() && paused(widen(cupti::api::correlation.read(record, kSize)))) return;
  if (driver && is_tachos_own(record)) return;
  const uint64_t start = cupti::api::start.read(record, kSize), end = cupti::api::end.read(record, kSize);
  if (start == 0) return miss(Table::kApi);
  Call call{time(start), end == 0 ? kUnknown : time(end), cupti::api::callback.read(record, kSize),
            cupti::api::correlation.read(record, kSize), cupti::api::result.read(record, kSize)};
  if (call.end != kUnknown && call.end < call.start) {
    writer_.lose(process_.row(), Table::kApi, event::LossReason::kClockOrder, 1);
    call.end = kUnknown;
  }
  if (driver) {
    if (owner.held.size() == kMostHeld) release(owner, nullptr);
    owner.held.push_back(call);
    return;
  }
  if (!owner.held.empty()) release(owner, &call);
  const uint64_t correlation = widen(call.correlation);
  emit_call(owner, false, call, correlation);
  const Callback& entry = callback(false, call.callback);
  if (entry.role != Callback::Role::kPlain) follow_launch(entry, call, correlation);
}

void CuptiDecoder::kernel(const std::byte* record, uint32_t size) {
  namespace f = cupti::kernel;
  const uint64_t graph_node = f::graph_node.read(record, size);
  uint64_t correlation = widen(f::correlation.read(record, size));
  const bool numberless = graph_node == 0 && f::start.read(record, size) != 0 && is_numberless(correlation);
  if (!numberless && leaves_out(correlation)) return;
  if (numberless) {
    ++facts_.numberless;
    correlation = 0;
  }
  newest_kernel_ = std::max(newest_kernel_, correlation);
  if (!numberless && graph_node == 0 && f::device_launched.read(record, size) == 0) {
    ++facts_.kernels;
    // Without API records (not traced) kernels wait for nothing; at the start the first call is merely not there yet.
    if (api_seen_ || unmatched_.size() < 4096) match(correlation, kKernelSide);
  }
  const Times times = device_times(Table::kDispatch, f::start.read(record, size), f::end.read(record, size));
  if (!times.known) return;
  KernelKey key;
  std::memset(&key, 0, sizeof key);
  key.name = f::name.read(record, size);
  std::memcpy(key.shape, record + f::kShapeOffset, sizeof key.shape);
  key.cluster[0] = f::cluster_x.read(record, size);
  key.cluster[1] = f::cluster_y.read(record, size);
  key.cluster[2] = f::cluster_z.read(record, size);
  key.graph = f::graph.read(record, size);
  key.registers = f::registers.read(record, size);
  key.cache_config = f::cache_config.read(record, size);
  key.carveout = f::carveout_requested.read(record, size) != 0 ? f::carveout.read(record, size) : 0xff;
  const int64_t shape = kernel_row(key);
  if (shape == kFilteredOut) {
    ++filtered_;
    return;
  }
  const uint64_t queued = f::queued.read(record, size), submitted = f::submitted.read(record, size);
  const row::Dispatch row{
      .track = stream_track(f::device.read(record, size), f::context.read(record, size), f::stream.read(record, size)),
      .start = times.start,
      .duration = times.duration,
      .dim = shape,
      .correlation = static_cast<int64_t>(correlation),
      .queued_ahead = queued == 0 ? kUnknown : times.start - time(queued),
      .submit_ahead = submitted == 0 ? kUnknown : times.start - time(submitted),
      .graph_node = static_cast<int64_t>(graph_node)};
  work_.dispatch({.device = device_row(f::device.read(record, size))}, row);
}

void CuptiDecoder::copy(const std::byte* record, uint32_t size, bool peer) {
  namespace f = cupti::copy;
  namespace p = cupti::peer_copy;
  const uint64_t correlation = widen(peer ? p::correlation.read(record, size) : f::correlation.read(record, size));
  if (leaves_out(correlation)) return;
  const int64_t given = arguments_of(correlation, false);
  const Times times = device_times(Table::kCopy, f::start.read(record, size), f::end.read(record, size));
  if (!times.known) return;
  const uint32_t device = f::device.read(record, size);
  const uint8_t kind = f::direction.read(record, size), source = f::source.read(record, size),
                target = f::target.read(record, size), flags = f::flags.read(record, size);
  const uint32_t source_device = peer ? p::source_device.read(record, size) : device;
  const uint32_t target_device = peer ? p::target_device.read(record, size) : device;
  const uint64_t key = kind | uint64_t{source} << 8 | uint64_t{target} << 16 | uint64_t{flags & 1u} << 24 |
                       uint64_t{source_device & 0xffff} << 32 | uint64_t{target_device & 0xffff} << 48 |
                       uint64_t{peer} << 25;
  int64_t shape;
  if (const auto found = copy_shapes_.find(key); found != copy_shapes_.end()) {
    shape = found->second;
  } else {
    using event::CopyDirection;
    const CopyDirection direction = peer ? CopyDirection::kPeerToPeer : copy_direction(kind);
    const bool from_host = direction == CopyDirection::kHostToDevice || direction == CopyDirection::kHostToHost;
    const bool to_host = direction == CopyDirection::kDeviceToHost || direction == CopyDirection::kHostToHost;
    shape = writer_.dimension(row::CopyShape{.direction = direction,
                                             .source_memory = memory_kind(source),
                                             .target_memory = memory_kind(target),
                                             .source_device = from_host ? 0 : device_row(source_device),
                                             .target_device = to_host ? 0 : device_row(target_device),
                                             .kind = event::CopyKind::kPlain,
                                             .asynchronous = flags & 1});
    copy_shapes_.emplace(key, shape);
  }
  const uint64_t graph_node = peer ? p::graph_node.read(record, size) : f::graph_node.read(record, size);
  const row::Copy row{.track = stream_track(device, f::context.read(record, size), f::stream.read(record, size)),
                      .start = times.start,
                      .duration = times.duration,
                      .dim = shape,
                      .correlation = static_cast<int64_t>(correlation),
                      .bytes = static_cast<int64_t>(f::bytes.read(record, size)),
                      .graph_node = static_cast<int64_t>(graph_node),
                      .arguments = given != 0 ? given : arguments_of(correlation, true)};
  work_.copy(
      {.device = device_row(device), .to_host = copy_direction(kind) == event::CopyDirection::kDeviceToHost && !peer},
      row);
}

void CuptiDecoder::fill(const std::byte* record, uint32_t size) {
  namespace f = cupti::fill;
  const uint64_t correlation = widen(f::correlation.read(record, size));
  if (leaves_out(correlation)) return;
  const Times times = device_times(Table::kFill, f::start.read(record, size), f::end.read(record, size));
  if (!times.known) return;
  const uint32_t device = f::device.read(record, size);
  const int64_t shape = writer_.dimension(row::FillShape{.memory = memory_kind(f::memory.read(record, size)),
                                                         .device = device_row(device),
                                                         .value = f::value.read(record, size)});
  const row::Fill row{.track = stream_track(device, f::context.read(record, size), f::stream.read(record, size)),
                      .start = times.start,
                      .duration = times.duration,
                      .dim = shape,
                      .correlation = static_cast<int64_t>(correlation),
                      .bytes = static_cast<int64_t>(f::bytes.read(record, size)),
                      .graph_node = static_cast<int64_t>(f::graph_node.read(record, size))};
  work_.fill({.device = device_row(device)}, row);
}

void CuptiDecoder::memory(const std::byte* record, uint32_t size, uint32_t block_tid) {
  namespace f = cupti::memory;
  const uint32_t operation = f::operation.read(record, size);
  const uint32_t kind = f::memory_kind.read(record, size);
  const uint64_t when = f::time.read(record, size);
  if (when == 0 || (operation != 1 && operation != 2)) return miss(Table::kAllocation);
  const bool host = kind == 1 || kind == 2;
  const int64_t shape = writer_.dimension(row::AllocationShape{
      .operation = operation == 1 ? event::AllocationOperation::kAllocate : event::AllocationOperation::kFree,
      .memory = memory_kind(kind),
      .device = host ? 0 : device_row(f::device.read(record, size)),
      .name = text(f::name.read(record, size))});
  const row::Allocation row{.track = thread(block_tid).track,
                            .start = time(when),
                            .duration = 0,
                            .dim = shape,
                            .correlation = static_cast<int64_t>(widen(f::correlation.read(record, size))),
                            .bytes = static_cast<int64_t>(f::bytes.read(record, size)),
                            .address = static_cast<int64_t>(f::address.read(record, size))};
  writer_.add(row);
}

void CuptiDecoder::synchronization(const std::byte* record, uint32_t block_tid) {
  namespace f = cupti::sync;
  constexpr uint32_t kSize = f::kLeast;
  using event::SyncKind;
  static constexpr SyncKind kKinds[] = {SyncKind::kUnknown, SyncKind::kEvent, SyncKind::kQueueWaitEvent,
                                        SyncKind::kQueue, SyncKind::kContext};
  const uint32_t type = f::type.read(record, kSize);
  const uint64_t start = f::start.read(record, kSize), end = f::end.read(record, kSize);
  if (start == 0 || end < start) return miss(Table::kSync);
  const uint32_t context = f::context.read(record, kSize), stream = f::stream.read(record, kSize);
  const auto device = contexts_.find(context);
  const bool on_stream = stream != kNoStream && device != contexts_.end();
  const int64_t shape = writer_.dimension(row::SyncShape{
      .kind = type < std::size(kKinds) ? kKinds[type] : SyncKind::kUnknown, .device = device_of_context(context)});
  const int64_t from = time(start);
  const row::Sync row{.track = on_stream ? stream_track(device->second, context, stream) : thread(block_tid).track,
                      .start = from,
                      .duration = time(end) - from,
                      .dim = shape,
                      .correlation = static_cast<int64_t>(widen(f::correlation.read(record, kSize)))};
  if (on_stream && type < std::size(kKinds) && kKinds[type] == SyncKind::kQueue)
    work_.queue_wait(0, row.track, row.start, row.start + row.duration);
  writer_.add(row);
}

void CuptiDecoder::overhead(const std::byte* record, uint32_t size, uint32_t block_tid) {
  namespace f = cupti::overhead;
  using event::OverheadKind;
  static constexpr std::pair<OverheadKind, const char*> kTypes[] = {
      {OverheadKind::kUnknown, "unknown"},
      {OverheadKind::kFlush, "CUPTI buffer flush"},
      {OverheadKind::kInstrumentation, "CUPTI instrumentation"},
      {OverheadKind::kProfiler, "CUPTI resource"},
      {OverheadKind::kModuleLoad, "module loading"},
      {OverheadKind::kLazyLoad, "lazy function loading"},
      {OverheadKind::kBufferFull, "command buffer full"},
      {OverheadKind::kProfiler, "CUPTI buffer request"},
      {OverheadKind::kRuntime, "unified memory initialisation"}};
  const uint32_t type = f::type.read(record, size);
  const uint64_t start = f::start.read(record, size), end = f::end.read(record, size);
  if (start == 0 || end < start) return miss(Table::kOverhead);
  std::pair<OverheadKind, const char*> what = kTypes[0];
  if (type == 1)
    what = {OverheadKind::kCompiler, "driver compiler"};
  else if ((type & 0xffff) == 0 && type >> 16 < std::size(kTypes))
    what = kTypes[type >> 16];
  const bool names_thread = f::object.read(record, size) == f::kObjectThread && thread_ids_;
  const int64_t shape = writer_.dimension(row::OverheadShape{.kind = what.first, .name = writer_.string(what.second)});
  const int64_t from = time(start);
  const row::Overhead row{.track = thread(names_thread ? f::thread.read(record, size) : block_tid).track,
                          .start = from,
                          .duration = time(end) - from,
                          .dim = shape,
                          .correlation = static_cast<int64_t>(widen(f::correlation.read(record, size)))};
  writer_.add(row);
}

void CuptiDecoder::graph(const std::byte* record) {
  namespace f = cupti::graph_trace;
  constexpr uint32_t kSize = f::kLeast;
  if (!windows_.empty() && paused(widen(f::correlation.read(record, kSize)))) return;
  const Times times = device_times(Table::kDispatch, f::start.read(record, kSize), f::end.read(record, kSize));
  if (!times.known) return;
  // Spans that exist only because CUPTI cannot be told to stop making them.
  const auto window = std::upper_bound(span_windows_.begin(), span_windows_.end(), times.start,
                                       [](int64_t x, const auto& one) { return x < one.first; });
  if (window != span_windows_.begin() && !(window - 1)->second) return;
  ++facts_.graph_spans;
  const uint32_t id = f::graph.read(record, kSize);
  const auto known = graph_names_.find(id);
  const int64_t title = writer_.string(known != graph_names_.end() ? known->second : fmt::format("CUDA graph {}", id));
  const row::Kernel shape{.name = title, .kind = event::DispatchKind::kGraph, .graph = id};
  const row::Dispatch row{.track = stream_track(f::device.read(record, kSize), f::context.read(record, kSize),
                                                f::stream.read(record, kSize)),
                          .start = times.start,
                          .duration = times.duration,
                          .dim = writer_.dimension(shape),
                          .correlation = static_cast<int64_t>(widen(f::correlation.read(record, kSize)))};
  work_.dispatch({.device = device_row(f::device.read(record, kSize))}, row);
}

// A function of the host that a stream waits for: a range of the thread that ran it.
void CuptiDecoder::host_function(const HostFunction& ran, uint32_t block_tid) {
  if (!windows_.empty() && paused(ran.correlation)) return;
  if (ran.start == 0 || ran.end < ran.start) return miss(Table::kMarker);
  const std::string what = ran.graph == 0 ? fmt::format("host function of stream {}", ran.stream)
                                          : fmt::format("host function of stream {}, graph {}", ran.stream, ran.graph);
  const int64_t label = writer_.dimension(row::Label{
      .name = writer_.string(what), .kind = event::MarkerKind::kStartStop, .domain = writer_.string("CUDA")});
  const int64_t from = time(ran.start);
  writer_.add(row::Marker{.track = thread(thread_ids_ && ran.thread != 0 ? ran.thread : block_tid).track,
                          .start = from,
                          .duration = time(ran.end) - from,
                          .dim = label});
}

void CuptiDecoder::host_launch(const std::byte* record, uint32_t size, uint32_t block_tid) {
  namespace f = cupti::host_launch;
  HostFunction ran{.stream = f::stream.read(record, size),
                   .graph = 0,
                   .thread = f::thread.read(record, size),
                   .correlation = widen(f::correlation.read(record, size)),
                   .start = f::start.read(record, size),
                   .end = f::end.read(record, size)};
  // Where the times lie is told by themselves: in the wrong place they are thousands of years apart, or reversed.
  constexpr uint64_t kDay = 86'400'000'000'000;
  if (ran.end < ran.start || ran.end - ran.start > kDay) {
    ran.start = f::packed_start.read(record, size);
    ran.end = f::packed_end.read(record, size);
    if (ran.end < ran.start || ran.end - ran.start > kDay) {
      ++unknown_[k::kHostLaunch];
      return;
    }
  }
  host_function(ran, block_tid);
}

void CuptiDecoder::graph_host_node(const std::byte* record, uint32_t size, uint32_t block_tid) {
  namespace f = cupti::graph_host_node;
  host_function({.stream = f::stream.read(record, size),
                 .graph = f::graph.read(record, size),
                 .thread = f::thread.read(record, size),
                 .correlation = widen(f::correlation.read(record, size)),
                 .start = f::start.read(record, size),
                 .end = f::end.read(record, size)},
                block_tid);
}

void CuptiDecoder::green_context(const std::byte* record, uint32_t size) {
  namespace f = cupti::green_context;
  const uint32_t id = f::context.read(record, size), device = f::device.read(record, size);
  contexts_.insert_or_assign(id, device);
  writer_.property(Table::kProcess, process_.row(), fmt::format("cuda.green_context.{}", id),
                   fmt::format("{} multiprocessors of device {}, within context {}",
                               f::multiprocessors.read(record, size), device, f::parent.read(record, size)));
}

void CuptiDecoder::jit(const std::byte* record, uint32_t size, uint32_t block_tid) {
  namespace f = cupti::jit;
  const uint64_t start = f::start.read(record, size), end = f::end.read(record, size);
  if (start == 0 || end < start) return miss(Table::kOverhead);
  static constexpr const char* kEntries[] = {"code", "PTX to machine code", "NVVM IR to PTX"};
  static constexpr const char* kOperations[] = {"compile", "load from cache", "store in cache", "compile"};
  const uint32_t entry = f::entry.read(record, size), operation = f::operation.read(record, size);
  const std::string what = fmt::format("{}: {}", entry < std::size(kEntries) ? kEntries[entry] : kEntries[0],
                                       operation < std::size(kOperations) ? kOperations[operation] : kOperations[0]);
  const int64_t shape =
      writer_.dimension(row::OverheadShape{.kind = event::OverheadKind::kCompiler, .name = writer_.string(what)});
  const uint32_t tid = thread_ids_ ? f::thread.read(record, size, block_tid) : block_tid;
  const int64_t from = time(start);
  const row::Overhead row{.track = thread(tid).track,
                          .start = from,
                          .duration = time(end) - from,
                          .dim = shape,
                          .correlation = static_cast<int64_t>(widen(f::correlation.read(record, size)))};
  writer_.add(row);
}

void CuptiDecoder::device(const std::byte* record, uint32_t size) {
  namespace f = cupti::device;
  const uint32_t number = f::id.read(record, size);
  const uint64_t pointer = f::name.read(record, size);
  const bool mig = f::mig_enabled.read(record, size) != 0 && size >= f::kMigUuidOffset + 16;
  // Of the machine, not of the process: the same device seen by several processes is one row.
  const row::Device values{
      .kind = event::DeviceKind::kGpu,
      .index = number,
      .name = texts_.contains(pointer) ? text(pointer) : writer_.string(fmt::format("CUDA device {}", number)),
      .vendor = writer_.string("NVIDIA"),
      .architecture = writer_.string(
          fmt::format("sm_{}{}", f::capability_major.read(record, size), f::capability_minor.read(record, size))),
      .driver = writer_.string(driver_version_),
      .uuid = writer_.string(mig ? uuid_text(record + f::kMigUuidOffset, "MIG-")
                                 : uuid_text(record + f::kUuidOffset, "GPU-"))};
  const auto known = devices_.find(number);
  const int64_t row = known != devices_.end() ? known->second : writer_.dimension(values);
  if (known == devices_.end())
    devices_.emplace(number, row);
  else
    writer_.update(row, values);
  const auto property = [&](std::string_view key, uint64_t value) {
    writer_.property(Table::kDevice, row, key, fmt::format("{}", value));
  };
  property("memory_bytes", f::memory.read(record, size));
  property("memory_bandwidth_bytes_per_s", f::bandwidth.read(record, size) * 1000);  // CUPTI: kB/s
  property("l2_bytes", f::l2_bytes.read(record, size));
  property("core_clock_hz", uint64_t{f::core_clock_khz.read(record, size)} * 1000);
  property("multiprocessors", f::multiprocessors.read(record, size));
  property("max_warps_per_multiprocessor", f::warps_per_multiprocessor.read(record, size));
  property("shared_memory_per_multiprocessor_bytes", f::shared_per_multiprocessor.read(record, size));
  property("registers_per_multiprocessor", f::registers_per_multiprocessor.read(record, size));
  if (mig)
    writer_.property(Table::kDevice, row, "mig",
                     fmt::format("GPU instance {}, compute instance {}", f::gpu_instance.read(record, size),
                                 f::compute_instance.read(record, size)));
}

void CuptiDecoder::context(const std::byte* record) {
  namespace f = cupti::context;
  constexpr uint32_t kSize = f::kLeast;
  const uint32_t id = f::id.read(record, kSize), on = f::device.read(record, kSize);
  contexts_.insert_or_assign(id, on);
  const uint32_t null_stream = f::null_stream.read(record, kSize);
  const int64_t track = stream_track(on, id, null_stream);
  writer_.update(Table::kTrack, track, event::column::Track::name,
                 writer_.string(fmt::format("Stream {} (default)", null_stream)));
}

void CuptiDecoder::stream(const std::byte* record) {
  namespace f = cupti::stream;
  constexpr uint32_t kSize = f::kLeast;
  const uint32_t in = f::context.read(record, kSize);
  const auto on = contexts_.find(in);
  if (on == contexts_.end()) return;  // unknown until its first work
  const int64_t track = stream_track(on->second, in, f::id.read(record, kSize));
  if (const auto priority = static_cast<int32_t>(f::priority.read(record, kSize)); priority != 0)
    writer_.property(Table::kTrack, track, "priority", fmt::format("{}", priority));
}

void CuptiDecoder::object_name(const std::byte* record) {
  namespace f = cupti::name;
  constexpr uint32_t kSize = f::kLeast;
  const uint64_t pointer = f::text.read(record, kSize);
  if (!texts_.contains(pointer) || f::object.read(record, kSize) != f::kObjectStream) return;
  const int64_t track =
      stream_track(f::device.read(record, kSize), f::context.read(record, kSize), f::stream.read(record, kSize));
  writer_.update(Table::kTrack, track, event::column::Track::name, text(pointer));
}

// A record that CUPTI had not completed when it lost the buffer: work in flight.
void CuptiDecoder::unfinished(uint32_t record_kind, const std::byte* record, uint32_t size) {
  Table table = Table::kEnd;
  const auto before = [&](auto field, uint32_t least) {
    return size >= least && !windows_.empty() && paused(widen(field.read(record, size)));
  };
  if (record_kind == k::kKernel || record_kind == k::kSerialKernel) {
    table = Table::kDispatch;
    if (before(cupti::kernel::correlation, cupti::kernel::kLeast)) return;
    if (size >= cupti::kernel::kLeast)
      match(widen(cupti::kernel::correlation.read(record, size)), kKernelSide);  // received, without times
  } else if (record_kind == k::kGraphTrace) {
    table = Table::kDispatch;
  } else if (record_kind == k::kCopy || record_kind == k::kPeerCopy) {
    table = Table::kCopy;
    if (record_kind == k::kCopy && before(cupti::copy::correlation, cupti::copy::kLeast)) return;
  } else if (record_kind == k::kFill) {
    table = Table::kFill;
    if (before(cupti::fill::correlation, cupti::fill::kLeast)) return;
  }
  ++facts_.in_flight;
  writer_.lose(process_.row(), table, event::LossReason::kKilled, 1);
}

void CuptiDecoder::block(const tape::BlockHeader& header, std::span<const std::byte> bytes, bool completed) {
  const uint32_t version = header.vendor_version, tid = header.tid;
  missing_ = completed && header.aux == 0 ? event::LossReason::kVendor : event::LossReason::kKilled;
  size_t offset = 0;
  while (offset + sizeof(uint64_t) <= bytes.size()) {
    const std::byte* const at = bytes.data() + offset;
    uint32_t record_kind;
    std::memcpy(&record_kind, at, sizeof record_kind);
    const bool incomplete = (record_kind & cupti::kIncomplete) != 0;
    record_kind &= ~cupti::kIncomplete;
    if (record_kind == 0 && !completed) break;  // CUPTI clears a buffer before it writes: here the records end
    const uint32_t size = record_size(record_kind, version);
    if (size == 0 || offset + size > bytes.size()) {
      if (completed || record_kind != 0) ++unknown_[std::min(record_kind, cupti::kKinds)];
      break;  // the begin of the next record is unknown
    }
    ++facts_.records;
    if (incomplete) {
      unfinished(record_kind, at, size);
      offset += size;
      continue;
    }
    const auto fits = [&](uint32_t least) {
      if (size >= least) return true;
      ++unknown_[record_kind];
      return false;
    };
    switch (record_kind) {
      case k::kRuntime:
      case k::kDriver:
        if (fits(40)) api(at, record_kind == k::kDriver, tid);
        break;
      case k::kKernel:
      case k::kSerialKernel:
        if (fits(cupti::kernel::kLeast)) kernel(at, size);
        break;
      case k::kCopy:
        if (fits(cupti::copy::kLeast)) copy(at, size, false);
        break;
      case k::kPeerCopy:
        if (fits(cupti::peer_copy::kLeast)) copy(at, size, true);
        break;
      case k::kFill:
        if (fits(cupti::fill::kLeast)) fill(at, size);
        break;
      case k::kMemory2:
        if (fits(cupti::memory::kLeast)) memory(at, size, tid);
        break;
      case k::kSynchronization:
        if (fits(cupti::sync::kLeast)) synchronization(at, tid);
        break;
      case k::kOverhead:
        if (fits(cupti::overhead::kLeast)) overhead(at, size, tid);
        break;
      case k::kGraphTrace:
        if (fits(cupti::graph_trace::kLeast)) graph(at);
        break;
      case k::kHostLaunch:
        if (fits(cupti::host_launch::kLeast)) host_launch(at, size, tid);
        break;
      case k::kGraphHostNode:
        if (fits(cupti::graph_host_node::kLeast)) graph_host_node(at, size, tid);
        break;
      case k::kGreenContext:
        if (fits(cupti::green_context::kLeast)) green_context(at, size);
        break;
      case k::kJit:
        if (fits(cupti::jit::kLeast)) jit(at, size, tid);
        break;
      case k::kDevice:
        if (fits(cupti::device::kLeast)) device(at, size);
        break;
      case k::kContext:
        if (fits(cupti::context::kLeast)) context(at);
        break;
      case k::kStream:
        if (fits(cupti::stream::kLeast)) stream(at);
        break;
      case k::kName:
        if (fits(cupti::name::kLeast)) object_name(at);
        break;
      default:
        ++unknown_[record_kind];
        break;
    }
    offset += size;
  }
}

void CuptiDecoder::finish() {
  for (auto at = threads_.begin(); at != threads_.end(); ++at) release(*at.value(), nullptr);
  work_.finish(process_.row());
  int64_t unknown = 0;
  for (size_t number = 0; number < unknown_.size(); ++number) {
    if (unknown_[number] == 0) continue;
    unknown += unknown_[number];
    writer_.property(Table::kProcess, process_.row(), fmt::format("cupti.unknown_records.{}", number),
                     fmt::format("{}", unknown_[number]));
  }
  if (unknown != 0) writer_.lose(process_.row(), Table::kEnd, event::LossReason::kUnknownRecord, unknown);

  // Launches whose kernel never came. A stream capture records launches without running them, so those are not missed.
  std::sort(captures_.begin(), captures_.end());
  std::vector<std::pair<int64_t, int64_t>> captured;
  int depth = 0;
  for (const auto& [when, step] : captures_) {
    if (depth == 0 && step > 0) captured.emplace_back(when, std::numeric_limits<int64_t>::max());
    depth = std::max(depth + step, 0);
    if (depth == 0 && !captured.empty() && captured.back().second == std::numeric_limits<int64_t>::max())
      captured.back().second = when;
  }
  for (const auto& [correlation, start] : unmatched_) {
    if (start == kKernelSide) continue;
    const int64_t moment = start;
    const bool in_capture = std::any_of(captured.begin(), captured.end(), [&](const auto& span) {
      return span.first <= moment && moment <= span.second;
    });
    // tacho has left meanwhile.
    if (late_begin_ != 0 && correlation > newest_kernel_)
      ++facts_.after_leaving;
    else if (!in_capture)
      ++facts_.unmatched;
  }
  if (facts_.unmatched != 0)
    writer_.lose(process_.row(), Table::kDispatch, event::LossReason::kUnmatched, facts_.unmatched);
  if (filtered_ != 0) writer_.lose(process_.row(), Table::kDispatch, event::LossReason::kFiltered, filtered_);
  left_out_.write(writer_, process_.row());
  const auto tell = [&](int64_t count, std::string_view what) {
    if (count != 0)
      writer_.note(process_.row(), event::NoteSeverity::kInfo,
                   fmt::format("{} launch{} {}", count, count == 1 ? "" : "es", what));
  };
  tell(facts_.before_attach, "from before tacho attached left records, which are not in this trace");
  if (facts_.numberless != 0)
    writer_.note(process_.row(), event::NoteSeverity::kWarning,
                 fmt::format("{} came without the number of a call, and the program's calls are not in this trace: "
                             "CUPTI up to 13.0 does not count the calls of a program that made or launched CUDA graphs "
                             "in an earlier attach",
                             how_many(facts_.numberless, "kernel", "kernels")));
  tell(facts_.after_leaving, "had not ended on the device when tacho left: not in this trace");
  if (facts_.without_time != 0)
    writer_.note(process_.row(), event::NoteSeverity::kWarning,
                 fmt::format("CUPTI delivered {} without times: it ran out of device buffers "
                             "(give a larger --cupti-device-buffers), or, from CUDA 12.6 to 13.0, "
                             "met a fault of its own (--cupti-clock avoids it)",
                             how_many(facts_.without_time, "kernel, copy or fill", "kernels, copies or fills")));
  if (facts_.records != 0) {
    const auto count = [&](std::string_view key, int64_t value) {
      writer_.property(Table::kProcess, process_.row(), key, fmt::format("{}", value));
    };
    count("cupti.launches_seen", facts_.launches);
    count("cupti.kernels_received", facts_.kernels);
    if (facts_.graph_launches != 0) count("cupti.graph_launches_seen", facts_.graph_launches);
    if (!matching_) count("cupti.launch_check_given_up_after", static_cast<int64_t>(kMostUnmatched));
  }
}

}  // namespace tacho::decode
