// A dispatch of the AMD source (rocm.h), from its packet until its times are known. Both kinds of queues make its
// record: those that are intercepted (queues.cpp) and those that a running program had made before tacho came
// (late_hsa/old_queues.cpp).
#pragma once

#include <cstdint>

#include "capture/source/rocm/rocm.h"

namespace tacho::capture::rocm {

struct HsaDispatch {
  uint64_t correlation, object;  // of the call; of the kernel, as packets name it
  uint32_t kernel, ordinal;
  uint32_t queue;       // of the pool: the stream's
  uint32_t graph_node;  // 0 = of no graph
  uint32_t grid[3];
  uint16_t group[3];
  uint32_t shared_dynamic;
};

/// Counts the launch and fills `dispatch` from its packet, on the thread that launches it. `queue`: of the pool;
/// `hardware`: number of the HSA queue. False when it is not to be recorded.
bool see_dispatch(const hsa::KernelPacket& packet, uint32_t queue, uint32_t device, uint32_t hardware,
                  HsaDispatch& dispatch);
void write_dispatch(const HsaDispatch& dispatch, const hsa::ProfilingTime& time);
/// A launch's ordinal. Recording starts with, or stops before, the launch that a trigger counts.
uint32_t count_launch();
/// The number of a HSA queue, from 1 in the order in which tacho has met them.
uint32_t next_hardware_queue();
/// Defines such a queue, of number `number` in the pool.
void define_hardware_queue(uint32_t number, uint32_t hardware, const HsaDevice& device);

}  // namespace tacho::capture::rocm
