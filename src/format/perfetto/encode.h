// Encodes protobuf fields into buffers that the caller has made large enough, for packets that are written millions of
// times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <protozero/varint.hpp>
#include <string>
#include <string_view>

#include "base/text/utf8.h"

namespace tacho::format::perfetto {

/// Writes at `at`; returns the place behind. A varint takes ten bytes at most.
inline char* put_varint(char* at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<char>(value);
  return at;
}
inline size_t varint_size(uint64_t value) {
  return static_cast<size_t>(protozero::length_of_varint(value));
}
inline char* put_bytes(char* at, std::string_view bytes) {
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return at + bytes.size();
}

/// Tags of fields below 16, and of any field.
constexpr char tag1(uint32_t field, uint32_t wire) {
  return static_cast<char>(field << 3 | wire);
}
inline char* put_tag2(char* at, uint32_t field, uint32_t wire) {
  return put_varint(at, field << 3 | wire);
}
inline char* put_number(char* at, uint32_t field, uint64_t value) {
  return put_varint(put_tag2(at, field, 0), value);
}
inline void add_number(std::string& to, uint32_t field, uint64_t value) {
  char bytes[20];
  to.append(bytes, static_cast<size_t>(put_number(bytes, field, value) - bytes));
}
inline void add_bytes(std::string& to, uint32_t field, std::string_view bytes) {
  char head[20];
  to.append(head, static_cast<size_t>(put_varint(put_tag2(head, field, 2), bytes.size()) - head));
  to.append(bytes);
}
/// Whether a text is UTF-8 as it is, being ASCII without NUL.
inline bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) > 0; });
}
/// A text as UTF-8: Perfetto drops packets that hold others.
inline void add_text(std::string& to, uint32_t field, std::string_view text) {
  if (is_plain(text)) return add_bytes(to, field, text);
  add_bytes(to, field, valid_utf8(text));
}

}  // namespace tacho::format::perfetto
