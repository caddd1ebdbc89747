// Names of C++ functions as people write them, by the C++ runtime that the program has.
#pragma once

#include <string_view>

namespace tacho::capture {

/// Looks for the program's demangler; loads libstdc++ if there is none. Call once, before readable_name().
void find_demangler();
/// The name without its mangling, allocated by malloc(); nullptr when it is not mangled, or nobody can tell.
char* readable_name(const char* name);

}  // namespace tacho::capture
