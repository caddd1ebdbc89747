// Work of devices: lanes, kernels, copies, fills and counters (translator.h).
#include <algorithm>

#include "base/text/json_writer.h"
#include "event/times.h"
#include "format/import/words.h"
#include "format/kineto/translator.h"

namespace tacho::format::kineto {

using event::kUnknown;
using event::Table;
namespace column = event::column;
namespace row = event::row;

int64_t Translator::device(int64_t index, const Event& event, Owners::ScopeId scope) {
  if (scope == Owners::kNoDevices) return 0;
  const int64_t row = owners_.tracker().device(index, scope);
  if (event.context != kUnknown) owners_.tracker().hint_vendor(row, "NVIDIA");  // only CUDA has contexts
  return row;
}

Translator::Lane Translator::lane(const Event& event) {
  const int64_t pid = owners_.number(event.process);
  const int64_t index = event.device != kUnknown ? event.device : event.process.number;
  const int64_t stream = event.stream != kUnknown ? event.stream : event.thread.number;
  // HIP has no contexts, but several queues of HSA to run a stream's work.
  const int64_t queue = event.hsa_queue != kUnknown ? event.hsa_queue : 0;
  const int64_t context = event.context != kUnknown ? event.context : queue;
  const Owners::Owner owner = owners_.owner(event);
  const std::array<int64_t, 5> key = {index, stream, context, owner.process,
                                      (static_cast<int64_t>(owner.scope) << 32) ^ (event.device == kUnknown ? pid : 0)};
  if (key == last_lane_) return lane_list_[last_lane_place_];
  const auto name_queue = [&](int64_t track) {
    if (queue != 0) writer_.property(Table::kTrack, track, "queue", std::to_string(static_cast<uint64_t>(queue)));
  };
  const auto [found, fresh] = lanes_.try_emplace(key, static_cast<int64_t>(lane_list_.size()));
  if (fresh) {
    // Only some events of a stream name its context or queue: annotations of torch.profiler's files lie on the line of
    // the others.
    std::array<int64_t, 5> stream_key = key;
    stream_key[2] = kUnknown;
    if (event.process.text.empty()) stream_key[4] = static_cast<int64_t>(owner.scope) << 32;
    const auto [of_stream, first] = streams_.try_emplace(stream_key, found->second);
    const auto place = static_cast<size_t>(of_stream->second);
    const bool without = !first && lane_list_[place].context == 0;
    if (!first && (context == 0 || without)) found.value() = of_stream->second;
    if (!first && event.context != kUnknown) device(index, event, owner.scope);
    if (without) {
      lane_list_[place].context = context;
      writer_.update(Table::kTrack, lane_list_[place].track, column::Track::context, context);
      name_queue(lane_list_[place].track);
    }
  }
  if (fresh && static_cast<size_t>(found->second) == lane_list_.size()) {
    Lane lane{.track = 0, .device = device(index, event, owner.scope), .process = owner.process, .context = context};
    lane.track = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                              .process = owner.process,
                                              .device = lane.device,
                                              .native = stream,
                                              .context = context,
                                              .name = writer_.string(fmt::format("stream {}", stream))});
    if (event.priority != kUnknown)
      writer_.property(Table::kTrack, lane.track, "priority", std::to_string(event.priority));
    name_queue(lane.track);
    owners_.track_made(lane.track, lane.process);
    lane_list_.push_back(lane);
  }
  last_lane_ = key;
  last_lane_place_ = static_cast<size_t>(found->second);
  return lane_list_[last_lane_place_];
}

// `grid` counts workgroups, as CUDA and HIP launches do.
int64_t Translator::kernel(const KernelFacts& facts, const int64_t (&grid)[3], const int64_t (&block)[3]) {
  row::Kernel row = imported::launch_of(facts.name, grid, block, false);
  row.registers = facts.registers;
  row.shared_dynamic = facts.shared;
  row.private_bytes = facts.private_bytes;
  row.graph = known(facts.graph);
  row.occupancy = facts.occupancy;
  return kernels_.row(writer_, row);
}

int64_t Translator::device_of_track(int64_t track) {
  if (last_lane_place_ >= lane_list_.size() || lane_list_[last_lane_place_].track != track) {
    const auto found =
        std::find_if(lane_list_.begin(), lane_list_.end(), [&](const Lane& lane) { return lane.track == track; });
    if (found == lane_list_.end()) return 0;
    return found->device;
  }
  return lane_list_[last_lane_place_].device;
}

