// Timers, the signal handler and the record of a sample (sampler.h).
#include "capture/source/sampler/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "capture/per_thread.h"
#include "capture/room/pages.h"
#include "capture/source/sampler/counts.h"
#include "capture/source/sampler/cpu_time.h"
#include "capture/source/sampler/memory.h"
#include "capture/source/sampler/modules.h"
#include "capture/source/sampler/own_signal.h"
#include "capture/source/sampler/pace.h"
#include "capture/source/sampler/python.h"
#include "capture/source/sampler/waits.h"
#include "event/sample.h"
#include "tape/permitted.h"
#include "tape/writer.h"

namespace tacho::capture::sampler {
namespace {

constexpr uint32_t kMostChain = 256;  // words: pairs of frame address and return address
struct Scratch {
  uint64_t chain[kMostChain];
  PythonScratch python;
};

struct Thread {
  uint64_t generation;
  uintptr_t stack_low, stack_high;  // 0 = unknown
  Scratch* scratch;
  PythonScratch* launch_scratch;  // a sample may interrupt the reading of a launch's stack
  WaitingScratch* waiting;        // of a thread that launches and has no Python frames
  uint64_t last_launch;           // correlation
  int32_t timer;                  // the kernel's id + 1; 0 = none
  uint32_t tid;
  Pace pace;                        // in ticks of host_ticks()
  uintptr_t routine;                // with which it began, 0 = unknown
  std::atomic<uint64_t> accounted;  // CPU time up to its last sample, or that nobody wants to know of, ns
  bool followed;                    // accounted is known from the thread's begin on
  bool sampled, ended;
};
constinit PerThread<Thread> g_threads;

// Set before the first timer.
constinit event::SampleClock g_clock = event::SampleClock::kCpu;
constinit uint64_t g_period = 10'000'000;  // ns
constinit uint32_t g_stack_bytes = 16384;
constinit uint8_t g_chosen[512] = {};  // by thread index, if g_choose
constinit bool g_choose = false;
constinit std::atomic<uint64_t> g_without_timer{0};  // threads; those that no record counts yet: g_untold
constinit std::atomic<uint64_t> g_untold{0};
constinit std::atomic<bool> g_stopped{false};
// The one thread of a forked child, from fork to its first sample: a child that only execs costs no more than a timer.
struct Forked {
  uint32_t tid;
  int32_t timer;
  uintptr_t stack_low, stack_high;
  uintptr_t routine;
};
constinit Forked g_forked = {};
constinit uint64_t g_tick = 0;                    // ns: how late the kernel may notice that CPU time has passed
constinit std::atomic<int64_t> g_next_search{0};  // CLOCK_MONOTONIC_COARSE ns
constinit std::atomic<uint32_t> g_last_index{0};  // highest index of a thread that has its timer from itself
constinit LeftTime g_left = {};
constinit std::atomic<uint64_t> g_accounted{0};  // the process's CPU time that is in samples, in g_left or not wanted

// Memory of threads in a program that ran before tacho came: nobody is told when they end, and a handler may still be
// in it when tacho leaves. The next attach gives it back.
struct Kept {
  void* at;
  size_t bytes;
};
constexpr uint32_t kMostKept = 8192;
constinit Kept g_kept[kMostKept] = {};
constinit std::atomic<uint32_t> g_kept_count{0};

void keep(void* at, size_t bytes) {
  if (!tape::attached_late()) return;
  if (const uint32_t place = g_kept_count.fetch_add(1, std::memory_order_relaxed); place < kMostKept)
    g_kept[place] = {at, bytes};
}
void give_kept_back() {
  const uint32_t count = g_kept_count.exchange(0, std::memory_order_relaxed);
  for (uint32_t i = 0; i < count && i < kMostKept; ++i) munmap(g_kept[i].at, g_kept[i].bytes);
}

// Memory of a thread's own that is all 0; null when there is none.
template <typename T>
T* map_scratch() {
  void* const memory = map_pages(sizeof(T));
  if (memory != nullptr) keep(memory, sizeof(T));
  return static_cast<T*>(memory);
}
template <typename T>
void unmap_scratch(T*& scratch) {
  T* const memory = scratch;
  scratch = nullptr;
  if (memory != nullptr && !tape::attached_late()) munmap(static_cast<void*>(memory), sizeof(T));
}

uint32_t current_tid() {
  return static_cast<uint32_t>(syscall(SYS_gettid));
}

int64_t now_coarse_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// Timers

// The kernel's own calls: glibc's would allocate, and a timer's id is all that is needed.
int32_t make_timer(clockid_t clock, int signal, uint32_t tid, uint64_t period, uint64_t first) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event._sigev_un._tid = static_cast<pid_t>(tid);
  int id = 0;
  if (syscall(SYS_timer_create, clock, &event, &id) != 0) return 0;
  const auto time = [](uint64_t ns) {
    return timespec{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  };
  const itimerspec spec{time(period), time(first)};
  if (syscall(SYS_timer_settime, id, 0, &spec, nullptr) != 0) {
    syscall(SYS_timer_delete, id);
    return 0;
  }
  return id + 1;
}

// The clock of one thread's CPU time by its id (bits as the kernel defines them: not tid, per thread, scheduler's).
clockid_t cpu_clock_of(uint32_t tid) {
  return static_cast<clockid_t>(~tid << 3 | 6);
}

// A thread that the kernel gave no timer. Each of the first few has a record of its own, for a process that is killed;
// later ones share one, so that very many fill no pool.
void count_without_timer() {
  constexpr uint64_t kSingly = 4096, kTogether = 64;
  const uint64_t number = g_without_timer.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t untold = g_untold.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number > kSingly && untold < kTogether) return;
  const uint64_t count = g_untold.exchange(0, std::memory_order_relaxed);
  if (count == 0) return;
  event::LossRecord record{};
  record.header = {event::RecordKind::kLoss, 0, sizeof record,
                   static_cast<uint32_t>(event::Table::kSample) | static_cast<uint32_t>(event::LossReason::kNoTimer)
                                                                      << 8};
  record.count = count;
  if (!tape::define(&record.header)) g_untold.fetch_add(count, std::memory_order_relaxed);
}

// CPU time

bool of_cpu_time() {
  return g_clock == event::SampleClock::kCpu;
}

// ns; 0 of a thread that has ended.
uint64_t cpu_ns(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// The thread's time since the last call, now that its clock says `cpu`: each piece once, whoever asks.
uint64_t take_time(Thread& thread, uint64_t cpu) {
  uint64_t before = thread.accounted.load(std::memory_order_relaxed);
  do {
    if (cpu <= before) return 0;
  } while (!thread.accounted.compare_exchange_weak(before, cpu, std::memory_order_relaxed));
  g_accounted.fetch_add(cpu - before, std::memory_order_relaxed);
  return cpu - before;
}

// Starts sampling of a thread of this process.
int32_t make_thread_timer(uint32_t tid) {
  if (g_stopped.load(std::memory_order_relaxed)) return 0;
  const bool cpu = of_cpu_time();
  const clockid_t clock = cpu ? cpu_clock_of(tid) : CLOCK_MONOTONIC;
  // The first one at a random moment of the period, so that also many short threads are sampled by their share of the
  // time. The kernel notices at the end of a tick: a moment within the first is for the first tick.
  uint64_t first = ((tid + static_cast<uint64_t>(now_coarse_ns())) * 0x9e3779b97f4a7c15ULL >> 20) % g_period;
  if (cpu) first = first > g_tick ? first - g_tick : 0;
  first += 1;
  const int32_t timer = make_timer(clock, own_signal(), tid, g_period, first);
  if (timer == 0) count_without_timer();
  return timer;
}

// Threads that did not come through pthread_create

// Threads without a timer of their own, by tid: open addressing, few. Seen once, a thread may just be starting; one
// that is still here at the next search gets a timer.
constexpr uint32_t kMostSearched = 4096;  // with more threads the search would take too long for a handler
constexpr uint32_t kStrangers = 1024;
constexpr uint64_t kHasTimer = 1ULL << 31;
constinit std::atomic<uint64_t> g_strangers[kStrangers] = {};  // generation << 32 | kHasTimer | tid
constinit std::atomic<int32_t> g_stranger_timers[kStrangers] = {};

// The thread's place in the table, the second time; -1 before and after.
int32_t seen_again(uint32_t tid) {
  const uint64_t entry = tape::process_generation() << 32 | tid;
  uint32_t at = tid * 2654435761u % kStrangers;
  for (uint32_t tried = 0; tried < 32; ++tried, at = (at + 1) % kStrangers) {
    uint64_t there = g_strangers[at].load(std::memory_order_relaxed);
    if (there == (entry | kHasTimer)) return -1;
    if (there == entry)
      return g_strangers[at].compare_exchange_strong(there, entry | kHasTimer) ? static_cast<int32_t>(at) : -1;
    if (there >> 32 != entry >> 32 && g_strangers[at].compare_exchange_strong(there, entry)) return -1;
  }
  return -1;
}

// A search was faster than the thread's own start.
bool has_timer(uint32_t tid) {
  const uint64_t entry = tape::process_generation() << 32 | kHasTimer | tid;
  uint32_t at = tid * 2654435761u % kStrangers;
  for (uint32_t tried = 0; tried < 32; ++tried, at = (at + 1) % kStrangers)
    if (g_strangers[at].load(std::memory_order_relaxed) == entry) return true;
  return false;
}

bool known_thread(uint32_t tid) {
  if (tid == g_forked.tid) return true;
  const uint32_t last = g_last_index.load(std::memory_order_relaxed);
  const uint64_t generation = tape::process_generation();
  for (uint32_t index = 1; index <= last; ++index) {
    const Thread* const thread = g_threads.at(index);
    if (thread != nullptr && thread->generation == generation && thread->tid == tid && thread->timer != 0) return true;
  }
  return false;
}

// Gives timers to threads that have none, the second time that it meets them.
void look_for_threads() {
  if (g_last_index.load(std::memory_order_relaxed) > kMostSearched) return;
  const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(8) char buffer[2048];
  for (;;) {
    const long size = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (size <= 0) break;
    for (long at = 0; at < size;) {
      uint16_t length;
      memcpy(&length, buffer + at + 16, sizeof length);
      uint32_t tid = 0;
      for (const char* digit = buffer + at + 19; *digit >= '0' && *digit <= '9'; ++digit)
        tid = tid * 10 + static_cast<uint32_t>(*digit - '0');
      if (tid != 0 && !known_thread(tid))
        if (const int32_t place = seen_again(tid); place >= 0) g_stranger_timers[place].store(make_thread_timer(tid));
      at += length;
    }
  }
  close(folder);
}

// Called from the handler (50 ms after the start, then about every half second). A separate searching thread would wake
// threads that wait.
void search_threads() {
  if (g_choose) return;  // threads that are left out on purpose have no timer either
  const int64_t now = now_coarse_ns();
  int64_t due = g_next_search.load(std::memory_order_relaxed);
  if (now < due || !g_next_search.compare_exchange_strong(due, now + 500'000'000, std::memory_order_relaxed)) return;
  look_for_threads();
}

// "0,3,5-8": threads by their place in the process, the main thread is 0. Empty = all.
void choose_threads(std::string_view list) {
  g_choose = !list.empty();
  uint32_t first = 0, number = 0;
  bool range = false, digits = false;
  for (size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c >= '0' && c <= '9') {
      number = number < 100'000 ? number * 10 + static_cast<uint32_t>(c - '0') : number;
      digits = true;
    } else if (c == '-' && digits) {
      first = number;
      range = true;
      number = 0;
      digits = false;
    } else if (c == ',') {
      for (uint32_t at = range ? first : number; digits && at <= number && at < sizeof g_chosen; ++at) g_chosen[at] = 1;
      number = 0;
      range = digits = false;
    }
  }
}
bool chosen(uint32_t index) {
  return !g_choose || (index >= 1 && index - 1 < sizeof g_chosen && g_chosen[index - 1] != 0);
}

void start_thread(Thread& thread) {
  thread.tid = current_tid();
  const uint32_t index = tape::t_state.thread_index;
  uint32_t last = g_last_index.load(std::memory_order_relaxed);
  while (last < index && !g_last_index.compare_exchange_weak(last, index, std::memory_order_relaxed)) {
  }
  if (chosen(index) && !has_timer(thread.tid)) thread.timer = make_thread_timer(thread.tid);
}

// The sample

constexpr int kRegisterOrder[event::kSampleRegisters] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                                         REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                         REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

// Return addresses along the chain of frame pointers from `frame` on, as far as it looks like one: pairs of a frame's
// address and its return address.
uint32_t follow_frame_pointers(Prober& prober, uintptr_t frame, uintptr_t low, uintptr_t high, uint64_t* out) {
  uint32_t count = 0;
  // Subtracted, not added: the register may hold anything, also the highest addresses there are.
  while (count + 2 <= kMostChain && frame % 8 == 0 && frame >= low && frame <= high - 16) {
    uintptr_t words[2];
    if (!prober.read(frame, words, sizeof words) || words[1] < 4096) break;
    out[count++] = frame;
    out[count++] = words[1];
    if (words[0] <= frame) break;
    frame = words[0];
  }
  return count;
}

// The calling thread's state; of a forked child's thread, as its parent left it.
Thread* own_thread() {
  Thread* const thread = g_threads.get();
  if (thread != nullptr && thread->tid == 0 && g_forked.tid == tape::t_state.tid) {
    thread->tid = g_forked.tid;
    thread->timer = g_forked.timer;
    thread->stack_low = g_forked.stack_low;
    thread->stack_high = g_forked.stack_high;
    thread->routine = g_forked.routine;
    thread->followed = true;
  }
  return thread;
}

uint64_t expirations(const siginfo_t* info) {
  return 1 + static_cast<uint64_t>(info->si_overrun > 0 ? info->si_overrun : 0);
}

// What a sample of CPU time stands for on average: the kernel looks at timers once a tick.
uint64_t cpu_period() {
  return g_period > g_tick ? g_period : g_tick;
}

// The CPU time that a sample stands for which is taken now, `cpu` being the thread's clock.
uint64_t sampled_time(Thread& thread, uint64_t cpu) {
  const uint64_t own = take_time(thread, cpu);
  if (thread.sampled) return own;
  thread.sampled = true;
  return own + g_left.take(thread.routine, own, cpu_period());
}

// Of a thread that was not seen from its begin on: only the time that its timer's signals stand for is known to be
// spent where it is.
void follow(Thread& thread, uint64_t cpu, uint64_t periods) {
  const uint64_t own = periods * cpu_period();
  thread.accounted.store(cpu > own ? cpu - own : 0, std::memory_order_relaxed);
  thread.followed = true;
}

// At a timer's signal while recording is paused.
void skip_time() {
  if (!of_cpu_time()) return;
  Thread* const thread = own_thread();
  if (thread != nullptr && !thread->ended) take_time(*thread, cpu_ns(CLOCK_THREAD_CPUTIME_ID));
}

void take_sample(const siginfo_t* info, const ucontext_t* context) {
  Thread* const thread = own_thread();
  if (thread == nullptr || thread->ended) return;
  const uint64_t now = host_ticks();
  const uint64_t periods = thread->pace.take(now, expirations(info));
  if (periods == 0) return;
  const uint64_t cpu = of_cpu_time() ? cpu_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
  if (!thread->followed) follow(*thread, cpu, periods);
  if (thread->scratch == nullptr) thread->scratch = map_scratch<Scratch>();
  if (thread->scratch == nullptr) return tape::count_dropped(event::Table::kSample);
  Scratch& scratch = *thread->scratch;
  const auto sp = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RSP]);
  const auto bp = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RBP]);
  Prober prober;

  event::SampleHeader header{};
  header.clock = g_clock;
  const bool own_stack = sp >= thread->stack_low && sp < thread->stack_high;
  const uintptr_t begin = sp & ~uintptr_t{7};
  size_t wanted = g_stack_bytes;
  size_t left = wanted;
  if (own_stack) {
    left = (thread->stack_high & ~uintptr_t{7}) - begin;
    if (left < wanted) wanted = left;
  }
  // As far as there is memory: programs take pages away even from stacks of their own (guards between coroutines), and
  // another stack (signal stack, coroutine, a thread not seen from its start) ends anywhere.
  size_t there = 0;
  while (there < wanted) {
    const size_t to_page = 4096 - (begin + there) % 4096;
    const size_t step = to_page < wanted - there ? to_page : wanted - there;
    if (!prober.readable(begin + there, step)) break;
    there += step;
  }
  wanted = there & ~size_t{7};
  if (own_stack && wanted >= 16) {
    header.stack_whole = left <= wanted;
    // Frame pointers may reach further than the slice.
    if (!header.stack_whole) {
      uintptr_t frame = bp;
      const uintptr_t end = begin + wanted;
      // First along the chain inside the slice, which needs no copy, then onwards.
      while (frame % 8 == 0 && frame >= begin && frame <= end - 16) {
        uintptr_t next;
        memcpy(&next, reinterpret_cast<const void*>(frame), sizeof next);
        if (next <= frame) break;
        frame = next;
      }
      if (frame > end - 16)
        header.chain =
            static_cast<uint16_t>(follow_frame_pointers(prober, frame, begin, thread->stack_high, scratch.chain));
    }
  }
  uint32_t frames = 0;
  header.python = python_frames(prober, sp, own_stack ? thread->stack_high : 0, scratch.python, frames);
  header.frames = static_cast<uint16_t>(frames);
  header.stack_begin = begin;
  header.stack_bytes = static_cast<uint32_t>(wanted);

  const uint32_t words = static_cast<uint32_t>(sizeof header / 8) + event::kSampleRegisters + header.chain +
                         header.frames + header.stack_bytes / 8;
  auto* const record =
      tape::begin<event::SampleRecord>(event::RecordKind::kSample, event::Table::kSample, words, 0, words * 8);
  if (record == nullptr) return;
  record->time = now;
  record->period = of_cpu_time() ? sampled_time(*thread, cpu) : g_period * periods;
  record->correlation = tape::t_state.open_correlation;
  record->tid = tape::t_state.tid;
  record->reserved = 0;
  auto* at = reinterpret_cast<std::byte*>(record + 1);
  const auto put = [&](const void* bytes, size_t size) {
    memcpy(at, bytes, size);
    at += size;
  };
  put(&header, sizeof header);
  for (const int number : kRegisterOrder) {
    const auto value = static_cast<uint64_t>(context->uc_mcontext.gregs[number]);
    put(&value, sizeof value);
  }
  put(scratch.chain, header.chain * sizeof(uint64_t));
  put(scratch.python.words, frames * sizeof(uint64_t));
  put(reinterpret_cast<const void*>(begin), wanted);
  tape::commit();
  sample_counts(now);
  thread->pace.taken(now, host_ticks());
}

