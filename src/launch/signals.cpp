// Signals, limits and the alarm around a run (signals.h).
#include "launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace tacho::launch {
namespace {

// The signals of faults in tacho's own code.
bool is_fault(int number) {
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS})
    if (number == fault) return true;
  return false;
}

bool is_of_terminal(int number) {
  for (const int each : {SIGINT, SIGQUIT, SIGTSTP, SIGHUP, SIGWINCH, SIGCONT, SIGTTIN, SIGTTOU})
    if (number == each) return true;
  return false;
}

rlimit limit_of(__rlimit_resource which) {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  getrlimit(which, &limit);
  return limit;
}

struct sigaction action_of(int number) {
  struct sigaction action {};
  sigaction(number, nullptr, &action);
  return action;
}

void raise_limit(__rlimit_resource which, const rlimit& of_target) {
  rlimit raised{RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(which, &raised) == 0) return;
  raised = {of_target.rlim_max, of_target.rlim_max};
  setrlimit(which, &raised);
}

}  // namespace

SignalInbox::SignalInbox() {
  sigset_t handled;
  sigfillset(&handled);
  for (int number = 1; number < NSIG; ++number)
    if (is_fault(number)) sigdelset(&handled, number);
  sigdelset(&handled, SIGXFSZ);  // TargetLimits
  sigprocmask(SIG_BLOCK, &handled, &original_);
  descriptor_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
}

SignalInbox::~SignalInbox() {
  while (next()) {
  }
  if (descriptor_ >= 0) close(descriptor_);
  sigprocmask(SIG_SETMASK, &original_, nullptr);
}

std::optional<SignalInbox::Signal> SignalInbox::next() {
  signalfd_siginfo info;
  if (read(descriptor_, &info, sizeof info) != sizeof info) return std::nullopt;
  const int number = static_cast<int>(info.ssi_signo);
  const bool by_kernel = info.ssi_code > 0;
  const bool by_us = info.ssi_code == SI_USER && info.ssi_pid == static_cast<uint32_t>(getpid());
  // Our own broken pipe or used-up CPU time.
  const bool ours = number == SIGCHLD || by_us || (by_kernel && !is_of_terminal(number));
  return Signal{number, by_kernel && is_of_terminal(number), !ours && !by_kernel};
}

TargetLimits::TargetLimits() {
  // A second run of this process finds them raised.
  static const rlimit file = limit_of(RLIMIT_FSIZE), space = limit_of(RLIMIT_AS);
  file_ = file;
  space_ = space;
  raise_limit(RLIMIT_FSIZE, file_);
  raise_limit(RLIMIT_AS, space_);
  // Writing past RLIMIT_FSIZE must be an error of ours, not a signal.
  static const struct sigaction file_signal = action_of(SIGXFSZ), pipe_signal = action_of(SIGPIPE);
  file_signal_ = file_signal;
  pipe_signal_ = pipe_signal;
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, nullptr);
  const itimerval none{};
  setitimer(ITIMER_REAL, &none, &alarm_);
}

TargetLimits::~TargetLimits() {
  sigaction(SIGXFSZ, &file_signal_, nullptr);
}

rlim_t TargetLimits::own_space() const {
  rlimit now{};
  return getrlimit(RLIMIT_AS, &now) == 0 ? now.rlim_cur : RLIM_INFINITY;
}

void TargetLimits::apply() const {
  sigaction(SIGXFSZ, &file_signal_, nullptr);
  sigaction(SIGPIPE, &pipe_signal_, nullptr);
  setrlimit(RLIMIT_FSIZE, &file_);
  setrlimit(RLIMIT_AS, &space_);
  if (alarm_.it_value.tv_sec != 0 || alarm_.it_value.tv_usec != 0) setitimer(ITIMER_REAL, &alarm_, nullptr);
}

}  // namespace tacho::launch
