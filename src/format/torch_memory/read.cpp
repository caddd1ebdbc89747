// What a snapshot of PyTorch's allocators means (torch_memory.h).
//
// A snapshot is {"segments": [...], "device_traces": [[event, ...], ...], ...}: the state at its end, and before it the
// history of each device, if it was recorded. Events become rows as they are read, because there may be millions.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/number_map.h"
#include "base/text/how_many.h"
#include "event/times.h"
#include "format/import/rows.h"
#include "format/import/tracker.h"
#include "format/source/source.h"
#include "format/torch_memory/pickle.h"
#include "format/torch_memory/torch_memory.h"

namespace tacho::format::torch_memory {

namespace {

using event::AllocationLevel;
using event::AllocationOperation;
using event::kUnknown;
using event::MemoryKind;
using event::Table;
using Kind = PickleValue::Kind;
namespace row = event::row;

enum class Action : uint8_t {
  kAllocate,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAllocate,
  kSegmentFree,
  kOutOfMemory,
  kDescribe,
  kNothing,  // no memory changes: a snapshot was taken
  kUnknown,
};

Action action_of(std::string_view word) {
  static constexpr std::pair<std::string_view, Action> kWords[] = {{"alloc", Action::kAllocate},
                                                                   {"free_requested", Action::kFreeRequested},
                                                                   {"free_completed", Action::kFreeCompleted},
                                                                   {"free", Action::kFreeCompleted},
                                                                   {"segment_alloc", Action::kSegmentAllocate},
                                                                   {"segment_map", Action::kSegmentAllocate},
                                                                   {"segment_free", Action::kSegmentFree},
                                                                   {"segment_unmap", Action::kSegmentFree},
                                                                   {"oom", Action::kOutOfMemory},
                                                                   {"annotate", Action::kDescribe},
                                                                   {"snapshot", Action::kNothing}};
  const auto* const found =
      std::find_if(std::begin(kWords), std::end(kWords), [&](const auto& each) { return each.first == word; });
  return found == std::end(kWords) ? Action::kUnknown : found->second;
}

// Which memory: of a GPU, or the host's that torch pins (device -1).
struct Place {
  int64_t device = 0;  // index
  bool pinned = false;
};

class Reader {
 public:
  Reader(source::SourceStream& source, const std::string& path, trace::TraceWriter& writer)
      : pickle_(source, path), writer_(writer), tracker_(writer) {}

  Status run() {
    pickle_.dict_grew = [this](int64_t dict) { return grew(dict); };
    TACHO_ASSIGN(const PickleValue whole, pickle_.run());
    if (whole.kind == Kind::kList) {
      TACHO_TRY(segments(whole, false));
    } else if (whole.kind == Kind::kDict) {
      TACHO_TRY(document(whole.number));
    }
    if (!seen_)
      return fail("{}: a pickle, but no memory snapshot of torch: it has neither segments nor device_traces", path());
    for (const Left& left : left_) device(left.place);
    for (Device& device : devices_) end_of(device);
    say();
    tracker_.finish();
    writer_.property(Table::kEnd, 0, "source", "PyTorch memory snapshot");
    writer_.property(Table::kEnd, 0, "source_file", path());
    return {};
  }

 private:
  struct Pending {  // memory given back that may be in use by a stream
    int64_t start, bytes, stack, shape;
  };
  struct Device {
    Place place;
    int64_t track = 0, row = 0;
    int64_t first = kUnknown, last = kUnknown;        // times of its history
    tsl::robin_map<int64_t, int64_t> live, segments;  // bytes by address, as far as the history tells
    tsl::robin_map<int64_t, Pending> pending;
  };
  // Memory that is there at the end.
  struct Left {
    Place place;
    int64_t address, bytes, requested, stack, stream, pool;
    bool segment;
  };
  struct Facts {
    int64_t address = 0, size = kUnknown, stream = kUnknown, time = kUnknown, stack = 0, pool = 0, free = kUnknown;
    std::string_view metadata;
  };

  const std::string& path() const { return pickle_.path(); }

