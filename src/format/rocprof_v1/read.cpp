// Translates rocprof's JSON events into tacho's terms (rocprof_v1.h). An event's "pid" is a section of the picture, not
// a process:
//
//   0        ROCTx ranges     3       HSA calls
//   1        copies           6 + N   kernels of GPU N
//   2        HIP calls        518 + N barrier packets of GPU N
//
// Process, thread and times are among its "args", all of them as text. Flows (ph "s" and "t", the same id) lead from
// the middle of a call, in us, to the begin of the device work.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <variant>

#include "base/files/sorted_file.h"
#include "base/format.h"
#include "event/times.h"
#include "format/import/times.h"
#include "format/import/words.h"
#include "format/json/stream.h"
#include "format/rocprof_v1/rocprof_v1.h"

namespace tacho::format::rocprof_v1 {
namespace {

using event::Domain;
using event::kUnknown;
using event::Table;
using json::JsonStream;
namespace row = event::row;

constexpr int64_t kMarkers = 0, kHipCalls = 2, kHsaCalls = 3, kFirstGpu = 6, kFirstBarrier = 518;

enum Argument {
  kBegin,
  kEnd,
  kPid,
  kTid,
  kDevice,
  kGpu,
  kQueue,
  kStream,
  kGrid,
  kGroup,
  kLds,
  kScratch,
  kVgpr,
  kArchVgpr,
  kAccumVgpr,
  kSgpr,
  kArguments
};
constexpr std::string_view kNames[kArguments] = {"BeginNs",  "EndNs",     "pid",        "tid", "dev-id", "gpu-id",
                                                 "queue-id", "stream-id", "grd",        "wgr", "lds",    "scr",
                                                 "vgpr",     "arch_vgpr", "accum_vgpr", "sgpr"};

struct Event {
  std::string phase, name, full_name, called_with;
  int64_t section = kUnknown, lane = kUnknown, id = kUnknown, us = kUnknown;
  std::array<int64_t, kArguments> numbers;

  Event() { numbers.fill(kUnknown); }
  int64_t operator[](Argument which) const { return numbers[which]; }
  int64_t either(Argument first, Argument second) const {
    return numbers[first] != kUnknown ? numbers[first] : numbers[second];
  }
};

int64_t number_of(std::string_view text) {
  int64_t value = kUnknown;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // Times in us may have a fraction, which flows do not.
  return error == std::errc() && (end == text.data() + text.size() || *end == '.') ? value : kUnknown;
}

class Reader {
 public:
  Reader(JsonStream json, trace::TraceWriter& writer) : json_(std::move(json)), writer_(writer) {}

  Status run() {
    json_.object([&](std::string_view key) {
      if (key != "traceEvents") {
        json_.skip();
        return;
      }
      json_.array([&] {
        Event event;
        read(event);
        if (json_.ok()) take(event);
      });
    });
    TACHO_TRY(Status(json_.status()));
    if (json_.peek() != 0)
      writer_.note(0, event::NoteSeverity::kWarning,
                   fmt::format("text after the end at byte {} is not read", json_.offset()));
    TACHO_TRY(Status(json_.status()));
    if (barriers_ != 0)
      writer_.note(
          0, event::NoteSeverity::kInfo,
          fmt::format("{} barrier packet{}, which {} no work, {} left out", barriers_, barriers_ == 1 ? "" : "s",
                      barriers_ == 1 ? "is" : "are", barriers_ == 1 ? "was" : "were"));
    TACHO_TRY(write_held());
    TACHO_TRY(call_ends_.finish());
    return unmeasured_.finish(writer_, [this](int64_t, int64_t correlation) {
      const auto* const call = call_ends_.find(correlation);
      return call == nullptr ? kUnknown : call->value;
    });
  }

