// Rows of a trace from records of the ring (kept_file.h). Everything in the ring comes from programs and is untrusted.
#include "watch/recorder/kept_file.h"

#include <string.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "event/times.h"
#include "format/import/rows.h"
#include "launch/run/pool_of_recording.h"
#include "trace/write/writer.h"
#include "watch/segment.h"

namespace tacho::watch {
namespace {

using event::kUnknown, event::Table, event::WatchRecordKind;
namespace row = event::row;
namespace imported = format::imported;

// When work ran, as a record of kTimes tells.
struct RanAt {
  int64_t start, ns;
};

struct OpenRange {
  KeptRecord begin;
  int64_t start;
  std::string name;
};

class KeptRows {
 public:
  KeptRows(trace::TraceWriter& writer, const event::WatchTable& table, const RingFile& ring)
      : writer_(writer), table_(table), ring_(ring) {
    for (const event::WatchObject& object : ring.ring().objects)
      if (object.state.load(std::memory_order_acquire) == event::WatchRow::kReady)
        objects_[{object.process, object.handle}] = &object;
  }

  void add_all(const std::vector<KeptRecord>& records) {
    for (const KeptRecord& record : records)
      if (record.kind == WatchRecordKind::kTimes)
        ran_[record.object] = {static_cast<int64_t>(record.start), static_cast<int64_t>(record.end - record.start)};
    for (size_t i = 0; i < records.size(); ++i) {
      switch (records[i].kind) {
        case WatchRecordKind::kWork:
          add_work(records[i]);
          break;
        case WatchRecordKind::kAllocate:
          add_allocation(records[i], true);
          break;
        case WatchRecordKind::kFree:
          add_free(records[i]);
          break;
        case WatchRecordKind::kWait:
        case WatchRecordKind::kCall:
          add_call(records[i]);
          break;
        case WatchRecordKind::kPush:
        case WatchRecordKind::kPop:
        case WatchRecordKind::kStart:
        case WatchRecordKind::kStop:
        case WatchRecordKind::kMark:
        case WatchRecordKind::kTrigger:
          add_marker(records, i);
          break;
        case WatchRecordKind::kCollective:
          add_collective(records[i]);
          break;
        default:
          break;
      }
    }
    end_ranges();
  }
  void add_live(const std::vector<LiveMemory>& live) {
    for (const LiveMemory& each : live) add_allocation(each.allocated, false);
  }
  // A mark on a line of its own, in the process of the first record.
  void add_trigger(const KeptExcerpt& excerpt) {
    const uint16_t owner = excerpt.records.empty() ? uint16_t{0} : excerpt.records.front().process;
    const int64_t line = imported::thread_line(writer_, process(owner), 0, 0, writer_.string("tacho watch"));
    writer_.add(row::Marker{.track = line,
                            .start = excerpt.at,
                            .duration = 0,
                            .dim = writer_.dimension(row::Label{.name = writer_.string(excerpt.why),
                                                                .kind = event::MarkerKind::kMark,
                                                                .domain = writer_.string("tacho watch")})});
  }
  const KeptCounts& counts() const { return counts_; }

 private:
  static std::string text_of(const char* text, size_t room) { return {text, strnlen(text, room)}; }