  Device& device(Place place) {
    for (Device& each : devices_)
      if (each.place.device == place.device && each.place.pinned == place.pinned) return each;
    Device& made = devices_.emplace_back();
    made.place = place;
    const int64_t process = tracker_.main_process();
    if (!place.pinned) made.row = tracker_.device(place.device);
    made.track = writer_.dimension(row::Track{.kind = event::TrackKind::kMemory,
                                              .process = process,
                                              .device = made.row,
                                              .name = writer_.string("PyTorch's allocator"),
                                              .category = writer_.string("memory")});
    return made;
  }

  int64_t integer(int64_t dict, std::string_view key) const {
    const PickleValue* const value = pickle_.find(dict, key);
    return value != nullptr && value->kind == Kind::kInteger ? value->number : kUnknown;
  }
  std::string_view text(int64_t dict, std::string_view key) const {
    const PickleValue* const value = pickle_.find(dict, key);
    return value != nullptr && value->kind == Kind::kText ? pickle_.text(value->number) : std::string_view();
  }
  // A size; kUnknown where it is none.
  int64_t bytes(int64_t dict, std::string_view key) const {
    const int64_t value = integer(dict, key);
    return value >= 0 ? value : kUnknown;
  }
  const std::vector<PickleValue>* list(int64_t dict, std::string_view key) const {
    const PickleValue* const value = pickle_.find(dict, key);
    return value != nullptr && value->kind == Kind::kList ? &pickle_.items(value->number) : nullptr;
  }

  // The pool's name; 0 = the common one, or not told.
  int64_t pool(int64_t dict, std::string_view key) {
    const PickleValue* const value = pickle_.find(dict, key);
    if (value == nullptr || value->kind != Kind::kTuple) return 0;
    const auto& parts = pickle_.items(value->number);
    if (parts.size() != 2 || parts[0].kind != Kind::kInteger || parts[1].kind != Kind::kInteger ||
        (parts[0].number == 0 && parts[1].number == 0))
      return 0;
    return writer_.string(fmt::format("({}, {})", parts[0].number, parts[1].number));
  }

  int64_t frame(int64_t dict) {
    const std::string_view file = text(dict, "filename");
    const int64_t line = integer(dict, "line");
    const bool python = file.ends_with(".py") || file.starts_with('<') || file.starts_with("/tmp/ipykernel_");
    return frames_.row(writer_, row::Frame{.kind = python ? event::FrameKind::kPython : event::FrameKind::kNative,
                                           .function = writer_.string(text(dict, "name")),
                                           .file = writer_.string(file == "??" ? std::string_view() : file),
                                           .line = line > 0 ? line : kUnknown});
  }

  // The stack of "frames", innermost first. The list is freed: most of a history are such lists.
  int64_t stack(int64_t dict) {
    const PickleValue* const found = pickle_.find(dict, "frames");
    if (found == nullptr) return 0;
    const PickleValue value = pickle_.resolved(*found);
    if (value.kind == Kind::kStored) return value.number;
    if (value.kind != Kind::kList) return 0;
    int64_t made = 0;
    const auto& items = pickle_.items(value.number);
    for (size_t i = items.size(); i > 0; --i) {
      if (items[i - 1].kind != Kind::kDict) continue;
      made = stacks_.row(writer_, row::Stack{.parent = made, .frame = frame(items[i - 1].number)});
    }
    pickle_.store(value.number, made);
    return made;
  }

  int64_t shape(const Device& device, AllocationOperation operation, AllocationLevel level, const Facts& facts) {
    const std::string_view name = !facts.metadata.empty()              ? facts.metadata
                                  : level == AllocationLevel::kSegment ? std::string_view("segment")
                                                                       : std::string_view("tensor");
    return shapes_.row(writer_,
                       row::AllocationShape{.operation = operation,
                                            .memory = device.place.pinned ? MemoryKind::kPinned : MemoryKind::kDevice,
                                            .device = device.row,
                                            .name = writer_.string(name),
                                            .level = level,
                                            .stream = facts.stream,
                                            .pool = facts.pool});
  }

  void add(const Device& device, AllocationOperation operation, AllocationLevel level, const Facts& facts,
           int64_t duration = 0) {
    writer_.add(row::Allocation{.track = device.track,
                                .start = facts.time,
                                .duration = duration,
                                .dim = shape(device, operation, level, facts),
                                // What was not given has no size.
                                .bytes = operation == AllocationOperation::kOutOfMemory ? kUnknown : facts.size,
                                .address = operation == AllocationOperation::kOutOfMemory ? 0 : facts.address,
                                .stack = facts.stack,
                                .requested = facts.size});
  }

