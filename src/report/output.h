// Output files that are never half there: temporary name, fsync, rename.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho::report {

/// Writes the whole file, or leaves what was there. A file that exists is refused unless `overwrite`; the folder must
/// exist.
Status write_file(const std::string& path, std::string_view text, bool overwrite);

/// The same question before any work is done: fails when `path` exists and may not be overwritten.
Status check_writable(const std::string& path, bool overwrite);

/// A page with the JSON inside: replaces the one occurrence of kJsonPlace in `page` with `json`, made safe for a script
/// element. Fails when the page has no such place.
constexpr std::string_view kJsonPlace = "/*TACHO_JSON*/null";
Result<std::string> embed_json(std::string_view page, std::string_view json);

}  // namespace tacho::report