// Adds a row, or keeps it until finish() if the profiler did not measure it or only an External id tells its cause.
template <typename Row>
void Translator::work(const Row& row, const Event& event, int64_t process, bool to_host) {
  if (imported::UnmeasuredRows::looks_so(row.start, row.duration)) return unmeasured_.take(row);
  unmeasured_.saw(row.start, row.duration);
  if (row.correlation != 0 || event.external == kUnknown || event.external <= 0)
    return write({.process = process, .device = device_of_track(row.track), .to_host = to_host}, row);
  if constexpr (Row::kTable == Table::kDispatch)
    tied_dispatches_.add({{process, event.external}, row});
  else if constexpr (Row::kTable == Table::kCopy)
    tied_copies_.add({{process, event.external}, row});
  else
    tied_fills_.add({{process, event.external}, row});
}

// What torch.distributed says about a collective, as src/ranks reads it back (stated_by()).
void Translator::put_collective(const Event::Collective& told) {
  if (told.name.empty() && told.group.empty() && told.sequence.empty() && told.communicator.empty()) return;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    if (!text_.empty()) text_ += ", ";
    text_.append(name).append("=").append(value);
  };
  const auto add_number = [&](std::string_view name, int64_t value) {
    if (value != kUnknown) add(name, std::to_string(value));
  };
  add("Collective name", told.name);
  add_number("In msg nelems", told.in_elements);
  add_number("Out msg nelems", told.out_elements);
  add_number("Group size", told.group_size);
  add("dtype", told.type);
  add("In split size", told.in_split);
  add("Out split size", told.out_split);
  add("Process Group Name", told.group);
  add("Process Group Description", told.group_description);
  add("Seq", told.sequence);
  add("Comms Id", told.communicator);
  add("Process Group Ranks", told.members);
}

// The annotations of a graph's node as a JSON object: {"name":"attention","module_fqn":"layers.0.attention"}.
void Translator::put_annotations(const Event& event) {
  if (!text_.empty()) text_ += ", annotations=";
  JsonWriter json(text_, kCompactJson);
  json.begin_object();
  for (const Event::Annotation& each : event.annotations) {
    json::JsonTokens::unescape(each.name, key_);
    json::JsonTokens::unescape(each.value.substr(1, each.value.size() - 2), value_);
    json.key(key_).value(value_);
  }
  json.end_object();
}

// The cell of column `arguments`: what torch tells of a kernel's collective and of its node in a graph, else the text
// that tacho wrote.
int64_t Translator::arguments(const Event& event) {
  constexpr size_t kMostText = size_t{8} << 20;  // bytes of different annotations, so that names keep their room
  text_.clear();
  put_collective(event.collective);
  const bool annotated = event.graph_node > 0 && !event.annotations.empty();
  if (annotated && annotation_bytes_ >= kMostText)
    ++annotations_left_out_;
  else if (annotated)
    put_annotations(event);
  if (text_.empty()) return event.arguments.empty() ? 0 : writer_.string(event.arguments);
  const int64_t before = writer_.rows(Table::kString), row = writer_.string(text_);
  if (annotated && writer_.rows(Table::kString) > before) annotation_bytes_ += text_.size();
  return row;
}

void Translator::finish_annotations() {
  if (annotated_fills_ > 0)
    writer_.note(0, event::NoteSeverity::kInfo,
                 fmt::format("the annotations of {} in CUDA graphs are not kept: only kernels and copies have a column "
                             "for them",
                             annotated_fills_ == 1 ? "1 fill" : fmt::format("{} fills", annotated_fills_)));
  if (annotations_left_out_ > 0)
    writer_.note(
        0, event::NoteSeverity::kWarning,
        fmt::format("different annotations of nodes in CUDA graphs took 8 MiB, the most that are kept: {} "
                    "without annotations",
                    annotations_left_out_ == 1 ? "1 kernel or copy is"
                                               : fmt::format("{} kernels and copies are", annotations_left_out_)));
}

void Translator::kernel_event(const Event& event) {
  const KernelFacts facts{.name = writer_.string(event.name),
                          .registers = event.registers,
                          .shared = event.shared,
                          .private_bytes = event.private_bytes,
                          .graph = event.graph,
                          .occupancy = event.occupancy};
  const Lane on = lane(event);
  row::Dispatch row{.track = on.track,
                    .start = event.time,
                    .duration = event.duration,
                    .dim = 0,
                    .correlation = known(event.correlation),
                    .graph_node = known(event.graph_node),
                    .arguments = arguments(event)};
  if (event.block[0] == kUnknown && row.correlation != 0) {
    deferred_.add({{on.process, row.correlation}, row, facts});
    return;
  }
  row.dim = kernel(facts, event.grid, event.block);
  work(row, event, on.process);
}

