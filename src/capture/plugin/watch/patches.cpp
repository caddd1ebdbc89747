// Asking for patches (patches.h). A function keeps its room for ever: a thread may still be in the copy there.
#include "capture/plugin/watch/patches.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "event/watch_patches.h"

namespace tacho::capture::watch {

using event::WatchPatch, event::WatchPatches, event::WatchPatchStage, event::WatchPatchState;

namespace {

constinit WatchPatches g_patches = {event::kWatchPatchMagic, sizeof(WatchPatches), {}, {}, {}, {}, {}};
constinit uint32_t g_used = 0;

// Memory for copies, within 1 GiB of the functions.
constexpr size_t kRoomBytes = size_t{event::kMostWatchPatches} * event::kWatchPatchRoom;
constexpr uint64_t kNear = 1 << 30;
constinit uint64_t g_rooms[8] = {};

bool is_near(uint64_t room, uint64_t function) {
  return (room < function ? function - room : room - function) < kNear;
}
// 0: there is none.
uint64_t room_near(uint64_t function) {
  for (uint64_t& room : g_rooms) {
    if (room != 0 && is_near(room, function)) return room;
    if (room != 0) continue;
    constexpr uint64_t kStep = 1 << 20;
    for (uint64_t distance = kStep; distance < kNear - kStep; distance += kStep)
      for (const bool above : {false, true}) {
        if (!above && distance > function) continue;
        const uint64_t wanted = (above ? function + distance : function - distance) & ~(kStep - 1);
        void* const at = mmap(reinterpret_cast<void*>(wanted), kRoomBytes, PROT_READ | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (at == MAP_FAILED) continue;
        if (is_near(reinterpret_cast<uint64_t>(at), function)) return room = reinterpret_cast<uint64_t>(at);
        munmap(at, kRoomBytes);  // an old kernel, to which the address is only a hint
      }
    return 0;
  }
  return 0;
}

WatchPatch* patch_of(uint64_t function) {
  for (uint32_t i = 0; i < g_used; ++i)
    if (g_patches.each[i].function == function) return &g_patches.each[i];
  return nullptr;
}
WatchPatchState state_of(const WatchPatch& patch) {
  return patch.state.load(std::memory_order_acquire);
}

}  // namespace

uint64_t begin_patches() {
  for (uint32_t i = 0; i < g_used; ++i)
    if (state_of(g_patches.each[i]) != WatchPatchState::kPatched)
      g_patches.each[i].state.store(WatchPatchState::kTakenOut, std::memory_order_relaxed);
  g_patches.asked.store(0, std::memory_order_relaxed);
  g_patches.answered.store(0, std::memory_order_relaxed);
  g_patches.seen.store(0, std::memory_order_relaxed);
  g_patches.stage.store(WatchPatchStage::kThere, std::memory_order_release);
  return reinterpret_cast<uint64_t>(&g_patches);
}

void ask_for_patches(const SlotHook* hooks, size_t count) {
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    const SlotHook& hook = hooks[i];
    if (hook.next == nullptr || hook.symbol == nullptr) continue;
    const auto function = reinterpret_cast<uint64_t>(hook.found);
    WatchPatch* patch = patch_of(function);
    if (patch != nullptr && state_of(*patch) != WatchPatchState::kTakenOut) continue;
    if (patch == nullptr) {
      const uint64_t room = g_used < event::kMostWatchPatches ? room_near(function) : 0;
      if (room == 0) continue;
      patch = &g_patches.each[g_used];
      patch->function = function;
      patch->room = room + uint64_t{g_used} * event::kWatchPatchRoom;
      ++g_used;
    }
    patch->hook = reinterpret_cast<uint64_t>(hook.hook);
    patch->next = reinterpret_cast<uint64_t>(hook.next);
    memset(patch->name, 0, sizeof patch->name);
    const size_t length = strlen(hook.symbol);
    memcpy(patch->name, hook.symbol, length < sizeof patch->name ? length : sizeof patch->name - 1);
    patch->state.store(WatchPatchState::kWanted, std::memory_order_release);
    any = true;
  }
  if (any) g_patches.asked.fetch_add(1, std::memory_order_acq_rel);
}

bool is_patched(const void* function) {
  const WatchPatch* const patch = patch_of(reinterpret_cast<uint64_t>(function));
  return patch != nullptr &&
         (state_of(*patch) == WatchPatchState::kPatched || state_of(*patch) == WatchPatchState::kWanted);
}

bool awaits_patches() {
  return g_patches.seen.load(std::memory_order_relaxed) != g_patches.asked.load(std::memory_order_relaxed);
}

uint32_t new_answers() {
  const uint32_t answered = g_patches.answered.load(std::memory_order_acquire);
  return answered != g_patches.seen.load(std::memory_order_relaxed) ? answered : 0;
}

void note_answers(uint32_t answers) {
  g_patches.seen.store(answers, std::memory_order_release);
}

void await_taken_out(bool (*lives)()) {
  bool any = false;
  for (uint32_t i = 0; i < g_used; ++i) any = any || state_of(g_patches.each[i]) == WatchPatchState::kPatched;
  if (!any) return;
  g_patches.stage.store(WatchPatchStage::kLeaving, std::memory_order_release);
  constexpr int64_t kPatience = 5'000'000'000;
  const int64_t begin = read_clock(CLOCK_MONOTONIC);
  while (g_patches.stage.load(std::memory_order_acquire) != WatchPatchStage::kOut && lives() &&
         read_clock(CLOCK_MONOTONIC) - begin < kPatience) {
    const timespec moment{0, 1'000'000};
    nanosleep(&moment, nullptr);
  }
}

}  // namespace tacho::capture::watch