  // A dict got its members. Events become rows, and are freed.
  Status grew(int64_t dict) {
    const PickleValue* const word = pickle_.find(dict, "action");
    if (word == nullptr || word->kind != Kind::kText) return {};
    std::string_view key;
    const int64_t index = pickle_.index_of_list(key);
    if (index < 0 || (key != "device_traces" && key != "host_traces")) return {};
    if (index > 4096) return fail("{}: a snapshot of more than 4096 devices", path());
    seen_ = true;
    Device& at = device({.device = index, .pinned = key == "host_traces"});
    event(at, dict, action_of(pickle_.text(word->number)), pickle_.text(word->number));
    pickle_.store(dict, 0);
    return {};
  }

  void event(Device& device, int64_t dict, Action action, std::string_view word) {
    Facts facts;
    facts.address = integer(dict, "addr");
    facts.free = integer(dict, "device_free");
    if (facts.free == kUnknown && action == Action::kOutOfMemory) facts.free = facts.address;
    if (facts.address == kUnknown) facts.address = 0;
    facts.size = bytes(dict, "size");
    facts.stream = integer(dict, "stream");
    facts.metadata = text(dict, "user_metadata");
    facts.pool = pool(dict, "pool_id");
    facts.stack = stack(dict);
    const int64_t us = integer(dict, "time_us");
    ++events_;
    if (us == kUnknown || !event::is_time(us / 1000 * 1000000) || us < 0) {
      // Before 2.1 torch told no times: the order is known.
      ++untimed_;
      facts.time = device.last == kUnknown ? 0 : device.last + 1000;
    } else {
      facts.time = us * 1000;
    }
    if (action == Action::kUnknown) {
      tracker_.unread(fmt::format("events of the allocator (action {})", word));
      return;
    }
    if (action != Action::kNothing && action != Action::kOutOfMemory &&
        (facts.address == 0 || facts.size == kUnknown)) {
      // torch gives memory of no bytes no address.
      if (facts.size != 0) writer_.lose(0, Table::kAllocation, event::LossReason::kBadInput, 1);
      return;
    }
    if (device.first == kUnknown) device.first = facts.time;
    device.last = facts.time;
    change(device, action, facts);
  }

  void change(Device& device, Action action, const Facts& facts) {
    switch (action) {
      case Action::kAllocate:
        device.live.insert_or_assign(facts.address, facts.size);
        return add(device, AllocationOperation::kAllocate, AllocationLevel::kBlock, facts);
      case Action::kSegmentAllocate:
        device.segments.insert_or_assign(facts.address, facts.size);
        return add(device, AllocationOperation::kAllocate, AllocationLevel::kSegment, facts);
      case Action::kSegmentFree:
        device.segments.erase(facts.address);
        return add(device, AllocationOperation::kFree, AllocationLevel::kSegment, facts);
      case Action::kFreeRequested:
        device.live.erase(facts.address);
        device.pending.insert_or_assign(
            facts.address, Pending{facts.time, facts.size, facts.stack,
                                   shape(device, AllocationOperation::kFree, AllocationLevel::kBlock, facts)});
        return;
      case Action::kFreeCompleted:
        device.live.erase(facts.address);
        if (const auto found = device.pending.find(facts.address); found != device.pending.end()) {
          put(device, facts.address, found->second, facts.time - found->second.start);
          device.pending.erase(found);
          return;
        }
        return add(device, AllocationOperation::kFree, AllocationLevel::kBlock, facts);
      case Action::kOutOfMemory: {
        add(device, AllocationOperation::kOutOfMemory, AllocationLevel::kBlock, facts);
        const std::string free = facts.free >= 0 ? fmt::format(", {} bytes were free", facts.free) : std::string();
        writer_.add(
            row::Note{.start = facts.time,
                      .severity = event::NoteSeverity::kWarning,
                      .text = writer_.string(fmt::format(
                          "{} ran out of memory: {} bytes were asked for{}",
                          device.place.pinned ? std::string("The pinned memory of the host")
                                              : fmt::format("GPU {}", device.place.device),
                          facts.size == kUnknown ? std::string("unknown") : std::to_string(facts.size), free))});
        return;
      }
      case Action::kDescribe:
        // As --memory records what memory is for.
        writer_.add(row::Marker{.track = device.track,
                                .start = facts.time,
                                .duration = 0,
                                .dim = writer_.dimension(row::Label{.name = writer_.string(facts.metadata),
                                                                    .kind = event::MarkerKind::kMark,
                                                                    .domain = writer_.string("torch"),
                                                                    .category = writer_.string("memory"),
                                                                    .payload = event::PayloadKind::kInteger}),
                                .payload = facts.address});
        return;
      case Action::kNothing:
      case Action::kUnknown:
        return;
    }
  }