void on_signal(int, siginfo_t* info, void* context) {
  const int kept_errno = errno;
  if (info->si_code == SI_TIMER) {
    note_interruption(static_cast<ucontext_t*>(context));
    if (tape::enabled(tape::source_bit::kSample))
      take_sample(info, static_cast<const ucontext_t*>(context));
    else
      skip_time();
    search_threads();
  }
  errno = kept_errno;
}

// Start

void learn_stack(Thread& thread) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* low = nullptr;
  size_t size = 0;
  if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
    thread.stack_low = reinterpret_cast<uintptr_t>(low);
    thread.stack_high = thread.stack_low + size;
  }
  pthread_attr_destroy(&attributes);
}

// In a forked child, which has no timers: its one thread is sampled again, as a new process from its first sample on.
void after_fork() {
  if (own_signal() == 0 || g_stopped.load(std::memory_order_relaxed)) return;
  const Thread* const before = g_threads.at(tape::t_state.thread_index);
  g_forked = {};
  if (before != nullptr && tape::t_state.thread_index != 0) {
    g_forked.stack_low = before->stack_low;
    g_forked.stack_high = before->stack_high;
    g_forked.routine = before->routine;
  }
  g_left.clear();
  g_accounted.store(0, std::memory_order_relaxed);
  g_forked.tid = current_tid();
  g_last_index.store(0, std::memory_order_relaxed);
  g_forked.timer = make_thread_timer(g_forked.tid);
}

