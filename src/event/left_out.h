// Names of kernels that a program launched and that the user's filter left out, as properties of its process.
#pragma once

#include <cstddef>

namespace tacho::event {

/// The key of the first is this and "0"; its value is the kernel's name.
inline constexpr const char* kLeftOutKernel = "left_out_kernel.";
/// Of further kernels the trace has only the number of launches, as a loss of reason kFiltered.
inline constexpr size_t kLeftOutNames = 8;

}  // namespace tacho::event
