// Regions, samples and device work of a rocpd database (recording_reader.h).
#include "base/text/how_many.h"
#include "event/times.h"
#include "format/import/words.h"
#include "format/json/members.h"
#include "format/rocpd/recording_reader.h"
#include "vendor/call_roles.h"
#include "walk/calls/causes.h"

namespace tacho::format::rocpd {

using event::kUnknown;
using event::Table;
namespace row = event::row;

namespace {

// Sizes are NOT NULL: writers that do not know one, tacho among them, say 0.
int64_t size_known(int64_t size) {
  return size <= 0 ? kUnknown : size;
}

event::Domain domain_of(std::string_view category, std::string_view function) {
  const event::Domain told = imported::domain_of_word(category);
  return told != event::Domain::kUnknown ? told : imported::domain_of_function(function);
}

bool is_marker(std::string_view category) {
  return category.starts_with("MARKER") || category == "rocm_marker_api";
}

}  // namespace

Status RecordingReader::regions() {
  std::string message;
  return happened("rocpd_region", Table::kApi, {"name_id"}, [&](const NamedScan& scan, const Happened& here) {
    const int64_t track = thread_track(here.line), name = scan.id(kOwn);
    const std::string& kind = category(here.about.category);
    unmeasured_.saw(here.span.start, here.span.duration);
    if (counters_ && here.event_id != 0) targets_.add(here.event_id, {track, here.span.start, kUnknown});
    if (is_marker(kind)) {
      // ROCTx: the event's data holds the text; ranges are roctxThreadRange or roctxProcessRange.
      const bool process_wide = text(name).find("ProcessRange") != std::string_view::npos;
      const int64_t label =
          json::text_member(here.about.extdata, "message", message) ? writer_.string(message) : text_row(name);
      writer_.add(row::Marker{.track = track,
                              .start = here.span.start,
                              .duration = here.span.duration,
                              .dim = labels_.row(writer_, {.name = label,
                                                           .kind = process_wide ? event::MarkerKind::kStartStop
                                                                                : event::MarkerKind::kPushPop,
                                                           .domain = writer_.string("roctx")})});
      return;
    }
    if (functions_.size() > 1 << 17) functions_.clear();
    const auto [found, fresh] = functions_.try_emplace({name, here.about.category}, 0);
    if (fresh) {
      const std::string function(text(name));
      found.value() =
          writer_.dimension(row::Function{.name = writer_.string(function), .domain = domain_of(kind, function)});
    }
    work_times_.call({.process = process(here.line.process),
                      .correlation = here.about.stack,
                      .start = here.span.start,
                      .end = here.span.duration == kUnknown ? kUnknown : here.span.start + here.span.duration,
                      .role = vendor::call_role(text(name))});
    writer_.add(row::Api{.track = track,
                         .start = here.span.start,
                         .duration = here.span.duration,
                         .dim = found->second,
                         .correlation = here.about.stack});
  });
}

// Samples that carry no counters are marks, or calls that took no time.
Status RecordingReader::marks() {
  std::string message;
  int64_t last_sample = kUnknown;
  return rows(
      "rocpd_sample", {"id", "track_id", "timestamp", "timestamp_id", "event_id", "name_id"}, [&](NamedScan& scan) {
        if (counted_samples_.find(last_sample = scan.id(0)) != nullptr) return;
        const int64_t time = time_in(scan, 2, 3);
        if (!event::is_time(time) || tracks_ == nullptr || !tracks_->find(scan.id(1))) {
          bad(Table::kMarker);
          return;
        }
        const Line line = line_of_track(scan.id(1));
        const About about = this->about(scan.id(4));
        const int64_t name = scan.id(5) != 0 ? scan.id(5) : line.name;
        const int64_t label =
            json::text_member(about.extdata, "message", message) ? writer_.string(message) : text_row(name);
        writer_.add(row::Marker{
            .track = thread_track(line),
            .start = time,
            .duration = 0,
            .dim = labels_.row(writer_,
                               {.name = label, .kind = event::MarkerKind::kMark, .domain = writer_.string("roctx")})});
      });
}

// A kernel that is replayed for its counters may have a row for each pass, all of one launch.
Status RecordingReader::replays() {
  struct Launched {
    std::array<int64_t, 6> key;  // process, dispatch, kernel, agent, correlation, row
    int64_t event;
    bool operator<(const Launched& other) const { return key < other.key; }
  };
  if (!counters_) return replays_.finish();
  SortedFile<Launched> launches;
  const std::unique_ptr<NamedScan> scan = happened_scan("rocpd_kernel_dispatch", {"kernel_id", "dispatch_id"});
  if (scan == nullptr) return replays_.finish();
  while (scan->next()) {
    const int64_t event_id = scan->id(kEventId), dispatch = scan->id(kOwn + 1), stack = about(event_id).stack;
    const Line line = line_in(*scan);
    if (event_id != 0 && dispatch > 0 && stack != 0)
      launches.add({{line.process, dispatch, scan->id(kOwn), line.agent, stack, scan->rowid()}, event_id});
  }
  TACHO_TRY(scan->status());
  TACHO_TRY(launches.finish());
  Launched launch, first{};
  int64_t pass = 0, found = 0;
  while (launches.next(launch)) {
    const bool again = first.event != 0 && std::equal(launch.key.begin(), launch.key.end() - 1, first.key.begin());
    if (!again) {
      first = launch;
      pass = 0;
    } else if (launch.event != first.event) {
      replays_.add(launch.event, {first.event, ++pass});
      ++found;
    }
  }
  if (found > 0)
    writer_.note(0, event::NoteSeverity::kInfo,
                 how_many(found, "row of kernels is a further pass of a replayed dispatch",
                          "rows of kernels are further passes of replayed dispatches") +
                     ": each dispatch counts once");
  return replays_.finish();
}

int64_t RecordingReader::kernel_row(const NamedScan& scan, int64_t graph) {
  constexpr int kPrivate = kOwn + 2, kShared = kOwn + 3, kGroup = kOwn + 4, kGrid = kOwn + 7;
  const Symbol& of = symbol(scan.id(kOwn));
  // No launch has 0 work-items: that is what writers put into columns that are NOT NULL.
  const auto size = [&](int column) { return size_known(scan.number(column)); };
  const int64_t grid[3] = {size(kGrid), size(kGrid + 1), size(kGrid + 2)};
  const int64_t group[3] = {size(kGroup), size(kGroup + 1), size(kGroup + 2)};
  row::Kernel kernel = imported::launch_of(of.name, grid, group, true);
  kernel.registers = of.registers;
  kernel.accum_registers = of.accum_registers;
  kernel.scalar_registers = of.scalar_registers;
  // The dispatch's group segment is the total; the symbol gives the static part.
  const int64_t all = scan.number(kShared);
  kernel.shared_static = of.shared;
  kernel.shared_dynamic = all == kUnknown || of.shared == kUnknown ? all : all >= of.shared ? all - of.shared : 0;
  kernel.private_bytes = scan.number(kPrivate);
  kernel.graph = graph;
  return kernels_.row(writer_, kernel);
}

Status RecordingReader::dispatches() {
  return happened(
      "rocpd_kernel_dispatch", Table::kDispatch,
      {"kernel_id", "dispatch_id", "private_segment_size", "group_segment_size", "workgroup_size_x", "workgroup_size_y",
       "workgroup_size_z", "grid_size_x", "grid_size_y", "grid_size_z", "graph_exec_id", "graph_node_id"},
      [&](const NamedScan& scan, const Happened& here) {
        if (here.event_id != 0 && replays_.find(here.event_id) != nullptr) return;
        const int64_t dispatch = scan.number(kOwn + 1), graph = scan.id(kOwn + 10);
        const int64_t ordinal = dispatch > 0 ? dispatch - 1 : kUnknown;
        if (graph != 0) graph_work_.add(here.about.stack, 0);
        work(row::Dispatch{.track = queue_track(here.line, here.line.agent),
                           .start = here.span.start,
                           .duration = here.span.duration,
                           .dim = kernel_row(scan, graph),
                           .correlation = here.about.stack,
                           .ordinal = ordinal,
                           .graph_node = scan.id(kOwn + 11)},
             {.process = process(here.line.process), .device = device(here.line.agent)}, here.event_id, ordinal);
      });
}

Status RecordingReader::copies() {
  using event::CopyDirection;
  return happened(
      "rocpd_memory_copy", Table::kCopy,
      {"name_id", "dst_agent_id", "src_agent_id", "size", "graph_exec_id", "graph_node_id"},
      [&](const NamedScan& scan, const Happened& here) {
        const int64_t target = scan.id(kOwn + 1), source = scan.id(kOwn + 2);
        const std::string name(text(scan.id(kOwn)));
        const bool fill = name == "MEMORY_FILL";
        const CopyDirection direction = imported::copy_direction(name);
        const bool from_host = direction == CopyDirection::kHostToDevice || direction == CopyDirection::kHostToHost;
        const bool to_host = direction == CopyDirection::kDeviceToHost || direction == CopyDirection::kHostToHost;
        // A copy is shown on the line of the GPU that takes part.
        const int64_t own = direction == CopyDirection::kDeviceToHost ? source : target;
        const int64_t agent = own != 0 ? own : here.line.agent;
        const int64_t track = queue_track(here.line, agent);
        if (scan.id(kOwn + 4) != 0) graph_work_.add(here.about.stack, 0);
        const auto [shape, fresh] = copy_shapes_.try_emplace(
            {static_cast<int64_t>(direction), fill ? 1 : 0, device(target), device(source)}, 0);
        if (fresh)
          shape.value() =
              fill ? writer_.dimension(row::FillShape{.memory = event::MemoryKind::kDevice, .device = device(target)})
                   : writer_.dimension(row::CopyShape{.direction = direction,
                                                      .source_device = from_host ? 0 : device(source),
                                                      .target_device = to_host ? 0 : device(target)});
        const auto put = [&, dimension = shape->second](auto values) {
          values.track = track;
          values.start = here.span.start;
          values.duration = here.span.duration;
          values.dim = dimension;
          values.correlation = here.about.stack;
          values.bytes = size_known(scan.number(kOwn + 3));
          values.graph_node = scan.id(kOwn + 5);
          work(values,
               {.process = process(here.line.process),
                .device = device(agent),
                .to_host = direction == CopyDirection::kDeviceToHost},
               here.event_id);
        };
        if (fill)
          put(row::Fill{});
        else
          put(row::Copy{});
      });
}

Status RecordingReader::allocations() {
  return happened("rocpd_memory_allocate", Table::kAllocation, {"type", "level", "address", "size"},
                  [&](const NamedScan& scan, const Happened& here) {
                    const std::string_view type = scan.string(kOwn);
                    const bool freed = type == "FREE" || type == "RECLAIM";
                    std::string level(scan.string(kOwn + 1));
                    for (char& c : level) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
                    const int64_t shape = writer_.dimension(row::AllocationShape{
                        .operation = freed ? event::AllocationOperation::kFree : event::AllocationOperation::kAllocate,
                        .memory = event::MemoryKind::kDevice,
                        .device = device(here.line.agent),
                        .name = writer_.string(level)});
                    const int64_t track = thread_track(here.line);
                    if (counters_ && here.event_id != 0)
                      targets_.add(here.event_id, {track, here.span.start, kUnknown});
                    writer_.add(row::Allocation{.track = track,
                                                .start = here.span.start,
                                                .duration = here.span.duration,
                                                .dim = shape,
                                                .correlation = here.about.stack,
                                                .bytes = size_known(scan.number(kOwn + 3)),
                                                .address = scan.id(kOwn + 2)});
                  });
}

// A launch of a graph is the sum of its kernels and copies, where the recording has them.
Status RecordingReader::graph_launches() {
  TACHO_TRY(graph_work_.finish());
  return happened(
      "rocpd_graph_launch", Table::kDispatch, {"graph_exec_id"}, [&](const NamedScan& scan, const Happened& here) {
        if (graph_work_.find(here.about.stack) != nullptr) return;
        const int64_t graph = scan.id(kOwn);
        work(row::Dispatch{.track = queue_track(here.line, here.line.agent),
                           .start = here.span.start,
                           .duration = here.span.duration,
                           .dim = kernels_.row(writer_, {.name = writer_.string(fmt::format("graph {}", graph)),
                                                         .kind = event::DispatchKind::kGraph,
                                                         .graph = graph}),
                           .correlation = here.about.stack},
             {.process = process(here.line.process), .device = device(here.line.agent)}, here.event_id);
      });
}

// Records and waits of HIP events on a queue.
Status RecordingReader::hip_events() {
  return happened(
      "rocpd_hip_event", Table::kSync, {"name_id", "operation", "name"},
      [&](const NamedScan& scan, const Happened& here) {
        bool waits = false;
        for (const std::string_view word : {text(scan.id(kOwn)), scan.string(kOwn + 1), scan.string(kOwn + 2)})
          waits |= word.find("WAIT") != std::string_view::npos || word.find("Wait") != std::string_view::npos;
        const int64_t agent = here.line.agent;
        work_times_.sync(
            {.process = process(here.line.process), .device = device(agent)},
            {.track = queue_track(here.line, agent),
             .start = here.span.start,
             .duration = here.span.duration,
             .dim = writer_.dimension(row::SyncShape{
                 .kind = waits ? event::SyncKind::kQueueWaitEvent : event::SyncKind::kEvent, .device = device(agent)}),
             .correlation = here.about.stack});
      });
}

// Work that was not measured lies at the end of the call that caused it.
Status RecordingReader::add_unmeasured() {
  walk::Causes<int64_t> ends;
  bool indexed = false;
  Status status;
  const auto index = [&]() -> Status {
    indexed = true;
    const std::unique_ptr<NamedScan> scan = happened_scan("rocpd_region", {});
    while (scan != nullptr && scan->next()) {
      const imported::SpanRead span = span_in(*scan);
      const int64_t stack = about(scan->id(kEventId)).stack;
      if (span.duration != kUnknown) ends.add(line_in(*scan).process, stack, span.start + span.duration);
    }
    if (scan != nullptr) TACHO_TRY(scan->status());
    return ends.finish();
  };
  TACHO_TRY(unmeasured_.finish(writer_, [&](int64_t track, int64_t stack) {
    if (!indexed) status = index();
    const auto owner = process_of_track_.find(track);
    if (!status || owner == process_of_track_.end()) return kUnknown;
    const int64_t* const end = ends.find(owner->second, stack);
    return end != nullptr ? *end : kUnknown;
  }));
  return status;
}

}  // namespace tacho::format::rocpd
