// PC sampling on NVIDIA GPUs, in the target: samples the instructions that warps are at and their stall reasons, and
// spools them (event/spool/spool_samples.h).
#pragma once

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::counter {

/// Samples every kernel of this process from now on. `number`: running number of the process in the run. If it cannot,
/// it returns false with the reason in `why`.
bool start_pc_sampler(const cuda::Cupti& cupti, const char* folder, unsigned number, const char** why);
/// For CUPTI's callbacks: a context was created or is about to be destroyed, a module loaded or unloaded. Call
/// on_launch() for launches now and then.
void on_context(void* context, bool created);
void on_module(void* context, const void* image, size_t bytes, bool loaded);
void on_launch();
/// Fetches the remaining samples when the program ends.
void finish_pc_sampler();

}  // namespace tacho::capture::counter
