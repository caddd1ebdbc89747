// The user's filter of kernels by name (--kernel-include, --kernel-exclude), for sources that apply it in the target.
#pragma once

#include <string_view>

namespace tacho::capture {

/// Reads the expressions from the configuration, once; a note says when one is invalid. Call before the first
/// kernel_included(), from one thread.
void read_kernel_filter();
/// True if kernels of that name, mangled or not, are to be recorded.
bool kernel_included(std::string_view name);
/// The program launched a kernel that the filter leaves out: the trace names the first event::kLeftOutNames of them.
/// Call once for each kernel object, not for each launch.
void tell_left_out(std::string_view name);

}  // namespace tacho::capture
