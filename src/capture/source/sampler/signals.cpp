// Keeps the sampling signal out of the program's sight, when libtacho.so is preloaded: it cannot be given another
// handler, blocked, or waited for; programs that do so with all signals (thread pools that block everything, crash
// handlers that catch everything) go on working and are sampled all the same. Without sampling every call passes
// straight on.
#include <signal.h>
#include <sys/signalfd.h>

#include <atomic>

#include "capture/room/next_symbol.h"
#include "capture/source/sampler/own_signal.h"

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using tacho::capture::sampler::alternate_stack;
using tacho::capture::sampler::less;
using tacho::capture::sampler::own_signal;
using tacho::capture::sampler::samples_on_alternate_stacks;

}  // namespace

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
  // Handlers of the program that block everything while they run keep their mask except for our signal. Those on small
  // alternate stacks block ours instead: such a stack has room for their frame, not for another one.
  static constinit std::atomic<uint64_t> wanted{0};  // handlers whose mask has our signal, in the program's view
  const uint64_t bit = number > 0 && number <= 64 ? 1ULL << (number - 1) : 0;
  const uint64_t before = wanted.load(std::memory_order_relaxed);
  struct sigaction changed {};
  if (action != nullptr) {
    changed = *action;
    if (sigismember(&changed.sa_mask, own) == 1)
      wanted.fetch_or(bit, std::memory_order_relaxed);
    else
      wanted.fetch_and(~bit, std::memory_order_relaxed);
    if ((changed.sa_flags & SA_ONSTACK) != 0 && !samples_on_alternate_stacks())
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
  if (stack != nullptr && (stack->ss_flags & SS_DISABLE) == 0) alternate_stack(stack->ss_size);
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
