// Calls that the kernel ends with EINTR whatever SA_RESTART says: sleeps, poll and its kin, waits with a time limit.
// When libtacho.so is preloaded and samples, calls that only our signal ended go on for the rest of their time. The
// handler sees whether ours ended them: it interrupts the system call itself, while the handler of another signal would
// lie in between. From there to the next wait every signal stays blocked, and the wait lets them through again, so a
// signal of the program's is never missed in between. Without sampling every call passes straight on. Not covered:
// system calls that the program or libc makes directly.
#include "capture/source/sampler/waits.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "capture/per_thread.h"
#include "capture/room/next_symbol.h"
#include "capture/source/sampler/memory.h"
#include "capture/source/sampler/own_signal.h"

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using tacho::capture::next_symbol;
using tacho::capture::PerThread;
using tacho::capture::sampler::less;
using tacho::capture::sampler::own_signal;

// The wait that a thread is in.
struct Wait {
  uint64_t generation;
  std::atomic<uintptr_t> frame;       // of its wrapper
  std::atomic<uint32_t> interrupted;  // by us, since it was last set to 0
  std::atomic<uint32_t> holds;        // signals are to be held back from then on: kHold, and kHeld when they are
  uint64_t mask;                      // of the program, while they are held back
};
enum : uint32_t { kNoHold, kHold, kHeld };
constinit PerThread<Wait> g_waits;

Wait* sampled() {
  return __builtin_expect(own_signal() != 0, 0) ? g_waits.get() : nullptr;
}

// Makes a wait known to the handler. A handler of the program's may wait inside another wait.
class Entered {
 public:
  Entered(Wait* wait, uintptr_t frame, uint32_t holds) : wait_(wait) {
    frame_ = wait->frame.exchange(frame, std::memory_order_relaxed);
    holds_ = wait->holds.exchange(holds, std::memory_order_relaxed);
    mask_ = wait->mask;
    wait->interrupted.store(0, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Entered() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    wait_->frame.store(0, std::memory_order_relaxed);
    const uint64_t mask = wait_->mask;
    const bool held = wait_->holds.load(std::memory_order_relaxed) == kHeld;
    wait_->mask = mask_;
    wait_->holds.store(holds_, std::memory_order_relaxed);
    wait_->frame.store(frame_, std::memory_order_relaxed);
    if (!held) return;
    const int error = errno;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
    errno = error;
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  /// True if the call that failed with EINTR did so because of us.
  bool ended_by_us() { return wait_->interrupted.exchange(0, std::memory_order_relaxed) != 0; }
  /// The program's mask.
  sigset_t mask() const {
    sigset_t set;
    memset(&set, 0, sizeof set);
    memcpy(&set, &wait_->mask, sizeof wait_->mask);
    return set;
  }

 private:
  Wait* wait_;
  uintptr_t frame_;
  uint32_t holds_;
  uint64_t mask_;
};

// Repeats `call` while it fails with EINTR because of us.
template <typename Call>
auto through(Wait* wait, Call call) -> decltype(call()) {
  if (wait == nullptr) return call();
  Entered entered(wait, reinterpret_cast<uintptr_t>(__builtin_frame_address(0)), kNoHold);
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR || !entered.ended_by_us()) return result;
  }
}

// The same, for a wait that can take a signal mask: `again(mask)` replaces `first()` when it repeats, with signals held
// back around it.
template <typename First, typename Again>
auto through(Wait* wait, First first, Again again) -> decltype(first()) {
  if (wait == nullptr) return first();
  Entered entered(wait, reinterpret_cast<uintptr_t>(__builtin_frame_address(0)), kHold);
  auto result = first();
  while (result == -1 && errno == EINTR && entered.ended_by_us()) {
    const sigset_t mask = entered.mask();
    result = again(&mask);
  }
  return result;
}

