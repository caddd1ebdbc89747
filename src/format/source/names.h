// What files of traces are called: their endings, with and without that of a packing.
#pragma once

#include <string_view>

namespace tacho::format {

/// Without .gz or .zst.
std::string_view without_packing(std::string_view name);

/// Whether a file's name ends as those of traces do, packed or not: .tacho, .rpd, .db, .json, .sqlite, .pftrace or
/// .perfetto-trace. Tables of all sorts end in .csv: they are known by their headers.
bool named_like_a_trace(std::string_view name);

/// The same for Perfetto's traces alone.
bool named_like_perfetto(std::string_view name);

}  // namespace tacho::format
