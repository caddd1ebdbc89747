// The end of a process whose GPU hangs (sdk.h). In exit(), rocprofiler-sdk waits for every dispatch that the program
// began, for ever if one never ends; without the library the program would have ended. It waits in two places: when
// HIP's own end destroys its queues, and in the library's end. So a handler that runs before both starts a thread. Once
// the exiting thread has been in one of those places for a while, the library returns nothing and GPU work is open,
// that thread ends the recording and the process, with the exit code that the program gave to exit().
//
// HIP's own end also waits, with or without tacho, before it destroys a queue, for work that the program launched and
// did not wait for. That may take any time, and so may handlers of the program.
//
// Handlers run last in, first out. HIP registers its end while it starts, after the library's. So tacho registers its
// first handler with the first work that the program gives to a GPU, and its second one, behind HIP's end, as soon as
// the library has started.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "base/clock.h"
#include "capture/own_thread.h"
#include "capture/source/rocm/rocm.h"
#include "capture/source/rocm/sdk/sdk.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

// Times without a sign of life from the library. After the first, tacho asks it for its remaining records.
constexpr int64_t kUntilAsked = 500'000'000, kUntilEnded = 1'500'000'000;

constinit ExitWatch g_exit_watch{};
constinit pid_t g_exit_pid = 0;
constinit const OpenCall* g_exit_call = nullptr;  // of the thread that called exit()
constinit std::atomic<uint32_t> g_exit_watched{0}, g_exit_over{0}, g_streams_written{0};
constinit std::atomic<uint64_t> g_signs_of_life{0};
constinit int g_exit_status = 0;
constinit std::atomic<void*> g_destroy_queue{nullptr};  // the library's
constinit std::atomic<uint32_t> g_destroying{0}, g_hip_ended{0}, g_hip_end_watched{0};

void nap_ms(long ms) {
  const timespec wait{ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&wait, nullptr);
}

hsa::Status destroy_watched_queue(hsa::Queue* queue) {
  g_destroying.fetch_add(1);
  const hsa::Status status = call<hsa::signature::QueueDestroy>(g_destroy_queue.load(), queue);
  g_destroying.fetch_sub(1);
  return status;
}

// Where the program alone would not wait. Without a table to look into: anywhere.
bool library_waits() {
  return g_destroy_queue.load() == nullptr || g_destroying.load() != 0 || g_hip_ended.load() != 0;
}

// A thread that waits for input holds its stream's lock.
void* write_streams(void*) {
  tape::t_state.hidden = 1;
  fflush(stdout);
  fflush(stderr);
  fflush(nullptr);
  g_streams_written.store(1);
  return nullptr;
}

void end_process() {
  g_exit_watch.finish();
  // exit() would have done it behind the library's handler.
  if (start_own_thread(write_streams))
    for (int turn = 0; turn < 100 && g_streams_written.load() == 0; ++turn) nap_ms(5);
  _exit(g_exit_status);  // preload.cpp: the other sources end their recording, too
}

void* follow_exit(void*) {
  pthread_setname_np(pthread_self(), "tacho-exit");
  tape::t_state.hidden = 1;
  uint64_t seen = g_signs_of_life.load();
  int64_t quiet_since = raw_now(), waits_since = quiet_since;
  bool asked = false;
  while (g_exit_over.load() == 0) {
    nap_ms(20);
    const int64_t now = raw_now();
    const uint64_t signs = g_signs_of_life.load();
    const bool quiet =
        signs == seen && g_exit_watch.open() && __atomic_load_n(&g_exit_call->depth, __ATOMIC_RELAXED) == 0;
    if (!quiet || !library_waits()) waits_since = now;
    if (!quiet) {
      seen = signs;
      quiet_since = now;
      asked = false;
    } else if (now - waits_since >= kUntilEnded) {
      if (g_exit_over.exchange(1) == 0) end_process();
    } else if (now - quiet_since >= kUntilAsked && !asked) {
      asked = true;
      g_exit_watch.hand_over();
      seen = g_signs_of_life.load();
    }
  }
  return nullptr;
}

void exit_begins(int status, void*) {
  if (getpid() != g_exit_pid || g_exit_over.load() != 0) return;
  if (g_exit_watch.begins != nullptr) g_exit_watch.begins();
  if (!g_exit_watch.open()) return;
  g_exit_status = status;
  g_exit_call = &open_call();
  start_own_thread(follow_exit);
}

}  // namespace

void watch_exit(const ExitWatch& watch) {
  if (g_exit_watched.load(std::memory_order_relaxed) != 0 || g_exit_watched.exchange(1) != 0) return;
  g_exit_watch = watch;
  g_exit_pid = getpid();
  on_exit(exit_begins, nullptr);
}

void watch_queue_ends(hsa::Tables* tables) {
  if (tables == nullptr || tables->core == nullptr || !TACHO_HSA_HAS(*tables->core, hsa_queue_destroy)) return;
  void* expected = nullptr;
  if (g_destroy_queue.compare_exchange_strong(expected, tables->core->hsa_queue_destroy))
    tables->core->hsa_queue_destroy = reinterpret_cast<void*>(&destroy_watched_queue);
}

void watch_hip_end() {
  if (g_hip_end_watched.exchange(1) == 0) atexit([] { g_hip_ended.store(1); });
}

bool exit_is_watched() {
  return g_exit_watched.load(std::memory_order_relaxed) != 0;
}

void sign_of_life() {
  g_signs_of_life.fetch_add(1, std::memory_order_relaxed);
}

void end_exit_watch() {
  g_exit_over.store(1);
}

}  // namespace tacho::capture::rocm
