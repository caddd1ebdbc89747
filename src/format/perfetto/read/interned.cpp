// Reads interned data (interned.h).
#include "format/perfetto/read/interned.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "format/import/words.h"
#include "format/perfetto/messages.h"
#include "format/perfetto/wire.h"
#include "format/shared/rocprof_words.h"

namespace tacho::format::perfetto {

using event::Domain;
using event::kUnknown;
namespace row = event::row;

FactName fact_name(std::string_view name) {
  using enum FactKey;
  struct TextKey {
    std::string_view name;
    FactKey key;
  };
  static constexpr TextKey kKnown[] = {
      {"corr_id", kCorrelation},
      {"correlation", kCorrelation},
      {"correlation_id", kCorrelation},
      {"dispatch_id", kDispatchId},
      {"graph", kGraph},
      {"graph id", kGraph},
      {"graph_node", kGraphNode},
      {"graph node id", kGraphNode},
      {"arguments", kArguments},
      {"agent", kAgent},
      {"agent_type", kAgentType},
      {"src_agent", kSourceAgent},
      {"dst_agent", kTargetAgent},
      {"device", kDevice},
      {"device id", kDevice},
      {"context", kContext},
      {"context id", kContext},
      {"queue", kQueue},
      {"stream", kStream},
      {"stream_ID", kStream},
      {"stream id", kStream},
      {"tid", kTid},
      {"Scratch_Size", kScratch},
      {"private_segment_size", kScratch},
      {"local_memory_per_thread", kScratch},
      {"LDS_Block_Size", kSharedAll},
      {"group_segment_size", kSharedAll},
      {"shared memory", kSharedAll},
      {"shared_mem_static", kSharedStatic},
      {"shared_mem_dynamic", kSharedDynamic},
      {"VGPR_Count", kRegisters},
      {"registers per thread", kRegisters},
      {"registers_per_thread", kRegisters},
      {"Accum_VGPR_Count", kAccumRegisters},
      {"SGPR_Count", kScalarRegisters},
      {"workgroup", kGroup},
      {"block", kGroup},
      {"grid", kGrid},
      {"copy_bytes", kBytes},
      {"fill_bytes", kBytes},
      {"bytes", kBytes},
      {"result", kResult},
      {"payload", kPayload},
      {"domain", kDomain},
      {"category", kCategory},
      {"open_at_exit", kOpenAtExit},
      {"end_not_recorded", kEndNotRecorded},
      {"memory kind", kMemoryKind},
      {"process_id", kProcessId},
      {"arch", kArchitecture},
      {"Collective name", kCollective},
      {"In msg nelems", kCollective},
      {"Out msg nelems", kCollective},
      {"Group size", kCollective},
      {"dtype", kCollective},
      {"In split size", kCollective},
      {"Out split size", kCollective},
      {"Process Group Name", kCollective},
      {"Process Group Description", kCollective},
      {"Process Group Ranks", kCollective},
      {"Seq", kCollective},
      {"Comms Id", kCollective},
  };
  static const auto known = [] {
    tsl::robin_map<std::string_view, FactKey> map;
    for (const TextKey& each : kKnown) map.emplace(each.name, each.key);
    return map;
  }();
  const auto found = known.find(name);
  return found == known.end() ? FactName{} : FactName{found->second, found->first};
}

FactKey fact_key(std::string_view name) {
  return fact_name(name).key;
}

namespace {

CategoryWords one_category(std::string_view text) {
  using Kind = CategoryWords::Kind;
  struct Known {
    std::string_view text;
    Kind kind;
  };
  static constexpr Known kKnown[] = {
      {"kernel_dispatch", Kind::kDispatch},
      {"kernel", Kind::kDispatch},
      {"Kernel", Kind::kDispatch},
      {"memory_copy", Kind::kCopy},
      {"gpu_memcpy", Kind::kCopy},
      {"Memcpy", Kind::kCopy},
      {"memory_fill", Kind::kFill},
      {"gpu_memset", Kind::kFill},
      {"Memset", Kind::kFill},
      {"marker_api", Kind::kMarker},
      {"user_annotation", Kind::kMarker},
      {"gpu_user_annotation", Kind::kDeviceMarker},
      {"synchronization", Kind::kSync},
      {"overhead", Kind::kOverhead},
      {"Overhead", Kind::kOverhead},
  };
  for (const Known& known : kKnown)
    if (known.text == text) return {0, known.kind};
  // Tools of other vendors put a word before them.
  for (const std::string_view shared : {"_kernel_dispatch", "_memory_copy", "_memory_fill", "_marker_api"})
    if (text.ends_with(shared)) return one_category(shared.substr(1));
  if (text.ends_with("_sync")) return {0, Kind::kSync};
  if (text == "cpu_op" || text == "Operator") return {0, Kind::kCall, Domain::kOperator};
  if (text == "python_function") return {0, Kind::kCall, Domain::kPython};
  if (text == "none") return {0, Kind::kCall, Domain::kUnknown};
  // "<api>_api" of tacho and rocprofv3, "<api>_runtime" and "<api>_driver" of torch.
  std::string_view api = text;
  const bool ours = api.ends_with("_api");
  if (!ours && !api.ends_with("_runtime") && !api.ends_with("_driver") && text != "Runtime") return {};
  if (!ours) {
    const Domain domain = imported::domain_of_word(text);
    return {0, Kind::kCall, domain != Domain::kUnknown ? domain : Domain::kHost};
  }
  api.remove_suffix(4);
  for (int64_t at = 0; at < static_cast<int64_t>(Domain::kEnd); ++at)
    if (api_of(static_cast<Domain>(at)) == api) return {0, Kind::kCall, static_cast<Domain>(at)};
  const Domain domain = imported::domain_of_word(api);
  return {0, Kind::kCall, domain != Domain::kUnknown ? domain : Domain::kHost};
}

bool has_word(std::string_view text, std::string_view lowercase) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::search(text.begin(), text.end(), lowercase.begin(), lowercase.end(),
                     [&](char a, char b) { return lower(a) == b; }) != text.end();
}

}  // namespace