void Translator::copy(const Event& event) {
  using event::CopyDirection;
  const CopyDirection direction = imported::copy_direction(event.name);
  const imported::MemoryEnds ends = imported::memory_ends(event.name);
  const Lane on = lane(event);
  row::CopyShape shape = imported::copy_shape(direction, on.device, ends.from, ends.to);
  if (direction == CopyDirection::kPeerToPeer && event.from_device != kUnknown && event.to_device != kUnknown) {
    const Owners::ScopeId scope = owners_.owner(event).scope;
    shape.source_device = device(event.from_device, event, scope);
    shape.target_device = device(event.to_device, event, scope);
  }
  work(row::Copy{.track = on.track,
                 .start = event.time,
                 .duration = event.duration,
                 .dim = copy_shapes_.row(writer_, shape),
                 .correlation = known(event.correlation),
                 .bytes = event.bytes >= 0 ? event.bytes : kUnknown,
                 .graph_node = known(event.graph_node),
                 .arguments = arguments(event)},
       event, on.process, direction == CopyDirection::kDeviceToHost);
}

void Translator::fill(const Event& event) {
  const Lane on = lane(event);
  if (event.graph_node > 0 && !event.annotations.empty()) ++annotated_fills_;
  const int64_t shape =
      writer_.dimension(row::FillShape{.memory = imported::memory_ends(event.name).to, .device = on.device});
  work(row::Fill{.track = on.track,
                 .start = event.time,
                 .duration = event.duration,
                 .dim = shape,
                 .correlation = known(event.correlation),
                 .bytes = event.bytes >= 0 ? event.bytes : kUnknown,
                 .graph_node = known(event.graph_node)},
       event, on.process);
}

// Counters of one replayed kernel: a range on the GPU with a value for each counter.
void Translator::counters(const Event& event) {
  const int64_t track = lane(event).track;
  range(event, track, event::MarkerKind::kStartStop);
  bad_values(Table::kCounterValue, event);
  for (const Event::Value& value : event.values) {
    const int64_t counter =
        writer_.dimension(row::Counter{.name = writer_.string(value.name), .block = writer_.string(event.category)});
    writer_.add(row::CounterValue{.track = track,
                                  .start = event.time,
                                  .ordinal = ordinal_,
                                  .dim = counter,
                                  .value = static_cast<int64_t>(__builtin_bit_cast(uint64_t, value.value))});
  }
  ++ordinal_;
}

// Processes that stand for a GPU

namespace {

// What stands behind "name:" in details such as "regs:32 static_shared:0 grid:8,1,1".
std::string_view detail_text(std::string_view details, std::string_view name, int which = 0) {
  size_t at = 0;
  while (true) {
    at = details.find(name, at);
    if (at == std::string_view::npos) return {};
    const size_t colon = at + name.size();
    const bool whole = (at == 0 || details[at - 1] == ' ') && colon < details.size() && details[colon] == ':';
    at = colon;
    if (!whole) continue;
    std::string_view text = details.substr(colon + 1, details.find(' ', colon) - colon - 1);
    for (; which > 0; --which) {
      const size_t comma = text.find(',');
      if (comma == std::string_view::npos) return {};
      text.remove_prefix(comma + 1);
    }
    return text.substr(0, text.find(','));
  }
}

int64_t detail(std::string_view details, std::string_view name, int which = 0) {
  int64_t value = kUnknown;
  return json::integer(detail_text(details, name, which), value) ? value : kUnknown;
}

}  // namespace

// Events without a category may be work of the GPU that their process stands for, as XLA and others name it. True if
// it was, or if the process has no name yet and the event waits for it.
bool Translator::may_be_device_line(const Event& event) {
  return owners_.gpu_of(event.process) != kUnknown || (!owners_.is_named(event.process) && event.process.number <= 255);
}

