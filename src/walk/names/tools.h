// Programs that other programs start to get going: shells, compilers, version managers.
#pragma once

#include <string_view>

namespace tacho::walk {

/// True for the name of such a program, with or without a target before it ("x86_64-linux-gnu-ld.bfd").
bool is_helping_tool(std::string_view name);

}  // namespace tacho::walk