CategoryWords category_words(std::string_view text) {
  CategoryWords first;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    first = one_category(rest.substr(0, comma));
    if (first.kind != CategoryWords::Kind::kOther) break;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return first;
}

AgentLabel agent_label(std::string_view text) {
  using enum AgentLabel::Word;
  const size_t gap = text.find_first_of("- ");
  if (gap == std::string_view::npos) return {};
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + gap + 1, end, number);
  if (error != std::errc() || stop != end || number < 0) return {};
  const std::string_view word = text.substr(0, gap);
  return {word == "Agent" ? kAgent : word == "GPU" ? kGpu : word == "CPU" ? kCpu : kOther, number};
}

// "Stream 7 of python3 (948)": tacho names the owner of a queue where several processes have some, and whose it is
// comes from elsewhere.
std::string_view without_owner(std::string_view queue) {
  if (!queue.starts_with("Stream ") && !queue.starts_with("Queue ")) return queue;
  const size_t owner = queue.find(" of "), pid = queue.rfind(" (");
  if (owner == std::string_view::npos || pid == std::string_view::npos || pid < owner || !queue.ends_with(')'))
    return queue;
  const std::string_view digits = queue.substr(pid + 2, queue.size() - pid - 3);
  const bool number = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  return number ? queue.substr(0, owner) : queue;
}

EventName name_words(std::string_view text) {
  EventName name;
  name.domain = imported::domain_of_function(text);
  // Names of copies and waits are short; those of kernels may have thousands of letters.
  constexpr size_t kLongest = 80;
  if (text.size() > kLongest || text.empty()) return name;
  if (has_word(text, "mem") || has_word(text, "copy")) {
    name.direction = imported::copy_direction(text);
    const imported::MemoryEnds ends = imported::memory_ends(text);
    name.from = ends.from;
    name.to = ends.to;
  }
  constexpr std::string_view kOurs = "wait for ";
  if (text.starts_with(kOurs)) {
    for (int64_t at = 0; at < static_cast<int64_t>(event::SyncKind::kEnd); ++at)
      if (event::to_string(static_cast<event::SyncKind>(at)) == text.substr(kOurs.size()))
        name.sync = static_cast<event::SyncKind>(at);
  } else {
    name.sync = imported::sync_kind(text);
  }
  return name;
}

StageWords stage_words(std::string_view name, uint64_t category) {
  using Kind = StageWords::Kind;
  StageWords stage;
  stage.words = name_words(name);
  constexpr uint64_t kCompute = 2;
  if (has_word(name, "memcpy") || has_word(name, "copy"))
    stage.kind = Kind::kCopy;
  else if (has_word(name, "memset") || has_word(name, "fill"))
    stage.kind = Kind::kFill;
  else if (has_word(name, "annotation"))
    stage.kind = Kind::kAnnotation;
  else if (name == "EventRecord" || name == "HostNode")
    stage.kind = Kind::kMark;
  else if (category == kCompute || has_word(name, "kernel") || has_word(name, "compute"))
    stage.kind = Kind::kKernel;
  return stage;
}