  void put(const Device& device, int64_t address, const Pending& freed, int64_t duration) {
    writer_.add(row::Allocation{.track = device.track,
                                .start = freed.start,
                                .duration = duration >= 0 ? duration : kUnknown,
                                .dim = freed.shape,
                                .bytes = freed.bytes,
                                .address = address,
                                .stack = freed.stack,
                                .requested = freed.bytes});
  }

  Status segments(const PickleValue& value, bool pinned) {
    for (const PickleValue& each : pickle_.items(value.number)) {
      if (each.kind != Kind::kDict || pickle_.find(each.number, "blocks") == nullptr) {
        tracker_.unread("segments without blocks");
        continue;
      }
      seen_ = true;
      segment(each.number, pinned);
    }
    return {};
  }

  void segment(int64_t dict, bool pinned) {
    const int64_t index = integer(dict, "device");
    const Place place{.device = index >= 0 && index <= 4096 ? index : 0, .pinned = pinned};
    if (index == kUnknown && !pinned) ++without_device_;
    const int64_t stream = integer(dict, "stream");
    int64_t address = integer(dict, "address");
    const int64_t total = bytes(dict, "total_size"), pool_name = pool(dict, "segment_pool_id");
    const int64_t made_at = stack(dict);
    if (address == kUnknown || total == kUnknown) {
      writer_.lose(0, Table::kAllocation, event::LossReason::kBadInput, 1);
      return;
    }
    left_.push_back({place, address, total, total, made_at, stream, pool_name, true});
    const auto* const blocks = list(dict, "blocks");
    if (blocks == nullptr) return;
    for (const PickleValue& each : *blocks) {
      if (each.kind != Kind::kDict) continue;
      const int64_t block = each.number, size = bytes(block, "size");
      if (size == kUnknown) {
        writer_.lose(0, Table::kAllocation, event::LossReason::kBadInput, 1);
        return;
      }
      if (const int64_t own = integer(block, "address"); own != kUnknown) address = own;
      if (text(block, "state") == "active_allocated")
        left_.push_back({place, address, size, requested(block), block_stack(block), stream, pool_name, false});
      if (__builtin_add_overflow(address, size, &address)) return;
    }
  }

  // What a block's tensor asked for. Before 2.1 it stands in the block's history.
  int64_t requested(int64_t block) const {
    if (const int64_t told = bytes(block, "requested_size"); told != kUnknown) return told;
    if (const int64_t past = history(block); past >= 0) return bytes(past, "real_size");
    return kUnknown;
  }
  int64_t block_stack(int64_t block) {
    if (const int64_t own = stack(block); own != 0) return own;
    const int64_t past = history(block);
    return past >= 0 ? stack(past) : 0;
  }
  int64_t history(int64_t block) const {
    const auto* const items = list(block, "history");
    return items != nullptr && !items->empty() && items->front().kind == Kind::kDict ? items->front().number : -1;
  }

