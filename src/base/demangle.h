// Demangles names of C++ entities.
#pragma once

#include <string>
#include <string_view>

namespace tacho {

/// The demangled form of an Itanium-ABI symbol ("_Z..."), without AMD's suffixes ".kd" and " [clone .kd]";
/// any other text unchanged.
std::string demangle(std::string_view symbol);

/// A demangled signature without template arguments, parameters and return type:
/// "vectorized_elementwise_kernel".
std::string short_name(std::string_view demangled);

}  // namespace tacho
