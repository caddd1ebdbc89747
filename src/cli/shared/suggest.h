// "Did you mean": the nearest known name to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace tacho::cli {

/// The known name with the smallest edit distance to `word`, if that is at most a third of its length; else "".
std::string nearest(std::string_view word, std::span<const std::string> known);

/// "; did you mean --kernel-trace?" when the unknown `option` resembles a known one of `app`; else "".
std::string suggestion(const CLI::App& app, std::string_view option);

}  // namespace tacho::cli
