// OpenCL's functions by the numbers that ApiRecord has for Domain::kOpenCL (functions_opencl.def).
#pragma once

#include <cstdint>
#include <string_view>

namespace tacho::event::opencl {

enum class Function : uint16_t {
  kNone = 0,
#define TACHO_CL_FUNCTION(number, name, count, parameters) name = (number),
#define TACHO_CL_OPAQUE(number, name) name = (number),
#define TACHO_CL_EXTENSION(number, name, parameters) name = (number),
#include "event/functions/functions_opencl.def"
};

/// The function's name; empty for an unknown number.
std::string_view function_name(uint16_t number);
/// name:kind of every parameter, as functions_opencl.def has them; empty if the headers do not name them.
std::string_view function_parameters(uint16_t number);
/// False for functions that return no result code: their ApiRecord's result means nothing.
bool has_result(uint16_t number);

}  // namespace tacho::event::opencl