  int64_t process(uint16_t number) {
    const auto [found, fresh] = processes_.try_emplace(number, 0);
    if (fresh && number < event::kWatchProcesses) {
      const event::WatchProcess& known = table_.processes[number];
      found->second =
          writer_.dimension(row::Process{.pid = static_cast<int64_t>(known.pid.load(std::memory_order_relaxed)),
                                         .name = writer_.string(text_of(known.name, sizeof known.name))});
    }
    return found->second;
  }
  int64_t thread(const KeptRecord& record) {
    const auto [found, fresh] = threads_.try_emplace({record.process, record.tid}, 0);
    if (fresh) found->second = imported::thread_line(writer_, process(record.process), record.tid, record.tid);
    return found->second;
  }
  const event::WatchObject* object_of(const KeptRecord& record, uint64_t handle) const {
    const auto found = objects_.find({record.process, handle});
    return found == objects_.end() ? nullptr : found->second;
  }
  // Of a queue or a context; 0 = not told.
  int64_t device(const event::WatchObject* object) {
    if (object == nullptr) return 0;
    const std::string name = text_of(object->name, sizeof object->name);
    const auto [found, fresh] = devices_.try_emplace({object->process, object->domain, object->device, name}, 0);
    if (!fresh) return found->second;
    // The CPU is the same one for every process. Which GPU of several of a name it is, nobody tells.
    const auto kind = event::from_cell<event::DeviceKind>(object->kind);
    found->second =
        writer_.dimension(row::Device{.process = kind == event::DeviceKind::kCpu ? 0 : process(object->process),
                                      .kind = kind,
                                      .index = object->device,
                                      .name = writer_.string(name),
                                      .vendor = writer_.string(text_of(object->vendor, sizeof object->vendor))});
    if (object->memory != 0 && told_memory_.insert(found->second).second)
      writer_.property(Table::kDevice, found->second, "memory", fmt::format("{}", object->memory));
    return found->second;
  }
  // The queue's or stream's line, numbered in the order in which they are seen; a stream of handle 0 is number 0.
  int64_t queue(const KeptRecord& record) {
    const auto [found, fresh] = queues_.try_emplace({record.process, record.context, record.object}, 0);
    if (!fresh) return found->second;
    const bool streamed = record.context != 0;
    const int64_t number = record.object == 0 ? 0 : ++last_queue_[record.process];
    const int64_t owner = device(object_of(record, streamed ? record.context : record.object));
    found->second = streamed ? imported::queue_line(writer_, process(record.process), owner, kUnknown, number)
                             : imported::queue_line(writer_, process(record.process), owner, number, kUnknown);
    return found->second;
  }

  int64_t add_call(const KeptRecord& record) {
    const int64_t start = ring_.time(record.start), end = ring_.time(record.end);
    if (record.call == 0 || record.call > event::kWatchCalls) return end;
    const auto [found, fresh] = functions_.try_emplace(record.call, 0);
    if (fresh) {
      const event::WatchCall& call = ring_.ring().calls[record.call - 1];
      const bool known = call.domain < static_cast<uint32_t>(event::Domain::kOperator);
      found->second = writer_.dimension(
          row::Function{.name = writer_.string(text_of(call.name, sizeof call.name)),
                        .domain = known ? static_cast<event::Domain>(call.domain) : event::Domain::kUnknown});
    }
    writer_.add(row::Api{.track = thread(record),
                         .start = start,
                         .duration = event::duration_between(start, end),
                         .dim = found->second,
                         .correlation = static_cast<int64_t>(record.ticket),
                         .result = record.result});
    return end;
  }

  const event::WatchRow* sums_row(const KeptRecord& record) const {
    if (record.row >= event::kWatchRows) return nullptr;
    const event::WatchRow& row = table_.rows[record.row];
    return row.state.load(std::memory_order_acquire) == event::WatchRow::kReady ? &row : nullptr;
  }

