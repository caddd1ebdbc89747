// CUPTI activity buffers in the pool: what CUPTI asks for is a run of pool blocks, what it completes is
// looked through once for names that were not seen before and handed to the drainer as it is. The target
// copies and decodes nothing.
#pragma once

#include <cstdint>

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::cuda {

/// Once, before CUPTI is told the callbacks. `blocks`: pool blocks (64 KiB) per buffer.
void setup_buffers(const Cupti& cupti, uint32_t version, uint32_t blocks);

/// For cuptiActivityRegisterCallbacks.
void buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records);
void buffer_completed(abi::Context context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);

/// Records in buffers that CUPTI still holds whose work has not ended or not been read back: what a forced
/// flush would hand over incomplete. Exact only while no thread launches anything.
uint64_t incomplete_records();
/// From now on completed buffers say (BlockHeader::aux) that they may hold work that had not ended.
void mark_last_buffers();
/// Looks for new names in the buffers that CUPTI holds, so that they are known should the process be killed.
/// One thread.
void look_for_names();
/// Asks CUPTI how many records it dropped since the last time and counts them.
void count_dropped_records();

}  // namespace tacho::capture::cuda