// CPU time of thread `tid` that no moment stands for.
void record_time(event::SampleOf of, uint32_t tid, uintptr_t routine, uint64_t ns) {
  constexpr uint32_t kWords = sizeof(event::SampleHeader) / 8;
  auto* const record =
      tape::begin<event::SampleRecord>(event::RecordKind::kSample, event::Table::kSample, kWords, 0, kWords * 8);
  if (record == nullptr) return;
  record->time = host_ticks();
  record->period = ns;
  record->correlation = 0;
  record->tid = tid;
  record->reserved = 0;
  event::SampleHeader header{};
  header.clock = g_clock;
  header.of = of;
  header.stack_begin = routine;
  memcpy(record + 1, &header, sizeof header);
  tape::commit();
}

// What the process used before its samples begin: the loader, constructors of libraries, and what ran in it before an
// exec.
void account_start(Thread& thread) {
  thread.accounted.store(cpu_ns(CLOCK_THREAD_CPUTIME_ID), std::memory_order_relaxed);
  thread.followed = true;
  const uint64_t used = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  g_accounted.store(used, std::memory_order_relaxed);
  if (tape::enabled(tape::source_bit::kSample)) record_time(event::SampleOf::kBeforeMain, thread.tid, 0, used);
}

// A forked child that ends without having recorded anything is described for this much CPU time, ns.
constexpr uint64_t kLeastOfChild = 500'000;

}  // namespace

