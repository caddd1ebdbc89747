// The sampling signal and the program's alternate stacks (own_signal.h).
#include "capture/source/sampler/own_signal.h"

#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "capture/room/next_symbol.h"
#include "tape/permitted.h"

namespace tacho::capture::sampler {
namespace {

constinit std::atomic<int> g_signal{0};
constinit std::atomic<SignalHandler> g_handler{nullptr};
constinit std::atomic<bool> g_on_alternate_stacks{true}, g_within_handlers{true};

bool set_handler(int signal) {
  struct sigaction action {};
  action.sa_sigaction = g_handler.load(std::memory_order_relaxed);
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  if (g_on_alternate_stacks.load(std::memory_order_relaxed)) action.sa_flags |= SA_ONSTACK;
  sigfillset(&action.sa_mask);  // no handler of the program's may run inside ours
  return real_sigaction(signal, &action, nullptr) == 0;
}

// The handlers on alternate stacks that the program has already.
void block_own_in_handlers(int own) {
  for (int number = 1; number <= 64; ++number) {
    struct sigaction action {};
    if (number == own || number == SIGKILL || number == SIGSTOP || real_sigaction(number, nullptr, &action) != 0 ||
        (action.sa_flags & SA_ONSTACK) == 0 || sigismember(&action.sa_mask, own) == 1)
      continue;
    sigaddset(&action.sa_mask, own);
    real_sigaction(number, &action, nullptr);
  }
}

}  // namespace

int own_signal() {
  return g_signal.load(std::memory_order_acquire);
}

int free_signal() {
  // From above: programs take them from below.
  for (int number = SIGRTMAX - 3; number > SIGRTMIN + 4; --number) {
    struct sigaction action {};
    if (real_sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_DFL &&
        (action.sa_flags & SA_SIGINFO) == 0)
      return number;
  }
  return 0;
}

bool take_signal(int signal, SignalHandler handler) {
  g_handler.store(handler, std::memory_order_relaxed);
  stack_t alternate{};  // a library may have set one before main
  if (syscall(SYS_sigaltstack, nullptr, &alternate) == 0 && (alternate.ss_flags & SS_DISABLE) == 0)
    alternate_stack(alternate.ss_size);
  if (!set_handler(signal)) return false;
  if (!samples_on_alternate_stacks()) block_own_in_handlers(signal);
  g_signal.store(signal, std::memory_order_release);
  unblock_own_signal();
  return true;
}

void give_signal_back() {
  const int signal = g_signal.exchange(0, std::memory_order_acq_rel);
  if (signal == 0) return;
  // The kernel drops what is on its way when a signal is ignored; left at its default it would end the program.
  for (void (*const handler)(int) : {SIG_IGN, SIG_DFL}) {
    struct sigaction action {};
    action.sa_handler = handler;
    real_sigaction(signal, &action, nullptr);
  }
}

int real_sigaction(int number, const struct sigaction* action, struct sigaction* previous) {
  TACHO_NEXT(sigaction, int(int, const struct sigaction*, struct sigaction*));
  return next(number, action, previous);
}

const sigset_t* less(const sigset_t* set, sigset_t& without) {
  const int own = own_signal();
  if (own == 0 || set == nullptr || sigismember(set, own) != 1) return set;
  without = *set;
  sigdelset(&without, own);
  return &without;
}

void unblock_own_signal() {
  // The kernel's call: signals are bits from 1 on.
  const uint64_t bit = 1ULL << (own_signal() - 1);
  syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, nullptr, sizeof bit);
}

void alternate_stack(size_t bytes) {
  constexpr size_t kHandler = 8192;     // our handler takes less
  constexpr size_t kTheirs = 8192;      // and the program's is taken to
  constexpr size_t kLeastFrame = 2048;  // if the kernel does not say
  const size_t frame = std::max<size_t>(getauxval(AT_MINSIGSTKSZ), kLeastFrame);
  const int signal = own_signal();
  const bool sampling = signal != 0 && tape::permitted(tape::kCallSample);
  if (bytes < 2 * frame + kHandler + kTheirs && g_within_handlers.exchange(false) && sampling)
    block_own_in_handlers(signal);
  if (bytes < frame + kHandler && g_on_alternate_stacks.exchange(false) && sampling) set_handler(signal);
}

bool samples_on_alternate_stacks() {
  return g_within_handlers.load(std::memory_order_relaxed);
}

}  // namespace tacho::capture::sampler