 private:
  using Place = std::array<int64_t, 3>;  // section, lane, us
  struct Call {
    Place from;
    int64_t to, correlation;  // us
    bool operator<(const Call& other) const { return from < other.from; }
  };
  // One end of an arrow; of an id's ends the file's order counts.
  struct ArrowEnd {
    int64_t id;
    bool target;
    Place place;
    bool operator<(const ArrowEnd& other) const { return id < other.id; }
  };
  struct Arrow {
    Place from, to;
    bool operator<(const Arrow& other) const { return from < other.from; }
  };
  struct Caused {
    Place place;
    int64_t correlation;
    bool operator<(const Caused& other) const { return place < other.place; }
  };
  struct Held {
    Place place;
    std::variant<row::Dispatch, row::Copy, row::Fill> work;
    bool operator<(const Held& other) const {
      return place != other.place ? place < other.place : work.index() < other.work.index();
    }
  };

  // The value that comes next as text: a string, or the characters of a number.
  std::string scalar() {
    std::string text;
    const char next = json_.peek();
    if (next == '"')
      json_.string(text);
    else if (next == '{' || next == '[')
      json_.skip();
    else
      text = fmt::format("{}", json_.real());
    return text;
  }

  void read(Event& event) {
    json_.object([&](std::string_view key) {
      if (key == "ph")
        event.phase = scalar();
      else if (key == "name")
        event.name = scalar();
      else if (key == "pid")
        event.section = number_of(scalar());
      else if (key == "tid")
        event.lane = number_of(scalar());
      else if (key == "id")
        event.id = number_of(scalar());
      else if (key == "ts")
        event.us = number_of(scalar());
      else if (key == "args" && json_.peek() == '{')
        json_.object([&](std::string_view name) { argument(event, name); });
      else
        json_.skip();
    });
  }
  void argument(Event& event, std::string_view name) {
    const auto known = std::find(std::begin(kNames), std::end(kNames), name);
    if (known != std::end(kNames))
      event.numbers[static_cast<size_t>(known - std::begin(kNames))] = number_of(scalar());
    else if (name == "Name" || name == "KernelName")
      event.full_name = scalar();
    else if (name == "args")
      event.called_with = scalar();
    else
      json_.skip();
  }

  void take(Event& event) {
    if ((event.phase == "s" || event.phase == "t") && event.id != kUnknown) {
      arrow_ends_.add({event.id, event.phase == "t", {event.section, event.lane, event.us}});
    } else if (event.phase == "X") {
      span(event);
    }
  }

  void span(Event& event) {
    const bool call = event.section == kHipCalls || event.section == kHsaCalls;
    const std::string& name = event.full_name.empty() ? event.name : event.full_name;
    const bool copies =
        name.find("Copy") != std::string::npos || name.find("Memcpy") != std::string::npos || name == "async-copy";
    const bool fills = name.find("Fill") != std::string::npos;
    const Table table = event.section == kMarkers ? Table::kMarker
                        : call                    ? Table::kApi
                        : copies                  ? Table::kCopy
                        : fills                   ? Table::kFill
                                                  : Table::kDispatch;
    if (event.section >= kFirstBarrier) {
      ++barriers_;
      return;
    }
    const int64_t start = event[kBegin], end = event[kEnd];
    constexpr int64_t kFarthest = event::kFarthestTime;
    if (event.section == kUnknown || start < 0 || start > kFarthest || end < 0 || end > kFarthest)
      return writer_.lose(0, table, event::LossReason::kBadInput, 1);
    const int64_t duration = event::duration_between(start, end);
    if (duration == kUnknown) writer_.lose(0, table, event::LossReason::kClockOrder, 1);
    const int64_t owner = process(event[kPid]);
    if (table == Table::kMarker) {
      const int64_t label = writer_.dimension(row::Label{
          .name = writer_.string(name), .kind = event::MarkerKind::kPushPop, .domain = writer_.string("roctx")});
      writer_.add(
          row::Marker{.track = thread_track(owner, event[kTid]), .start = start, .duration = duration, .dim = label});
    } else if (call) {
      const int64_t correlation = ++calls_seen_;
      unmeasured_.saw(start, duration);
      call_ends_.add(correlation, start + std::max<int64_t>(duration, 0));
      const int64_t dim = writer_.dimension(row::Function{
          .name = writer_.string(name), .domain = event.section == kHipCalls ? Domain::kHipRuntime : Domain::kHsa});
      writer_.add(row::Api{.track = thread_track(owner, event[kTid]),
                           .start = start,
                           .duration = duration,
                           .dim = dim,
                           .correlation = correlation,
                           .arguments = arguments(event.called_with)});
      if (event.us != kUnknown && event::is_time(event.us))
        calls_.add(
            {{event.section, event.lane, event.us}, event.us + std::max<int64_t>(duration, 0) / 1000, correlation});
    } else {
      work(event, name, table, owner, start, duration);
    }
  }

