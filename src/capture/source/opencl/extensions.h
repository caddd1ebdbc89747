// Extension functions that the program asks for by name: those that enqueue work or allocate memory are
// wrapped.
#pragma once

#include "capture/source/opencl/core.h"

namespace tacho::capture::opencl {

void install_extensions(cl_icd_dispatch& hooks);

}  // namespace tacho::capture::opencl
