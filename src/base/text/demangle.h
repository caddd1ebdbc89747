// Demangles names of C++ entities.
#pragma once

#include <string>
#include <string_view>

namespace tacho {

/// The demangled form of an Itanium-ABI symbol ("_Z..."), without AMD's suffixes ".kd" and " [clone .kd]" and without
/// nvcc's prefix of a static kernel ("__nv_static_..."). Other texts only lose these suffixes and this prefix.
std::string demangle(std::string_view symbol);
/// False for most texts that demangle() would return as they are, without trying.
bool may_be_mangled(std::string_view text);

/// The bare name in a demangled signature, without scope, template arguments, parameters and return type:
/// "vectorized_elementwise_kernel".
std::string short_name(std::string_view demangled);

}  // namespace tacho
