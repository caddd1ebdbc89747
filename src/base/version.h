// The version of this tacho.
#pragma once

#include <string>
#include <string_view>

namespace tacho {

/// "0.1.0".
inline constexpr std::string_view kProgramVersion = TACHO_PROGRAM_VERSION;

/// The commit that this program was built from ("8faaebf", "8faaebf-dirty" with uncommitted changes); empty if it was
/// not built from a git checkout.
std::string_view program_commit();

/// "0.1.0 (commit 8faaebf)", or "0.1.0" if the commit is unknown.
std::string program_version_text();

}  // namespace tacho