using Ppoll = int(pollfd*, nfds_t, const timespec*, const sigset_t*);
using Pselect = int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*);
using EpollPwait = int(int, epoll_event*, int, int, const sigset_t*);
constinit std::atomic<void*> g_ppoll{nullptr}, g_pselect{nullptr}, g_epoll_pwait{nullptr}, g_sigsuspend{nullptr};

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// The rest of a time that began with this object, for a call that is repeated.
class Rest {
 public:
  explicit Rest(int64_t ns) : until_(ns > 0 ? now_ns() + ns : 0), ns_(ns) {}
  static int64_t of(const timespec& time) {
    constexpr int64_t kMostSeconds = int64_t{1} << 31;  // never reached in practice
    return (time.tv_sec < kMostSeconds ? time.tv_sec : kMostSeconds) * 1'000'000'000 + time.tv_nsec;
  }
  /// Later waits are not the first one.
  void started() { first_ = false; }
  bool was_used() const { return !first_; }
  int milliseconds() {
    const int64_t left = next();
    return left <= 0 ? static_cast<int>(left / 1'000'000) : static_cast<int>((left + 999'999) / 1'000'000);
  }
  timespec time() {
    const int64_t left = next();
    return {left / 1'000'000'000, left % 1'000'000'000};
  }

 private:
  int64_t next() {
    if (first_) {
      first_ = false;
      return ns_;
    }
    const int64_t left = until_ - now_ns();
    return left > 0 ? left : 0;
  }
  int64_t until_, ns_;
  bool first_ = true;
};

bool valid(const timespec* time) {
  return time != nullptr && time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < 1'000'000'000;
}

}  // namespace

namespace tacho::capture::sampler {

void note_interruption(ucontext_t* context) {
  if (context->uc_mcontext.gregs[REG_RAX] != -EINTR) return;
  Wait* const wait = g_waits.get();
  if (wait == nullptr) return;
  // Within the wrapper's call: a wait that was left by a jump has another stack below it by now.
  constexpr uintptr_t kDeepest = 4096;
  const uintptr_t frame = wait->frame.load(std::memory_order_relaxed);
  const auto sp = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RSP]);
  if (sp >= frame || frame - sp > kDeepest) return;
  const auto at = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RIP]);
  unsigned char code[2];
  Prober prober;
  if (!prober.read(at - sizeof code, code, sizeof code) || code[0] != 0x0f || code[1] != 0x05) return;
  wait->interrupted.store(1, std::memory_order_relaxed);
  if (wait->holds.load(std::memory_order_relaxed) != kHold) return;
  memcpy(&wait->mask, &context->uc_sigmask, sizeof wait->mask);
  memset(&context->uc_sigmask, 0xff, sizeof wait->mask);  // from the handler's return on
  wait->holds.store(kHeld, std::memory_order_relaxed);
}

}  // namespace tacho::capture::sampler

TACHO_EXPORT int nanosleep(const timespec* asked, timespec* left) {
  TACHO_NEXT(nanosleep, int(const timespec*, timespec*));
  Wait* const wait = sampled();
  if (wait == nullptr || !valid(asked)) return next(asked, left);
  auto* const ppoll = next_symbol<Ppoll>(g_ppoll, "ppoll");
  Rest rest(Rest::of(*asked));
  const int result = through(
      wait,
      [&] {
        const timespec time = rest.time();
        return next(&time, left);
      },
      [&](const sigset_t* mask) {
        const timespec time = rest.time();
        return ppoll(nullptr, 0, &time, mask);
      });
  if (result == -1 && errno == EINTR && left != nullptr) *left = rest.time();
  return result;
}

TACHO_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* asked, timespec* left) {
  TACHO_NEXT(clock_nanosleep, int(clockid_t, int, const timespec*, timespec*));
  Wait* const wait = sampled();
  if (wait == nullptr || !valid(asked)) return next(clock, flags, asked, left);
  const int before = errno;
  if (flags == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME)) {
    const int error = nanosleep(asked, left) == 0 ? 0 : errno;
    errno = before;
    return error;
  }
  timespec rest = *asked;
  int error = 0;  // which this call returns
  through(wait, [&] {
    error = (flags & TIMER_ABSTIME) != 0 ? next(clock, flags, asked, left) : next(clock, flags, &rest, &rest);
    errno = error;
    return error == EINTR ? -1 : 0;
  });
  if (error == EINTR && (flags & TIMER_ABSTIME) == 0 && left != nullptr) *left = rest;
  errno = before;
  return error;
}

TACHO_EXPORT int usleep(useconds_t us) {
  TACHO_NEXT(usleep, int(useconds_t));
  if (sampled() == nullptr) return next(us);
  const timespec asked{static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000) * 1000};
  return nanosleep(&asked, nullptr);
}