  void work(const Event& event, std::string_view name, Table table, int64_t owner, int64_t start, int64_t duration) {
    const int64_t number = event.either(kDevice, kGpu) != kUnknown ? event.either(kDevice, kGpu)
                           : event.section >= kFirstGpu            ? event.section - kFirstGpu
                                                                   : 0;
    const int64_t track = queue_track(owner, device(number), event[kQueue], event[kStream]);
    const Place place{event.section, event.lane, event.us};
    if (table == Table::kFill) {
      const int64_t shape =
          writer_.dimension(row::FillShape{.memory = event::MemoryKind::kDevice, .device = device(number)});
      held_.add({place, row::Fill{.track = track, .start = start, .duration = duration, .dim = shape}});
    } else if (table == Table::kCopy) {
      using event::CopyDirection;
      const CopyDirection way = imported::copy_direction(name);
      const bool from = way == CopyDirection::kDeviceToHost || way == CopyDirection::kDeviceToDevice,
                 to = way == CopyDirection::kHostToDevice || way == CopyDirection::kDeviceToDevice;
      const int64_t shape = writer_.dimension(row::CopyShape{
          .direction = way, .source_device = from ? device(number) : 0, .target_device = to ? device(number) : 0});
      held_.add({place, row::Copy{.track = track, .start = start, .duration = duration, .dim = shape}});
    } else {
      const int64_t kernel = writer_.dimension(row::Kernel{.name = writer_.string(imported::kernel_of_symbol(name)),
                                                           .kind = event::DispatchKind::kKernel,
                                                           .grid_x = event[kGrid],
                                                           .group_x = event[kGroup],
                                                           .registers = event.either(kArchVgpr, kVgpr),
                                                           .accum_registers = event[kAccumVgpr],
                                                           .scalar_registers = event[kSgpr],
                                                           .shared_static = event[kLds],
                                                           .private_bytes = event[kScratch]});
      held_.add({place, row::Dispatch{
                            .track = track, .start = start, .duration = duration, .dim = kernel, .ordinal = kUnknown}});
    }
  }

  // Device work that was not measured waits for the other times.
  template <typename Row>
  void add_work(const Row& row) {
    if (imported::UnmeasuredRows::looks_so(row.start, row.duration)) return unmeasured_.take(row);
    unmeasured_.saw(row.start, row.duration);
    writer_.add(row);
  }

  // "( ptr(0x7f..) size(4096))" -> "ptr(0x7f..) size(4096)"
  int64_t arguments(std::string_view text) {
    while (text.starts_with('(') || text.starts_with(' ')) text.remove_prefix(1);
    if (text.ends_with(')')) text.remove_suffix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text.empty() ? 0 : writer_.string(text);
  }

  // Calls and what they caused

