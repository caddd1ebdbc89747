// Makes rows of GPUs' events (gpu_events.h).
#include "format/perfetto/read/gpu_events.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/format.h"
#include "event/times.h"
#include "format/import/words.h"
#include "format/perfetto/counter_units.h"
#include "format/perfetto/wire.h"

namespace tacho::format::perfetto {

using event::kUnknown;
using event::LossReason;
using event::Table;
namespace row = event::row;

namespace {

bool spec_counts_kernels(std::string_view spec) {
  bool kernels = false, forwards = false;
  for (WireFields field(spec); field.next();) {
    if (field.number() == spec_groups) field.each_number([&](uint64_t group) { kernels |= group == kGroupCompute; });
    if (field.number() == spec_direction) forwards = field.value() == kForwardsLooking;
  }
  return kernels && forwards;
}

// A unit that Perfetto does not have stands at the end of tacho's descriptions: "Waves. Unit: waves".
void take_own_unit(std::string& text, std::string& unit) {
  const size_t at = text.rfind(kUnitBefore);
  if (!unit.empty() || at == std::string::npos || (at > 0 && text[at - 1] != ' ')) return;
  unit = text.substr(at + kUnitBefore.size());
  text.resize(at > 0 ? at - 1 : 0);
}

// {x, y, z} of a Dim3; a dimension that is not written is 0, which means 1.
void put_extent(int64_t (&extent)[3], std::string_view message) {
  std::fill(std::begin(extent), std::end(extent), 1);
  for (WireFields field(message); field.next();)
    if (field.number() >= 1 && field.number() <= 3 && field.value() > 0)
      extent[field.number() - 1] = static_cast<int64_t>(std::min<uint64_t>(field.value(), UINT32_MAX));
}

}  // namespace

bool counts_kernels(std::string_view interned_descriptor) {
  for (WireFields field(interned_descriptor); field.next();)
    if (field.number() == counter_descriptor)
      for (WireFields spec(field.bytes()); spec.next();)
        if (spec.number() == descriptor_specs && spec_counts_kernels(spec.bytes())) return true;
  return false;
}

void GpuEvents::launch(const EventPacket& packet, std::string_view message, Stage& stage) {
  for (WireFields field(message); field.next();) {
    if (field.number() == launch_grid || field.number() == launch_group) {
      stage.launched = true;
      put_extent(field.number() == launch_grid ? facts_.grid : facts_.group, field.bytes());
      if (field.number() == launch_grid) facts_.grid_in_items = false;
    }
    if (field.number() != launch_arguments || packet.interned == nullptr) continue;
    const ComputeArgument argument = compute_argument(field.bytes(), *packet.interned);
    FactValue value;
    value.is_number = argument.is_number;
    value.number = argument.number;
    value.text = argument.text;
    value.row = argument.known.text;
    value.agent = argument.known.agent;
    value.cpu = argument.known.cpu;
    if (argument.key == FactKey::kMemoryKind) stage.memory = imported::memory_kind(argument.text);
    put_fact(facts_, argument.key, value, writer_);
  }
}

void GpuEvents::extra(std::string_view message, Stage& stage) {
  std::string_view name;
  FactValue value;
  for (WireFields field(message); field.next();) {
    if (field.number() == extra_name) name = field.bytes();
    if (field.number() == extra_value) value.text = field.bytes();
  }
  const FactKey key = fact_key(name);
  const auto number = [&] {
    int64_t parsed = kUnknown;
    std::from_chars(value.text.data(), value.text.data() + value.text.size(), parsed);
    return parsed;
  };
  if (key == FactKey::kCollective) return put_collective(facts_, name, value.text);
  if (key == FactKey::kProcessId) stage.extra_process = number();
  if (key == FactKey::kArchitecture) stage.architecture = writer_.string(value.text);
  if (key == FactKey::kMemoryKind) stage.memory = imported::memory_kind(value.text);
  put_fact(facts_, key, value, writer_);
}

// Which pid a context has, and the names of queues and stages, as drivers of phones write them once in a trace.
void GpuEvents::specifications(std::string_view message) {
  constexpr size_t kMost = 4096;
  for (WireFields field(message); field.next();) {
    if (!field.is_bytes()) continue;
    uint64_t context = 0;
    int64_t pid = 0;
    std::string_view name;
    for (WireFields inner(field.bytes()); inner.next();) {
      if (inner.number() == 1 && inner.is_number()) context = inner.value();
      if (inner.number() == 2 && inner.is_number()) pid = static_cast<int32_t>(inner.value());
      if (inner.number() == 1 && inner.is_bytes()) name = inner.bytes();
    }
    if (field.number() == specifications_context && old_contexts_.size() < kMost) old_contexts_[context] = pid;
    if (field.number() != specifications_queue && field.number() != specifications_stage) continue;
    StageWords words = stage_words(name, 0);
    words.text = writer_.string(name);
    auto& list = field.number() == specifications_queue ? old_queues_ : old_stages_;
    if (list.size() < kMost) list.push_back(words);
  }
}

void GpuEvents::parse(const EventPacket& packet, std::string_view message, Stage& stage) {
  stage = {};
  stage.extra_process = stage.extra_context = kUnknown;
  facts_ = {};
  const InternedData* const interned = packet.interned;
  const auto old = [](const std::vector<StageWords>& list, uint64_t at) {
    return at < list.size() ? list[at] : StageWords();
  };
  for (WireFields field(message); field.next();) {
    switch (field.number()) {
      case stage_event_id:
        stage.event_id = field.value();
        stage.has_event_id = true;
        break;
      case stage_duration:
        stage.duration = field.value();
        stage.has_duration = true;
        break;
      case stage_gpu:
        stage.gpu = static_cast<uint64_t>(std::max<int32_t>(static_cast<int32_t>(field.value()), 0));
        break;
      case stage_context:
        stage.context = field.value();
        break;
      case stage_queue_iid:
      case stage_logical_queue:
      case stage_queue_id:
        stage.queue = field.value();
        stage.has_queue = true;
        break;
      case stage_stage_iid:
        if (interned != nullptr)
          if (const StageWords* const words = interned->stages.find(field.value())) stage.stage = *words;
        break;
      case stage_stage_id:
        stage.stage = old(old_stages_, field.value());
        break;
      case stage_name:
        stage.name = name_words(field.bytes());
        stage.name.text = writer_.string(field.bytes());
        stage.has_name = true;
        break;
      case stage_name_iid:
        if (interned != nullptr)
          if (const EventName* const name = interned->names.find(field.value())) {
            stage.name = *name;
            stage.has_name = true;
          }
        break;
      case stage_kernel_iid:
        stage.launched = true;
        if (interned != nullptr)
          if (const ComputeKernel* const kernel = interned->kernels.find(field.value())) stage.kernel = *kernel;
        break;
      case stage_launch:
        launch(packet, field.bytes(), stage);
        break;
      case stage_waits:
        field.each_number([&](uint64_t) { ++stage.waits; });
        break;
      case stage_extra:
        extra(field.bytes(), stage);
        break;
      case stage_specifications:
        specifications(field.bytes());
        break;
      default:
        break;
    }
  }
}

// The process that a stage belongs to: the one that submitted it, if the file says so in any way.
int64_t GpuEvents::process_of(const EventPacket& packet, const Stage& stage, const SubmittingCall* call) {
  if (call != nullptr)
    if (const uint32_t line = lines_.number(call->line_uuid); line != UINT32_MAX)
      return lines_.resolved(line, packet.trusted_pid).process;
  int64_t pid = stage.extra_process;
  if (pid == kUnknown && packet.interned != nullptr)
    if (const int64_t* const context = packet.interned->contexts.find(stage.context)) pid = *context;
  if (pid == kUnknown)
    if (const auto context = old_contexts_.find(stage.context); context != old_contexts_.end()) pid = context->second;
  return lines_.process(packet.machine, pid != kUnknown ? pid : 0);
}

// "GPU-1" by the number of the GPU in the file; 0 is the host.
int64_t GpuEvents::end_of_copy(const AgentLabel& label, uint32_t machine) {
  return label.word == AgentLabel::Word::kGpu ? lines_.device(label.number, machine) : 0;
}

int64_t GpuEvents::queue_of(int64_t process, int64_t device, const Stage& stage, const EventPacket& packet) {
  QueueFacts& facts = facts_.queue;
  if (facts.context == kUnknown) facts.context = static_cast<int64_t>(stage.context);
  if (facts.stream != kUnknown)
    return lines_.queue_track(process, device, packet.machine, facts,
                              writer_.string(fmt::format("stream {}", facts.stream)));
  // A queue is named by its specification; queues and stages share their numbers.
  int64_t name = 0;
  if (packet.interned != nullptr)
    if (const StageWords* const queue = packet.interned->stages.find(stage.queue)) name = queue->text;
  if (name == 0 && stage.queue < old_queues_.size()) name = old_queues_[stage.queue].text;
  if (facts.queue == kUnknown) facts.queue = static_cast<int64_t>(stage.queue);
  return lines_.queue_track(process, device, packet.machine, facts, name);
}

void GpuEvents::render_stage(const EventPacket& packet, std::string_view message) {
  using Kind = StageWords::Kind;
  Stage stage;
  parse(packet, message, stage);
  // A packet that only names queues and stages.
  if (!stage.has_event_id && !stage.has_duration && !stage.launched && stage.stage.text == 0 && !stage.has_name) return;
  const Kind kind = stage.launched ? Kind::kKernel : stage.stage.kind;
  const Table table = kind == Kind::kCopy                                ? Table::kCopy
                      : kind == Kind::kFill                              ? Table::kFill
                      : kind == Kind::kAnnotation || kind == Kind::kMark ? Table::kMarker
                                                                         : Table::kDispatch;
  if (packet.time == kUnknown) return writer_.lose(0, table, LossReason::kBadInput, 1);
  const auto* const entry = stage.has_event_id ? submissions_.find(static_cast<int64_t>(stage.event_id)) : nullptr;
  const SubmittingCall* const call = entry == nullptr ? nullptr : &entry->value;
  SliceRow made;
  made.table = table;
  made.start = packet.time;
  made.process = process_of(packet, stage, call);
  const auto gpu = static_cast<int64_t>(stage.gpu);
  made.device = lines_.device(gpu, packet.machine);
  made.of_gpu = true;
  made.track = queue_of(made.process, made.device, stage, packet);
  made.correlation = facts_.correlation > 0 ? facts_.correlation : call != nullptr ? call->correlation : 0;
  made.graph_node = std::max<int64_t>(facts_.graph_node, 0);
  if (table == Table::kCopy || table == Table::kFill)
    made.number = facts_.bytes;
  else
    made.number = facts_.dispatch_id > 0 ? facts_.dispatch_id - 1 : kUnknown;
  made.text = facts_.arguments;
  if (made.text == 0 && !facts_.collective.empty()) made.text = writer_.string(facts_.collective);
  const EventName& words = stage.has_name ? stage.name : stage.stage.words;
  const int64_t name = stage.has_name ? stage.name.text : stage.stage.text;
  switch (table) {
    case Table::kCopy: {
      row::CopyShape shape = imported::copy_shape(words.direction, made.device, words.from, words.to);
      if (facts_.source.word != AgentLabel::Word::kNone)
        shape.source_device = end_of_copy(facts_.source, packet.machine);
      if (facts_.target.word != AgentLabel::Word::kNone)
        shape.target_device = end_of_copy(facts_.target, packet.machine);
      made.dim = writer_.dimension(shape);
      break;
    }
    case Table::kFill: {
      const event::MemoryKind told = words.to != event::MemoryKind::kUnknown ? words.to : stage.memory;
      made.dim = writer_.dimension(row::FillShape{.memory = told, .device = made.device});
      break;
    }
    case Table::kMarker:
      made.dim = events_.label(name, event::MarkerKind::kStartStop, facts_, stage.stage.text);
      break;
    default: {
      if (facts_.registers == kUnknown) facts_.registers = stage.kernel.registers;
      if (facts_.shared_static == kUnknown) facts_.shared_static = stage.kernel.shared_static;
      if (facts_.scratch == kUnknown) facts_.scratch = stage.kernel.scratch;
      made.dim = events_.kernel(stage.kernel.name != 0 ? stage.kernel.name : name, facts_,
                                kind == Kind::kKernel ? event::DispatchKind::kKernel : event::DispatchKind::kTask);
      ++kernels_;
      int64_t& end = ends_[made.track];
      if (end != 0 && end == packet.time) ++cut_;
      end = packet.time + static_cast<int64_t>(std::min<uint64_t>(stage.duration, event::kFarthestTime));
    }
  }
  const int64_t architecture = stage.kernel.architecture != 0 ? stage.kernel.architecture : stage.architecture;
  if (architecture != 0 && architectures_.try_emplace(made.device, architecture).second)
    writer_.update(Table::kDevice, made.device, event::column::Device::architecture, architecture);
  if (stage.waits > 0) tracker_.unread("waits of GPU work for other GPU work", stage.waits);
  const bool known = stage.has_duration && stage.duration <= static_cast<uint64_t>(event::kFarthestTime);
  rows_.add(made, known ? static_cast<int64_t>(stage.duration) : table == Table::kMarker ? 0 : kUnknown);
}

// The names of counters and of tacho's own groups; `scope` tells apart descriptors whose numbers are their own.
void GpuEvents::descriptor(int64_t scope, std::string_view message) {
  constexpr size_t kMost = 1 << 16;
  constexpr uint64_t kPerfettosGroups = 8;
  const auto place = [&](uint64_t id) { return static_cast<uint64_t>(scope) << 32 | (id & UINT32_MAX); };
  for (WireFields field(message); field.next();) {
    if (field.number() != descriptor_specs || !field.is_bytes()) continue;
    uint64_t id = 0;
    ToldCounter told;
    for (WireFields inner(field.bytes()); inner.next();) {
      if (inner.number() == spec_id) id = inner.value();
      if (inner.number() == spec_name) told.name = inner.bytes().substr(0, 256);
      if (inner.number() == spec_text) told.text = inner.bytes().substr(0, 256);
      if (inner.number() == spec_numerators)
        inner.each_number([&](uint64_t unit) {
          if (told.unit.size() < 64) told.unit.append(told.unit.empty() ? "" : "*").append(unit_word(unit));
        });
      if (inner.number() == spec_denominators)
        inner.each_number([&](uint64_t unit) {
          if (told.unit.size() < 64 && unit != 0) told.unit.append("/").append(unit_word(unit));
        });
    }
    told.of_kernels = spec_counts_kernels(field.bytes());
    take_own_unit(told.text, told.unit);
    if (told_.size() < kMost) told_[place(id)] = std::move(told);
  }
  for (WireFields field(message); field.next();) {
    if (field.number() != descriptor_groups || !field.is_bytes()) continue;
    uint64_t group = 0;
    std::string_view name;
    for (WireFields inner(field.bytes()); inner.next();) {
      if (inner.number() == counter_group_id) group = inner.value();
      if (inner.number() == counter_group_name) name = inner.bytes().substr(0, 256);
    }
    if (group < kPerfettosGroups) continue;
    for (WireFields inner(field.bytes()); inner.next();)
      if (inner.number() == counter_group_counters)
        inner.each_number([&](uint64_t id) {
          if (const auto told = told_.find(place(id)); told != told_.end()) told.value().group = name;
        });
  }
}

// Whose numbers the counters of a sequence without a descriptor's iid have: its own once it describes some. A sequence
// that never does means those of the first one.
int64_t GpuEvents::inline_scope(uint32_t sequence, bool describes) {
  constexpr int64_t kAboveInterned = int64_t{1} << 30;
  const auto found = inline_scopes_.find(sequence);
  if (found != inline_scopes_.end()) return found->second;
  if (!describes) return 0;
  const int64_t scope = inline_scopes_.empty() ? 0 : kAboveInterned + static_cast<int64_t>(inline_scopes_.size());
  inline_scopes_.emplace(sequence, scope);
  return scope;
}

void GpuEvents::counters(const EventPacket& packet, std::string_view message) {
  int64_t scope = inline_scope(packet.sequence, false), gpu = 0;
  for (WireFields field(message); field.next();) {
    if (field.number() == gpu_event_gpu) gpu = std::max<int32_t>(static_cast<int32_t>(field.value()), 0);
    if (field.number() == gpu_event_descriptor) {
      scope = inline_scope(packet.sequence, true);
      descriptor(scope, field.bytes());
    }
    if (field.number() == gpu_event_descriptor_iid && packet.interned != nullptr) {
      const auto* const source = packet.interned->counter_sources.find(field.value());
      if (source == nullptr) continue;
      scope = source->scope;
      if (source->gpu != kUnknown) gpu = std::max<int64_t>(source->gpu, 0);
      if (described_.try_emplace(scope, true).second) descriptor(scope, source->message);
    }
  }
  for (WireFields field(message); field.next();) {
    if (field.number() != gpu_event_counters || !field.is_bytes()) continue;
    uint64_t id = 0;
    double value = 0;
    bool has_value = false;
    for (WireFields inner(field.bytes()); inner.next();) {
      if (inner.number() == gpu_counter_id) id = inner.value() & UINT32_MAX;
      if (inner.number() == gpu_counter_int) value = static_cast<double>(inner.signed_value());
      if (inner.number() == gpu_counter_double) value = inner.real();
      has_value |= inner.number() == gpu_counter_int || inner.number() == gpu_counter_double;
    }
    if (packet.time == kUnknown || !has_value) {
      writer_.lose(0, Table::kReading, LossReason::kBadInput, 1);
      continue;
    }
    const int64_t device = lines_.device(gpu, packet.machine);
    const auto [found, fresh] = counters_.try_emplace({scope, static_cast<int64_t>(id), device}, 0);
    if (fresh) {
      const auto told = told_.find(static_cast<uint64_t>(scope) << 32 | id);
      ToldCounter counter = told != told_.end() ? told->second : ToldCounter();
      if (counter.name.empty()) counter.name = fmt::format("counter {}", id);
      // A file of tacho's has the counter's block as a group of its own.
      const std::string block = counter.group.empty() ? "GPU" : is_own_group(counter.group) ? "" : counter.group;
      found.value() =
          counter.of_kernels
              ? -writer_.dimension(row::Counter{.name = writer_.string(counter.name),
                                                .unit = writer_.string(counter.unit),
                                                .text = writer_.string(counter.text),
                                                .block = writer_.string(block)})
              : tracker_.counter_track({.device = device, .name = counter.name, .unit = counter.unit, .block = block});
    }
    if (found->second < 0) {
      rows_.dispatch_counter(kUnknown, device, packet.time, -found->second, value);
      continue;
    }
    writer_.add(row::Reading{.track = found->second, .start = packet.time, .value = std::bit_cast<int64_t>(value)});
  }
}

void GpuEvents::finish() {
  // Two kernels rarely touch to the ns; a writer that draws one line for a queue cuts those that overlap.
  if (cut_ > 0 && cut_ >= kernels_ / 100)
    writer_.note(
        0, event::NoteSeverity::kInfo,
        fmt::format("{} of {} kernels begin exactly where the one before on their queue ends: a writer that draws "
                    "them on one line cuts kernels that overlap",
                    cut_, kernels_));
}

}  // namespace tacho::format::perfetto