  void add_work(const KeptRecord& record) {
    const int64_t call_end = add_call(record);
    const event::WatchRow* const what = sums_row(record);
    if (record.result != 0 || what == nullptr) return;
    ++counts_.operations;
    int64_t start = call_end, ns = kUnknown;
    if (const auto ran = ran_.find(record.ticket); ran != ran_.end()) {
      // Nothing runs before its call.
      start = std::max(ran->second.start, ring_.time(record.start));
      ns = ran->second.ns;
      ++counts_.timed;
    }
    const int64_t track = queue(record), id = static_cast<int64_t>(record.ticket);
    switch (what->kind) {
      case event::WatchKind::kKernel:
      case event::WatchKind::kGraph:
        writer_.add(row::Dispatch{
            .track = track, .start = start, .duration = ns, .dim = kernel(record.row, *what), .correlation = id});
        break;
      case event::WatchKind::kCopy:
        writer_.add(row::Copy{.track = track,
                              .start = start,
                              .duration = ns,
                              .dim = copy(record, *what),
                              .correlation = id,
                              .bytes = static_cast<int64_t>(record.amount)});
        break;
      case event::WatchKind::kFill: {
        const int64_t owner = device(object_of(record, record.context != 0 ? record.context : record.object));
        const int64_t shape = writer_.dimension(row::FillShape{.device = owner});
        writer_.add(row::Fill{.track = track,
                              .start = start,
                              .duration = ns,
                              .dim = shape,
                              .correlation = id,
                              .bytes = static_cast<int64_t>(record.amount)});
        break;
      }
      default:
        break;
    }
  }
  int64_t kernel(uint32_t number, const event::WatchRow& what) {
    const auto [found, fresh] = kernels_.try_emplace(number, 0);
    if (!fresh) return found->second;
    int64_t grid[3], group[3];
    for (size_t i = 0; i < 3; ++i) {
      grid[i] = what.grid[0] == 0 ? kUnknown : what.grid[i];
      group[i] = what.group[0] == 0 ? kUnknown : what.group[i];
    }
    row::Kernel launch = imported::launch_of(writer_.string(stored_name(what)), grid, group, true);
    if (what.kind == event::WatchKind::kGraph) launch.kind = event::DispatchKind::kGraph;
    return found->second = writer_.dimension(launch);
  }
  int64_t copy(const KeptRecord& record, const event::WatchRow& what) {
    const int64_t owner = device(object_of(record, record.context != 0 ? record.context : record.object));
    const std::string name = stored_name(what);
    auto direction = event::CopyDirection::kUnknown;
    auto kind = event::CopyKind::kPlain;
    for (const auto& [text, value] :
         {std::pair<std::string_view, event::CopyDirection>{"host to device", event::CopyDirection::kHostToDevice},
          {"device to host", event::CopyDirection::kDeviceToHost},
          {"device to device", event::CopyDirection::kDeviceToDevice},
          {"host to host", event::CopyDirection::kHostToHost},
          {"device to peer", event::CopyDirection::kPeerToPeer}})
      if (name == text) direction = value;
    for (const auto& [text, value] : {std::pair<std::string_view, event::CopyKind>{"map", event::CopyKind::kMap},
                                      {"unmap", event::CopyKind::kUnmap},
                                      {"migration", event::CopyKind::kMigrate},
                                      {"shared memory", event::CopyKind::kSvm}})
      if (name == text) kind = value;
    row::CopyShape shape = imported::copy_shape(direction, owner);
    shape.kind = kind;
    return writer_.dimension(shape);
  }

  int64_t allocation_shape(const KeptRecord& record, event::AllocationOperation operation) {
    const event::WatchRow* const what = sums_row(record);
    return writer_.dimension(row::AllocationShape{.operation = operation,
                                                  .memory = event::MemoryKind::kDevice,
                                                  .device = device(object_of(record, record.context)),
                                                  .name = what != nullptr ? writer_.string(stored_name(*what)) : 0,
                                                  .level = event::AllocationLevel::kRuntime});
  }
  void add_allocation(const KeptRecord& record, bool with_call) {
    if (with_call) add_call(record);
    const int64_t start = ring_.time(record.start), end = ring_.time(record.end);
    const bool good = record.result == 0;
    const auto operation = good ? event::AllocationOperation::kAllocate : event::AllocationOperation::kOutOfMemory;
    if (good)
      sizes_[{record.process, record.object}] = {record.amount,
                                                 allocation_shape(record, event::AllocationOperation::kFree)};
    writer_.add(row::Allocation{.track = thread(record),
                                .start = start,
                                .duration = event::duration_between(start, end),
                                .dim = allocation_shape(record, operation),
                                .correlation = with_call ? static_cast<int64_t>(record.ticket) : 0,
                                .bytes = static_cast<int64_t>(record.amount),
                                .address = static_cast<int64_t>(record.object)});
  }
  void add_free(const KeptRecord& record) {
    const int64_t end = add_call(record);
    if (record.result != 0) return;
    int64_t bytes = record.amount != 0 ? static_cast<int64_t>(record.amount) : kUnknown;
    int64_t shape = 0;
    if (const auto known = sizes_.find({record.process, record.object}); known != sizes_.end()) {
      bytes = static_cast<int64_t>(known->second.first);
      shape = known->second.second;
      sizes_.erase(known);
    }
    if (shape == 0) shape = allocation_shape(record, event::AllocationOperation::kFree);
    const int64_t start = ring_.time(record.start);
    writer_.add(row::Allocation{.track = thread(record),
                                .start = start,
                                .duration = event::duration_between(start, end),
                                .dim = shape,
                                .correlation = static_cast<int64_t>(record.ticket),
                                .bytes = bytes,
                                .address = static_cast<int64_t>(record.object)});
  }

