// Keeps the sampling signal out of the program's sight, when libtacho.so is preloaded: it cannot be given another
// handler, blocked, or waited for; programs that do so with all signals (thread pools that block everything, crash
// handlers that catch everything) go on working and are sampled all the same. Without sampling every call passes
// straight on.
#include "capture/source/sampler/signals.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "capture/source/sampler/sampler.h"

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using tacho::capture::sampler::less;
using tacho::capture::sampler::own_signal;

template <typename Signature>
Signature* next_symbol(std::atomic<void*>& slot, const char* name) {
  void* at = slot.load(std::memory_order_relaxed);
  if (__builtin_expect(at == nullptr, 0)) {
    at = dlsym(RTLD_NEXT, name);
    slot.store(at, std::memory_order_relaxed);
  }
  return reinterpret_cast<Signature*>(at);
}

#define TACHO_NEXT(name, signature)                  \
  static constinit std::atomic<void*> slot{nullptr}; \
  auto* const next = next_symbol<signature>(slot, #name)

}  // namespace

namespace tacho::capture::sampler {

const sigset_t* less(const sigset_t* set, sigset_t& without) {
  const int own = own_signal();
  if (own == 0 || set == nullptr || sigismember(set, own) != 1) return set;
  without = *set;
  sigdelset(&without, own);
  return &without;
}

int real_sigaction(int number, const struct sigaction* action, struct sigaction* previous) {
  TACHO_NEXT(sigaction, int(int, const struct sigaction*, struct sigaction*));
  return next(number, action, previous);
}

void unblock(int number) {
  // The kernel's call: signals are bits from 1 on.
  const uint64_t bit = 1ULL << (number - 1);
  syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, nullptr, sizeof bit);
}

}  // namespace tacho::capture::sampler

TACHO_EXPORT int sigaction(int number, const struct sigaction* action, struct sigaction* previous) noexcept {
  if (__builtin_expect(number != 0 && number == own_signal(), 0)) {
    if (previous != nullptr) {  // as if nobody had touched it
      *previous = {};
      previous->sa_handler = SIG_DFL;
    }
    return 0;
  }
  TACHO_NEXT(sigaction, int(int, const struct sigaction*, struct sigaction*));
  const int own = own_signal();
  if (own == 0) return next(number, action, previous);
  // Handlers of the program that block everything while they run keep their mask but for our signal. Those on small
  // alternate stacks block ours instead: such a stack has room for their frame, not for another one.
  static constinit std::atomic<uint64_t> wanted{0};  // handlers whose mask has our signal, as the program knows it
  const uint64_t bit = number > 0 && number <= 64 ? 1ULL << (number - 1) : 0;
  const uint64_t before = wanted.load(std::memory_order_relaxed);
  struct sigaction changed {};
  if (action != nullptr) {
    changed = *action;
    if (sigismember(&changed.sa_mask, own) == 1)
      wanted.fetch_or(bit, std::memory_order_relaxed);
    else
      wanted.fetch_and(~bit, std::memory_order_relaxed);
    if ((changed.sa_flags & SA_ONSTACK) != 0 && !tacho::capture::sampler::samples_on_alternate_stacks())
      sigaddset(&changed.sa_mask, own);
    else
      sigdelset(&changed.sa_mask, own);
  }
  const int result = next(number, action != nullptr ? &changed : nullptr, previous);
  if (result == 0 && previous != nullptr) {
    if ((before & bit) != 0)
      sigaddset(&previous->sa_mask, own);
    else
      sigdelset(&previous->sa_mask, own);
  }
  return result;
}

TACHO_EXPORT int sigaltstack(const stack_t* stack, stack_t* previous) noexcept {
  if (stack != nullptr && (stack->ss_flags & SS_DISABLE) == 0) tacho::capture::sampler::alternate_stack(stack->ss_size);
  TACHO_NEXT(sigaltstack, int(const stack_t*, stack_t*));
  return next(stack, previous);
}

TACHO_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  if (__builtin_expect(number != 0 && number == own_signal(), 0)) return SIG_DFL;
  TACHO_NEXT(signal, sighandler_t(int, sighandler_t));
  return next(number, handler);
}

TACHO_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* previous) noexcept {
  TACHO_NEXT(sigprocmask, int(int, const sigset_t*, sigset_t*));
  sigset_t without;
  return next(how, how == SIG_UNBLOCK ? set : less(set, without), previous);
}

TACHO_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* previous) noexcept {
  TACHO_NEXT(pthread_sigmask, int(int, const sigset_t*, sigset_t*));
  sigset_t without;
  return next(how, how == SIG_UNBLOCK ? set : less(set, without), previous);
}

TACHO_EXPORT int sigwait(const sigset_t* set, int* number) {
  TACHO_NEXT(sigwait, int(const sigset_t*, int*));
  sigset_t without;
  return next(less(set, without), number);
}

TACHO_EXPORT int signalfd(int file, const sigset_t* set, int flags) noexcept {
  TACHO_NEXT(signalfd, int(int, const sigset_t*, int));
  sigset_t without;
  return next(file, less(set, without), flags);
}