void InternedData::clear() {
  room_.entries -= taken_;
  room_.descriptor_bytes -= descriptor_bytes_;
  taken_ = descriptor_bytes_ = 0;
  categories.clear();
  names.clear();
  annotation_names.clear();
  argument_names.clear();
  annotation_texts.clear();
  functions.clear();
  paths.clear();
  mappings.clear();
  source_paths.clear();
  frames.clear();
  stacks.clear();
  contexts.clear();
  stages.clear();
  kernels.clear();
  counter_sources.clear();
}

// Texts first, then what refers to them: the fields may come in any order.
void InternedData::add(std::string_view message) {
  bool refers = false;
  for (WireFields field(message); field.next();) {
    if (!field.is_bytes()) continue;
    const uint32_t number = field.number();
    const bool leaf = number == interned_categories || number == interned_event_names ||
                      number == interned_annotation_names || number == interned_functions ||
                      number == interned_mapping_paths || number == interned_source_paths ||
                      number == interned_annotation_strings || number == interned_argument_names;
    if (leaf)
      this->leaf(number, field.bytes());
    else
      refers = true;
  }
  if (!refers) return;
  for (const uint32_t wanted : {uint32_t{interned_mappings}, uint32_t{interned_frames}, uint32_t{0}})
    for (WireFields field(message); field.next();) {
      if (!field.is_bytes()) continue;
      const uint32_t number = field.number();
      if (wanted != 0 ? number == wanted : number != interned_mappings && number != interned_frames)
        entry(number, field.bytes());
    }
}

void InternedData::leaf(uint32_t number, std::string_view entry) {
  uint64_t iid = 0;
  std::string_view text;
  for (WireFields field(entry); field.next();) {
    if (field.number() == interned_iid) iid = field.value();
    if (field.number() == interned_text) text = field.bytes();
  }
  if (iid == 0 || !take()) return;
  switch (number) {
    case interned_categories: {
      CategoryWords words = category_words(text);
      words.text = writer_.string(text);
      return categories.put(iid, words);
    }
    case interned_event_names: {
      EventName name = name_words(text);
      name.text = writer_.string(text);
      return names.put(iid, name);
    }
    case interned_annotation_names:
      return annotation_names.put(iid, fact_name(text));
    case interned_argument_names:
      return argument_names.put(iid, fact_key(text));
    case interned_functions:
      return functions.put(iid, writer_.string(text));
    case interned_mapping_paths:
      return paths.put(iid, {writer_.string(text), text.ends_with(".py")});
    case interned_source_paths:
      return source_paths.put(iid, writer_.string(text));
    default:
      return annotation_texts.put(iid, {writer_.string(text), agent_label(text), text == "CPU"});
  }
}

void InternedData::entry(uint32_t number, std::string_view entry) {
  switch (number) {
    case interned_mappings:
      return mapping(entry);
    case interned_frames:
      return frame(entry);
    case interned_callstacks:
      return stack(entry);
    case interned_kernels:
      return kernel(entry);
    case interned_counter_descriptors:
      return counters(entry);
    case interned_contexts:
    case interned_specifications:
      break;
    default:
      return;
  }
  uint64_t iid = 0, category = 0, pid = 0;
  std::string_view name;
  for (WireFields field(entry); field.next();) {
    if (field.number() == interned_iid) iid = field.value();
    if (field.number() == context_pid) pid = field.value();
    if (field.number() == specification_name) name = field.bytes();
    if (field.number() == specification_category) category = field.value();
  }
  // OpenGL's and Vulkan's contexts are handles: 0 is one, too.
  if (!take()) return;
  if (number == interned_contexts) return contexts.put(iid, static_cast<int32_t>(pid));
  StageWords stage = stage_words(name, category);
  stage.text = writer_.string(without_owner(name));
  stages.put(iid, stage);
}

void InternedData::mapping(std::string_view entry) {
  uint64_t iid = 0;
  MappedPath path;
  for (WireFields field(entry); field.next();) {
    if (field.number() == interned_iid) iid = field.value();
    if (field.number() == mapping_path)
      field.each_number([&](uint64_t part) {
        // Of a path in parts the last one is the file.
        if (const MappedPath* const found = paths.find(part)) path = *found;
      });
  }
  if (iid != 0 && take()) mappings.put(iid, path);
}