TACHO_EXPORT unsigned sleep(unsigned seconds) {
  TACHO_NEXT(sleep, unsigned(unsigned));
  if (sampled() == nullptr) return next(seconds);
  const int before = errno;
  timespec rest{static_cast<time_t>(seconds), 0};
  if (nanosleep(&rest, &rest) != 0) return static_cast<unsigned>(rest.tv_sec);
  errno = before;
  return 0;
}

TACHO_EXPORT int thrd_sleep(const timespec* asked, timespec* left) {
  TACHO_NEXT(thrd_sleep, int(const timespec*, timespec*));
  if (sampled() == nullptr) return next(asked, left);
  if (nanosleep(asked, left) == 0) return 0;
  return errno == EINTR ? -1 : -2;
}

TACHO_EXPORT int poll(pollfd* files, nfds_t count, int timeout) {
  TACHO_NEXT(poll, int(pollfd*, nfds_t, int));
  Wait* const wait = sampled();
  if (wait == nullptr) return next(files, count, timeout);
  auto* const ppoll = next_symbol<Ppoll>(g_ppoll, "ppoll");
  Rest rest(int64_t{timeout} * 1'000'000);
  return through(
      wait, [&] { return next(files, count, timeout < 0 ? timeout : rest.milliseconds()); },
      [&](const sigset_t* mask) {
        const timespec left = rest.time();
        return ppoll(files, count, timeout < 0 ? nullptr : &left, mask);
      });
}

TACHO_EXPORT int __poll_chk(pollfd* files, nfds_t count, int timeout, size_t bytes) {
  TACHO_NEXT(__poll_chk, int(pollfd*, nfds_t, int, size_t));
  if (sampled() == nullptr || bytes / sizeof *files < count) return next(files, count, timeout, bytes);
  return poll(files, count, timeout);
}

TACHO_EXPORT int ppoll(pollfd* files, nfds_t count, const timespec* time, const sigset_t* mask) {
  auto* const next = next_symbol<Ppoll>(g_ppoll, "ppoll");
  Wait* const wait = sampled();
  if (wait == nullptr || (time != nullptr && !valid(time))) return next(files, count, time, mask);
  Rest rest(time != nullptr ? Rest::of(*time) : 0);
  const auto wait_with = [&](const sigset_t* signals) {
    const timespec left = rest.time();
    return next(files, count, time != nullptr ? &left : nullptr, signals);
  };
  return through(
      wait, [&] { return wait_with(mask); },
      [&](const sigset_t* signals) { return wait_with(mask != nullptr ? mask : signals); });
}

TACHO_EXPORT int pselect(int count, fd_set* in, fd_set* out, fd_set* special, const timespec* time,
                         const sigset_t* mask) {
  auto* const next = next_symbol<Pselect>(g_pselect, "pselect");
  Wait* const wait = sampled();
  if (wait == nullptr || (time != nullptr && !valid(time))) return next(count, in, out, special, time, mask);
  Rest rest(time != nullptr ? Rest::of(*time) : 0);
  const auto wait_with = [&](const sigset_t* signals) {
    const timespec left = rest.time();
    return next(count, in, out, special, time != nullptr ? &left : nullptr, signals);
  };
  return through(
      wait, [&] { return wait_with(mask); },
      [&](const sigset_t* signals) { return wait_with(mask != nullptr ? mask : signals); });
}

// Leaves the remaining time in `time`; an interrupted call leaves the sets unchanged.
TACHO_EXPORT int select(int count, fd_set* in, fd_set* out, fd_set* special, timeval* time) {
  TACHO_NEXT(select, int(int, fd_set*, fd_set*, fd_set*, timeval*));
  auto* const pselect = next_symbol<Pselect>(g_pselect, "pselect");
  Wait* const wait = sampled();
  if (wait == nullptr || (time != nullptr && (time->tv_sec < 0 || time->tv_usec < 0)))
    return next(count, in, out, special, time);
  Rest rest(time != nullptr ? Rest::of({time->tv_sec, time->tv_usec * 1000}) : 0);
  const int result = through(
      wait, [&] { return next(count, in, out, special, time); },
      [&](const sigset_t* signals) {
        rest.started();
        const timespec left = rest.time();
        return pselect(count, in, out, special, time != nullptr ? &left : nullptr, signals);
      });
  if (rest.was_used() && time != nullptr) {
    const timespec left = rest.time();
    *time = {left.tv_sec, left.tv_nsec / 1000};
  }
  return result;
}