constinit std::atomic<bool> g_launch_stacks{false};

namespace {

// A stack of Python frames, read by the thread itself. `of`: SampleHeader::launch. False where no Python runs.
bool record_own_stack(Thread& thread, uint64_t correlation, uint8_t of) {
  if (thread.launch_scratch == nullptr) thread.launch_scratch = map_scratch<PythonScratch>();
  if (thread.launch_scratch == nullptr) {
    tape::count_dropped(event::Table::kSample);
    return true;
  }
  const int kept_errno = errno;
  PythonScratch& scratch = *thread.launch_scratch;
  const auto sp = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const bool own_stack = sp >= thread.stack_low && sp < thread.stack_high;
  Prober prober;
  event::SampleHeader header{};
  header.clock = g_clock;
  header.launch = of;
  uint32_t frames = 0;
  header.python = python_frames(prober, sp, own_stack ? thread.stack_high : 0, scratch, frames);
  if (frames == 0 && header.python != event::PythonState::kBroken) {
    if (thread.waiting == nullptr) thread.waiting = map_scratch<WaitingScratch>();
    if (thread.waiting != nullptr) header.python = waiting_frames(*thread.waiting, scratch, frames);
  }
  header.frames = static_cast<uint16_t>(frames);
  errno = kept_errno;
  if (frames == 0) return header.python == event::PythonState::kBroken;
  const uint32_t words = static_cast<uint32_t>(sizeof header / 8) + header.frames;
  auto* const record =
      tape::begin<event::SampleRecord>(event::RecordKind::kSample, event::Table::kSample, words, 0, words * 8);
  if (record == nullptr) return true;
  record->time = host_ticks();
  record->period = 0;
  record->correlation = correlation;
  record->tid = tape::t_state.tid;
  record->reserved = 0;
  auto* const at = reinterpret_cast<std::byte*>(record + 1);
  memcpy(at, &header, sizeof header);
  memcpy(at + sizeof header, scratch.words, frames * sizeof(uint64_t));
  tape::commit();
  return true;
}

// The native stack, read by the thread itself: a sample that stands for no time. Further out than the slice that
// samples copy, nothing is known of it.
__attribute__((noinline)) void record_native_stack(const Thread& thread, uint64_t correlation, uint64_t time) {
  ucontext_t context{};
  getcontext(&context);
  const auto sp = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
  const uintptr_t begin = sp & ~uintptr_t{7};
  if (sp < thread.stack_low || sp >= thread.stack_high) return;  // a coroutine's: nobody knows where it ends
  const size_t left = (thread.stack_high & ~uintptr_t{7}) - begin;
  const size_t bytes = std::min<size_t>(left, g_stack_bytes) & ~size_t{7};
  const int kept_errno = errno;
  Prober prober;
  const bool there = prober.readable(begin, bytes);
  errno = kept_errno;
  if (!there) return;
  event::SampleHeader header{};
  header.clock = g_clock;
  header.stack_whole = left <= bytes;
  header.stack_begin = begin;
  header.stack_bytes = static_cast<uint32_t>(bytes);
  const auto words = static_cast<uint32_t>(sizeof header / 8 + event::kSampleRegisters + bytes / 8);
  auto* const record =
      tape::begin<event::SampleRecord>(event::RecordKind::kSample, event::Table::kSample, words, 0, words * 8);
  if (record == nullptr) return;
  record->time = time;
  record->period = 0;
  record->correlation = correlation;
  record->tid = tape::t_state.tid;
  record->reserved = 0;
  auto* at = reinterpret_cast<std::byte*>(record + 1);
  memcpy(at, &header, sizeof header);
  at += sizeof header;
  for (const int number : kRegisterOrder) {
    const auto value = static_cast<uint64_t>(context.uc_mcontext.gregs[number]);
    memcpy(at, &value, sizeof value);
    at += sizeof value;
  }
  memcpy(at, reinterpret_cast<const void*>(begin), bytes);
  tape::commit();
}

}  // namespace

