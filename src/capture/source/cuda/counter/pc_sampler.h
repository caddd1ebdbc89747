// PC sampling on NVIDIA in the target: which instructions warps are at and what they wait for
// (event/spool_samples.h).
#pragma once

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::counter {

/// Samples every kernel of this process from here on; `number` is that of the process among those of the run.
/// False with the reason told to the user. `counted` is incremented for every record that could not be
/// written.
bool start_pc_sampler(const cuda::Cupti& cupti, const char* folder, unsigned number, const char** why);
/// What CUPTI's callbacks tell: contexts made and destroyed, modules loaded and unloaded. Launches, now and
/// then.
void on_context(void* context, bool created);
void on_module(void* context, const void* image, size_t bytes, bool loaded);
void on_launch();
/// The program ends: what was not fetched yet.
void finish_pc_sampler();

}  // namespace tacho::capture::counter
