// The functions that a preloaded libtacho.so interposes: __libc_start_main, to start before main without working in a
// constructor, and pthread_create, to see threads begin and end. Both pass straight on if there is nothing to do. _exit
// (Python's multiprocessing ends forked workers with it) runs no exit handlers, so tacho first fetches the records that
// a vendor's library still holds. libtacho.so is compiled without exceptions, so that the cleanup of a thread's frame
// is glibc's own (no unwinder of ours may meet the program's).
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "capture/lifecycle.h"
#include "capture/room/next_symbol.h"
#include "capture/room/pages.h"
#include "tape/writer.h"

namespace tacho::capture {
#define TACHO_SOURCE_EXIT(finish) void finish();
#include "capture/sources.def"
#undef TACHO_SOURCE_EXIT
}  // namespace tacho::capture

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using tacho::capture::next_symbol;

// A thread's task, on its way from pthread_create to the thread. A slot is used until the thread runs; when all of a
// shelf are in use there is another one.
struct Task {
  std::atomic<uint32_t> used;
  void* (*run)(void*);
  void* argument;
};
constexpr uint32_t kTasks = 512, kShelves = 64;
constinit Task g_tasks[kTasks] = {};
constinit std::atomic<Task*> g_shelves[kShelves] = {g_tasks};
constinit std::atomic<uint32_t> g_next_task{0};

Task* shelf(uint32_t number) {
  std::atomic<Task*>& slot = g_shelves[number];
  Task* tasks = slot.load(std::memory_order_acquire);
  if (tasks != nullptr) return tasks;
  void* const memory = tacho::capture::map_pages(kTasks * sizeof(Task));
  if (memory == nullptr) return nullptr;
  if (slot.compare_exchange_strong(tasks, static_cast<Task*>(memory), std::memory_order_acq_rel))
    return static_cast<Task*>(memory);
  munmap(memory, kTasks * sizeof(Task));
  return tasks;
}

// Null when there is no memory: the thread starts without us.
Task* take_task() {
  for (uint32_t number = 0; number < kShelves; ++number) {
    Task* const tasks = shelf(number);
    if (tasks == nullptr) return nullptr;
    for (uint32_t tried = 0; tried < 64; ++tried) {
      Task& task = tasks[g_next_task.fetch_add(1, std::memory_order_relaxed) % kTasks];
      uint32_t expected = 0;
      if (task.used.compare_exchange_strong(expected, 1, std::memory_order_acq_rel)) return &task;
    }
  }
  return nullptr;
}

// Under ThreadSanitizer its own start of a thread comes after ours, and nothing may run before it.
#ifdef __SANITIZE_THREAD__
constexpr bool kFollowThreads = false;
#else
constexpr bool kFollowThreads = true;
#endif

// If another pthread_create comes before ours (a sanitizer's that is linked into the program), it starts its threads
// within ours and must run first. Such threads are not followed here; the sampler finds them.
extern "C" int own_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)
    __attribute__((alias("pthread_create"), visibility("hidden"), nonnull(1, 3), nothrow));
bool follows_threads() {
  static constinit std::atomic<int> known{0};  // 1 = yes, 2 = no
  int answer = known.load(std::memory_order_relaxed);
  if (__builtin_expect(answer == 0, 0)) {
    const void* const first = dlsym(RTLD_DEFAULT, "pthread_create");  // &pthread_create would be that one, too
    answer = first == nullptr || first == reinterpret_cast<void*>(&own_pthread_create) ? 1 : 2;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer == 1;
}

void end_thread(void*) {
  tacho::capture::thread_ends();
}

void* run_thread(void* given) {
  auto* const task = static_cast<Task*>(given);
  void* (*const run)(void*) = task->run;
  void* const argument = task->argument;
  task->used.store(0, std::memory_order_release);
  void* result = nullptr;
  tacho::capture::thread_begins(reinterpret_cast<const void*>(run));
  pthread_cleanup_push(end_thread, nullptr);
  result = run(argument);
  pthread_cleanup_pop(1);
  return result;
}

}  // namespace

TACHO_EXPORT int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(),
                                   void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  static constinit std::atomic<void*> slot{nullptr};
  using Start = int(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  Start* const next = next_symbol<Start>(slot, "__libc_start_main");
  tacho::capture::before_main(stack_end, reinterpret_cast<const void*>(main));
  return next(main, argc, argv, init, fini, rtld_fini, stack_end);
}

TACHO_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                                void* argument) {
  static constinit std::atomic<void*> slot{nullptr};
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  Create* const next = next_symbol<Create>(slot, "pthread_create");
  Task* const task = kFollowThreads && tacho::tape::attached() && follows_threads() ? take_task() : nullptr;
  if (task == nullptr) return next(thread, attributes, run, argument);
  task->run = run;
  task->argument = argument;
  const int result = next(thread, attributes, run_thread, task);
  if (result != 0) task->used.store(0, std::memory_order_release);
  return result;
}

TACHO_EXPORT __attribute__((noreturn)) void _exit(int status) {
  tacho::capture::process_ends();
#define TACHO_SOURCE_EXIT(finish) tacho::capture::finish();
#include "capture/sources.def"
#undef TACHO_SOURCE_EXIT
  for (;;) syscall(SYS_exit_group, status);
}
TACHO_EXPORT __attribute__((noreturn)) void _Exit(int status) {
  _exit(status);
}
