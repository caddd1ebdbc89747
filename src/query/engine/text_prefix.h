// The first 24 bytes of a text as numbers that sort like the text, so that sorting by name rarely looks at the texts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tacho::query {

using TextPrefix = std::array<uint64_t, 3>;

/// If prefixes are equal, compare the texts: they may be longer, or contain zero bytes.
inline TextPrefix text_prefix(std::string_view text) {
  char bytes[sizeof(TextPrefix)] = {};
  if (!text.empty()) std::memcpy(bytes, text.data(), std::min(text.size(), sizeof bytes));
  TextPrefix prefix;
  for (size_t i = 0; i < prefix.size(); ++i) {
    std::memcpy(&prefix[i], bytes + 8 * i, 8);
    prefix[i] = __builtin_bswap64(prefix[i]);
  }
  return prefix;
}

}  // namespace tacho::query