  int64_t label(const std::string& name, event::MarkerKind kind, uint16_t domain) {
    return writer_.dimension(
        row::Label{.name = writer_.string(name), .kind = kind, .domain = writer_.string(ring_.call_name(domain))});
  }
  void add_marker(const std::vector<KeptRecord>& records, size_t at) {
    const KeptRecord& record = records[at];
    const int64_t time = ring_.time(record.start);
    std::vector<OpenRange>& open = open_[{record.process, record.tid, record.call}];
    switch (record.kind) {
      case WatchRecordKind::kPop:
        if (open.empty()) return;  // begun before what was kept
        end_range(open.back(), time, event::MarkerKind::kPushPop);
        open.pop_back();
        return;
      case WatchRecordKind::kStop:
        if (const auto found = started_.find(record.object); found != started_.end()) {
          end_range(found->second, time, event::MarkerKind::kStartStop);
          started_.erase(found);
        }
        return;
      case WatchRecordKind::kPush:
        open.push_back({record, time, marker_text(records, at)});
        return;
      case WatchRecordKind::kStart:
        started_[record.ticket] = {record, time, marker_text(records, at)};
        return;
      default:
        writer_.add(row::Marker{.track = thread(record),
                                .start = time,
                                .duration = 0,
                                .dim = label(marker_text(records, at), event::MarkerKind::kMark, record.call)});
    }
  }
  void add_collective(const KeptRecord& record) {
    if (record.call == 0) return;  // it joined the communicator
    const std::string of = record.context >> 32 != 0 ? fmt::format(" of {}", record.context >> 32) : "";
    const std::string text = fmt::format("{} {} of communicator {:x}, rank {}{}", ring_.call_name(record.call),
                                         record.amount, record.object, record.context & UINT32_MAX, of);
    writer_.add(row::Marker{
        .track = thread(record),
        .start = ring_.time(record.start),
        .duration = 0,
        .dim = writer_.dimension(row::Label{
            .name = writer_.string(text), .kind = event::MarkerKind::kMark, .domain = writer_.string("collectives")})});
  }
  // `end`: nothing for one that had not ended.
  void end_range(const OpenRange& range, std::optional<int64_t> end, event::MarkerKind kind) {
    writer_.add(row::Marker{.track = thread(range.begin),
                            .start = range.start,
                            .duration = end ? event::duration_between(range.start, *end) : kUnknown,
                            .dim = label(range.name, kind, range.begin.call)});
  }
  void end_ranges() {
    for (const auto& [of, open] : open_)
      for (const OpenRange& range : open) end_range(range, std::nullopt, event::MarkerKind::kPushPop);
    for (const auto& [ticket, range] : started_) end_range(range, std::nullopt, event::MarkerKind::kStartStop);
  }