void record_launch_stack(uint64_t correlation) {
  if (correlation == 0 || !tape::enabled(tape::source_bit::kSample)) return;
  Thread* const thread = g_threads.get();
  // A runtime's call and the driver's call in it have the same number: the outer one counts.
  if (thread == nullptr || thread->last_launch == correlation) return;
  thread->last_launch = correlation;
  record_own_stack(*thread, correlation, 1);
}

void record_memory_stack() {
  if (!tape::enabled(tape::source_bit::kSample)) return;
  if (Thread* const thread = g_threads.get()) record_own_stack(*thread, 0, 2);
}

void record_allocation_stack(uint64_t correlation, uint64_t time, bool record_follows) {
  if (!tape::enabled(tape::source_bit::kSample)) return;
  Thread* const thread = g_threads.get();
  if (thread == nullptr) return;
  // Of calls within each other with one number the outer one counts.
  if (correlation != 0 && !record_follows && thread->last_launch == correlation) return;
  if (correlation != 0) thread->last_launch = correlation;
  const bool known = record_follows ? record_own_stack(*thread, 0, 2) : record_own_stack(*thread, correlation, 1);
  if (!known && correlation != 0) record_native_stack(*thread, correlation, time);
}

void stop() {
  if (g_stopped.exchange(true) || own_signal() == 0) return;
  const uint32_t last = g_last_index.load(std::memory_order_relaxed);
  for (uint32_t index = 1; index <= last; ++index)
    if (Thread* const thread = g_threads.at(index); thread != nullptr && thread->timer != 0) {
      syscall(SYS_timer_delete, thread->timer - 1);
      thread->timer = 0;
    }
}

