// The OpenCL source in a program that already runs. Every call that a program makes through the ICD loader goes through
// its runtime's dispatch table, also calls by pointers that it has looked up long ago. tacho's functions are written
// into these tables, and the runtime's own back into them when tacho leaves.
#pragma once

#include "capture/source/opencl/core.h"

namespace tacho::capture::opencl {

/// Looks for runtimes that are loaded and not hooked yet. Does nothing else in a program that has none.
void start_late();
/// Takes the hooks out, writes what is complete within a second and counts the rest as lost.
void leave_late();
/// In a child forked meanwhile: the tables are its own, and nothing else of the session is.
void leave_in_child();

/// The hooks, with `functions` (a runtime's own) below them; nullptr if this process is traced in another way or not at
/// all. Begins anew in the pool that tacho has attached to.
const cl_icd_dispatch* hooks_for(const cl_icd_dispatch& functions);

}  // namespace tacho::capture::opencl
