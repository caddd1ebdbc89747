// Tracks and their rows (lines.h).
#include "format/perfetto/read/lines.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "format/import/rows.h"
#include "format/import/words.h"
#include "format/perfetto/messages.h"
#include "format/perfetto/wire.h"

namespace tacho::format::perfetto {

using event::kUnknown;
using event::Table;
namespace column = event::column;
namespace row = event::row;

namespace {

constexpr int64_t kMostPid = 1 << 22;

// The number at the start of `text`, which then begins behind it.
bool take_number(std::string_view& text, int64_t& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  return true;
}

bool take_text(std::string_view& text, std::string_view wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(wanted.size());
  return true;
}

// "Agent [4]" at the end of `text`, as tacho and rocprofv3 name devices; cuts it off.
bool cut_agent(std::string_view& text, AgentLabel& label) {
  using enum AgentLabel::Word;
  if (!text.ends_with(']')) return false;
  const size_t open = text.rfind(" [");
  if (open == std::string_view::npos) return false;
  std::string_view digits = text.substr(open + 2);
  int64_t number = 0;
  if (!take_number(digits, number) || digits != "]") return false;
  const std::string_view before = text.substr(0, open);
  for (const auto& [word, value] : {std::pair{"Agent", kAgent}, {"GPU", kGpu}, {"CPU", kCpu}, {"UNK", kOther}}) {
    const std::string_view name = word;
    if (!before.ends_with(name)) continue;
    std::string_view rest = before.substr(0, before.size() - name.size());
    if (!rest.empty() && !rest.ends_with(' ')) continue;
    if (rest.ends_with(' ')) rest.remove_suffix(1);
    label = {value, number};
    text = rest;
    return true;
  }
  return false;
}

}  // namespace

uint64_t TraceLines::made_uuid(uint64_t kind, uint64_t a, uint64_t b) {
  uint64_t hash = kind * 0x9e3779b97f4a7c15ULL;
  for (const uint64_t part : {a, b}) {
    hash = (hash ^ part) * 0xbf58476d1ce4e5b9ULL;
    hash ^= hash >> 29;
  }
  return hash | 1ULL << 63;
}

// Lets `kept` be `text`, unless that is empty. Writers repeat their descriptors: only what is more counts.
void TraceLines::keep(std::string& kept, std::string_view text) {
  if (text.empty() || kept == text) return;
  const size_t bytes = text_bytes_ - kept.size() + text.size();
  if (text.size() > kept.size() && bytes > kMostTextBytes) {
    ++left_out_;
    return;
  }
  text_bytes_ = bytes;
  kept = text;
}

uint32_t TraceLines::number(uint64_t uuid) {
  if (uuid == last_uuid_ && last_number_ != UINT32_MAX) return last_number_;
  const auto found = numbers_.find(uuid);
  uint32_t number = UINT32_MAX;
  if (found != numbers_.end()) {
    number = found->second;
  } else if (lines_.size() < kMostLines) {
    number = static_cast<uint32_t>(lines_.size());
    numbers_.emplace(uuid, number);
    lines_.push_back({});
    lines_.back().uuid = uuid;
  }
  last_uuid_ = uuid;
  last_number_ = number;
  return number;
}

void TraceLines::name_process(uint32_t machine, int64_t pid, std::string_view name, std::string_view command) {
  if (pid > 0 && pid <= kMostPid && main_pid_ == 0 && imported::gpu_of_name(name) == kUnknown && machine == 0)
    main_pid_ = pid;
  const uint64_t id = key(machine, pid);
  if (!processes_.contains(id) && processes_.size() >= kMostNames) return;
  NamedProcess& process = processes_[id];
  keep(process.name, name);
  keep(process.command, command);
  if (!name.empty()) process.gpu = imported::gpu_of_name(name);
}

void TraceLines::name_thread(uint32_t machine, int64_t pid, int64_t tid, std::string_view name) {
  if (name.empty() || thread_names_.size() >= kMostNames) return;
  if (pid > 0) named_threads_.try_emplace({static_cast<int64_t>(key(machine, pid)), writer_.string(name)}, tid);
  int64_t number = 0;
  imported::thread_of_name(name, number);
  while (name.ends_with(' ')) name.remove_suffix(1);
  if (!name.empty()) thread_names_[key(machine, tid)] = writer_.string(name);
}

void TraceLines::process_descriptor(std::string_view message, uint32_t machine) {
  int64_t pid = 0, rank = kUnknown, run = kUnknown;
  std::string_view name;
  std::string command;
  for (WireFields field(message); field.next();) {
    if (field.number() == process_pid) pid = static_cast<int32_t>(field.value());
    if (field.number() == perfetto::process_name) name = field.bytes();
    if (field.number() == process_labels) {
      std::string_view label = field.bytes();
      int64_t number = 0;
      if (take_text(label, "rank ") && take_number(label, number) && label.empty()) rank = number;
      label = field.bytes();
      if (take_text(label, "run ") && take_number(label, number) && label.empty()) run = number;
    }
    if (field.number() == process_cmdline && command.size() < 4096) {
      if (!command.empty()) command += ' ';
      command += field.bytes();
    }
  }
  name_process(machine, pid, name, command);
  const auto process = processes_.find(key(machine, pid));
  if (process == processes_.end()) return;
  if (rank != kUnknown) process.value().rank = rank;
  if (run != kUnknown) process.value().run = run;
}

uint32_t TraceLines::thread_descriptor(uint64_t uuid, std::string_view message, uint32_t machine) {
  const uint32_t number = this->number(uuid);
  if (number == UINT32_MAX) return number;
  TraceLine& line = lines_[number];
  line.machine = machine;
  line.has_thread = true;
  for (WireFields field(message); field.next();) {
    if (field.number() == thread_pid) line.pid = static_cast<int32_t>(field.value());
    if (field.number() == thread_tid) line.tid = static_cast<int32_t>(field.value());
    if (field.number() == perfetto::thread_name) keep(line.name, field.bytes());
  }
  if (line.pid > 0 && line.pid <= kMostPid && main_pid_ == 0 && machine == 0 &&
      processes_.find(key(machine, line.pid)) == processes_.end())
    main_pid_ = line.pid;
  name_thread(machine, line.pid, line.tid, line.name);
  return number;
}

uint32_t TraceLines::describe(std::string_view message, uint32_t machine) {
  uint64_t uuid = 0;
  for (WireFields field(message); field.next();)
    if (field.number() == track_uuid) uuid = field.value();
  const uint32_t number = this->number(uuid);
  if (number == UINT32_MAX) return ++left_out_, number;
  TraceLine* line = &lines_[number];
  line->machine = machine;
  for (WireFields field(message); field.next();) {
    switch (field.number()) {
      case track_parent:
        line->parent = field.value();
        break;
      case track_name:
      case track_static_name:
      case track_atrace_name:
        keep(line->name, field.bytes());
        break;
      case track_process:
        line->has_process = true;
        process_descriptor(field.bytes(), machine);
        for (WireFields inner(field.bytes()); inner.next();)
          if (inner.number() == process_pid) line->pid = static_cast<int32_t>(inner.value());
        break;
      case track_thread:
        thread_descriptor(uuid, field.bytes(), machine);
        line = &lines_[number];
        break;
      case track_counter:
        line->is_counter = true;
        for (WireFields inner(field.bytes()); inner.next();) {
          if (inner.number() == counter_unit) line->unit = inner.signed_value();
          if (inner.number() == counter_unit_name) line->unit_name = inner.bytes().substr(0, 64);
          if (inner.number() == counter_incremental) line->incremental = inner.value() != 0;
          if (inner.number() == counter_multiplier && inner.value() != 0) line->multiplier = inner.signed_value();
        }
        has_dispatch_counters_ |= line->name.find("] PMC ") != std::string::npos;
        break;
      case track_gpu:
        line->has_gpu = true;
        for (WireFields inner(field.bytes()); inner.next();) {
          if (inner.number() == gpu_track_gpu) line->gpu = static_cast<int32_t>(inner.value());
          if (inner.number() == gpu_track_queue || inner.number() == gpu_track_queue_iid)
            line->queue = inner.signed_value();
        }
        break;
      default:
        break;
    }
  }
  return number;
}

void TraceLines::process_tree(std::string_view message, uint32_t machine) {
  for (WireFields field(message); field.next();) {
    int64_t id = 0;
    std::string text;
    for (WireFields inner(field.bytes()); inner.next();) {
      if (inner.number() == (field.number() == tree_processes ? tree_process_pid : tree_thread_tid))
        id = static_cast<int32_t>(inner.value());
      if (inner.number() == (field.number() == tree_processes ? tree_process_command : tree_thread_name) &&
          text.size() < 4096) {
        if (!text.empty()) text += ' ';
        text += inner.bytes();
      }
    }
    if (field.number() == tree_threads) name_thread(machine, 0, id, text);
    if (field.number() != tree_processes || id <= 0 || text.empty()) continue;
    const uint64_t known = key(machine, id);
    if (processes_.size() >= kMostNames && !processes_.contains(known)) continue;
    NamedProcess& process = processes_[known];
    const std::string_view program = std::string_view(text).substr(0, text.find(' '));
    if (process.name.empty()) keep(process.name, program.substr(program.rfind('/') + 1));
    keep(process.command, text);
  }
}

void TraceLines::system_info(std::string_view message, uint32_t machine) {
  for (WireFields field(message); field.next();)
    if (field.number() == system_machine_name && machines_.size() < kMostNames) keep(machines_[machine], field.bytes());
}

// What GpuInfo has no field for comes back as it was.
void TraceLines::gpu_fact(std::string_view message, int64_t gpu, uint32_t machine, imported::DeviceHint& hint) {
  std::string_view key, value;
  for (WireFields field(message); field.next();) {
    if (field.number() == gpu_extra_key) key = field.bytes();
    if (field.number() == gpu_extra_value) value = field.bytes();
  }
  constexpr size_t kMost = 256;
  if (key == "uuid")
    hint.uuid = value;
  else if (key == "driver")
    hint.driver = value;
  else if (key == perfetto::kGpuIndex)
    hint.origin = fmt::format("{{\"index\": {}}}", value);
  else if (key == perfetto::kGpuAgent && told_agents_.size() < 4096)
    told_agents_.push_back({agent_label(value), gpu, machine});
  else if (key == "type" && value == "CPU")
    hint.kind = event::DeviceKind::kCpu;
  else if (hint.properties.size() < kMost)
    hint.properties.emplace_back(key, value);
}

void TraceLines::gpu_info(std::string_view message, uint32_t machine) {
  int64_t index = 0;
  for (WireFields field(message); field.next();) {
    if (field.number() != gpu_info_gpus || !field.is_bytes()) continue;
    imported::DeviceHint hint;
    std::string model;
    for (WireFields inner(field.bytes()); inner.next();) {
      const std::string_view text = inner.bytes();
      if (inner.number() == gpu_name) hint.name = text;
      if (inner.number() == gpu_vendor) hint.vendor = text;
      if (inner.number() == gpu_model) model = text;
      if (inner.number() == gpu_architecture) hint.architecture = text;
      if (inner.number() == gpu_uuid && text.size() <= 64)
        for (const char byte : text) hint.uuid += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    for (WireFields inner(field.bytes()); inner.next();)
      if (inner.number() == gpu_extra && inner.is_bytes()) gpu_fact(inner.bytes(), index, machine, hint);
    // Of several GPUs of one model the names have their numbers.
    if (hint.name.empty() || hint.name == fmt::format("{} #{}", model, index)) hint.name = model;
    tracker_.describe(index++, std::move(hint), scope(machine));
  }
}

void TraceLines::describe_device(int64_t gpu, std::string_view architecture) {
  imported::DeviceHint hint;
  hint.architecture = architecture;
  tracker_.describe(gpu, std::move(hint), scope_);
}

imported::ScopeId TraceLines::scope(uint32_t machine) {
  if (machine == 0) return scope_;
  const auto [found, fresh] = scopes_.try_emplace(machine, 0);
  if (fresh) found.value() = tracker_.new_scope();
  return found->second;
}

void TraceLines::begin_events(bool apart) {
  apart_ = apart;
  if (main_pid_ > 0) main_process();
}

// Its row, with what the file says about it. "python3 rank 2 on host run 1" is how tacho writes a process of a job, and
// "process run 1" one without a name of a merged trace, which has the label "run 1".
int64_t TraceLines::process(uint32_t machine, int64_t pid) {
  if (pid <= 0) return machine == 0 && main_pid_ > 0 ? process(0, main_pid_) : tracker_.main_process(scope(machine));
  const uint64_t id = key(machine, pid);
  if (processes_.size() >= kMostNames && !processes_.contains(id)) return tracker_.process(pid, scope(machine));
  NamedProcess& process = processes_[id];
  if (process.row != 0) return process.row;
  // Above the highest pid of Linux are tacho's numbers for processes whose pid it does not know.
  process.row = pid > kMostPid ? tracker_.process(std::string_view(process.name), scope(machine))
                               : tracker_.process(pid, scope(machine));
  const auto set = [&](int cell, int64_t value) { writer_.update(Table::kProcess, process.row, cell, value); };
  std::string_view name = process.name;
  int64_t run = 0;
  constexpr std::string_view kRank = " rank ";
  if (const size_t at = name.rfind(kRank); at != std::string_view::npos && at > 0) {
    std::string_view rest = name.substr(at + kRank.size());
    int64_t rank = 0;
    if (take_number(rest, rank) && (rest.empty() || rest.starts_with(" on ") || rest.starts_with(" run "))) {
      set(column::Process::rank, rank);
      if (take_text(rest, " on ")) {
        const std::string_view host = rest.substr(0, rest.find(' '));
        if (machine == 0 && !host.empty()) set(column::Process::host, writer_.string(host));
        rest.remove_prefix(host.size());
      }
      if (take_text(rest, " run ") && take_number(rest, run) && scope_ == 0) set(column::Process::run, run);
      name = name.substr(0, at);
    }
  }
  if (process.rank != kUnknown) set(column::Process::rank, process.rank);
  bool nameless = false;
  if (process.run != kUnknown) {
    run = process.run;
    if (const std::string end = fmt::format(" run {}", run); name.ends_with(end)) name.remove_suffix(end.size());
    if (scope_ == 0) set(column::Process::run, run);
    nameless = name == "process";
    if (nameless) name = {};
  }
  if (!name.empty() || nameless) set(column::Process::name, writer_.string(name));
  if (!process.command.empty()) set(column::Process::command, writer_.string(process.command));
  const auto named = machines_.find(machine);
  const bool known = named != machines_.end() && !named->second.empty();
  if (known || machine != 0)
    set(column::Process::host, writer_.string(known ? named->second : fmt::format("machine {}", machine)));
  if (known && machine != 0 && scope_ == 0) set(column::Process::run, run);
  return process.row;
}

int64_t TraceLines::thread_track(int64_t process, int64_t tid, int64_t name) {
  const auto [found, fresh] = threads_.try_emplace({process, tid}, 0);
  if (fresh) found.value() = imported::thread_line(writer_, process, tid, tid, name);
  return found->second;
}

int64_t TraceLines::thread(uint32_t machine, int64_t process, int64_t tid) {
  const auto name = thread_names_.find(key(machine, tid));
  return writer_.dimension(
      row::Thread{.process = process, .tid = tid, .name = name == thread_names_.end() ? 0 : name->second});
}

int64_t TraceLines::thread_track_of(uint32_t machine, int64_t pid, int64_t tid) {
  const auto name = thread_names_.find(key(machine, tid));
  return thread_track(process(machine, pid), tid, name == thread_names_.end() ? 0 : name->second);
}

int64_t TraceLines::agent(const AgentLabel& label, bool host, bool cpu) {
  using enum AgentLabel::Word;
  if (host || label.word == kNone) return 0;
  cpu |= label.word == kCpu;
  if (label.word == kGpu && !cpu) return device(label.number);
  const auto known = std::find_if(agents_.begin(), agents_.end(), [&](const KnownAgent& each) {
    return each.number == label.number && each.word == label.word;
  });
  if (known != agents_.end()) {
    if (cpu && !known->cpu)
      writer_.update(Table::kDevice, known->row, column::Device::kind, static_cast<int64_t>(event::DeviceKind::kCpu));
    known->cpu |= cpu;
    return known->row;
  }
  if (agents_.size() >= 4096) return 0;
  for (const ToldAgent& told : told_agents_)
    if (told.label.word == label.word && told.label.number == label.number) return device(told.gpu, told.machine);
  const std::string name = fmt::format("{} {}", label.word == kCpu ? "CPU" : "Agent", label.number);
  const int64_t row = writer_.dimension(row::Device{.process = owner_of_rest(),
                                                    .kind = cpu ? event::DeviceKind::kCpu : event::DeviceKind::kGpu,
                                                    .name = writer_.string(name)});
  agents_.push_back({label.number, row, label.word, cpu});
  return row;
}

int64_t TraceLines::range_track(int64_t process, std::string_view name) {
  return writer_.dimension(row::Track{.kind = event::TrackKind::kRange,
                                      .process = process,
                                      .name = writer_.string(name),
                                      .category = writer_.string("range")});
}

// The nearest track at or above `line` that names a process; nullptr if none does.
const TraceLine* TraceLines::ancestor_with_process(const TraceLine& line) const {
  const TraceLine* at = &line;
  for (int depth = 0; depth < 32; ++depth) {
    if (at->has_process || at->has_thread) return at;
    if (at->parent == 0) return nullptr;
    const auto found = numbers_.find(at->parent);
    if (found == numbers_.end()) return nullptr;
    at = &lines_[found->second];
  }
  return nullptr;
}

// Threads of a process "GPU 0" are its streams.
bool TraceLines::gpu_of(const TraceLine& line, int64_t& gpu) const {
  if (line.has_gpu) {
    gpu = line.gpu;
    return true;
  }
  if (!line.has_thread && !line.has_process) return false;
  const auto found = processes_.find(key(line.machine, line.pid));
  if (found == processes_.end() || found->second.gpu == kUnknown) return false;
  gpu = found->second.gpu;
  return true;
}

// `STREAM [" 2 "] `, "COMPUTE Agent [1] QUEUE [0] GPU stream 7": queues as tacho and rocprofv3 name them.
bool TraceLines::queue_by_name(TraceLine& line) {
  std::string_view rest = line.name;
  int64_t number = 0;
  AgentLabel label;
  if (take_text(rest, "STREAM [\" ") && take_number(rest, number) && take_text(rest, " \"]")) {
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    line.stream = number;
    if (const size_t end = rest.find(']'); end != std::string_view::npos) {
      std::string_view device = rest.substr(0, end + 1);
      if (cut_agent(device, label) && device.empty()) {
        line.device = agent(label, false);
        rest.remove_prefix(end + 1);
      }
    }
  } else {
    rest = line.name;
    if (!take_text(rest, "COMPUTE ")) return false;
    const size_t end = rest.find("] QUEUE [");
    if (end == std::string_view::npos) return false;
    std::string_view device = rest.substr(0, end + 1);
    rest.remove_prefix(end + std::string_view("] QUEUE [").size());
    if (!cut_agent(device, label) || !device.empty() || !take_number(rest, number) || !take_text(rest, "] "))
      return false;
    line.device = agent(label, false, rest.starts_with("CPU"));
    line.counter = number;  // until a dispatch tells the queue's own number
    rest.remove_prefix(std::min(rest.find(' '), rest.size()));
  }
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  while (rest.ends_with(' ')) rest.remove_suffix(1);
  line.name = std::string(rest);
  return true;
}

// A line of a thread that is no thread's by its descriptor: a thread without a tid, or slices that overlap those on the
// thread's own line.
bool TraceLines::thread_by_name(TraceLine& line, const TraceLine& owner) {
  std::string_view name = line.name;
  int64_t tid = 0;
  const auto known =
      named_threads_.find({static_cast<int64_t>(key(owner.machine, owner.pid)), writer_.string(line.name)});
  if (known != named_threads_.end())
    tid = known->second;
  else if (!imported::thread_of_name(name, tid))
    return false;
  if (tid == 0) {
    line.track = thread_track(line.process, 0, writer_.string(name));
  } else {
    line.track = thread_track_of(owner.machine, owner.pid, tid);
  }
  return true;
}

void TraceLines::resolve(TraceLine& line, int64_t trusted_pid) {
  using enum TraceLine::Role;
  const TraceLine* const owner = ancestor_with_process(line);
  int64_t gpu = kUnknown;
  const bool of_gpu = gpu_of(line, gpu) || (owner != nullptr && gpu_of(*owner, gpu));
  if (line.is_counter)
    line.process = owner == nullptr || of_gpu ? owner_of_rest() : process(owner->machine, owner->pid);
  else
    line.process =
        owner == nullptr || of_gpu ? process(line.machine, trusted_pid) : process(owner->machine, owner->pid);
  if (of_gpu) line.device = device(gpu, line.machine);
  if (line.is_counter) {
    line.role = kCounter;
    return resolve_counter(line);
  }
  if (of_gpu) {
    line.role = kQueue;
    // "[0007] stream 7"
    const size_t at = line.name.find("stream ");
    std::string_view rest = at == std::string::npos ? std::string_view() : std::string_view(line.name).substr(at + 7);
    int64_t stream = 0;
    if (take_number(rest, stream) && rest.empty())
      line.queue = stream;
    else if (line.has_thread && line.queue == kUnknown)
      line.queue = line.tid;
    return;
  }
  if (line.has_thread) {
    line.role = kThread;
    line.track = thread_track_of(line.machine, line.pid, line.tid);
    return;
  }
  if (queue_by_name(line)) {
    line.role = kQueue;
    return;
  }
  if (owner != nullptr && !line.name.empty() && thread_by_name(line, *owner)) {
    line.role = kThread;
    return;
  }
  line.role = kRange;
  line.track = range_track(line.process, !line.name.empty() ? line.name : line.has_process ? "process" : "ranges");
}

void TraceLines::resolve_counter(TraceLine& line) {
  using enum TraceLine::Counts;
  std::string_view name = line.name;
  std::string unit = line.unit == 3 ? "B" : line.unit == 1 ? "ns" : line.unit_name;
  AgentLabel label;
  if (take_text(name, "COPY BYTES to ")) {
    line.counts = kCopyLevels;
    return;
  }
  if (take_text(name, "ALLOCATE BYTES on ")) {
    line.counts = kAllocationLevels;
    const bool host = name.ends_with("(CPU)");
    if (const size_t type = name.rfind(" ("); type != std::string_view::npos) name = name.substr(0, type);
    if (cut_agent(name, label)) line.device = agent(label, host);
    return;
  }
  if (const size_t pmc = name.find("] PMC "); pmc != std::string_view::npos) {
    std::string_view device = name.substr(0, pmc + 1);
    if (cut_agent(device, label)) {
      line.counts = kOfDispatches;
      line.device = agent(label, false);
      line.counter =
          writer_.dimension(row::Counter{.name = writer_.string(name.substr(pmc + 6)), .unit = writer_.string(unit)});
      return;
    }
  }
  // tacho writes "Power GPU [0] (W)".
  if (const std::string shown = fmt::format(" ({})", unit); !unit.empty() && name.ends_with(shown))
    name.remove_suffix(shown.size());
  if (cut_agent(name, label)) line.device = agent(label, false);
  line.track = tracker_.counter_track({.process = line.process, .device = line.device, .name = name, .unit = unit});
}

TraceLine& TraceLines::resolved(uint32_t number, int64_t trusted_pid) {
  TraceLine& line = lines_[number];
  if (line.role == TraceLine::Role::kUnresolved) resolve(line, trusted_pid);
  return line;
}

int64_t TraceLines::queue_track(int64_t process, int64_t device, uint32_t machine, const QueueFacts& facts,
                                int64_t name) {
  const bool streamed = facts.stream != kUnknown;
  const int64_t native = streamed ? facts.stream : facts.queue, tid = std::max<int64_t>(facts.tid, 0);
  const int64_t queue = streamed ? std::max<int64_t>(facts.queue, -1) : -2;
  const auto [found, fresh] =
      queue_tracks_.try_emplace({process, device, native, facts.context, name, tid, -5 - queue}, 0);
  if (!fresh) return found->second;
  found.value() = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                               .process = process,
                                               .thread = tid != 0 ? thread(machine, process, tid) : 0,
                                               .device = device,
                                               .native = native,
                                               .context = facts.context,
                                               .name = name,
                                               .category = streamed ? writer_.string("stream") : 0});
  if (streamed && facts.queue != kUnknown && facts.queue != facts.stream)
    writer_.property(Table::kTrack, found->second, "queue", std::to_string(facts.queue));
  return found->second;
}