namespace {

// Takes up what the configuration says; the signal to sample with, 0 = there is to be or can be no sampling.
int configure() {
  if (own_signal() != 0) return 0;
  if ((tape::pool()->sources & tape::source_bit::kSample) == 0) return 0;
  const event::ConfigurationView& configuration = tape::configuration();
  if (configuration.launch_stacks) {
    find_python();
    g_launch_stacks.store(true, std::memory_order_relaxed);
  }
  if (configuration.sampler != event::Sampler::kTimer) return 0;
  if (!tape::permitted(tape::kCallSample)) {
    tape::note(event::NoteSeverity::kWarning, "a process was started under a filter of system calls (seccomp) of the "
                                              "program's: its call stacks are not sampled");
    return 0;
  }
  g_clock = configuration.sample_clock;
  timespec tick{};
  if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0 && tick.tv_sec == 0)
    g_tick = static_cast<uint64_t>(tick.tv_nsec);
  g_next_search.store(now_coarse_ns() + 50'000'000, std::memory_order_relaxed);
  g_period = 1'000'000'000 / configuration.sample_hz;
  g_stack_bytes = configuration.sample_stack & ~7u;
  choose_threads(configuration.sample_threads);
  const int signal = free_signal();
  if (signal == 0)
    tape::note(event::NoteSeverity::kWarning,
               "the program uses all real-time signals: its call stacks are not sampled");
  return signal;
}

}  // namespace

