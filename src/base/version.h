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

/// The release that this program was built from: "tag v0.1.0", or "12 commits after tag v0.1.0" if it was built from a
/// later commit. Empty if there is no such tag before the commit, or if it was not built from a git checkout.
std::string_view program_release();

/// "0.1.0 (tag v0.1.0, commit 8faaebf)"; what is unknown is left out.
std::string program_version_text();

}  // namespace tacho
