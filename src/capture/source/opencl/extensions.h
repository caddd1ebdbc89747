// Wraps the extension functions that enqueue work or allocate memory when the program asks for them by name.
#pragma once

#include "capture/source/opencl/core.h"

namespace tacho::capture::opencl {

void install_extensions(cl_icd_dispatch& hooks);

}  // namespace tacho::capture::opencl
