// libtacho-watch.so in a program that ran before tacho came to it (src/attach brings it in). A thread of tacho's own
// puts the hooks in, looks for libraries that come later, and takes everything out again: when tacho asks for it, or
// when tacho no longer lives. The library then stays, parked: pointers to its functions may have been given to the
// program meanwhile, and those only pass calls on. The next tacho watch takes it up.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>

#include "capture/attach_answer.h"
#include "capture/plugin/watch/amd/hip.h"
#include "capture/plugin/watch/cuda.h"
#include "capture/plugin/watch/markers/roctx.h"
#include "capture/plugin/watch/opencl/opencl.h"
#include "capture/plugin/watch/patches.h"
#include "capture/plugin/watch/ring.h"
#include "capture/plugin/watch/sums.h"
#include "capture/room/loaded.h"
#include "capture/room/slots.h"
#include "capture/source/marker/nvtx_late.h"
#include "event/schema.h"
#include "tape/sleep.h"

namespace tacho::capture::watch {
namespace {

using tape::AttachBlock;

constexpr int64_t kLook = 100'000'000;  // ns between looks at the program's libraries and at tacho

constinit std::atomic<uint32_t> g_busy{0};  // 1: a tacho comes, is there or leaves
constinit char g_path[sizeof(AttachBlock::pool)] = {};
constinit SlotHook g_hooks[kMostSlotHooks] = {};
constinit size_t g_hook_count = 0;

// Words of the drivers stay, of tools that work below their functions, and of tacho's libraries, whatever their names.
bool keeps_its_words(const dl_phdr_info& object, const char* name) {
  static constexpr const char* kNames[] = {"libcuda.so",   "libcuda-",       "libcudadebugger", "libnvidia-",
                                           "libcupti.so",  "libnvperf_host", "libamdhip64.so",  "librocprofiler",
                                           "libroctracer", "libroctx64"};
  for (const char* const each : kNames)
    if (strncmp(name, each, strlen(each)) == 0) return true;
  return exported_by(object, event::kWatchEntry) != nullptr || exported_by(object, tape::kAttachEntry) != nullptr;
}
constexpr SlotRules kRules = {keeps_its_words, nullptr};

// tacho holds a lock on its table while it lives, and removes the table at its end.
bool lives(const char* path) {
  const Guard guard(g_files);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool held = flock(file, LOCK_SH | LOCK_NB) != 0;
  close(file);
  return held;
}

uint64_t loads() {
  uint64_t count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t size, void* data) {
        if (size >= offsetof(dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds)
          *static_cast<uint64_t*>(data) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

// HSA is watched through its interface for tools, which it asks for when it starts.
bool uses_hsa_alone() {
  for (const char* const library : {"libhsa-runtime64.so.1", "libamdocl64.so"}) {
    void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) dlclose(handle);
    if ((handle != nullptr) != (strncmp(library, "libhsa", 6) == 0)) return false;
  }
  return true;
}

// Puts hooks in where there are none yet. Why not, if a runtime refuses.
const char* look() {
  const char* const why = enter_opencl();
  SlotHook hooks[kMostSlotHooks] = {};
  size_t count = driver_hooks(hooks);
  const size_t of_hip = hip_hooks(hooks + count, kMostSlotHooks - count);
  count += of_hip;
  if (of_hip == 0 && uses_hsa_alone()) note_domain(event::kWatchUnseen);
  if (g_table->header.patches.load(std::memory_order_relaxed) != 0) ask_for_patches(hooks, count);
  if (keeps()) {
    count += roctx_hooks(hooks + count, kMostSlotHooks - count);
    if (nvtx::lead_tables().of_others > 0) g_process->foreign_markers.store(1, std::memory_order_relaxed);
  }
  // Programs may load the driver yet.
  if (const SlotHook hook = dlsym_hook(); hook.found != nullptr && count < kMostSlotHooks) hooks[count++] = hook;
  size_t by_words = 0;
  for (size_t i = 0; i < count; ++i)
    if (!is_patched(hooks[i].found)) hooks[by_words++] = hooks[i];
  if (by_words > g_hook_count) {
    memcpy(g_hooks, hooks, by_words * sizeof *hooks);
    g_hook_count = by_words;
  }
  const SlotCount led = lead_slots(g_hooks, g_hook_count, kRules);
  if (!led.looked) return "the words of its libraries cannot be looked at (/proc is not there, or there is no memory)";
  g_process->closed_words.store(static_cast<uint32_t>(led.refused), std::memory_order_relaxed);
  return why;
}

void before_fork() {
  lock(g_files);
}
void count_fork() {
  unlock(g_files);
  if (g_busy.load(std::memory_order_acquire) != 0) g_process->forks.fetch_add(1, std::memory_order_relaxed);
}
// A forked child is not watched: hooks that are in it only pass calls on.
void leave_in_child() {
  unlock(g_files);
  free_rows();
  if (g_busy.load(std::memory_order_acquire) == 0) return;
  g_watched.store(false, std::memory_order_release);
  end_driver();
  end_hip();
  leave_opencl();
  g_stay.fetch_add(1, std::memory_order_acq_rel);
  close_ring();
  drop_table();
  g_busy.store(0, std::memory_order_release);
}

const char* come(const AttachBlock& block) {
  if (block.version != tape::kAttachVersion || block.schema_hash != event::schema_hash())
    return "another version of tacho's library is in it from an earlier tacho watch; start the program anew, or watch "
           "it with that version";
  const char* const started_for = getenv(event::kWatchVariable);
  if (g_watched.load(std::memory_order_acquire) && !g_late && started_for != nullptr && lives(started_for))
    return "tacho watch has started it and watches it";
  static constinit bool at_forks = false;
  if (!at_forks && pthread_atfork(before_fork, count_fork, leave_in_child) != 0) return "there is no memory";
  at_forks = true;
  g_watched.store(false, std::memory_order_release);
  end_driver();
  end_hip();
  g_stay.fetch_add(1, std::memory_order_acq_rel);
  memcpy(g_path, block.pool, sizeof g_path);
  if (const char* const why = take_table(g_path)) return why;
  open_ring(g_path);
  forget_all_rows();
  begin_driver();
  begin_hip();
  begin_opencl();
  forget_roctx_ranges();
  g_hook_count = 0;
  g_process->patches.store(begin_patches(), std::memory_order_release);
  g_late = true;
  g_stay.fetch_add(1, std::memory_order_acq_rel);
  g_watched.store(true, std::memory_order_release);
  if (const char* const why = look()) {
    g_process->ended.store(1, std::memory_order_relaxed);
    return why;
  }
  g_table->header.guests.fetch_add(1, std::memory_order_acq_rel);
  return nullptr;
}

void leave() {
  end_timing();
  drain_driver();
  drain_hip();
  drain_opencl();
  await_taken_out([] { return lives(g_path); });
  lead_back(g_hooks, g_hook_count, kRules);
  if (keeps()) nvtx::lead_tables_back();
  leave_opencl();
  g_watched.store(false, std::memory_order_release);
  end_driver();
  end_hip();
  g_stay.fetch_add(1, std::memory_order_acq_rel);
  close_ring();
}

void follow() {
  WatchHeader& header = g_table->header;
  uint64_t known = loads();
  // What a library keeps for itself it may have been about to write when tacho looked.
  for (uint32_t turn = 1; header.closed.load(std::memory_order_acquire) == 0 && lives(g_path); ++turn) {
    constexpr int64_t kSoon = 2'000'000;
    tape::wait_on(header.closed, 0, awaits_patches() ? kSoon : kLook);
    if (const uint32_t answers = new_answers()) {
      look();
      note_answers(answers);
    }
    age_captures();
    age_hip_captures();
    const uint64_t now = loads();
    if (now != known || turn == 1 || turn == 10) look();
    known = now;
  }
}

void serve(AttachBlock& block) {
  uint32_t none = 0;
  const bool alone = g_busy.compare_exchange_strong(none, 1, std::memory_order_acq_rel);
  const char* const why = alone ? come(block) : "another tacho watches it";
  answer_attach(block, why);
  if (!alone) return;
  if (why == nullptr) follow();
  if (g_late) {
    leave();
    std::atomic<uint32_t>& guests = g_table->header.guests;
    if (why == nullptr) {
      guests.fetch_sub(1, std::memory_order_acq_rel);
      tape::wake_all(guests);
    }
    drop_table();
  }
  g_busy.store(0, std::memory_order_release);
}

}  // namespace
}  // namespace tacho::capture::watch

extern "C" __attribute__((visibility("default"))) void* tacho_watch_enter(tacho::tape::AttachBlock* block) {
  pthread_detach(pthread_self());
  prctl(PR_SET_NAME, "tacho watch");
  tacho::capture::watch::serve(*block);
  return nullptr;
}