  Status document(int64_t dict) {
    for (const auto& [key, pinned] : {std::pair<std::string_view, bool>{"segments", false}, {"host_segments", true}})
      if (const PickleValue* const value = pickle_.find(dict, key); value != nullptr && value->kind == Kind::kList) {
        seen_ = true;
        TACHO_TRY(segments(*value, pinned));
      }
    for (const std::string_view key : {"device_traces", "host_traces"})
      if (const auto* const traces = list(dict, key); traces != nullptr) {
        seen_ = true;
        for (const PickleValue& each : *traces)
          if (each.kind == Kind::kList && !pickle_.items(each.number).empty())
            tracker_.unread("events of the allocator without an action",
                            static_cast<int64_t>(pickle_.items(each.number).size()));
      }
    if (const auto* const notes = list(dict, "external_annotations"); notes != nullptr && !notes->empty())
      tracker_.unread("annotations of record_function", static_cast<int64_t>(notes->size()));
    if (const PickleValue* const value = pickle_.find(dict, "allocator_settings");
        value != nullptr && value->kind == Kind::kDict) {
      // "PYTORCH_..._ALLOC_CONF", by the kind of device.
      const auto& members = pickle_.items(value->number);
      for (size_t i = 0; i + 1 < members.size(); i += 2)
        if (members[i].kind == Kind::kText && members[i + 1].kind == Kind::kText &&
            pickle_.text(members[i].number).ends_with("ALLOC_CONF") && !pickle_.text(members[i + 1].number).empty())
          writer_.property(Table::kEnd, 0, "torch.allocator_settings", pickle_.text(members[i + 1].number));
    }
    return {};
  }

  // What was there before the history began: what is there at the end and was never allocated in it.
  void end_of(Device& device) {
    const int64_t begin = device.first == kUnknown ? 0 : device.first;
    for (const auto& [address, freed] : device.pending) put(device, address, freed, kUnknown);
    for (const Left& left : left_) {
      if (left.place.device != device.place.device || left.place.pinned != device.place.pinned) continue;
      const auto& known = left.segment ? device.segments : device.live;
      // A segment that grows piece by piece has more than one event.
      if (known.contains(left.address)) continue;
      Facts facts{.address = left.address,
                  .size = left.bytes,
                  .stream = left.stream,
                  .time = begin,
                  .stack = left.stack,
                  .pool = left.pool,
                  .metadata = {}};
      if (!left.segment && device.first != kUnknown) {
        // The history's sizes are what tensors asked for.
        if (left.requested != kUnknown) facts.size = left.requested;
        ++before_;
      }
      writer_.add(
          row::Allocation{.track = device.track,
                          .start = facts.time,
                          .duration = 0,
                          .dim = shape(device, AllocationOperation::kAllocate,
                                       left.segment ? AllocationLevel::kSegment : AllocationLevel::kBlock, facts),
                          .bytes = facts.size,
                          .address = facts.address,
                          .stack = facts.stack,
                          .requested = left.requested});
    }
  }

  void say() {
    const auto note = [&](const std::string& text) { writer_.note(0, event::NoteSeverity::kInfo, text); };
    if (events_ == 0)
      note("The snapshot has no history of allocations: _record_memory_history() records one. The "
           "memory shown is what was there when the snapshot was taken.");
    if (before_ > 0)
      note(fmt::format("{} tensor{} allocated before the history begins, and shown as allocated at its begin.", before_,
                       before_ == 1 ? " was" : "s were"));
    if (untimed_ > 0)
      note(how_many(untimed_, "event has no time", "events have no times") +
           ": a microsecond stands for the step from one to the next.");
    if (without_device_ > 0)
      note(how_many(without_device_, "segment does not tell its device, and is shown on GPU 0.",
                    "segments do not tell their device, and are shown on GPU 0."));
    if (events_ > 0)
      note("Sizes are what tensors asked for, as the history tells them; torch rounds them up to blocks.");
  }

  PickleReader pickle_;
  trace::TraceWriter& writer_;
  imported::ImportTracker tracker_;
  imported::RecentRows<row::Frame> frames_;
  imported::RecentRows<row::Stack> stacks_;
  imported::RecentRows<row::AllocationShape> shapes_;
  std::deque<Device> devices_;
  std::vector<Left> left_;
  bool seen_ = false;
  int64_t events_ = 0, untimed_ = 0, before_ = 0, without_device_ = 0;
};

}  // namespace

bool accepts(std::string_view, std::string_view head, bool folder) {
  // The protocol, then a frame, an empty dict or list, or what other pickles begin with, which are refused with a
  // reason.
  return !folder && head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5 &&
         std::string_view("\x95}](c").find(head[2]) != std::string_view::npos;
}

Status read_into(const std::string& path, trace::TraceWriter& writer) {
  TACHO_ASSIGN(source::SourceStream source, source::SourceStream::open(path));
  return Reader(source, path, writer).run();
}

Result<std::shared_ptr<const trace::Trace>> read(const std::string& path) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(read_into(path, *writer));
  return writer->finish_and_open(path);
}

}  // namespace tacho::format::torch_memory
