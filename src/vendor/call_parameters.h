// Parameters of a vendor's calls, described as text, and the C structure in which its profiling library hands their
// values over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tacho::vendor {

/// `members`: name:kind in the structure's order, separated by blanks. Kinds: p pointer or handle, z size_t, i int, u
/// unsigned int, h unsigned short, c unsigned char, k cudaMemcpyKind or hipMemcpyKind, d dim3.
struct CallParameters {
  std::string_view function;
  std::string_view members;
};

/// Bytes of a member of that kind; 0 = there is no such kind.
constexpr size_t member_bytes(char kind) {
  switch (kind) {
    case 'p':
    case 'z':
      return 8;
    case 'i':
    case 'u':
    case 'k':
      return 4;
    case 'h':
      return 2;
    case 'c':
      return 1;
    case 'd':
      return 12;
    default:
      return 0;
  }
}

/// Takes the first member off `members`: its name, kind and place behind `end`, the end of the member before, which
/// moves to the end of this one. False when there is none.
struct CallMember {
  std::string_view name;
  char kind = 0;
  size_t offset = 0;
};
constexpr bool next_member(std::string_view& members, size_t& end, CallMember& out) {
  while (!members.empty() && members[0] == ' ') members.remove_prefix(1);
  const size_t colon = members.find(':');
  if (colon == std::string_view::npos || colon + 1 >= members.size()) return false;
  out.name = members.substr(0, colon);
  out.kind = members[colon + 1];
  members.remove_prefix(colon + 2);
  const size_t bytes = member_bytes(out.kind);
  if (bytes == 0) return false;
  const size_t alignment = out.kind == 'd' ? 4 : bytes;
  out.offset = (end + alignment - 1) / alignment * alignment;
  end = out.offset + bytes;
  return true;
}
/// Bytes of the structure up to the end of its last member.
constexpr size_t bytes_of(const CallParameters& call) {
  std::string_view members = call.members;
  size_t end = 0;
  CallMember member;
  while (next_member(members, end, member)) {
  }
  return end;
}

}  // namespace tacho::vendor
