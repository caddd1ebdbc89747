// "Did you mean": the known name nearest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace tacho::cli {

/// The known name with the fewest edits from `word`, at most a third of its length (or 1); else "".
std::string nearest(std::string_view word, std::span<const std::string> known);

/// "; did you mean --kernel-trace?" if a known option of `app` resembles the unknown `option`; else "".
std::string suggestion(const CLI::App& app, std::string_view option);

}  // namespace tacho::cli