bool Translator::device_line(const Event& event) {
  if (!may_be_device_line(event)) return false;
  const int64_t gpu = owners_.gpu_of(event.process);
  Nameless each{.block_scope = owners_.block(),
                .pid = owners_.number(event.process),
                .tid = owners_.number(event.thread),
                .time = event.time,
                .duration = event.duration,
                .name = writer_.string(event.name),
                .correlation = known(event.correlation),
                .bytes = event.bytes,
                .grid = {event.grid[0], event.grid[1], event.grid[2]},
                .block = {event.block[0], event.block[1], event.block[2]},
                .registers = event.registers,
                .shared = event.shared,
                .static_shared = kUnknown,
                .private_bytes = event.private_bytes,
                .occupancy = event.occupancy,
                .direction = imported::copy_direction(event.name),
                .copies = !event.memcpy_details.empty() || event.name.find("emcpy") != std::string_view::npos,
                .fills = event.name.find("emset") != std::string_view::npos,
                .work = !event.kernel_details.empty() || !event.memcpy_details.empty()};
  if (!event.kernel_details.empty()) {
    for (int i = 0; i < 3; ++i) {
      each.grid[i] = detail(event.kernel_details, "grid", i);
      each.block[i] = detail(event.kernel_details, "block", i);
    }
    each.registers = detail(event.kernel_details, "regs");
    percent(detail_text(event.kernel_details, "occ_pct"), each.occupancy);
    each.static_shared = detail(event.kernel_details, "static_shared");
    each.shared = detail(event.kernel_details, "dynamic_shared");
  }
  if (!event.memcpy_details.empty()) each.bytes = detail(event.memcpy_details, "size");
  if (gpu == kUnknown)
    nameless_.add(each);
  else
    device_event(each, event.process, event.thread, gpu);
  return true;
}

void Translator::device_event(const Nameless& each, const Id& pid, const Id& tid, int64_t gpu) {
  const Owners::LineName line = owners_.line_name(pid, tid);
  if (gpu == kUnknown || (!each.work && line.text != 0 && !line.is_queue)) {
    const int64_t dim = labels_.row(writer_, row::Label{.name = each.name, .kind = event::MarkerKind::kPushPop});
    writer_.add(row::Marker{
        .track = owners_.thread_track(pid, tid), .start = each.time, .duration = each.duration, .dim = dim});
    return;
  }
  const int64_t process = owners_.device_process(pid), tid_number = owners_.number(tid);
  const auto [found, fresh] =
      lanes_.try_emplace({gpu, tid_number, kUnknown, process, 0}, static_cast<int64_t>(lane_list_.size()));
  if (fresh) {
    Lane lane{.track = 0, .device = owners_.tracker().device(gpu, owners_.scope_of(pid)), .process = process};
    const int64_t name = line.text != 0 ? line.text : writer_.string(fmt::format("stream {}", tid_number));
    lane.track = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                              .process = process,
                                              .device = lane.device,
                                              .native = tid_number,
                                              .name = name});
    owners_.track_made(lane.track, process);
    owners_.name_later(lane.track, pid, tid);
    lane_list_.push_back(lane);
  }
  const Lane& on = lane_list_[static_cast<size_t>(found->second)];
  if (each.copies) {
    const int64_t dim = copy_shapes_.row(writer_, imported::copy_shape(each.direction, on.device));
    writer_.add(row::Copy{.track = on.track,
                          .start = each.time,
                          .duration = each.duration,
                          .dim = dim,
                          .correlation = each.correlation,
                          .bytes = each.bytes});
  } else if (each.fills) {
    const int64_t dim = writer_.dimension(row::FillShape{.device = on.device});
    writer_.add(row::Fill{.track = on.track,
                          .start = each.time,
                          .duration = each.duration,
                          .dim = dim,
                          .correlation = each.correlation,
                          .bytes = each.bytes});
  } else {
    row::Kernel kernel = imported::launch_of(each.name, each.grid, each.block, false);
    kernel.registers = each.registers;
    kernel.shared_static = each.static_shared;
    kernel.shared_dynamic = each.shared;
    kernel.private_bytes = each.private_bytes;
    kernel.occupancy = each.occupancy;
    writer_.add(row::Dispatch{.track = on.track,
                              .start = each.time,
                              .duration = each.duration,
                              .dim = kernels_.row(writer_, kernel),
                              .correlation = each.correlation});
  }
}

Status Translator::finish_nameless() {
  TACHO_TRY(nameless_.finish());
  const Owners::ScopeId last = owners_.block();
  Nameless each;
  while (nameless_.next(each)) {
    owners_.in_block(static_cast<Owners::ScopeId>(each.block_scope));
    const Id pid = owners_.id_of(each.pid), tid = owners_.id_of(each.tid);
    device_event(each, pid, tid, owners_.gpu_of(pid));
  }
  owners_.in_block(last);
  return {};
}

}  // namespace tacho::format::kineto
