// libtacho.so in a program that was running when tacho attached to it (src/attach). One thread of tacho's own starts
// the sources, looks for libraries that the program loads later, and takes everything away again: when tacho asks for
// it, or when tacho no longer lives. Then the thread ends, and the library stays parked until the next attach.
#include "capture/attached.h"

#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/room/loaded.h"
#include "capture/source/cuda/cupti_api.h"
#include "capture/source/marker/late.h"
#include "capture/source/mpi/watch.h"
#include "capture/source/opencl/late.h"
#include "capture/source/rocm/late/late.h"
#include "capture/source/sampler/sampler.h"
#include "event/schema.h"
#include "tape/attach_block.h"
#include "tape/gate.h"
#include "tape/sleep.h"
#include "tape/writer.h"

namespace tacho::capture {
namespace {

using tape::AttachBlock;
using tape::AttachState;

// Whether a tacho is here.
constexpr uint32_t kFree = 0, kHere = 1, kLeaves = 2;
constinit std::atomic<uint32_t> g_busy{kFree};
constexpr int64_t kLook = 100'000'000;  // ns between looks at the program's libraries and at tacho

struct Loaded {
  uint64_t added, removed;
};
Loaded loaded_objects() {
  Loaded loaded{};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t size, void* data) {
        if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
          *static_cast<Loaded*>(data) = {info->dlpi_adds, info->dlpi_subs};
        return 1;
      },
      &loaded);
  return loaded;
}

void answer(AttachBlock& block, AttachState state) {
  block.state.store(static_cast<uint32_t>(state), std::memory_order_release);
}

