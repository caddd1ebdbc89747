// Kinds of what a thread of the host does, told apart because some of them call each other: times of functions that
// nest must not be added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "event/schema.h"

namespace tacho::analysis {

enum class HostKind : uint8_t {
  kApi,       ///< calls of a GPU's runtime, of MPI and of other libraries
  kOperator,  ///< operators of a framework, which call operators
  kPython,    ///< functions of Python
  kFunction,  ///< functions of the program
  kMarker,    ///< ranges
  kWait,      ///< functions of Python that only wait
  kEnd,
};
inline constexpr size_t kHostKinds = static_cast<size_t>(HostKind::kEnd);

/// "API", "operator", "Python", "function", "marker", "wait".
std::string_view to_string(HostKind kind);

/// Of a row of table function; never kMarker.
HostKind host_kind(event::Domain domain, std::string_view function);

/// Whether functions of the domain call each other: of Python, of the program, operators.
bool functions_nest(event::Domain domain);

/// Whether a function of Python, as torch.profiler names it, does nothing but wait for another thread, a process or a
/// time: "threading.py(359): wait", "<built-in function sleep>", "<method 'acquire' of '_thread.lock' objects>".
bool python_waits(std::string_view function);

}  // namespace tacho::analysis
