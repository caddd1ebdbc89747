// Threads that no signal of the process interrupts: one thread waits for Ctrl-C, and the others must not die of it.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace tacho {

/// A thread that gets no signals except its own faults.
template <typename Function>
std::thread thread_without_signals(Function&& function) {
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  std::thread thread(std::forward<Function>(function));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace tacho