void start_late() {
  static constinit uint32_t started_in = 0;
  if (started_in == tape::late_session()) {
    look_for_modules();
    if (own_signal() != 0) find_python();
    return;
  }
  started_in = tape::late_session();
  give_kept_back();
  forget_modules();
  forget_python();
  const int signal = configure();
  if (signal == 0) return;
  if (!of_cpu_time()) {
    tape::note(event::NoteSeverity::kWarning,
               "call stacks of waiting threads (--sample-clock wall) are taken only in programs that tacho has "
               "started: elsewhere the signals would interrupt what the threads wait for");
    return;
  }
  g_stopped.store(false, std::memory_order_relaxed);
  g_accounted.store(0, std::memory_order_relaxed);
  g_last_index.store(0, std::memory_order_relaxed);
  g_left.clear();
  start_modules();
  find_python();
  if (!take_signal(signal, on_signal)) return;
  // All are met a second time: nobody knows which of them were there before.
  for (int looks = 0; looks < 2; ++looks) look_for_threads();
}

void leave_late() {
  g_launch_stacks.store(false, std::memory_order_relaxed);
  if (own_signal() == 0) return;
  g_stopped.store(true, std::memory_order_relaxed);
  for (std::atomic<int32_t>& timer : g_stranger_timers)
    if (const int32_t number = timer.exchange(0); number != 0) syscall(SYS_timer_delete, number - 1);
  give_signal_back();
}

