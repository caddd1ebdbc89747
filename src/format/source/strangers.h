// Files that are no trace, or one that tacho does not read: what they are, and what to do.
#pragma once

#include <string>
#include <string_view>

namespace tacho::format::source {

/// What a file is that no reader takes, by its name: "a report of Nsight Systems: ..."; "" = the name tells nothing.
std::string stranger_by_name(std::string_view path);
/// What the file `path` is, which begins with `head` (unpacked) and which no reader takes, without its
/// name; "" = nothing is known about it.
std::string stranger(std::string_view path, std::string_view head);

}  // namespace tacho::format::source
