// PC sampling on NVIDIA in the target: which instructions warps are at and what they wait for
// (event/spool_samples.h).
#pragma once

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::counter {

/// Samples every kernel of this process from here on. `number`: of the process among those of the run. False with the
/// reason in `why`.
bool start_pc_sampler(const cuda::Cupti& cupti, const char* folder, unsigned number, const char** why);
/// For CUPTI's callbacks: contexts made and destroyed, modules loaded and unloaded; and launches, now and then.
void on_context(void* context, bool created);
void on_module(void* context, const void* image, size_t bytes, bool loaded);
void on_launch();
/// Fetches what is left when the program ends.
void finish_pc_sampler();

}  // namespace tacho::capture::counter