void start_process(const void* stack_end, const void* main) {
  const int signal = configure();
  if (signal == 0) return;
  Thread* const thread = g_threads.get();
  if (thread == nullptr) return;
  thread->stack_high = reinterpret_cast<uintptr_t>(stack_end);
  thread->routine = reinterpret_cast<uintptr_t>(main);
  // Below the main thread's stack the kernel keeps as much room free as the limit says, at least 128 MiB.
  rlimit limit{};
  uintptr_t room = 128u << 20;
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur > room)
    room = limit.rlim_cur;
  thread->stack_low = thread->stack_high > room ? thread->stack_high - room : 0;

  start_modules();
  find_python();
  if (!take_signal(signal, on_signal)) return;
  pthread_atfork(nullptr, nullptr, after_fork);
  start_thread(*thread);
  if (thread->timer == 0) {
    tape::note(event::NoteSeverity::kWarning,
               "the kernel gave no timer (limit of pending signals, ulimit -i?): call stacks are not sampled");
  }
  if (of_cpu_time() && chosen(tape::t_state.thread_index)) account_start(*thread);
}

void begin_thread(const void* routine) {
  if (own_signal() == 0 || g_stopped.load(std::memory_order_relaxed)) return;
  find_python();  // may have been loaded meanwhile
  Thread* const thread = g_threads.get();
  if (thread == nullptr) return;
  learn_stack(*thread);
  thread->routine = reinterpret_cast<uintptr_t>(routine);
  thread->followed = true;  // from its first nanosecond on
  unblock_own_signal();
  start_thread(*thread);
}

void end_thread() {
  end_counts();
  if (own_signal() == 0 || tape::t_state.generation != tape::process_generation()) return;
  Thread* const thread = g_threads.get();
  if (thread == nullptr || thread->tid != tape::t_state.tid) return;
  if (thread->timer != 0 && tape::permitted(tape::kCallSample)) syscall(SYS_timer_delete, thread->timer - 1);
  thread->timer = 0;
  thread->ended = true;
  if (of_cpu_time() && chosen(tape::t_state.thread_index) && tape::permitted(tape::kCallSample)) {
    const uint64_t rest = take_time(*thread, cpu_ns(CLOCK_THREAD_CPUTIME_ID));
    if (tape::enabled(tape::source_bit::kSample)) g_left.add(thread->routine, thread->tid, rest);
  }
  thread->pace = {};  // its place goes to another thread
  unmap_scratch(thread->scratch);
  unmap_scratch(thread->launch_scratch);
  unmap_scratch(thread->waiting);
}

// Also run by what ends without exit handlers (_exit), and then perhaps a second time.
__attribute__((destructor)) void end_process() {
  if (own_signal() == 0 || !of_cpu_time() || g_stopped.load(std::memory_order_relaxed) ||
      !tape::permitted(tape::kCallSample) || !tape::enabled(tape::source_bit::kSample))
    return;
  const uint64_t used = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  const uint32_t tid = current_tid();
  const bool known = tape::t_state.generation != 0 && tape::t_state.generation == tape::process_generation();
  // A child of vfork has its parent's memory, and another's time.
  if (known ? tape::t_state.tid != tid : g_forked.tid != tid || used < kLeastOfChild) return;
  const Thread* const self = own_thread();
  if (self == nullptr || self->ended) return;
  // Threads that still run: their time up to here, and never more than the process has.
  const auto left = [&] {
    const uint64_t accounted = g_accounted.load(std::memory_order_relaxed);
    return used > accounted ? used - accounted : 0;
  };
  const uint32_t last = std::max(g_last_index.load(std::memory_order_relaxed), tape::t_state.thread_index);
  for (uint32_t index = 1; index <= last; ++index) {
    Thread* const thread = g_threads.at(index);
    if (thread == nullptr || thread->generation != tape::process_generation() || thread->tid == 0 || thread->ended ||
        !thread->followed || !chosen(index))
      continue;
    const uint64_t cpu = cpu_ns(thread->tid == tid ? CLOCK_THREAD_CPUTIME_ID : cpu_clock_of(thread->tid));
    const uint64_t most = thread->accounted.load(std::memory_order_relaxed) + left();
    g_left.add(thread->routine, thread->tid, take_time(*thread, cpu < most ? cpu : most));
  }
  // What is left belongs to threads that nobody followed, and to the begin and end of the others.
  if (const uint64_t rest = left(); rest != 0 && !g_choose) {
    g_accounted.fetch_add(rest, std::memory_order_relaxed);
    g_left.add(0, tid, rest);
  }
  g_left.take_all(
      [](uintptr_t routine, uint32_t of, uint64_t ns) { record_time(event::SampleOf::kRest, of, routine, ns); });
}

}  // namespace tacho::capture::sampler