  // Arrows from where calls are.
  Status find_arrows(SortedFile<Arrow>& arrows) {
    TACHO_TRY(arrow_ends_.finish());
    std::optional<ArrowEnd> source;
    for (ArrowEnd end; arrow_ends_.next(end);) {
      if (!end.target)
        source = end;
      else if (source && source->id == end.id)
        arrows.add({source->place, end.place});
    }
    return arrows.finish();
  }
  // What calls caused: an arrow comes from the last call of its lane that began before it, if that lasted until then.
  Status find_caused(SortedFile<Arrow>& arrows, SortedFile<Caused>& caused) {
    TACHO_TRY(calls_.finish());
    Call next;
    bool more = calls_.next(next);
    std::optional<Call> call;
    for (Arrow arrow; arrows.next(arrow);) {
      for (; more && !(arrow.from < next.from); more = calls_.next(next)) call = next;
      const bool within =
          call && call->from[0] == arrow.from[0] && call->from[1] == arrow.from[1] && call->to >= arrow.from[2];
      caused.add({arrow.to, within ? call->correlation : 0});
    }
    return caused.finish();
  }
  // Each piece of work at a place has an arrow of its own.
  Status write_held() {
    SortedFile<Arrow> arrows;
    SortedFile<Caused> caused;
    TACHO_TRY(find_arrows(arrows));
    TACHO_TRY(find_caused(arrows, caused));
    TACHO_TRY(held_.finish());
    Caused cause;
    bool more = caused.next(cause);
    for (Held held; held_.next(held);) {
      while (more && cause.place < held.place) more = caused.next(cause);
      const bool mine = more && cause.place == held.place;
      std::visit(
          [&](auto& row) {
            row.correlation = mine ? cause.correlation : 0;
            add_work(row);
          },
          held.work);
      if (mine) more = caused.next(cause);
    }
    return {};
  }

  // Who and where

  int64_t process(int64_t pid) {
    const auto [found, fresh] = processes_.try_emplace(pid == kUnknown ? 0 : pid, 0);
    if (fresh) found->second = writer_.dimension(row::Process{.pid = found->first});
    return found->second;
  }
  int64_t thread_track(int64_t owner, int64_t tid) {
    const auto [found, fresh] = tracks_.try_emplace({owner, tid}, 0);
    if (fresh)
      found->second =
          writer_.dimension(row::Track{.kind = event::TrackKind::kThread,
                                       .process = owner,
                                       .thread = writer_.dimension(row::Thread{.process = owner, .tid = tid}),
                                       .native = tid,
                                       .category = writer_.string("thread")});
    return found->second;
  }
  int64_t device(int64_t number) {
    const auto [found, fresh] = devices_.try_emplace(number, 0);
    if (fresh)
      found->second = writer_.dimension(row::Device{.kind = event::DeviceKind::kGpu,
                                                    .index = std::max<int64_t>(number, 0),
                                                    .name = writer_.string(fmt::format("GPU {}", number)),
                                                    .vendor = writer_.string("Advanced Micro Devices, Inc.")});
    return found->second;
  }
  int64_t queue_track(int64_t owner, int64_t on, int64_t queue, int64_t stream) {
    const bool streamed = stream != kUnknown;
    if (queue == kUnknown) queue = 0;
    const auto [found, fresh] = queues_.try_emplace({owner, on, streamed ? stream : kUnknown, queue}, 0);
    if (fresh)
      found->second = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                                   .process = owner,
                                                   .device = on,
                                                   .native = streamed ? stream : queue,
                                                   .context = streamed ? queue : 0,
                                                   .category = writer_.string(streamed ? "stream" : "queue")});
    return found->second;
  }

  JsonStream json_;
  trace::TraceWriter& writer_;
  int64_t calls_seen_ = 0, barriers_ = 0;
  KeyIndex<int64_t> call_ends_;  // by correlation
  imported::UnmeasuredRows unmeasured_;
  SortedFile<Call> calls_;
  SortedFile<ArrowEnd> arrow_ends_;
  SortedFile<Held> held_;
  std::map<int64_t, int64_t> processes_, devices_;
  std::map<std::array<int64_t, 2>, int64_t> tracks_;
  std::map<std::array<int64_t, 4>, int64_t> queues_;
};

}  // namespace

bool accepts(std::string_view, std::string_view head, bool folder) {
  if (folder) return false;
  std::string text(head);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
  return text.starts_with(R"({"traceEvents":[{},)");
}

Status read_into(const std::string& path, trace::TraceWriter& writer) {
  TACHO_ASSIGN(JsonStream json, JsonStream::open(path));
  TACHO_TRY(Reader(std::move(json), writer).run());
  writer.property(Table::kEnd, 0, "source", "rocprof json");
  writer.property(Table::kEnd, 0, "source_file", path);
  return {};
}

Result<std::shared_ptr<const trace::Trace>> read(const std::string& path) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(read_into(path, *writer));
  return writer->finish_and_open(path);
}

}  // namespace tacho::format::rocprof_v1
