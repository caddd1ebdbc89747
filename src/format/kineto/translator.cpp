// Turns the events of a Chrome trace into rows: Kineto's categories, and ranges with names for everything else.
#include "format/kineto/translator.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <span>

#include "base/saturating.h"
#include "event/times.h"
#include "format/import/words.h"
#include "trace/read/operator_causes.h"
#include "vendor/call_roles.h"

namespace tacho::format::kineto {

using event::Domain;
using event::kUnknown;
using event::Table;
namespace column = event::column;
namespace row = event::row;

namespace {

// What tacho writes as args.end of an event that was open when its recording ended; its "dur" lasts until there.
constexpr std::string_view kOpenEnd = "not recorded";

bool is_time(int64_t time) {
  return time != kUnknown && event::is_time(time);
}

// Tells ids apart. Texts do not get numbers as those of processes do: a file may have a new one for every request.
int64_t key_of(const Id& id) {
  return id.text.empty() ? id.number : static_cast<int64_t>(std::hash<std::string_view>()(id.text));
}

// Backends outside of PyTorch have categories of their own. Only work tells of a device and one of its streams beside
// the call that caused it; so do records of CUDA's events, which take no time there.
Meaning meaning_of_event(const Event& event) {
  const Meaning said = meaning_of(event.category);
  const auto told = [](int64_t cell) { return cell != kUnknown; };
  if (said != Meaning::kRange || !told(event.device) || !told(event.stream) || !told(event.correlation) ||
      event.correlation == 0 || event.category == "cuda_event")
    return said;
  if (event.name.find("emcpy") != std::string_view::npos) return Meaning::kCopy;
  return event.name.find("emset") != std::string_view::npos ? Meaning::kFill : Meaning::kKernel;
}

bool is_work(Meaning meaning, const Event& event) {
  switch (meaning) {
    case Meaning::kKernel:
    case Meaning::kCopy:
    case Meaning::kFill:
    case Meaning::kDeviceRange:
      return true;
    case Meaning::kSync:
      return event.device != kUnknown;
    default:
      return false;
  }
}

}  // namespace

int64_t Translator::label(std::string_view name, std::string_view category, event::MarkerKind kind) {
  return labels_.row(writer_,
                     row::Label{.name = writer_.string(name), .kind = kind, .category = writer_.string(category)});
}

void Translator::bad_time(Table table, const Event& event) {
  bad_rows_.add(writer_, table, "its ts is missing, or no time within 73 years of 0", event.place, event.name);
}

void Translator::bad_values(Table table, const Event& event) {
  if (event.bad_values > 0)
    bad_rows_.add(writer_, table, "a counter's value is no number", event.place, event.name, event.bad_values);
  if (event.surplus_values > 0)
    bad_rows_.add(writer_, table, "the event has more than 4,096 values", event.place, event.name,
                  event.surplus_values);
}

void Translator::complete(Event& event) {
  if (event.end == kOpenEnd) event.duration = kUnknown;
  const Meaning meaning = meaning_of_event(event);
  if (!is_time(event.time)) return bad_time(table_of(meaning), event);
  if (is_work(meaning, event) && !settling_) {
    if (owners_.undecided()) return hold_work(event);
    if (!early_.empty()) release_early();
    if (owners_.waits_for_end(event)) return hold_until_end(event);
  }
  if (event.duration < 0 && event.duration != kUnknown)
    writer_.lose(0, table_of(meaning), event::LossReason::kClockOrder, 1);
  event.duration = event::known_duration(event.duration);
  if (event.name.empty()) event.name = "(no name)";
  switch (meaning) {
    case Meaning::kKernel:
      return kernel_event(event);
    case Meaning::kCopy:
      return copy(event);
    case Meaning::kFill:
      return fill(event);
    case Meaning::kDeviceRange:
      return range(event, lane(event).track, event::MarkerKind::kStartStop);
    case Meaning::kCounters:
      return counters(event);
    default:
      return host_event(event, meaning);
  }
}

void Translator::host_event(const Event& event, Meaning meaning) {
  if (meaning == Meaning::kRange && event.category.empty() && device_line(event)) return;
  if ((meaning == Meaning::kCall || meaning == Meaning::kOperator) && !settling_)
    owners_.host_seen(event, meaning == Meaning::kCall);
  if (meaning == Meaning::kRange && event.external > 0 && !settling_) owners_.range_seen(event);
  owners_.event_seen(event.time);
  unmeasured_.saw(event.time, event.duration);
  if (meaning == Meaning::kSync) return sync(event);
  const int64_t track = owners_.thread_track(event.process, event.thread);
  switch (meaning) {
    case Meaning::kCall:
      return call(event, track);
    case Meaning::kOperator:
      return framework_operator(event, track);
    case Meaning::kPython:
      return api(event, track, Domain::kPython, 0);
    case Meaning::kOverhead:
      writer_.add(row::Overhead{.track = track,
                                .start = event.time,
                                .duration = event.duration,
                                .dim = writer_.dimension(row::OverheadShape{.kind = event::OverheadKind::kProfiler,
                                                                            .name = writer_.string(event.name)}),
                                .correlation = known(event.correlation)});
      return;
    default:
      // Anything else is a range with a name: user annotations, events without category, other tools' categories.
      return range(event, track, event::MarkerKind::kPushPop);
  }
}

void Translator::call(const Event& event, int64_t track) {
  const int64_t of = owners_.process_of_track(track);
  int64_t correlation = known(event.correlation);
  if (event.block[0] != kUnknown && event.correlation != kUnknown)
    launches_.add({of, event.correlation}, {{event.grid[0], event.grid[1], event.grid[2]},
                                            {event.block[0], event.block[1], event.block[2]},
                                            event.shared});
  if (correlation != 0) {
    call_times_.add({of, correlation}, {event.time, event.time + std::max<int64_t>(event.duration, 0)});
    work_times_.call({.process = of,
                      .correlation = correlation,
                      .start = event.time,
                      .end = event.duration > 0 ? event.time + event.duration : kUnknown,
                      .role = vendor::call_role(event.name)});
  } else if (event.external > 0) {
    correlation = kExternal + event.external;
    external_calls_.add({of, event.external}, correlation);
  }
  api(event, track, domain_of_call(event.category, event.name), correlation);
}

void Translator::framework_operator(const Event& event, int64_t track) {
  const int64_t own = ++next_operator_;
  if (event.sequence != kUnknown) operators_.add({track, event.time, event.duration, event.external, own});
  if (event.external > 0) operator_causes_.add({owners_.process_of_track(track), event.external}, own);
  api(event, track, Domain::kOperator, own, inputs_.row(event.inputs));
}

// Of ranges that begin together the outer one comes first in profilers' files, and so must the rows of a file in any
// other order: the longer one, or of equally long ones that which was numbered first.
template <typename Row>
void Translator::nest(SortedFile<Nesting<Row>>& held, const Row& row, const Event& event) {
  if (owners_.in_order()) return writer_.add(row);
  const int64_t ids[] = {event.python_id, event.external, event.correlation};
  const auto* const id = std::ranges::find_if(ids, [](int64_t each) { return each != kUnknown; });
  held.add({row, id != std::end(ids) ? *id : kUnknown});
}

Status Translator::finish_nesting() {
  const auto drain = [&]<typename Row>(SortedFile<Nesting<Row>>& held) -> Status {
    TACHO_TRY(held.finish());
    Nesting<Row> each;
    while (held.next(each)) writer_.add(each.row);
    return {};
  };
  TACHO_TRY(drain(nesting_calls_));
  return drain(nesting_ranges_);
}

void Translator::api(const Event& event, int64_t track, Domain domain, int64_t correlation, int64_t inputs) {
  const row::Api row{
      .track = track,
      .start = event.time,
      .duration = event.duration,
      .dim = functions_.row(writer_, row::Function{.name = writer_.string(event.name), .domain = domain}),
      .correlation = correlation,
      .arguments = event.arguments.empty() ? 0 : writer_.string(event.arguments),
      .inputs = inputs};
  nest(nesting_calls_, row, event);
}

void Translator::sync(const Event& event) {
  int64_t on = 0, unit = 0;
  if (event.device != kUnknown) {
    const Lane of = lane(event);
    on = of.track;
    unit = of.device;
  } else {
    on = owners_.thread_track(event.process, event.thread);
  }
  const int64_t shape = writer_.dimension(row::SyncShape{.kind = imported::sync_kind(event.name), .device = unit});
  writer_.add(row::Sync{.track = on,
                        .start = event.time,
                        .duration = event.duration,
                        .dim = shape,
                        .correlation = known(event.correlation)});
}

void Translator::range(const Event& event, int64_t track, event::MarkerKind kind) {
  const row::Marker row{
      .track = track, .start = event.time, .duration = event.duration, .dim = label(event.name, event.category, kind)};
  if (kind == event::MarkerKind::kPushPop)
    nest(nesting_ranges_, row, event);
  else
    writer_.add(row);
}

// Memory that a framework's allocator gave to a tensor, or took back. It makes no device: finish_tensors() ties it to
// one that ran work.
void Translator::tensor(const Event& event, int64_t track) {
  using event::AllocationOperation;
  const bool freed = event.bytes < 0;
  const AllocationOperation operation = event.name == "[OutOfMemory]" ? AllocationOperation::kOutOfMemory
                                        : freed                       ? AllocationOperation::kFree
                                                                      : AllocationOperation::kAllocate;
  const bool segment = event.name == "[memory segment]";  // tacho's own
  const bool on_device = event.device_type != kUnknown && event.device_type != 0;
  const int64_t index = on_device && event.device_id >= 0 ? event.device_id : -1;
  const Owners::ScopeId scope = index >= 0 ? owners_.host_devices(event.process) : 0;
  const auto [found, fresh] = tensor_shapes_.try_emplace(
      {scope, index, static_cast<int64_t>(operation) * 4 + (segment ? 2 : 0) + (on_device ? 1 : 0)}, 0);
  if (fresh) {
    // Until the device is known its number keeps the rows apart.
    const std::string name = index >= 0 ? fmt::format("tensor {} {}", scope, index) : "tensor";
    found.value() = writer_.dimension(
        row::AllocationShape{.operation = operation,
                             .memory = on_device ? event::MemoryKind::kDevice : event::MemoryKind::kHost,
                             .name = writer_.string(name),
                             .level = segment ? event::AllocationLevel::kSegment : event::AllocationLevel::kBlock});
  }
  const auto told = [](int64_t bytes) { return bytes >= 0 ? bytes : kUnknown; };
  writer_.add(row::Allocation{.track = track,
                              .start = event.time,
                              .duration = event.duration,
                              .dim = found->second,
                              .bytes = operation == AllocationOperation::kOutOfMemory ? kUnknown
                                       : freed                                        ? -event.bytes
                                                                                      : event.bytes,
                              .address = known(event.address),
                              .requested = operation == AllocationOperation::kOutOfMemory ? event.bytes : kUnknown,
                              .in_use = told(event.total_allocated),
                              .reserved = on_device ? told(event.total_reserved) : kUnknown});
}

Translator::DevicesAtWork Translator::devices_at_work(Owners::ScopeId scope) {
  constexpr int64_t kMost = 64;
  DevicesAtWork found;
  for (int64_t each = 0; each < kMost; ++each)
    if (owners_.tracker().has_device(each, scope)) {
      found.only = owners_.tracker().device(each, scope);
      ++found.count;
    }
  return found;
}

// Tensors make no device where any ran work. AMD's kernels are numbered by another list than its allocators: where one
// device ran work and one has tensors, they are the same.
void Translator::finish_tensors() {
  std::map<int64_t, std::set<int64_t>> indices;  // by scope
  for (const auto& [key, shape] : tensor_shapes_)
    if (key[1] >= 0) indices[key[0]].insert(key[1]);
  for (const auto& [scope, of_scope] : indices) {
    const auto owner = static_cast<Owners::ScopeId>(scope);
    const DevicesAtWork worked = devices_at_work(owner);
    for (const auto& [key, shape] : tensor_shapes_) {
      if (key[0] != scope || key[1] < 0) continue;
      writer_.update(Table::kAllocationShape, shape, column::AllocationShape::name, writer_.string("tensor"));
      int64_t device = 0;
      if (worked.count == 0 || owners_.tracker().has_device(key[1], owner))
        device = owners_.tracker().device(key[1], owner);
      else if (worked.count == 1 && of_scope.size() == 1)
        device = worked.only;
      if (device != 0) writer_.update(Table::kAllocationShape, shape, column::AllocationShape::device, device);
    }
  }
}

void Translator::readings(const Event& event) {
  if (!is_time(event.time)) return bad_time(Table::kReading, event);
  bad_values(Table::kReading, event);
  const std::string id = !event.id.given         ? std::string()
                         : event.id.text.empty() ? std::to_string(event.id.number)
                                                 : std::string(event.id.text);
  const int64_t gpu = imported::gpu_of_name(event.process.text);
  for (const Event::Value& value : event.values) {
    const int64_t track = owners_.tracker().counter_track(
        {.process = gpu != kUnknown ? owners_.main_process() : owners_.process(event.process),
         .gpu = gpu,
         .scope = owners_.block(),
         .name = event.name,
         .id = id,
         .series = value.name,
         .block = event.category});
    writer_.add(row::Reading{
        .track = track, .start = event.time, .value = static_cast<int64_t>(__builtin_bit_cast(uint64_t, value.value))});
  }
}

// ac2g arrows repeat the correlations; fwdbwd arrows tie a backward operator to its forward operator.
void Translator::arrow(const Event& event) {
  if (event.category != "fwdbwd" || !event.id.given || event.phase == "t") return;
  if (!is_time(event.time)) return bad_time(Table::kLink, event);
  flows_.add(
      {owners_.thread_track(event.process, event.thread), event.time, key_of(event.id), event.phase == "s" ? 1 : 0});
  any_flow_ = true;
}

// b, n, e and the older S, T, p, F: what belongs together has the same category, id and scope. Ids are a process's own
// unless they say that they are global.
void Translator::asynchronous(const Event& event, char phase) {
  if (!is_time(event.time)) return bad_time(Table::kMarker, event);
  if (!event.id.given)
    return bad_rows_.add(writer_, Table::kMarker, "an asynchronous event without an id", event.place, event.name);
  const int64_t process = owners_.process(event.process);
  const bool older = phase == 'S' || phase == 'T' || phase == 'p' || phase == 'F';
  const int64_t parts[] = {writer_.string(event.category),
                           key_of(event.id),
                           event.id.text.empty() ? 0 : 1,
                           writer_.string(event.scope),
                           event.global_id ? owners_.block() : process,
                           event.global_id ? 1 : 0,
                           older ? 1 : 0};
  uint64_t key = 0;
  for (const int64_t part : parts) {
    key = (key ^ static_cast<uint64_t>(part)) * 0x9e3779b97f4a7c15ULL;
    key ^= key >> 29;
  }
  const int64_t lane = static_cast<int64_t>(key), name = writer_.string(event.name);
  if (phase == 'e' || phase == 'F') return asynchronous_.end(lane, event.time, name, -1, event.place);
  const std::string_view line = event.category.empty() ? event.name : event.category;
  const int64_t track = async_lines_.row(writer_, row::Track{.kind = event::TrackKind::kRange,
                                                             .process = process,
                                                             .name = writer_.string(line),
                                                             .category = writer_.string("asynchronous")});
  if (phase == 'b' || phase == 'S')
    return asynchronous_.begin(lane, event.time, track,
                               label(event.name, event.category, event::MarkerKind::kStartStop), name);
  writer_.add(row::Marker{.track = track,
                          .start = event.time,
                          .duration = 0,
                          .dim = label(event.name, event.category, event::MarkerKind::kMark)});
}

void Translator::metadata(const Event& event) {
  if (event.name == "process_name" || event.name == "process_labels" || event.name == "thread_name" ||
      event.name == "tacho_process")
    owners_.name(event);
}

void Translator::unread(const Event& event) {
  if (event.phase.empty()) {
    if (event.any_member) owners_.tracker().unread("events without a phase");
    return;  // "{}" fills gaps in some writers' arrays
  }
  struct Kind {
    std::string_view phase, name;
  };
  static constexpr Kind kKinds[] = {{"O", "snapshots of objects (phase O)"}, {"N", "objects (phase N)"},
                                    {"D", "deleted objects (phase D)"},      {"P", "samples (phase P)"},
                                    {"V", "memory dumps (phase V)"},         {"v", "memory dumps (phase v)"}};
  for (const Kind& kind : kKinds)
    if (kind.phase == event.phase) return owners_.tracker().unread(kind.name);
  owners_.tracker().unread(fmt::format("events of phase \"{}\"", event.phase.substr(0, 20)));
}

void Translator::take(Event& event) {
  event.place = ++taken_;
  if (event.phase.size() != 1) return unread(event);
  switch (const char phase = event.phase.front()) {
    case 'X':
      return complete(event);
    case 'M':
      return metadata(event);
    case 'B':
      return range_begins(event);
    case 'E':
      return range_ends(event);
    case 'i':
    case 'I':
    case 'R': {
      if (event.end == kOpenEnd) return complete(event);
      if (!is_time(event.time)) return bad_time(Table::kMarker, event);
      event.duration = 0;
      const int64_t track = owners_.thread_track(event.process, event.thread);
      if (event.category == "cpu_instant_event" && event.bytes != kUnknown &&
          (event.name == "[memory]" || event.name == "[memory segment]" || event.name == "[OutOfMemory]"))
        return tensor(event, track);
      return range(event, track, event::MarkerKind::kMark);
    }
    case 'C':
      return readings(event);
    case 's':
    case 'f':
    case 't':
      return arrow(event);
    case 'b':
    case 'n':
    case 'e':
    case 'S':
    case 'T':
    case 'p':
    case 'F':
      return asynchronous(event, phase);
    default:
      return unread(event);
  }
}

int64_t Translator::nested_lane(const Event& event) {
  const std::array<int64_t, 4> key = {owners_.block(), owners_.number(event.process), owners_.number(event.thread),
                                      owners_.whose_line(event.process)};
  return nested_lanes_.try_emplace(key, static_cast<int64_t>(nested_lanes_.size())).first->second;
}

// B: work, a call or an operator is what X would be with the arguments of both ends, anything else a range.
void Translator::range_begins(const Event& event) {
  const Meaning meaning = meaning_of_event(event);
  if (!is_time(event.time)) return bad_time(table_of(meaning), event);
  const int64_t name = writer_.string(event.name);
  if (meaning == Meaning::kRange && !(event.category.empty() && may_be_device_line(event))) {
    const int64_t track = owners_.thread_track(event.process, event.thread);
    return nested_.begin(nested_lane(event), event.time, track,
                         label(event.name, event.category, event::MarkerKind::kPushPop), name);
  }
  HeldEvents::Whose whose;
  if (meaning == Meaning::kCall || meaning == Meaning::kOperator)
    owners_.host_seen(event, meaning == Meaning::kCall);
  else if (meaning != Meaning::kRange)
    whose.owner = owners_.owner(event);
  whose.block = owners_.block();
  nested_.begin_held(nested_lane(event), event.time, held_.add(event, whose), name);
}

void Translator::range_ends(const Event& event) {
  if (!is_time(event.time)) return bad_time(Table::kMarker, event);
  const int64_t held = event.any_argument ? held_.add(event, {}) : -1;
  nested_.end(nested_lane(event), event.time, writer_.string(event.name), held, event.place);
}

Status Translator::finish_ranges() {
  TACHO_TRY(std::move(early_status_));
  keep_early();
  TACHO_TRY(held_.finish());
  const Owners::ScopeId last = owners_.block();
  Event event;
  settling_ = true;
  TACHO_TRY(nested_.finish(writer_, bad_rows_, [&](int64_t begin, int64_t end, int64_t start, int64_t until) -> Status {
    TACHO_ASSIGN(const HeldEvents::Whose whose, held_.get(begin, end, event));
    event.time = start;
    event.duration = until == kUnknown ? kUnknown : event::duration_between(start, until);
    owners_.in_block(whose.block);
    owners_.owned_by_all(whose.owner.process != 0 ? &whose.owner : nullptr);
    complete(event);
    return {};
  }));
  TACHO_TRY(call_times_.finish());
  TACHO_TRY(finish_work());
  owners_.owned_by_all(nullptr);
  owners_.in_block(last);
  settling_ = false;
  return asynchronous_.finish(writer_, bad_rows_);
}

void Translator::hold_work(const Event& event) {
  HeldEvents::Whose whose{.block = owners_.block()};
  if (!owners_.waits_for_end(event)) whose.owner = owners_.owner(event);
  const int64_t device = event.device != kUnknown ? event.device : event.process.number;
  constexpr size_t kMostEarly = 4096;
  HeldWork work{event.time, 0, event.correlation, device};
  if (early_.size() < kMostEarly) return early_.push_back({std::string(event.text), whose, work});
  work.place = held_.add(event, whose);
  held_work_.add(work);
}

void Translator::hold_until_end(const Event& event) {
  const int64_t device = event.device != kUnknown ? event.device : event.process.number;
  held_work_.add({event.time, held_.add(event, {.block = owners_.block()}), event.correlation, device});
}

// The file keeps an order: work that came before it showed that is whose its order said.
void Translator::release_early() {
  std::vector<EarlyWork> released;
  released.swap(early_);
  const Owners::ScopeId last = owners_.block();
  Event event;
  settling_ = true;
  for (EarlyWork& each : released) {
    if (Status parsed = held_.parse(each.text, event); !parsed) {
      early_status_ = std::move(parsed);
      break;
    }
    owners_.in_block(each.whose.block);
    if (each.whose.owner.process == 0 && owners_.waits_for_end(event)) {
      hold_until_end(event);
      continue;
    }
    owners_.owned_by_all(each.whose.owner.process != 0 ? &each.whose.owner : nullptr);
    complete(event);
  }
  owners_.owned_by_all(nullptr);
  owners_.in_block(last);
  settling_ = false;
}

void Translator::keep_early() {
  for (EarlyWork& each : early_) {
    Event event;
    event.text = each.text;
    each.work.place = held_.add(event, each.whose);
    held_work_.add(each.work);
  }
  early_.clear();
}

// The GPUs that only one process uses, as work tells whose correlation only one process's calls have.
std::map<int64_t, size_t> Translator::hosts_of_devices(std::span<const HeldWork> work) {
  constexpr size_t kMostHosts = 64;
  const std::vector<int64_t> hosts = owners_.host_rows();
  std::map<int64_t, std::vector<size_t>> votes;
  if (hosts.size() > kMostHosts) return {};
  for (const HeldWork& each : work) {
    if (known(each.correlation) == 0) continue;
    size_t only = hosts.size(), callers = 0;
    for (size_t host = 0; host < hosts.size() && callers < 2; ++host)
      if (call_times_.find({hosts[host], each.correlation}) != nullptr) {
        only = host;
        ++callers;
      }
    if (callers != 1) continue;
    std::vector<size_t>& of_device = votes[each.device];
    of_device.resize(hosts.size());
    ++of_device[only];
  }
  std::map<int64_t, size_t> found;
  for (const auto& [device, of_device] : votes) {
    const auto most = std::ranges::max_element(of_device);
    if (static_cast<size_t>(std::ranges::count(of_device, size_t{0})) + 1 == of_device.size())
      found[device] = static_cast<size_t>(most - of_device.begin());
  }
  return found;
}

Result<SortedFile<Translator::TimedCall>> Translator::calls_by_time() {
  std::map<int64_t, size_t> places;  // of hosts, by row
  for (const int64_t host : owners_.host_rows()) places.try_emplace(host, places.size());
  SortedFile<TimedCall> calls;
  for (const auto& [key, times] : call_times_.entries())
    if (const auto place = places.find(key.process); place != places.end())
      calls.add({times.start, key.id, place->second});
  TACHO_TRY(calls.finish());
  return calls;
}

// Work that was held: in the order in which it came, or, if the file has none, in order of time.
Status Translator::finish_work() {
  TACHO_TRY(held_work_.finish_indexed());
  const std::span<const HeldWork> work = held_work_.all();
  const bool shuffled = owners_.shuffled();
  SortedFile<int64_t> places;
  if (shuffled) {
    owners_.replay(hosts_of_devices(work));
  } else {
    for (const HeldWork& each : work) places.add(each.place);
  }
  TACHO_TRY(places.finish());
  Event event;
  const auto settle = [&](int64_t place) -> Status {
    TACHO_ASSIGN(const HeldEvents::Whose whose, held_.get(place, -1, event));
    owners_.in_block(whose.block);
    const bool told = !shuffled && whose.owner.process != 0;
    Owners::Owner owner = whose.owner;
    if (!told && known(event.correlation) == 0) owner = owners_.owner_at_end(event);
    owners_.owned_by_all(told || known(event.correlation) == 0 ? &owner : nullptr);
    complete(event);
    return {};
  };
  int64_t place = 0;
  while (places.next(place)) TACHO_TRY(settle(place));
  if (!shuffled) return {};
  constexpr int64_t kSlack = 10'000'000;  // ns; a GPU's clock may be behind the host's
  TACHO_ASSIGN(SortedFile<TimedCall> calls, calls_by_time());
  TimedCall call{};
  bool more = calls.next(call);
  for (const HeldWork& each : work) {
    if (known(each.correlation) == 0) continue;
    for (; more && call.time <= saturating_add(each.time, kSlack); more = calls.next(call))
      owners_.call_seen(call.correlation, call.time, call.host);
    TACHO_TRY(settle(each.place));
  }
  // Nothing but the GPU tells whose the others are.
  for (const HeldWork& each : work)
    if (known(each.correlation) == 0) TACHO_TRY(settle(each.place));
  return {};
}

Status Translator::finish_deferred() {
  TACHO_TRY(launches_.finish());
  TACHO_TRY(deferred_.finish());
  Deferred waiting;
  static constexpr int64_t kNothing[3] = {kUnknown, kUnknown, kUnknown};
  const Event untied;  // their correlation ties them
  while (deferred_.next(waiting)) {
    const auto* const launch = launches_.find(waiting.call);
    if (launch != nullptr && waiting.facts.shared == kUnknown) waiting.facts.shared = launch->value.shared;
    waiting.row.dim = launch != nullptr ? kernel(waiting.facts, launch->value.grid, launch->value.block)
                                        : kernel(waiting.facts, kNothing, kNothing);
    work(waiting.row, untied, waiting.call.process);
  }
  return {};
}

// Work that only an External id ties to its cause: to the call that has it, else to the operator.
Status Translator::finish_tied() {
  TACHO_TRY(external_calls_.finish());
  TACHO_TRY(operator_causes_.finish());
  std::set<int64_t> processes;  // with work that operators caused
  const auto drain = [&]<typename Row>(SortedFile<Tied<Row>>& tied) -> Status {
    TACHO_TRY(tied.finish());
    Tied<Row> each;
    while (tied.next(each)) {
      if (const auto* const call = external_calls_.find(each.cause)) {
        each.row.correlation = call->value;
      } else if (const auto* const cause = operator_causes_.find(each.cause)) {
        each.row.correlation = cause->value;
        processes.insert(each.cause.process);
      }
      writer_.add(each.row);
    }
    return {};
  };
  TACHO_TRY(drain(tied_dispatches_));
  TACHO_TRY(drain(tied_copies_));
  TACHO_TRY(drain(tied_fills_));
  for (const int64_t process : processes) writer_.property(Table::kProcess, process, trace::kCausedByOperators, "1");
  return {};
}

// An arrow's ends are at the starts of its operators; both lists come in order of (thread, time).
Status Translator::finish_flows() {
  if (!any_flow_) return {};
  TACHO_TRY(flows_.finish());
  TACHO_TRY(operators_.finish());
  SortedFile<End> ends;
  Flow flow;
  Operator op{}, candidate;
  bool have = operators_.next(candidate);
  while (flows_.next(flow)) {
    while (have &&
           (candidate.thread < flow.thread || (candidate.thread == flow.thread && candidate.time <= flow.time))) {
      op = candidate;
      have = operators_.next(candidate);
    }
    if (op.correlation != 0 && op.thread == flow.thread && op.time == flow.time)
      ends.add({{owners_.process_of_track(flow.thread), flow.id}, flow.begin, op.correlation});
  }
  TACHO_TRY(ends.finish());
  End end, begin{};
  bool open = false;
  while (ends.next(end)) {
    if (end.begin == 1) {
      begin = end;
      open = true;
    } else if (open && begin.flow == end.flow) {
      writer_.add(row::Link{.kind = event::LinkKind::kFlow,
                            .process = end.flow.process,
                            .from = begin.correlation,
                            .to = end.correlation});
    }
  }
  return {};
}

Status Translator::finish() {
  owners_.give_names();
  TACHO_TRY(finish_ranges());
  TACHO_TRY(finish_nameless());
  TACHO_TRY(finish_nesting());
  TACHO_TRY(finish_deferred());
  TACHO_TRY(finish_tied());
  TACHO_TRY(unmeasured_.finish(writer_, [&](int64_t track, int64_t correlation) {
    const auto* const call =
        correlation != 0 ? call_times_.find({owners_.process_of_track(track), correlation}) : nullptr;
    return call != nullptr ? call->value.end : kUnknown;
  }));
  TACHO_TRY(finish_flows());
  finish_tensors();
  finish_annotations();
  TACHO_TRY(work_times_.compare_far([&](int64_t of, int64_t correlation) {
    // Of several windows of one process the earliest: what is behind it may be of a later one.
    const std::span calls = call_times_.entries();
    const auto* call = call_times_.find({of, correlation});
    int64_t start = kUnknown;
    for (; call != nullptr && call < calls.data() + calls.size() && call->key == OwnedId{of, correlation}; ++call)
      start = start == kUnknown ? call->value.start : std::min(start, call->value.start);
    return start;
  }));
  work_times_.finish(0);
  inputs_.finish();
  owners_.finish();
  bad_rows_.say(writer_);
  return {};
}

}  // namespace tacho::format::kineto
