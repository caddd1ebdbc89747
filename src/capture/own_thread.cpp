// Starting threads (own_thread.h).
#include "capture/own_thread.h"

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <initializer_list>

namespace tacho::capture {

bool start_own_thread(void* (*function)(void*)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // A program with much static TLS needs the larger stack.
  bool started = false;
  for (const size_t stack : {size_t{256} << 10, size_t{8} << 20}) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) break;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack);
    pthread_t thread;
    started = pthread_create(&thread, &attributes, function, nullptr) == 0;
    pthread_attr_destroy(&attributes);
    if (started) break;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace tacho::capture
