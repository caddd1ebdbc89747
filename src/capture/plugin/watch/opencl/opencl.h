// OpenCL in a program that ran before tacho watch came to it: no layer of the loader can be had any more, so the hooks
// go into the runtimes' dispatch tables.
#pragma once

#include "capture/source/opencl/tables.h"

namespace tacho::capture::watch {

/// Looks for runtimes that are loaded and not hooked yet. Says why one cannot be, or nullptr.
const char* enter_opencl();
/// Reads the times of what ends within a second, and counts the others as lost. While the hooks are still there; no
/// operation is timed any more.
void drain_opencl();
/// Takes the hooks out.
void leave_opencl();

/// The hooks with `functions` below them: nullptr if they are there as a layer of the loader, or there is no memory.
const cl_icd_dispatch* opencl_hooks_above(const cl_icd_dispatch& functions);
/// What the hooks call.
cl_icd_dispatch& opencl_below();
/// Before operations are counted in another table than before.
void begin_opencl();

}  // namespace tacho::capture::watch
