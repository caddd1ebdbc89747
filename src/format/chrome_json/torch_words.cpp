// Torch's words (torch_words.h).
#include "format/chrome_json/torch_words.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <set>

#include "base/text/json_check.h"
#include "format/import/origin.h"

namespace tacho::format {

namespace column = event::column;
using event::kUnknown;
using event::Table;

namespace {

constexpr double kWarp = 32;  // threads of every NVIDIA GPU's warp

std::string_view memory_word(int64_t kind) {
  switch (static_cast<event::MemoryKind>(kind)) {
    case event::MemoryKind::kPageable:
      return "Pageable";
    case event::MemoryKind::kPinned:
      return "Pinned";
    case event::MemoryKind::kDevice:
    case event::MemoryKind::kDeviceStatic:
      return "Device";
    case event::MemoryKind::kArray:
      return "Array";
    case event::MemoryKind::kManaged:
    case event::MemoryKind::kManagedStatic:
      return "Managed";
    case event::MemoryKind::kHost:
      return "Host";
    case event::MemoryKind::kSvm:
      return "SVM";
    default:
      return "Unknown";
  }
}

// Digits that JSON takes as a number.
bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 19 && (text.front() != '0' || text.size() == 1) &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The annotations of a graph's node, {"name":"attention"}, as members of their own. False if the text is anything else.
bool put_annotations(std::string_view text, JsonFileWriter& json) {
  if (!text.starts_with("{\"") || !text.ends_with("\"}") || !is_json(text)) return false;
  json.splice(text.substr(1, text.size() - 2));
  return true;
}

}  // namespace

std::string call_category(event::Domain domain, std::string_view function) {
  if (domain == event::Domain::kOperator) return "cpu_op";
  if (domain == event::Domain::kPython) return "python_function";
  // torch.profiler has one category for the calls of both vendors' runtimes, and tools for its files know no other.
  if (domain == event::Domain::kHipRuntime && function.starts_with("hip")) return "cuda_runtime";
  std::string category(event::to_string(domain));
  if (!category.ends_with("_runtime") && !category.ends_with("_driver")) category += "_runtime";
  return category;
}

std::string_view range_category(std::string_view domain, std::string_view category) {
  constexpr std::string_view kUsual = "user_annotation";
  constexpr std::string_view kWork[] = {"kernel",
                                        "gpu_memcpy",
                                        "gpu_memset",
                                        "gpu_user_annotation",
                                        "cuda_sync",
                                        "xpu_sync",
                                        "overhead",
                                        "cpu_op",
                                        "python_function",
                                        "hpu_op",
                                        "Kernel",
                                        "Memcpy",
                                        "Memset",
                                        "Overhead",
                                        "Operator",
                                        "Runtime",
                                        "ac2g",
                                        "fwdbwd",
                                        "cuda_profiler_range"};
  if (!domain.empty() || category.empty() || category.ends_with("_runtime") || category.ends_with("_driver") ||
      category.find(',') != std::string_view::npos)
    return kUsual;
  return std::find(std::begin(kWork), std::end(kWork), category) != std::end(kWork) ? kUsual : category;
}

std::string copy_name(const trace::Trace& trace, int64_t shape) {
  const auto cell = [&](int at) { return trace.cell(Table::kCopyShape, shape, at); };
  std::string_view way = "Unknown";
  switch (static_cast<event::CopyDirection>(cell(column::CopyShape::direction))) {
    case event::CopyDirection::kHostToHost:
      way = "HtoH";
      break;
    case event::CopyDirection::kHostToDevice:
      way = "HtoD";
      break;
    case event::CopyDirection::kDeviceToHost:
      way = "DtoH";
      break;
    case event::CopyDirection::kDeviceToDevice:
      way = "DtoD";
      break;
    case event::CopyDirection::kPeerToPeer:
      way = "PtoP";
      break;
    default:
      break;
  }
  return fmt::format("Memcpy {} ({} -> {})", way, memory_word(cell(column::CopyShape::source_memory)),
                     memory_word(cell(column::CopyShape::target_memory)));
}

std::string fill_name(const trace::Trace& trace, int64_t shape) {
  return fmt::format("Memset ({})", memory_word(trace.cell(Table::kFillShape, shape, column::FillShape::memory)));
}

std::string_view sync_name(int64_t kind) {
  switch (static_cast<event::SyncKind>(kind)) {
    case event::SyncKind::kDevice:
      return "Device Sync";
    case event::SyncKind::kContext:
      return "Context Sync";
    case event::SyncKind::kQueue:
      return "Stream Sync";
    case event::SyncKind::kEvent:
      return "Event Sync";
    case event::SyncKind::kQueueWaitEvent:
      return "Stream Wait Event";
    case event::SyncKind::kBarrier:
      return "Barrier";
    case event::SyncKind::kMarker:
      return "Marker";
    default:
      return "Unknown Sync";
  }
}

void put_arguments(std::vector<std::pair<std::string_view, std::string_view>>& scratch, std::string_view text,
                   JsonFileWriter& json) {
  // In this order the reader of such files put them together.
  constexpr std::string_view kKeys[] = {"Collective name",
                                        "In msg nelems",
                                        "Out msg nelems",
                                        "Group size",
                                        "dtype",
                                        "In split size",
                                        "Out split size",
                                        "Process Group Name",
                                        "Process Group Description",
                                        "Seq",
                                        "Comms Id",
                                        "Process Group Ranks",
                                        "annotations"};
  if (text.empty()) return;
  if (put_annotations(text, json)) return;
  constexpr std::string_view kFirst[] = {"Collective name=", "Process Group Name=", "Seq=", "Comms Id="};
  if (std::ranges::none_of(kFirst, [&](std::string_view key) { return text.starts_with(key); })) {
    json.member("arguments", text);
    return;
  }
  scratch.clear();
  std::string_view rest = text;
  size_t next = 0;
  while (!rest.empty()) {
    const size_t equals = rest.find('=');
    const std::string_view key = rest.substr(0, equals);
    const auto found = std::find(std::begin(kKeys) + next, std::end(kKeys), key);
    if (equals == std::string_view::npos || found == std::end(kKeys)) break;
    next = static_cast<size_t>(found - std::begin(kKeys)) + 1;
    rest.remove_prefix(equals + 1);
    size_t end = rest.size();
    for (size_t i = next; i < std::size(kKeys); ++i) end = std::min(end, rest.find(fmt::format(", {}=", kKeys[i])));
    scratch.emplace_back(key, rest.substr(0, end));
    rest.remove_prefix(std::min(rest.size(), end + 2));
  }
  if (!rest.empty()) {
    json.member("arguments", text);
    return;
  }
  for (const auto& [key, value] : scratch) {
    if (key == "annotations" && put_annotations(value, json)) continue;
    // Names may be digits, too: "0".
    const bool counts = key.ends_with("nelems") || key == "Group size" || key == "Seq" || key == "Comms Id";
    json.key(key);
    if (counts && is_number(value))
      json.ready(value);
    else
      json.value(value);
  }
}

void put_launch_shape(const trace::Trace& trace, int64_t kernel, JsonWriter& json) {
  using K = column::Kernel;
  const auto cell = [&](int at) { return trace.cell(Table::kKernel, kernel, at); };
  const int64_t items[3] = {cell(K::grid_x), cell(K::grid_y), cell(K::grid_z)};
  const int64_t group[3] = {cell(K::group_x), cell(K::group_y), cell(K::group_z)};
  const auto triple = [&](JsonLiteral key, int64_t x, int64_t y, int64_t z) {
    json.name(key).begin_array().value(x).value(y).value(z).end_array();
  };
  const auto all = [](const int64_t(&values)[3]) {
    return std::none_of(std::begin(values), std::end(values), [](int64_t value) { return value == kUnknown; });
  };
  bool whole = all(items) && all(group);
  for (int i = 0; whole && i < 3; ++i) whole = group[i] > 0 && items[i] >= 0 && items[i] % group[i] == 0;
  if (whole)
    triple("grid", items[0] / group[0], items[1] / group[1], items[2] / group[2]);
  else if (all(items))
    triple("work-items", items[0], items[1], items[2]);
  if (all(group)) triple("block", group[0], group[1], group[2]);
  const auto number = [&](JsonLiteral key, int64_t value) {
    if (value != kUnknown) json.member(key, value);
  };
  number("registers per thread", cell(K::registers));
  const int64_t fixed = cell(K::shared_static), chosen = cell(K::shared_dynamic);
  int64_t shared = fixed == kUnknown ? chosen : fixed;
  if (fixed != kUnknown && chosen != kUnknown && __builtin_add_overflow(fixed, chosen, &shared)) shared = kUnknown;
  number("shared memory", shared);
  number("private memory", cell(K::private_bytes));
  if (cell(K::graph) != 0) json.member("graph id", static_cast<uint64_t>(cell(K::graph)));
  if (cell(K::occupancy) != kUnknown)
    json.member("est. achieved occupancy %", std::bit_cast<double>(cell(K::occupancy)));
}

void OperatorInputs::put(int64_t row, JsonFileWriter& json) {
  using I = column::OperatorInput;
  if (row == 0) return;
  const auto text = [&](JsonLiteral key, int at) {
    const int64_t string = trace_.cell(Table::kOperatorInput, row, at);
    if (string == 0) return;
    const std::string_view value = trace_.string(string);
    Form& form = forms_[static_cast<size_t>(string)];
    if (form == Form::kUnknown) form = is_json(value) && value.front() != '"' ? Form::kJson : Form::kText;
    json.name(key);
    if (form == Form::kJson)
      json.ready(value);
    else
      json.value(value);
  };
  text("Concrete Inputs", I::concrete);
  text("Input type", I::types);
  text("Input Strides", I::strides);
  text("Input Dims", I::dims);
}

TorchDevices::TorchDevices(const trace::Trace& trace, const walk::Agents& agents) : trace_(trace) {
  const int64_t devices = std::max<int64_t>(trace.rows(Table::kDevice), 1);
  numbers_.assign(static_cast<size_t>(devices), kUnknown);
  std::set<int64_t> taken;
  for (int64_t device = 1; device < devices; ++device) {
    const walk::Agent& agent = agents.of(device);
    if (agent.kind == event::DeviceKind::kGpu && agent.of_type >= 0 && taken.insert(agent.of_type).second)
      numbers_[static_cast<size_t>(device)] = agent.of_type;
  }
  int64_t next = 0;
  for (int64_t device = 1; device < devices; ++device) {
    int64_t& number = numbers_[static_cast<size_t>(device)];
    if (number != kUnknown) continue;
    while (!taken.insert(next).second) ++next;
    number = next;
  }
  find_multiprocessors();
}

void TorchDevices::find_multiprocessors() {
  for (int64_t device = 1; device < static_cast<int64_t>(numbers_.size()); ++device) {
    const auto text = trace_.property(Table::kDevice, device, "multiprocessors");
    const bool nvidia = trace_.text(Table::kDevice, device, column::Device::vendor) == "NVIDIA";
    int64_t number = 0;
    if (nvidia && text && is_number(*text)) std::from_chars(text->data(), text->data() + text->size(), number);
    if (number <= 0 || (multiprocessors_ != 0 && number != multiprocessors_)) {
      multiprocessors_ = 0;
      return;
    }
    multiprocessors_ = number;
  }
}

void TorchDevices::put_load(int64_t kernel, JsonWriter& json) const {
  using K = column::Kernel;
  if (multiprocessors_ == 0) return;
  double blocks = 1, threads = 1;
  constexpr int kItems[] = {K::grid_x, K::grid_y, K::grid_z}, kGroup[] = {K::group_x, K::group_y, K::group_z};
  for (size_t i = 0; i < std::size(kItems); ++i) {
    const int64_t items = trace_.cell(Table::kKernel, kernel, kItems[i]),
                  group = trace_.cell(Table::kKernel, kernel, kGroup[i]);
    if (items == kUnknown || group == kUnknown || group <= 0 || items % group != 0) return;
    blocks *= static_cast<double>(items / group);
    threads *= static_cast<double>(group);
  }
  const double per = blocks / static_cast<double>(multiprocessors_);
  json.member("blocks per SM", std::round(per * 1e6) / 1e6);
  json.member("warps per SM", std::round(per * threads / kWarp * 1e6) / 1e6);
}

void TorchDevices::put_properties(JsonFileWriter& json) const {
  json.newline().name("deviceProperties").begin_array();
  for (size_t device = 1; device < numbers_.size(); ++device) {
    const auto row = static_cast<int64_t>(device);
    json.newline().begin_object().member("id", numbers_[device]);
    json.member("name", trace_.text(Table::kDevice, row, column::Device::name));
    const auto number = [&](JsonLiteral key, std::string_view property) {
      const auto value = trace_.property(Table::kDevice, row, property);
      if (value && is_number(*value)) json.name(key).ready(*value);
      return value.has_value();
    };
    number("totalGlobalMem", "memory_bytes");
    if (!number("numSms", "multiprocessors")) number("numSms", "compute_units");
    if (const auto vendor = trace_.text(Table::kDevice, row, column::Device::vendor); !vendor.empty())
      json.member("vendor", vendor);
    const bool numbered = trace_.cell(Table::kDevice, row, column::Device::index) == numbers_[device];
    if (!numbered || !trace_.text(Table::kDevice, row, column::Device::architecture).empty() ||
        !trace_.text(Table::kDevice, row, column::Device::uuid).empty())
      json.name("tacho").ready(imported::device_origin(trace_, row));
    json.end_object();
  }
  json.end_array();
}

}  // namespace tacho::format
