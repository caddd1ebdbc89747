// Running launches again (replay.h).
#include "capture/source/rocm/replay/replay.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/own_thread.h"
#include "capture/source/rocm/replay/replay_kernels.h"
#include "capture/source/rocm/replay/replay_memory.h"
#include "tape/sleep.h"
#include "tape/writer.h"

namespace tacho::capture::rocm::replay {

namespace {

using spool::RanOnce;

struct Settings {
  const counter::CounterSpool* spool = nullptr;
  size_t passes = 0;
  int64_t patience_ns = 0;
  pid_t pid = 0;
  bool (*values_open)() = nullptr;
};
constinit Settings g_settings{};
constinit std::atomic<bool> g_replays{false};

void nap() {
  const timespec moment{0, 50'000};
  nanosleep(&moment, nullptr);
}
int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Other threads
// HIP calls run side by side, but a launch that is run again runs alone. Calls that only wait are let through, because
// the launch may wait for the same thing; they return when it is over, so that no thread sees memory between two
// passes.

constinit std::atomic<uint32_t> g_sharers{0}, g_alone{0};  // g_alone: the thread that is, 0 = none

uint32_t this_thread() {
  return static_cast<uint32_t>(syscall(SYS_gettid));
}
void wait_for_others_end() {
  while (g_alone.load(std::memory_order_acquire) != 0) nap();
}
void share() {
  for (;;) {
    g_sharers.fetch_add(1);
    if (g_alone.load() == 0) return;
    g_sharers.fetch_sub(1);
    wait_for_others_end();
  }
}
void unshare() {
  g_sharers.fetch_sub(1);
}
bool be_alone(int64_t deadline) {
  for (uint32_t nobody = 0; !g_alone.compare_exchange_strong(nobody, this_thread()); nobody = 0) {
    if (now_ns() > deadline) return false;
    nap();
  }
  while (g_sharers.load() != 0) {
    if (now_ns() > deadline) {
      g_alone.store(0);
      return false;
    }
    nap();
  }
  return true;
}
void end_alone() {
  g_alone.store(0, std::memory_order_release);
}

// An idle GPU
// HIP cannot wait for a while only: a thread of tacho's own waits for it, and is left behind if that takes too long.

constinit std::atomic<uint32_t> g_asked{0}, g_answered{0}, g_waiter{0}, g_devices{1}, g_idle{0};

template <typename Function>
Function* hip_function(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  for (const char* const library : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"})
    if (found == nullptr)
      if (void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) {
        found = dlsym(handle, name);
        dlclose(handle);
      }
  return reinterpret_cast<Function*>(found);
}

void* wait_for_devices(void*) {
  tape::t_state.hidden = 1;
  auto* const choose = hip_function<uint32_t(int)>("hipSetDevice");
  auto* const synchronize = hip_function<uint32_t()>("hipDeviceSynchronize");
  for (uint32_t seen = 0;;) {
    while (g_asked.load() == seen) tape::wait_on(g_asked, seen, -1);
    seen = g_asked.load();
    bool idle = choose != nullptr && synchronize != nullptr;
    const uint32_t devices = g_devices.load();
    for (int device = 0; device < 32 && idle; ++device)
      if ((devices >> device & 1) != 0) idle = choose(device) == 0 && synchronize() == 0;
    g_idle.store(idle ? 1 : 0);
    g_answered.store(seen);
    tape::wake_all(g_answered);
  }
  return nullptr;
}

// Waits until the devices are idle and all counter values have come back. False if that takes longer than the user's
// patience, or a device reports an error.
bool settle() {
  if (g_waiter.exchange(1) == 0 && !start_own_thread(wait_for_devices)) return false;
  if (g_answered.load() != g_asked.load()) return false;  // still waiting for an earlier question that was given up
  const uint32_t question = g_asked.fetch_add(1) + 1;
  tape::wake_all(g_asked);
  for (const int64_t deadline = now_ns() + g_settings.patience_ns; g_answered.load() != question;) {
    const int64_t left = deadline - now_ns();
    if (left <= 0) return false;
    tape::wait_on(g_answered, question - 1, left);
  }
  if (g_idle.load() == 0) return false;
  // The library may read the values of a dispatch that has ended from memory that is put back.
  for (const int64_t deadline = now_ns() + g_settings.patience_ns; g_settings.values_open();) {
    if (now_ns() > deadline) return false;
    nap();
  }
  return true;
}

// Threads and their launches

struct ThreadLaunch {
  uint64_t generation;
  const char* kernel;  // that is run again; nullptr = none
  uint64_t index;
  size_t pass;
  RanOnce once;  // of the launch that is passed on
  bool passed_on;
  bool dispatched, selected;
};
constinit PerThread<ThreadLaunch> g_launches;
constinit std::atomic<uint32_t> g_captures{0}, g_given_up{0};
// After this many failed waits for an idle GPU, do not wait again.
constexpr uint32_t kMostGivenUp = 3;

// Notes a launch of which only the first passes were measured.
void note_broken_off(uint64_t index, RanOnce why) {
  const counter::CounterSpool& spool = *g_settings.spool;
  char path[1152], line[64];
  snprintf(path, sizeof path, "%s/%u.once", spool.folder, spool.process);
  const int size =
      snprintf(line, sizeof line, "%llu %u\n", static_cast<unsigned long long>(index), static_cast<uint32_t>(why));
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || !write_all(file, reinterpret_cast<const uint8_t*>(line), static_cast<size_t>(size)))
    spool.state->failures.fetch_add(1);
  if (file >= 0) close(file);
}

uint64_t make(Next* next, const uint64_t* w) {
  return next(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13]);
}

struct Launch {
  const char* kernel;
  const void* const* arguments;
  const void* const* buffer;  // names of fields and their values
  bool plain;                 // without attributes
  bool own_stream;            // on the default stream of the calling thread
};
// A kernel named by a host function is loaded by that.
Launch read_launch(const HipCall& does, const uint64_t* words) {
  using NameOf = const char*(uint64_t);
  using NameOfPointer = const char*(uint64_t, uint64_t);
  using Attributes = uint32_t(void*, uint64_t);
  static constinit std::atomic<NameOf*> s_of_function{nullptr};
  static constinit std::atomic<NameOfPointer*> s_of_pointer{nullptr};
  static constinit std::atomic<Attributes*> s_attributes{nullptr};
  if (s_of_function.load() == nullptr) {
    s_attributes.store(hip_function<Attributes>("hipFuncGetAttributes"));
    s_of_pointer.store(hip_function<NameOfPointer>("hipKernelNameRefByPtr"));
    s_of_function.store(hip_function<NameOf>("hipKernelNameRef"));
  }
  const auto list = [](uint64_t word) { return reinterpret_cast<const void* const*>(word); };
  Launch launch{nullptr, nullptr, nullptr, true, does.per_thread};
  constexpr uint64_t kOwnStream = 2;  // hipStreamPerThread
  if (does.stream >= 0) launch.own_stream = launch.own_stream || words[does.stream] == kOwnStream;
  uint64_t function = words[0];
  bool by_pointer = false;
  switch (does.launch) {
    case HipLaunch::kByPointer:
      by_pointer = true;
      launch.arguments = list(words[5]);
      break;
    case HipLaunch::kByFunction:
      launch.arguments = list(words[9]);
      launch.buffer = list(words[10]);
      break;
    case HipLaunch::kConfigured:
    case HipLaunch::kConfiguredFunction: {
      // Both configurations: sizes, stream, attributes at 40, how many at 48.
      const auto* const configuration = reinterpret_cast<const uint8_t*>(words[0]);
      uint32_t attributes = 1;
      uint64_t stream = 0;
      if (configuration != nullptr) {
        memcpy(&attributes, configuration + 48, sizeof attributes);
        memcpy(&stream, configuration + 32, sizeof stream);
      }
      launch.own_stream = launch.own_stream || stream == kOwnStream;
      launch.plain = attributes == 0;
      by_pointer = does.launch == HipLaunch::kConfigured;
      function = words[1];
      launch.arguments = list(words[2]);
      if (!by_pointer) launch.buffer = list(words[3]);
      break;
    }
    case HipLaunch::kNone:
      break;
  }
  if (function == 0) return launch;
  uint64_t attributes[64];  // hipFuncAttributes has 56 bytes
  if (by_pointer && s_attributes.load() != nullptr) s_attributes.load()(attributes, function);
  if (by_pointer && s_of_pointer.load() != nullptr) launch.kernel = s_of_pointer.load()(function, 0);
  if (!by_pointer && s_of_function.load() != nullptr) launch.kernel = s_of_function.load()(function);
  return launch;
}

// While alone.
RanOnce look_at_arguments(const Launch& launch, const KernelArguments& takes) {
  if (launch.buffer != nullptr) {
    // (1, buffer, 2, address of its size, 3): HIP_LAUNCH_PARAM_...
    const void* buffer = nullptr;
    size_t bytes = 0;
    for (const void* const* at = launch.buffer; *at != reinterpret_cast<const void*>(3); at += 2) {
      if (*at == reinterpret_cast<const void*>(1))
        buffer = at[1];
      else if (*at == reinterpret_cast<const void*>(2))
        memcpy(&bytes, at[1], sizeof bytes);
      else
        return RanOnce::kUnknown;
    }
    return buffer != nullptr ? look_at(buffer, bytes) : RanOnce::kNo;
  }
  if (takes.count != 0 && launch.arguments == nullptr) return RanOnce::kUnknown;
  for (size_t i = 0; i < takes.count; ++i) {
    if (launch.arguments[i] == nullptr) return RanOnce::kUnknown;
    if (const RanOnce why = look_at(launch.arguments[i], takes.size[i]); why != RanOnce::kNo) return why;
  }
  return RanOnce::kNo;
}

// Decides from facts that need no waiting.
RanOnce judge(const Launch& launch, KnownKernel& kernel) {
  kernel = {};
  kernel.wanted = true;
  if (launch.kernel == nullptr || !find_kernel(launch.kernel, kernel)) return RanOnce::kUnknown;
  if (!kernel.wanted) return RanOnce::kNo;
  if (kernel.collective) return RanOnce::kCollective;
  if (kernel.waits) return RanOnce::kWaits;
  if (!launch.plain) return RanOnce::kOther;
  if (kernel.arguments == nullptr) return RanOnce::kUnknown;
  if (kernel.arguments->calls_host) return RanOnce::kCallsHost;
  if (maps_memory()) return RanOnce::kMapped;
  if (writes_pageable_memory()) return RanOnce::kPageable;
  if (g_given_up.load() >= kMostGivenUp) return RanOnce::kBusy;
  return RanOnce::kNo;
}

// Batches
// A batch: launches that follow one another, on any threads, with no call between them that could reveal what they did.
// Memory is saved once for all of them, and each pass runs them all. Only a thread that is alone runs them.

struct Kept {
  Next* next;
  uint64_t words[14];  // as the program handed them over; they point into the arena
  size_t kernel;       // number of the known one
  const char* name;
  uint64_t index;
  int device;
};
struct Batch {
  static constexpr size_t kMost = 64, kArena = 1u << 20;
  Kept kept[kMost];
  size_t count;
  uint32_t codes;      // pieces of code that were loaded when it was opened
  bool loaded_itself;  // a launch of it brought code
  MappedBytes arena;
};
constinit Batch g_batch{};
constinit std::atomic<bool> g_batch_is_open{false};
constinit std::atomic<bool> g_abandoned{false};  // it has no further passes

int current_device() {
  static constinit std::atomic<uint32_t (*)(int*)> s_get{nullptr};
  if (s_get.load() == nullptr) s_get.store(hip_function<uint32_t(int*)>("hipGetDevice"));
  int device = 0;
  return s_get.load() != nullptr && s_get.load()(&device) == 0 ? device : 0;
}
void choose_device(int device) {
  static constinit std::atomic<uint32_t (*)(int)> s_set{nullptr};
  if (s_set.load() == nullptr) s_set.store(hip_function<uint32_t(int)>("hipSetDevice"));
  if (s_set.load() != nullptr) s_set.load()(device);
}

void* in_arena(const void* from, size_t bytes) {
  MappedBytes& arena = g_batch.arena;
  const size_t at = (arena.count + 15) / 16 * 16;
  if (!arena.reserve(Batch::kArena) || at + bytes > arena.capacity) return nullptr;
  arena.count = at + bytes;
  if (from != nullptr) memcpy(arena.data + at, from, bytes);
  return arena.data + at;
}

// Copies the data that a launch's words point to. False if there is no room for it.
bool copy_arguments(const HipCall& does, const Launch& launch, const KernelArguments& takes, uint64_t* words) {
  const auto word_of = [](const void* at) { return reinterpret_cast<uint64_t>(at); };
  const bool by_pointer = does.launch == HipLaunch::kByPointer, by_function = does.launch == HipLaunch::kByFunction;
  if (!by_pointer && !by_function) {
    words[0] = word_of(in_arena(reinterpret_cast<const void*>(words[0]), 56));
    if (words[0] == 0) return false;
  }
  uint64_t& arguments = words[by_pointer ? 5 : by_function ? 9 : 2];
  if (launch.buffer != nullptr) {
    const void* buffer = nullptr;
    size_t bytes = 0;
    for (const void* const* at = launch.buffer; *at != reinterpret_cast<const void*>(3); at += 2)
      if (*at == reinterpret_cast<const void*>(1))
        buffer = at[1];
      else
        memcpy(&bytes, at[1], sizeof bytes);
    auto** const list = static_cast<const void**>(in_arena(nullptr, 5 * sizeof(void*)));
    void* const size = in_arena(&bytes, sizeof bytes);
    void* const copy = in_arena(buffer, buffer != nullptr ? bytes : 0);
    if (list == nullptr || size == nullptr || copy == nullptr) return false;
    list[0] = reinterpret_cast<const void*>(1);
    list[1] = copy;
    list[2] = reinterpret_cast<const void*>(2);
    list[3] = size;
    list[4] = reinterpret_cast<const void*>(3);
    words[by_function ? 10 : 3] = word_of(list);
    return true;
  }
  if (launch.arguments == nullptr) return true;
  auto** const list = static_cast<void**>(in_arena(nullptr, (takes.count + 1) * sizeof(void*)));
  if (list == nullptr) return false;
  for (size_t i = 0; i < takes.count; ++i) {
    list[i] = in_arena(launch.arguments[i], takes.size[i]);
    if (list[i] == nullptr) return false;
  }
  list[takes.count] = nullptr;
  arguments = word_of(list);
  return true;
}

uint64_t run_in_pass(ThreadLaunch& thread, Next* next, const uint64_t* words, const char* name, size_t pass,
                     uint64_t index) {
  thread.kernel = name;
  thread.pass = pass;
  thread.index = index;
  thread.dispatched = false;
  const uint64_t result = make(next, words);
  thread.kernel = nullptr;
  return result;
}

void close_batch(RanOnce why) {
  for (size_t i = 0; i < g_batch.count && why != RanOnce::kNo; ++i) note_broken_off(g_batch.kept[i].index, why);
  g_batch.count = 0;
  g_batch.arena.count = 0;
  forget_named();
  g_batch_is_open.store(false);
  g_abandoned.store(false);
}

// Runs the further passes. The program sees the results of the last one.
void end_batch(ThreadLaunch& thread) {
  if (!g_batch_is_open.load()) return;
  if (g_abandoned.load()) return close_batch(RanOnce::kBusy);
  RanOnce why = RanOnce::kNo;
  const int device = current_device();
  int chosen = device;
  for (size_t pass = 1; pass < g_settings.passes && g_batch.count != 0 && why == RanOnce::kNo; ++pass) {
    if (g_batch.loaded_itself) {
      why = RanOnce::kUnknown;  // a launch brought variables of which there is no copy
    } else if (!settle()) {
      why = RanOnce::kWaits;
      if (pass != 1) {
        answer_again();
        settle();
      }
      for (size_t i = 0; i < g_batch.count; ++i) note_waiting(g_batch.kept[i].kernel);
    } else {
      if (pass == 1) note_first_results();
      if (!put_back()) why = RanOnce::kFailed;
    }
    for (size_t i = 0; i < g_batch.count && why == RanOnce::kNo; ++i) {
      const Kept& kept = g_batch.kept[i];
      if (kept.device != chosen) choose_device(chosen = kept.device);
      if (static_cast<uint32_t>(run_in_pass(thread, kept.next, kept.words, kept.name, pass, kept.index)) != 0)
        why = RanOnce::kFailed;
    }
  }
  if (chosen != device) choose_device(device);
  close_batch(why);
}

// Call before a call that could reveal what the launches of the batch did, or change the state that they find.
void end_batch_before_call() {
  if (!g_batch_is_open.load(std::memory_order_acquire) || g_abandoned.load()) return;
  ThreadLaunch* const thread = g_launches.get();
  if (thread != nullptr && be_alone(now_ns() + g_settings.patience_ns)) {
    end_batch(*thread);
    end_alone();
    return;
  }
  // Another call does not return, perhaps because it waits for this one. The memory's contents are right, and stay.
  g_given_up.fetch_add(1);
  g_abandoned.store(true);
}

// No batch is opened while somebody shares.
void share_without_batch() {
  for (;;) {
    end_batch_before_call();
    share();
    if (!g_batch_is_open.load() || g_abandoned.load()) return;
    unshare();
  }
}

constinit std::atomic<uint32_t> g_finished{0};

void* end_last_batch(void*) {
  pthread_setname_np(pthread_self(), "tacho-replay");
  end_batch_before_call();
  g_finished.store(1, std::memory_order_release);
  tape::wake_all(g_finished);
  return nullptr;
}

}  // namespace

bool on() {
  return g_replays.load(std::memory_order_acquire) && getpid() == g_settings.pid;
}

void begin(const counter::CounterSpool& spool, size_t passes, int64_t patience_ms, bool (*values_open)()) {
  g_settings = {&spool, passes, patience_ms * 1'000'000, getpid(), values_open};
  g_replays.store(true, std::memory_order_release);
}

bool enter(const HipCall& does) {
  if (does.passive)
    end_batch_before_call();
  else if (does.harmless)
    share();
  else
    share_without_batch();
  return true;
}

void leave(const HipCall& does, const uint64_t* words, bool worked) {
  if (does.passive) {
    if (g_alone.load(std::memory_order_acquire) != this_thread()) wait_for_others_end();
    return;
  }
  if (worked && does.chooses_device && words[0] < 32) g_devices.fetch_or(1u << words[0]);
  if (worked && does.captures) g_captures.fetch_add(1);
  if (does.ends_capture && g_captures.load() != 0) g_captures.fetch_sub(1);
  if (worked && does.managed && words[0] != 0) add_managed(*reinterpret_cast<const uint64_t*>(words[0]), words[1]);
  if (worked && does.memory == HipMemory::kFrees) drop_managed(words[0]);
  if (worked && does.resets) drop_all_managed();
  unshare();
}

uint64_t launch(const HipCall& does, const uint64_t* words, Next* next) {
  ThreadLaunch* const thread = g_launches.get();
  const auto pass_on = [&](RanOnce why) {
    if (thread != nullptr) {
      thread->once = why;
      thread->passed_on = true;
    }
    const uint64_t result = make(next, words);
    if (thread != nullptr) thread->passed_on = false;
    return result;
  };
  const auto pass_on_beside_others = [&](RanOnce why) {
    share_without_batch();
    const uint64_t result = pass_on(why);
    unshare();
    return result;
  };
  // Nothing runs that is launched into a capture, and the GPU cannot be waited for.
  if (thread == nullptr || g_captures.load() != 0) return pass_on_beside_others(RanOnce::kGraph);
  const Launch given = read_launch(does, words);
  KnownKernel kernel;
  RanOnce why = judge(given, kernel);
  if (why != RanOnce::kNo || !kernel.wanted) return pass_on_beside_others(why);
  if (!be_alone(now_ns() + g_settings.patience_ns)) {
    g_given_up.fetch_add(1);
    return pass_on_beside_others(RanOnce::kBusy);
  }
  why = judge(given, kernel);  // others may have loaded or mapped something meanwhile
  const counter::CounterSpool& spool = *g_settings.spool;
  // Its number, unless another process launches first.
  const bool counts = spool.launch_passes(spool.state->dispatches.load());
  // A batch whose copies do not cover what this launch can write, or that has no room for it, ends here.
  if (g_batch_is_open.load() &&
      (!counts || g_abandoned.load() || why != RanOnce::kNo || g_batch.codes != codes_loaded() ||
       g_batch.count == Batch::kMost || g_batch.arena.count > Batch::kArena / 2))
    end_batch(*thread);
  bool by_itself = true;
  if (counts && why == RanOnce::kNo) {
    why = look_at_arguments(given, *kernel.arguments);
    by_itself = why != RanOnce::kNo || names_host_memory() || has_managed_memory() || given.own_stream;
    if (by_itself && g_batch_is_open.load()) {
      // The batch before took the notes along: look again, after its end.
      end_batch(*thread);
      if (why == RanOnce::kNo) why = look_at_arguments(given, *kernel.arguments);
    }
  }
  if (!g_batch_is_open.load()) g_batch.arena.count = 0;
  uint64_t copied[14];
  memcpy(copied, words, sizeof copied);
  if (counts && why == RanOnce::kNo && !copy_arguments(does, given, *kernel.arguments, copied)) why = RanOnce::kNoRoom;
  if (counts && why == RanOnce::kNo && !g_batch_is_open.load()) {
    if (!settle()) {
      g_given_up.fetch_add(1);
      why = RanOnce::kBusy;
    } else {
      why = save();
    }
    if (why == RanOnce::kNo) {
      g_batch.codes = codes_loaded();
      g_batch.loaded_itself = false;
      g_batch_is_open.store(true);
    }
  }
  uint64_t result = 0;
  if (!counts || why != RanOnce::kNo) {
    end_batch(*thread);
    forget_named();
    result = pass_on(why);
  } else {
    result = run_in_pass(*thread, next, words, given.kernel, 0, 0);
    g_batch.loaded_itself = codes_loaded() != g_batch.codes;
    if (static_cast<uint32_t>(result) == 0 && thread->dispatched && thread->selected) {
      Kept& kept = g_batch.kept[g_batch.count++];
      kept = {next, {}, kernel.number, kernel.name, thread->index, current_device()};
      memcpy(kept.words, copied, sizeof copied);
    } else if (static_cast<uint32_t>(result) == 0) {
      // It ran unmeasured on purpose, or tacho did not see its dispatch: memory must not go back before it.
      close_batch(RanOnce::kOther);
    }
    if (by_itself) end_batch(*thread);
  }
  end_alone();
  return result;
}

// exit() first destroys the thread-local objects of the thread that calls it, HIP's among them: a launch by that thread
// would write into memory that has been freed.
void finish() {
  if (!on() || !g_batch_is_open.load(std::memory_order_acquire) || g_abandoned.load()) return;
  if (!start_own_thread(end_last_batch)) return g_abandoned.store(true);
  while (g_finished.load(std::memory_order_acquire) == 0) tape::wait_on(g_finished, 0, -1);
}

Turn turn_of(const char* kernel) {
  ThreadLaunch* const thread = g_launches.get();
  const bool own = kernel != nullptr && strncmp(kernel, "__amd_rocclr_", strlen("__amd_rocclr_")) == 0;
  if (thread != nullptr && thread->kernel != nullptr) {
    if (!own && kernel != nullptr && strcmp(kernel, thread->kernel) == 0)
      return {true, false, thread->pass != 0, thread->index, thread->pass, RanOnce::kNo};
    return {false, thread->pass != 0, false, 0, 0, own ? RanOnce::kOwn : RanOnce::kOther};
  }
  RanOnce once = open_call().graph ? RanOnce::kGraph : RanOnce::kOther;
  if (own)
    once = RanOnce::kOwn;
  else if (thread != nullptr && thread->passed_on)
    once = thread->once;
  return {false, false, false, 0, 0, once};
}

void counted_as(uint64_t index, bool selected) {
  ThreadLaunch* const thread = g_launches.get();
  if (thread == nullptr || thread->pass != 0) return;
  thread->index = index;
  thread->selected = selected;
  thread->dispatched = true;
}

}  // namespace tacho::capture::rocm::replay