// Waits until tacho has read the answer and gives its pages back.
void give_back(AttachBlock& block) {
  constexpr int64_t kPatience = 2'000'000'000;
  const int64_t begin = raw_now();
  while (block.state.load(std::memory_order_acquire) != static_cast<uint32_t>(AttachState::kSeen) &&
         raw_now() - begin < kPatience) {
    const timespec moment{0, 200'000};
    nanosleep(&moment, nullptr);
  }
  if (block.code == 0) return;  // of a process that listens
  void* const code = reinterpret_cast<void*>(block.code);
  const uint64_t code_bytes = block.code_bytes, data_bytes = block.data_bytes;
  if (block.descriptor >= 0) close(block.descriptor);
  munmap(code, code_bytes);
  munmap(&block, data_bytes);
}

const char* attach_to(const AttachBlock& block) {
  if (block.version != tape::kAttachVersion || block.schema_hash != event::schema_hash())
    return "another version of tacho's library is in it from an earlier attach; that version can attach again, or "
           "start the program anew";
  return tape::attach_late(block.pool);
}

struct NeverLate {
  const char* function;
  event::NoteSeverity severity;
  const char* sentence;
  uint32_t told_in;  // tape::late_session()
};
constinit NeverLate g_never_late[] = {
#define TACHO_NEVER_LATE(function, severity, sentence) {function, event::NoteSeverity::severity, sentence, 0},
#include "capture/sources.def"
#undef TACHO_NEVER_LATE
};

int see_never_late(dl_phdr_info* info, size_t, void*) {
  if (exported_by(*info, tape::kAttachEntry) != nullptr) return 0;  // libtacho.so has some of these itself
  for (NeverLate& each : g_never_late)
    if (each.told_in != tape::late_session() && exported_by(*info, each.function) != nullptr) {
      each.told_in = tape::late_session();
      tape::note(each.severity, each.sentence);
    }
  return 0;
}

void start_sources() {
#define TACHO_SOURCE_LATE(start, leave, leave_in_child) start();
#include "capture/sources.def"
#undef TACHO_SOURCE_LATE
  dl_iterate_phdr(see_never_late, nullptr);
}
void look_at_sources() {
#define TACHO_SOURCE_LOOK(look) look();
#include "capture/sources.def"
#undef TACHO_SOURCE_LOOK
}
void leave_sources() {
#define TACHO_SOURCE_LATE(start, leave, leave_in_child) leave();
#include "capture/sources.def"
#undef TACHO_SOURCE_LATE
}

// Children that are forked while tacho is attached are not recorded: none of tacho's threads is in them.
constinit std::atomic<uint32_t> g_forks{0};

void count_fork() {
  if (g_busy.load(std::memory_order_acquire) != kFree) g_forks.fetch_add(1, std::memory_order_relaxed);
}
void leave_in_forked_child() {
  if (g_busy.load(std::memory_order_acquire) == kFree) return;
#define TACHO_SOURCE_LATE(start, leave, leave_in_child) leave_in_child();
#include "capture/sources.def"
#undef TACHO_SOURCE_LATE
  tape::park_in_child();
  g_busy.store(kFree, std::memory_order_release);
}
void watch_forks() {
  static constinit bool watched = false;
  if (!watched) watched = pthread_atfork(nullptr, count_fork, leave_in_forked_child) == 0;
  g_forks.store(0, std::memory_order_relaxed);
}
void tell_forks() {
  const uint32_t forks = g_forks.load(std::memory_order_relaxed);
  if (forks == 0) return;
  char line[160];
  snprintf(line, sizeof line,
           "the program forked %u child%s while tacho was attached, which %s not recorded; attach with --children once "
           "they run",
           forks, forks == 1 ? "" : "ren", forks == 1 ? "is" : "are");
  tape::note(event::NoteSeverity::kWarning, line);
}

void follow() {
  tape::PoolHeader* const pool = tape::pool();
  Loaded known = loaded_objects();
  constexpr int kLooksUntilAgain = 5;
  int again = kLooksUntilAgain;
  start_sources();
  tape::note(event::NoteSeverity::kInfo,
             "tacho attached to this process while it ran: work that was in flight then, and what the program named, "
             "allocated or created before, is not in this trace unless it was used since");
  while (pool->closing.load(std::memory_order_acquire) == 0 && !tape::tacho_is_gone()) {
    tape::wait_on(pool->closing, 0, kLook);
    const Loaded now = loaded_objects();
    if (now.added != known.added) again = kLooksUntilAgain;
    // A library is in the list before the loader has bound it, and may be about to keep what it has looked up.
    if (now.added != known.added || (again > 0 && --again == 0)) start_sources();
    known = now;
    look_at_sources();
  }
  g_busy.store(kLeaves, std::memory_order_release);
  // Of a tacho that was killed nobody has closed the gate.
  tape::set_gate(*pool, tape::gate::kTime, false);
  tell_forks();
  leave_sources();
  tape::flush_thread();
}

}  // namespace

namespace {
// True when no other tacho is here. One that leaves is waited for: it has told its own tacho so before it was done.
bool take_place() {
  constexpr int64_t kPatience = 3'000'000'000;
  const int64_t begin = raw_now();
  for (;;) {
    uint32_t now = kFree;
    if (g_busy.compare_exchange_strong(now, kHere, std::memory_order_acq_rel)) return true;
    if (now == kHere || raw_now() - begin > kPatience) return false;
    const timespec moment{0, 200'000};
    nanosleep(&moment, nullptr);
  }
}
}  // namespace

void serve(AttachBlock& block) {
  const bool alone = take_place();
  if (alone) watch_forks();
  const char* const why = alone ? attach_to(block) : "another tacho is attached to it";
  if (why != nullptr) {
    strncpy(block.message, why, sizeof block.message - 1);
    answer(block, AttachState::kRefused);
    give_back(block);
    if (alone) g_busy.store(kFree, std::memory_order_release);
    return;
  }
  answer(block, AttachState::kAttached);
  give_back(block);
  follow();
  tape::park();
  g_busy.store(kFree, std::memory_order_release);
}

}  // namespace tacho::capture

extern "C" __attribute__((visibility("default"))) void* tacho_attach_enter(tacho::tape::AttachBlock* block) {
  pthread_detach(pthread_self());
  prctl(PR_SET_NAME, "tacho attach");
  tacho::tape::t_state.hidden = 1;
  tacho::capture::serve(*block);
  return nullptr;
}