void InternedData::frame(std::string_view entry) {
  uint64_t iid = 0, function = 0, module = 0, address = 0, source = 0, line = 0;
  for (WireFields field(entry); field.next();) {
    if (field.number() == interned_iid) iid = field.value();
    if (field.number() == frame_function) function = field.value();
    if (field.number() == frame_mapping) module = field.value();
    if (field.number() == frame_rel_pc) address = field.value();
    if (field.number() == frame_source_path) source = field.value();
    if (field.number() == frame_line) line = field.value();
  }
  if (iid == 0 || !take()) return;
  const auto text = [](const IidTable<int64_t>& table, uint64_t of) {
    const int64_t* const found = table.find(of);
    return found == nullptr ? 0 : *found;
  };
  const MappedPath* const mapped = mappings.find(module);
  const bool script = mapped != nullptr && mapped->script;
  const int64_t path = mapped != nullptr ? mapped->text : 0;
  // Of interpreted functions the mapping is their file, and the address only a number.
  frames.put(iid, writer_.dimension(row::Frame{.kind = script ? event::FrameKind::kPython : event::FrameKind::kNative,
                                               .function = text(functions, function),
                                               .file = script ? path : text(source_paths, source),
                                               .line = line != 0 ? static_cast<int64_t>(line) : kUnknown,
                                               .module = script ? 0 : path,
                                               .address = script ? 0 : static_cast<int64_t>(address)}));
}

void InternedData::stack(std::string_view entry) {
  uint64_t iid = 0;
  int64_t stack = 0;
  size_t depth = 0;
  constexpr size_t kDeepest = 4096;
  for (WireFields field(entry); field.next();) {
    if (field.number() == callstack_iid) iid = field.value();
    if (field.number() == callstack_frames)
      field.each_number([&](uint64_t frame) {
        const int64_t* const found = frames.find(frame);
        if (++depth <= kDeepest)
          stack = writer_.dimension(row::Stack{.parent = stack, .frame = found == nullptr ? 0 : *found});
      });
  }
  if (iid != 0 && take()) stacks.put(iid, stack);
}

ComputeArgument compute_argument(std::string_view message, const InternedData& interned) {
  ComputeArgument argument;
  for (WireFields field(message); field.next();) {
    switch (field.number()) {
      case argument_name_iid:
        if (const FactKey* const key = interned.argument_names.find(field.value())) argument.key = *key;
        break;
      case argument_name:
        argument.key = fact_key(field.bytes());
        break;
      case argument_int:
      case argument_uint:
        argument.is_number = true;
        argument.number = field.signed_value();
        break;
      case argument_string:
        argument.text = field.bytes();
        break;
      case argument_string_iid:
        if (const AnnotationText* const text = interned.annotation_texts.find(field.value())) argument.known = *text;
        break;
      case argument_double:
        argument.is_number = true;
        if (const double value = field.real(); value >= 0 && value < 9e15)
          argument.number = static_cast<int64_t>(value);
        break;
      default:
        break;
    }
  }
  return argument;
}

void InternedData::kernel(std::string_view entry) {
  uint64_t iid = 0;
  std::string_view mangled, demangled, architecture;
  ComputeKernel kernel;
  for (WireFields field(entry); field.next();) {
    if (field.number() == interned_iid) iid = field.value();
    if (field.number() == kernel_mangled) mangled = field.bytes();
    if (field.number() == kernel_demangled) demangled = field.bytes();
    if (field.number() == kernel_architecture) architecture = field.bytes();
    if (field.number() != kernel_arguments || !field.is_bytes()) continue;
    const ComputeArgument argument = compute_argument(field.bytes(), *this);
    if (argument.key == FactKey::kRegisters) kernel.registers = argument.number;
    if (argument.key == FactKey::kSharedStatic) kernel.shared_static = argument.number;
    if (argument.key == FactKey::kScratch) kernel.scratch = argument.number;
  }
  if (!take()) return;
  kernel.name = writer_.string(imported::kernel_of_symbol(mangled.empty() ? demangled : mangled));
  kernel.architecture = writer_.string(architecture);
  kernels.put(iid, kernel);
}

void InternedData::counters(std::string_view entry) {
  uint64_t iid = 0;
  CounterSource source;
  std::string_view message;
  for (WireFields field(entry); field.next();) {
    if (field.number() == interned_iid) iid = field.value();
    if (field.number() == counter_descriptor) message = field.bytes();
    if (field.number() == counter_descriptor_gpu) source.gpu = static_cast<int32_t>(field.value());
  }
  // Its text is kept until its first counter comes.
  if (iid == 0) return;
  if (room_.descriptor_bytes + message.size() > InternedRoom::kMostDescriptorBytes) {
    ++room_.left_out;
    return;
  }
  if (!take()) return;
  room_.descriptor_bytes += message.size();
  descriptor_bytes_ += message.size();
  source.scope = ++room_.counter_scopes;
  source.message = message;
  counter_sources.put(iid, source);
}

}  // namespace tacho::format::perfetto
