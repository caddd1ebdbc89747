// CUPTI's activity buffers in the pool. Each buffer that CUPTI asks for is a run of pool blocks. When CUPTI completes
// one, the target looks through it once for new names and hands it to the drainer unchanged; it copies and decodes
// nothing.
#pragma once

#include <cstdint>

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::cuda {

/// Call once, before registering the callbacks. `blocks`: pool blocks (64 KiB) per buffer.
void setup_buffers(const Cupti& cupti, uint32_t version, uint32_t blocks);

/// For cuptiActivityRegisterCallbacks.
void buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records);
void buffer_completed(abi::Context context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);

/// The number of records in CUPTI's open buffers whose work is unfinished or not read back yet; a forced flush would
/// hand them over incomplete. Exact only while no thread launches anything.
uint64_t incomplete_records();
/// Those of kernels and copies alone that calls with numbers (correlations) below `call` launched.
uint64_t incomplete_records_before(uint32_t call);
/// Whether CUPTI holds a buffer of tacho's.
bool holds_buffers();
/// Marks all buffers completed from now on (BlockHeader::aux) as possibly holding work that has not ended.
void mark_last_buffers();
/// Begins anew in another pool: no text is known there, no buffer is CUPTI's.
void forget_buffers();
/// Looks for new names in the buffers that CUPTI holds, so that tacho knows them if the process is killed. For one
/// thread only.
void look_for_names();
/// CUPTI's number of the newest call of a function of the driver's in the buffers that CUPTI holds, or has completed
/// since the last time this was asked for that function; 0 = none. For one thread only.
uint32_t newest_call(uint32_t driver_function);
/// From now on `see` gets the numbers of launches of kernels, those of graphs apart, from each buffer that CUPTI
/// completes, before tacho gets the buffer. nullptr: no more.
void watch_launches(void (*see)(uint32_t number));
/// Whether a kernel of a graph was in a buffer since forget_buffers().
bool saw_graph_kernels();
/// Asks CUPTI how many records it dropped since the last time and counts them.
void count_dropped_records();

}  // namespace tacho::capture::cuda
