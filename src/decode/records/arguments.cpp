// Formatting of arguments (arguments.h).
#include "decode/records/arguments.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <vector>

#include "base/format.h"
#include "event/functions/functions_opencl.h"
#include "vendor/amd/call_parameters.h"

namespace tacho::decode {
namespace {

struct Flag {
  uint64_t bit;
  std::string_view name;
};
// CL/cl.h.
constexpr Flag kMemoryFlags[] = {{1 << 0, "READ_WRITE"},      {1 << 1, "WRITE_ONLY"},
                                 {1 << 2, "READ_ONLY"},       {1 << 3, "USE_HOST_PTR"},
                                 {1 << 4, "ALLOC_HOST_PTR"},  {1 << 5, "COPY_HOST_PTR"},
                                 {1 << 7, "HOST_WRITE_ONLY"}, {1 << 8, "HOST_READ_ONLY"},
                                 {1 << 9, "HOST_NO_ACCESS"},  {1 << 10, "SVM_FINE_GRAIN_BUFFER"},
                                 {1 << 11, "SVM_ATOMICS"},    {1 << 12, "KERNEL_READ_AND_WRITE"}};
constexpr Flag kMapFlags[] = {{1 << 0, "READ"}, {1 << 1, "WRITE"}, {1 << 2, "WRITE_INVALIDATE_REGION"}};
constexpr Flag kMigrationFlags[] = {{1 << 0, "HOST"}, {1 << 1, "CONTENT_UNDEFINED"}};
constexpr Flag kQueueFlags[] = {
    {1 << 0, "OUT_OF_ORDER_EXEC_MODE"}, {1 << 1, "PROFILING"}, {1 << 2, "ON_DEVICE"}, {1 << 3, "ON_DEVICE_DEFAULT"}};

std::string flags_text(std::span<const Flag> flags, uint64_t value) {
  std::string out;
  for (const Flag& flag : flags) {
    if ((value & flag.bit) == 0) continue;
    out += fmt::format("{}{}", out.empty() ? "" : "|", flag.name);
    value &= ~flag.bit;
  }
  if (value != 0 || out.empty())
    out += fmt::format("{}{}", out.empty() ? "" : "|", value == 0 ? "0" : fmt::format("{:#x}", value));
  return out;
}

template <typename Integer, typename Real>
std::string value_text(const event::KernelArgument& argument, double largest) {
  Integer whole;
  Real real;
  std::memcpy(&whole, argument.value, sizeof whole);
  std::memcpy(&real, argument.value, sizeof real);
  if (std::abs(static_cast<double>(whole)) <= largest) return fmt::format("{}", whole);
  const double size = std::abs(static_cast<double>(real));
  if (size >= 1e-9 && size <= 1e9) return fmt::format("{:g}", real);
  return fmt::format("{}", whole);
}

std::string bytes_text(const event::KernelArgument& argument) {
  std::string out = "0x";
  const size_t there = std::min<size_t>(argument.size, sizeof argument.value);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(argument.value);
  for (size_t i = 0; i < there; ++i) out += fmt::format("{:02x}", bytes[i]);
  return there < argument.size ? fmt::format("{}… ({} B)", out, argument.size) : out;
}

std::string argument_text(const event::KernelArgument& argument) {
  using Kind = event::KernelArgument::Kind;
  switch (argument.kind) {
    case Kind::kLocal:
      return fmt::format("{} B local", argument.size);
    case Kind::kBuffer:
      return fmt::format("buffer {} of {} B", pointer_text(argument.value[0]), argument.value[1]);
    case Kind::kPointer:
      return pointer_text(argument.value[0]);
    case Kind::kValue:
      break;
  }
  switch (argument.size) {
    case 1:
      return fmt::format("{}", static_cast<int8_t>(argument.value[0] & 0xff));
    case 2:
      return fmt::format("{}", static_cast<int16_t>(argument.value[0] & 0xffff));
    case 4:
      return value_text<int32_t, float>(argument, 1 << 24);
    case 8:
      return value_text<int64_t, double>(argument, 0x1p53);
    default:
      return bytes_text(argument);
  }
}

// cudaMemcpyKind, hipMemcpyKind.
std::string copy_kind_text(uint32_t kind) {
  static constexpr std::string_view kKinds[] = {"host to host", "host to device", "device to host", "device to device",
                                                "default"};
  return kind < std::size(kKinds) ? std::string(kKinds[kind]) : fmt::format("{}", kind);
}

// Appends a member of a call's structure, whose bytes are at `at`.
void append_member(std::string& out, const vendor::CallMember& member, const std::byte* at) {
  uint64_t value = 0;
  uint32_t dimensions[3] = {};
  if (member.kind == 'd')
    std::memcpy(dimensions, at, sizeof dimensions);
  else
    std::memcpy(&value, at, vendor::member_bytes(member.kind));
  out += fmt::format("{}{}=", out.empty() ? "" : ", ", member.name);
  if (member.kind == 'p')
    out += pointer_text(value);
  else if (member.kind == 'd')
    out += fmt::format("{}x{}x{}", dimensions[0], dimensions[1], dimensions[2]);
  else if (member.kind == 'k')
    out += copy_kind_text(static_cast<uint32_t>(value));
  else if (member.kind == 'i')
    out += fmt::format("{}", static_cast<int32_t>(value));
  else
    out += fmt::format("{}", value);
}

}  // namespace

std::string call_structure_text(const vendor::CallParameters& call, std::span<const std::byte> structure) {
  std::string out;
  if (structure.size() < vendor::bytes_of(call)) return out;
  std::string_view members = call.members;
  size_t end = 0;
  vendor::CallMember member;
  while (vendor::next_member(members, end, member)) append_member(out, member, structure.data() + member.offset);
  return out;
}

std::string hip_call_text(std::string_view function, std::span<const uint64_t> words) {
  std::string out;
  const vendor::CallParameters* const call = vendor::amd::find_hip_call(function);
  if (call == nullptr) return out;
  std::string_view members = call->members;
  size_t end = 0, registers = 0, stack = 0;
  vendor::CallMember member;
  while (vendor::next_member(members, end, member)) {
    const size_t first = vendor::amd::word_of(member, registers, stack);
    if (first + (member.kind == 'd' ? 2 : 1) > words.size()) break;
    append_member(out, member, reinterpret_cast<const std::byte*>(words.data() + first));
  }
  return out;
}

std::string pointer_text(uint64_t value) {
  return value == 0 ? "NULL" : fmt::format("{:#x}", value);
}

std::string opencl_call_text(uint16_t function, std::span<const uint64_t> words) {
  std::string_view parameters = event::opencl::function_parameters(function);
  std::string out;
  for (const uint64_t word : words) {
    if (parameters.empty()) break;
    const size_t end = std::min(parameters.find(' '), parameters.size());
    const std::string_view one = parameters.substr(0, end);
    parameters.remove_prefix(std::min(end + 1, parameters.size()));
    const std::string_view name = one.substr(0, one.find(':'));
    if (name == "errcode_ret") continue;
    out += fmt::format("{}{}=", out.empty() ? "" : ", ", name);
    switch (one.back()) {
      case 'p':
        out += pointer_text(word);
        break;
      case 'b':
      case 'u':
        out += fmt::format("{}", word);
        break;
      case 'i':
        out += fmt::format("{}", static_cast<int64_t>(word));
        break;
      case 'f':
        out += flags_text(kMemoryFlags, word);
        break;
      case 'm':
        out += flags_text(kMapFlags, word);
        break;
      case 'g':
        out += flags_text(kMigrationFlags, word);
        break;
      case 'q':
        out += flags_text(kQueueFlags, word);
        break;
      default:
        out += fmt::format("{:#x}", word);
        break;
    }
  }
  return out;
}

std::string kernel_arguments_text(std::span<const event::KernelArgument> arguments) {
  std::vector<event::KernelArgument> sorted(arguments.begin(), arguments.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  std::string out;
  for (const event::KernelArgument& argument : sorted)
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", argument.index, argument_text(argument));
  return out;
}

}  // namespace tacho::decode
