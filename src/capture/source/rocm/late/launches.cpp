// Launches under way (late.h): slots whose number and use make HIP's correlation, so that a record of work finds the
// call that made it without a search.
//
//   correlation   bits 0..15    16..63
//                 slot         how often a slot was taken in this process
#include <string.h>
#include <sys/mman.h>

#include "capture/room/lock.h"
#include "capture/room/pages.h"
#include "capture/source/rocm/late/late.h"

namespace tacho::capture::rocm {
namespace {

constexpr uint32_t kSlotBits = 16, kSlots = 1u << kSlotBits;
constexpr uint32_t kKept = 16'384;

constinit std::atomic<LateLaunch*> g_slots{nullptr};
constinit LockWord g_slots_lock{0};
constinit LateLaunch* g_free = nullptr;
constinit uint32_t g_fresh = 0;  // slots from here on were never taken
constinit uint64_t g_taken = 0;
// Those that may make more work than has come, in the order in which the first of it came.
constinit LateLaunch *g_oldest = nullptr, *g_newest = nullptr;
constinit uint32_t g_kept = 0;

void free_slot(LateLaunch& launch) {
  launch.id.store(0, std::memory_order_release);
  launch.next = g_free;
  g_free = &launch;
}

}  // namespace

LateLaunch* take_launch() {
  const Guard lock(g_slots_lock);
  LateLaunch* slots = g_slots.load(std::memory_order_relaxed);
  if (slots == nullptr) {
    slots = static_cast<LateLaunch*>(map_pages(kSlots * sizeof(LateLaunch)));
    if (slots == nullptr) return nullptr;
    g_slots.store(slots, std::memory_order_release);
  }
  LateLaunch* launch = g_free;
  if (launch != nullptr)
    g_free = launch->next;
  else if (g_fresh < kSlots)
    launch = &slots[g_fresh++];
  else
    return nullptr;
  memset(static_cast<void*>(launch), 0, sizeof *launch);
  launch->id.store(++g_taken << kSlotBits | static_cast<uint64_t>(launch - slots), std::memory_order_release);
  return launch;
}

LateLaunch* launch_of(uint64_t id) {
  LateLaunch* const slots = g_slots.load(std::memory_order_acquire);
  if (slots == nullptr || id == 0) return nullptr;
  LateLaunch& launch = slots[id % kSlots];
  return launch.id.load(std::memory_order_acquire) == id ? &launch : nullptr;
}

void end_launch(LateLaunch& launch) {
  const Guard lock(g_slots_lock);
  if (launch.kernel || launch.told.load(std::memory_order_relaxed) == 0) return free_slot(launch);
  launch.next = nullptr;
  (g_newest == nullptr ? g_oldest : g_newest->next) = &launch;
  g_newest = &launch;
  if (++g_kept <= kKept) return;
  LateLaunch& oldest = *g_oldest;
  g_oldest = oldest.next;
  --g_kept;
  free_slot(oldest);
}

void forget_launches() {
  const Guard lock(g_slots_lock);
  g_free = g_oldest = g_newest = nullptr;
  g_fresh = g_kept = 0;
  // Its pages read as zeros: no correlation of the past is one of theirs.
  if (LateLaunch* const slots = g_slots.load(std::memory_order_relaxed))
    madvise(static_cast<void*>(slots), kSlots * sizeof(LateLaunch), MADV_DONTNEED);
}

}  // namespace tacho::capture::rocm