  trace::TraceWriter& writer_;
  const event::WatchTable& table_;
  const RingFile& ring_;
  std::map<std::pair<uint16_t, uint64_t>, const event::WatchObject*> objects_;
  std::map<uint16_t, int64_t> processes_, functions_, last_queue_;
  std::map<std::pair<uint16_t, uint32_t>, int64_t> threads_;
  std::map<std::tuple<uint16_t, uint32_t, uint16_t>, std::vector<OpenRange>> open_;  // by domain, too
  std::map<uint64_t, OpenRange> started_;                                            // by ticket
  std::map<std::tuple<uint16_t, uint32_t, uint16_t, std::string>, int64_t> devices_;
  std::set<int64_t> told_memory_;  // devices
  std::map<std::tuple<uint16_t, uint64_t, uint64_t>, int64_t> queues_;
  std::map<uint32_t, int64_t> kernels_;
  std::map<std::pair<uint16_t, uint64_t>, std::pair<uint64_t, int64_t>>
      sizes_;                                // live memory: bytes, shape of its free
  std::unordered_map<uint64_t, RanAt> ran_;  // by ticket
  KeptCounts counts_;
};

std::string seconds_text(int64_t ns) {
  return fmt::format("{:.1f} s", static_cast<double>(ns) * 1e-9);
}

// What the file is, and what it lacks, a sentence each.
void describe(trace::TraceWriter& writer, const KeptExcerpt& excerpt, const KeptCounts& counts) {
  const auto note = [&](event::NoteSeverity severity, const std::string& text) {
    writer.add(row::Note{.start = excerpt.at, .severity = severity, .text = writer.string(text)});
  };
  note(event::NoteSeverity::kInfo,
       fmt::format("tacho watch --keep: {}; the file has the {} before and the {} after that", excerpt.why,
                   seconds_text(excerpt.at - excerpt.complete_from),
                   seconds_text(std::max<int64_t>(excerpt.to - excerpt.at, 0))));
  for (const std::string& sentence : excerpt.further) note(event::NoteSeverity::kInfo, sentence);
  if (counts.timed < counts.operations)
    note(event::NoteSeverity::kWarning,
         fmt::format("{} of {} operations of devices were timed; the others have no duration here, count as calls and "
                     "add no time",
                     counts.timed, counts.operations));
  if (excerpt.complete_from > excerpt.from)
    note(event::NoteSeverity::kWarning,
         fmt::format(
             "the ring was full: operations older than {} before the trigger had been overwritten; --keep-memory "
             "gives it more room",
             seconds_text(excerpt.at - excerpt.complete_from)));
  if (excerpt.overwritten > 0)
    writer.lose(0, Table::kEnd, event::LossReason::kRingOverwritten, static_cast<int64_t>(excerpt.overwritten));
  if (excerpt.unfinished > 0)
    writer.lose(0, Table::kEnd, event::LossReason::kKilled, static_cast<int64_t>(excerpt.unfinished));
}

}  // namespace

std::string marker_text_of(const KeptRecord& record) {
  const bool further = record.kind == event::WatchRecordKind::kText;
  char text[event::kWatchTextBytes];
  size_t size = 0;
  const auto add = [&](const uint64_t& word) {
    memcpy(text + size, &word, sizeof word);
    size += sizeof word;
  };
  if (further) add(record.start);
  add(record.end);
  add(record.object);
  add(record.amount);
  if (further) add(record.context);
  return {text, size};
}

std::string marker_text(const std::vector<KeptRecord>& records, size_t at) {
  const KeptRecord& record = records[at];
  std::string text = marker_text_of(record);
  for (size_t i = at + 1; i <= at + record.flags && i < records.size(); ++i) {
    if (records[i].kind != event::WatchRecordKind::kText || records[i].ticket != record.ticket + (i - at)) break;
    text += marker_text_of(records[i]);
  }
  text.resize(strnlen(text.data(), text.size()));
  if (text.size() >= record.context) return text;
  // Not a part of a character: its first byte, and how many there should be.
  size_t first = text.size();
  while (first > 0 && text.size() - first < 3 && (static_cast<unsigned char>(text[first - 1]) & 0xc0) == 0x80) --first;
  if (first > 0) {
    const auto lead = static_cast<unsigned char>(text[first - 1]);
    const size_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (text.size() - (first - 1) < wanted) text.resize(first - 1);
  }
  return text + "…";
}

Result<KeptCounts> write_kept(const KeptExcerpt& excerpt, const event::WatchTable& table, const RingFile& ring,
                              const std::vector<std::string>& command) {
  TACHO_ASSIGN(const auto writer, trace::TraceWriter::create(excerpt.path));
  launch::describe_recording(*writer, {}, command);
  const auto about = [&](std::string_view key, const std::string& value) {
    writer->property(Table::kEnd, 0, key, value);
  };
  about("source", "tacho watch");
  about("watch.trigger", excerpt.trigger);
  about("watch.triggered_by", excerpt.why);
  about("watch.trigger_ns", fmt::format("{}", excerpt.at));
  about("watch.complete_from_ns", fmt::format("{}", excerpt.complete_from));
  KeptRows rows(*writer, table, ring);
  rows.add_live(excerpt.live);
  rows.add_all(excerpt.records);
  rows.add_trigger(excerpt);
  describe(*writer, excerpt, rows.counts());
  const ClockTuple now = sample_clocks();
  writer->add(
      row::Clock{.raw = now.raw, .monotonic = now.monotonic, .boottime = now.boottime, .realtime = now.realtime});
  TACHO_TRY(writer->finish());
  return rows.counts();
}

}  // namespace tacho::watch
