// The formats that traces are written in, by the names that users give.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/format.h"

namespace tacho::cli {

/// "a,b" -> {"a", "b"}.
std::vector<std::string> words_of(std::string_view list);

/// Finds the writer of a format. The error for an unknown one names the nearest format and lists all.
Result<const format::Writer*> writer_of(std::string_view name);

/// The writer whose files end like `path`: ".json", ".pftrace", ".csv" ...; the longest ending counts. Null if there is
/// none.
const format::Writer* writer_of_ending(std::string_view path);

/// A file's name without .tacho or the ending of a format; other endings stay.
std::string without_ending(const std::string& name);

}  // namespace tacho::cli
