// Whether a text is JSON, for writers that put texts from elsewhere into JSON as they are.
#pragma once

#include <string_view>

namespace tacho {

/// True if `text` is one JSON value of RFC 8259 in valid UTF-8, nested at most 64 deep, and nothing else.
bool is_json(std::string_view text);

}  // namespace tacho