int64_t TraceLines::queue_track(TraceLine& line, const QueueFacts& facts) {
  int64_t device = line.device;
  if (facts.agent.word != AgentLabel::Word::kNone)
    device = agent(facts.agent, false, facts.cpu_agent);
  else if (facts.device != kUnknown)
    device = this->device(facts.device, line.machine);
  else if (device == 0)
    device = this->device(0, line.machine);
  if (facts.queue != kUnknown) line.queue = facts.queue;
  if (facts.stream != kUnknown) line.stream = facts.stream;
  const bool streamed = line.stream != kUnknown;
  // The name of a line that is no queue's by its name says more than its number.
  const bool told = line.role == TraceLine::Role::kQueue;
  const int64_t native = streamed ? line.stream : line.queue != kUnknown ? line.queue : told ? line.counter : line.tid;
  const int64_t tid = std::max<int64_t>(facts.tid, 0);
  const int64_t context = facts.context != kUnknown ? facts.context : 0;
  const int64_t name = writer_.string(line.name);
  const auto [found, fresh] = queue_tracks_.try_emplace(
      {line.process, device, native, context, name, tid, streamed ? std::max<int64_t>(line.queue, -1) : -2}, 0);
  if (!fresh) return found->second;
  found.value() = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                               .process = line.process,
                                               .thread = tid != 0 ? thread(line.machine, line.process, tid) : 0,
                                               .device = device,
                                               .native = native,
                                               .context = context,
                                               .name = name,
                                               .category = streamed    ? writer_.string("stream")
                                                           : name != 0 ? 0
                                                                       : writer_.string("queue")});
  const int64_t track = found->second;
  if (streamed && line.queue != kUnknown && line.queue != line.stream)
    writer_.property(Table::kTrack, track, "queue", std::to_string(line.queue));
  if (!streamed && line.queue == kUnknown && told)
    provisional_.push_back({track, static_cast<uint32_t>(&line - lines_.data())});
  return track;
}

void TraceLines::finish() {
  for (const Provisional& each : provisional_)
    if (const int64_t queue = lines_[each.line].queue; queue != kUnknown)
      writer_.update(Table::kTrack, each.track, column::Track::native, queue);
  std::sort(agents_.begin(), agents_.end(),
            [](const KnownAgent& a, const KnownAgent& b) { return a.number < b.number; });
  int64_t gpus = 0, cpus = 0;
  for (const KnownAgent& agent : agents_)
    writer_.update(Table::kDevice, agent.row, column::Device::index, agent.cpu ? cpus++ : gpus++);
}

}  // namespace tacho::format::perfetto
