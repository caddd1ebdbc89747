// Memory of the AMD source (rocm.h). HIP's allocations are recorded as the program asks for them (hip.cpp). Other
// allocations from HSA, by HIP for itself or by a program without HIP, are recorded here. A table of live allocations
// gives frees their size and keeps HSA's part of a recorded call from counting twice.
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "capture/room/pages.h"
#include "capture/source/rocm/rocm.h"
#include "capture/source/sampler/sampler.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

namespace sig = hsa::signature;

struct Known {
  Known* next;
  uint64_t address;
  TrackedAllocation allocation;
};
constexpr uint32_t kBuckets = 1 << 12;
constinit Known* g_known[kBuckets] = {};
constinit Known* g_unused = nullptr;
constinit std::atomic<uint32_t> g_known_lock{0};
constexpr uint32_t kKnownAtOnce = 1024;

Known*& bucket(uint64_t address) {
  return g_known[static_cast<uint32_t>(address * 0x9e3779b97f4a7c15ull >> 40) % kBuckets];
}

// The agent that owns the memory; 0 when the runtime does not know it.
hsa::Agent agent_of(uint64_t address) {
  hsa::PointerInfo info{};
  info.size = sizeof info;
  if (g_runtime.amd.hsa_amd_pointer_info == nullptr ||
      call<sig::PointerInfo>(g_runtime.amd.hsa_amd_pointer_info, reinterpret_cast<const void*>(address), &info,
                             static_cast<void* (*)(size_t)>(nullptr), static_cast<uint32_t*>(nullptr),
                             static_cast<hsa::Agent**>(nullptr)) != hsa::kSuccess ||
      info.type == 0)
    return 0;
  return info.owner;
}

// Memory that no known GPU owns belongs to the processor.
uint32_t owner_of(uint64_t address) {
  const hsa::Agent agent = agent_of(address);
  const HsaDevice* const device = agent != 0 ? device_of(agent) : nullptr;
  return device != nullptr ? device->number : 0;
}

void write(event::AllocationOperation operation, uint64_t address, const TrackedAllocation& allocation,
           uint64_t correlation, uint64_t start, uint64_t end) {
  if (tape::configuration().memory && operation == event::AllocationOperation::kAllocate)
    sampler::allocation_stack(correlation, start, true);
  else if (tape::configuration().memory)
    sampler::memory_stack();
  if (auto* const record = tape::begin<event::AllocationRecord>(
          event::RecordKind::kAllocation, event::Table::kAllocation,
          static_cast<uint32_t>(operation) | static_cast<uint32_t>(allocation.kind) << 8 | allocation.device << 16)) {
    record->correlation = correlation;
    record->start = start;
    record->end = end;
    record->bytes = allocation.bytes;
    record->address = address;
    record->name = record->reserved = 0;
    tape::commit();
  }
}

// True when an allocation or a free by HSA is to be recorded here.
bool wanted() {
  return !open_call().own_memory && tape::t_state.hidden == 0 && active() &&
         tape::enabled(tape::source_bit::kAllocation);
}

template <typename Function, typename... A>
hsa::Status allocate(void* function, void** out, size_t bytes, A... arguments) {
  if (!wanted()) return call<Function>(function, arguments...);
  const uint64_t start = host_ticks();
  const hsa::Status status = call<Function>(function, arguments...);
  if (status == hsa::kSuccess && out != nullptr)
    allocated(reinterpret_cast<uint64_t>(*out), bytes, event::MemoryKind::kUnknown, tape::t_state.open_correlation,
              start, host_ticks());
  return status;
}

hsa::Status release(void* function, void* at) {
  TrackedAllocation allocation;
  if (open_call().own_memory || !active() || !take_allocation(reinterpret_cast<uint64_t>(at), allocation))
    return call<sig::MemoryFree>(function, at);
  const uint64_t start = host_ticks();
  const hsa::Status status = call<sig::MemoryFree>(function, at);
  if (status == hsa::kSuccess)
    freed(reinterpret_cast<uint64_t>(at), allocation, tape::t_state.open_correlation, start, host_ticks());
  else
    keep_allocation(reinterpret_cast<uint64_t>(at), allocation);
  return status;
}

}  // namespace

bool is_of_the_host(const void* address) {
  const hsa::Agent agent = agent_of(reinterpret_cast<uint64_t>(address));
  return agent != 0 && device_of(agent) == nullptr;
}

void keep_allocation(uint64_t address, const TrackedAllocation& allocation) {
  const Guard lock(g_known_lock);
  if (g_unused == nullptr) {
    void* const memory = map_pages(kKnownAtOnce * sizeof(Known));
    if (memory == nullptr) return;
    for (uint32_t at = 0; at < kKnownAtOnce; ++at) {
      Known& fresh = static_cast<Known*>(memory)[at];
      fresh.next = g_unused;
      g_unused = &fresh;
    }
  }
  Known* const known = g_unused;
  g_unused = known->next;
  Known*& list = bucket(address);
  *known = {list, address, allocation};
  list = known;
}

bool take_allocation(uint64_t address, TrackedAllocation& out) {
  const Guard lock(g_known_lock);
  for (Known** link = &bucket(address); *link != nullptr; link = &(*link)->next) {
    Known* const known = *link;
    if (known->address != address) continue;
    out = known->allocation;
    *link = known->next;
    known->next = g_unused;
    g_unused = known;
    return true;
  }
  return false;
}

void allocated(uint64_t address, uint64_t bytes, event::MemoryKind kind, uint64_t correlation, uint64_t start,
               uint64_t end) {
  TrackedAllocation allocation{bytes, kind, owner_of(address)};
  if (kind == event::MemoryKind::kUnknown)
    allocation.kind = allocation.device != 0 ? event::MemoryKind::kDevice : event::MemoryKind::kHost;
  keep_allocation(address, allocation);
  write(event::AllocationOperation::kAllocate, address, allocation, correlation, start, end);
}

void freed(uint64_t address, const TrackedAllocation& allocation, uint64_t correlation, uint64_t start, uint64_t end) {
  if (tape::enabled(tape::source_bit::kAllocation))
    write(event::AllocationOperation::kFree, address, allocation, correlation, start, end);
}

hsa::Status pool_allocate(uint64_t pool, size_t bytes, uint32_t flags, void** out) {
  return allocate<sig::PoolAllocate>(g_runtime.amd.hsa_amd_memory_pool_allocate, out, bytes, pool, bytes, flags, out);
}
hsa::Status pool_free(void* at) {
  return release(g_runtime.amd.hsa_amd_memory_pool_free, at);
}
hsa::Status memory_allocate(uint64_t region, size_t bytes, void** out) {
  return allocate<sig::MemoryAllocate>(g_runtime.core.hsa_memory_allocate, out, bytes, region, bytes, out);
}
hsa::Status memory_free(void* at) {
  return release(g_runtime.core.hsa_memory_free, at);
}

}  // namespace tacho::capture::rocm
