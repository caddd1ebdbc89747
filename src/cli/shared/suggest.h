// "Did you mean": the known name nearest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::cli {

/// The known name with the fewest edits from `word`, at most a third of its length (or 1); else "".
std::string nearest(std::string_view word, std::span<const std::string> known);

/// "; did you mean --kernel-trace?" if one of the known options resembles the unknown `option`; else "".
std::string suggestion(std::span<const std::string> known, std::string_view option);

}  // namespace tacho::cli
