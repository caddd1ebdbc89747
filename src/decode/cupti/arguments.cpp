// Formatting of CUDA's arguments (arguments.h).
#include "decode/cupti/arguments.h"

#include <cstdint>
#include <cstring>
#include <iterator>

#include "base/format.h"
#include "decode/records/arguments.h"
#include "vendor/nvidia/call_parameters.h"

namespace tacho::decode {
namespace {

// cudaMemcpyKind.
std::string copy_kind_text(uint32_t kind) {
  static constexpr std::string_view kKinds[] = {"host to host", "host to device", "device to host",
                                                "device to device", "default"};
  return kind < std::size(kKinds) ? std::string(kKinds[kind]) : fmt::format("{}", kind);
}

}  // namespace

std::string cuda_call_text(std::string_view function, std::span<const std::byte> parameters) {
  const vendor::nvidia::CallParameters* const call = vendor::nvidia::find_call_parameters(function);
  if (call == nullptr || parameters.size() < vendor::nvidia::bytes_of(*call)) return {};
  std::string_view members = call->members;
  size_t end = 0;
  vendor::nvidia::CallMember member;
  std::string out;
  while (vendor::nvidia::next_member(members, end, member)) {
    uint64_t value = 0;
    uint32_t dimensions[3] = {};
    const std::byte* const at = parameters.data() + member.offset;
    if (member.kind == 'd')
      std::memcpy(dimensions, at, sizeof dimensions);
    else
      std::memcpy(&value, at, vendor::nvidia::member_bytes(member.kind));
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
  return out;
}

}  // namespace tacho::decode