TACHO_EXPORT int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  TACHO_NEXT(epoll_wait, int(int, epoll_event*, int, int));
  auto* const epoll_pwait = next_symbol<EpollPwait>(g_epoll_pwait, "epoll_pwait");
  Wait* const wait = sampled();
  if (wait == nullptr) return next(epoll, events, most, timeout);
  Rest rest(int64_t{timeout} * 1'000'000);
  const auto left = [&] { return timeout < 0 ? timeout : rest.milliseconds(); };
  return through(
      wait, [&] { return next(epoll, events, most, left()); },
      [&](const sigset_t* signals) { return epoll_pwait(epoll, events, most, left(), signals); });
}

TACHO_EXPORT int epoll_pwait(int epoll, epoll_event* events, int most, int timeout, const sigset_t* mask) {
  auto* const next = next_symbol<EpollPwait>(g_epoll_pwait, "epoll_pwait");
  Wait* const wait = sampled();
  if (wait == nullptr) return next(epoll, events, most, timeout, mask);
  Rest rest(int64_t{timeout} * 1'000'000);
  const auto left = [&] { return timeout < 0 ? timeout : rest.milliseconds(); };
  return through(
      wait, [&] { return next(epoll, events, most, left(), mask); },
      [&](const sigset_t* signals) { return next(epoll, events, most, left(), mask != nullptr ? mask : signals); });
}

TACHO_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* until) {
  TACHO_NEXT(sem_timedwait, int(sem_t*, const timespec*));
  return through(sampled(), [&] { return next(semaphore, until); });
}

TACHO_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  TACHO_NEXT(sem_clockwait, int(sem_t*, clockid_t, const timespec*));
  return through(sampled(), [&] { return next(semaphore, clock, until); });
}

TACHO_EXPORT int semop(int set, sembuf* operations, size_t count) {
  TACHO_NEXT(semop, int(int, sembuf*, size_t));
  return through(sampled(), [&] { return next(set, operations, count); });
}

TACHO_EXPORT int semtimedop(int set, sembuf* operations, size_t count, const timespec* time) {
  TACHO_NEXT(semtimedop, int(int, sembuf*, size_t, const timespec*));
  Wait* const wait = sampled();
  if (wait == nullptr || !valid(time)) return through(wait, [&] { return next(set, operations, count, time); });
  Rest rest(Rest::of(*time));
  return through(wait, [&] {
    const timespec left = rest.time();
    return next(set, operations, count, &left);
  });
}

TACHO_EXPORT ssize_t msgrcv(int queue, void* message, size_t bytes, long type, int flags) {
  TACHO_NEXT(msgrcv, ssize_t(int, void*, size_t, long, int));
  return through(sampled(), [&] { return next(queue, message, bytes, type, flags); });
}

TACHO_EXPORT int msgsnd(int queue, const void* message, size_t bytes, int flags) {
  TACHO_NEXT(msgsnd, int(int, const void*, size_t, int));
  return through(sampled(), [&] { return next(queue, message, bytes, flags); });
}

TACHO_EXPORT int pause() {
  TACHO_NEXT(pause, int());
  auto* const suspend = next_symbol<int(const sigset_t*)>(g_sigsuspend, "sigsuspend");
  return through(
      sampled(), [&] { return next(); }, [&](const sigset_t* signals) { return suspend(signals); });
}

TACHO_EXPORT int sigsuspend(const sigset_t* mask) {
  auto* const next = next_symbol<int(const sigset_t*)>(g_sigsuspend, "sigsuspend");
  const auto wait_with = [&] { return next(mask); };
  return through(sampled(), wait_with, [&](const sigset_t*) { return wait_with(); });
}

TACHO_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  TACHO_NEXT(sigwaitinfo, int(const sigset_t*, siginfo_t*));
  sigset_t without;
  return through(sampled(), [&] { return next(less(set, without), info); });
}

TACHO_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* time) {
  TACHO_NEXT(sigtimedwait, int(const sigset_t*, siginfo_t*, const timespec*));
  sigset_t without;
  Wait* const wait = sampled();
  if (wait == nullptr || !valid(time)) return through(wait, [&] { return next(less(set, without), info, time); });
  Rest rest(Rest::of(*time));
  return through(wait, [&] {
    const timespec left = rest.time();
    return next(less(set, without), info, &left);
  });
}
