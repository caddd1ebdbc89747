/* A program that uses signals itself, sampled or not: its own SIGPROF timer, handlers for every signal there
 * is, threads that block everything, one that waits for everything. Prints what it saw; exits 0 if nothing
 * strange came. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long profiled, strange;
static volatile uint64_t sink;
static volatile int done;

static void on_prof(int number) {
  (void)number;
  ++profiled;
}
static void on_any(int number) {
  (void)number;
  ++strange;
}
__attribute__((noinline)) void blocked_work(long rounds) {
  uint64_t value = 1;
  for (long i = 0; i < rounds; ++i) value = value * 6364136223846793005ull + 1;
  sink = value;
}
static void* blocks_everything(void* unused) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  blocked_work(150000000);
  return unused;
}
static void* waits_for_everything(void* unused) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  sigdelset(&all, SIGPROF); /* the program's own, for its handler */
  while (!done) {
    struct timespec limit = {0, 20000000};
    siginfo_t info;
    if (sigtimedwait(&all, &info, &limit) > 0) ++strange;
  }
  return unused;
}

int main(void) {
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) {
    struct sigaction action, now;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_any;
    if (sigaction(number, &action, NULL) != 0) return 3;
    if (sigaction(number, NULL, &now) != 0) return 4;
  }
  signal(SIGPROF, on_prof);
  struct itimerval timer = {{0, 10000}, {0, 10000}};
  setitimer(ITIMER_PROF, &timer, NULL);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, blocks_everything, NULL);
  pthread_create(&threads[1], NULL, waits_for_everything, NULL);
  blocked_work(50000000);
  pthread_join(threads[0], NULL);
  done = 1;
  pthread_join(threads[1], NULL);
  struct timespec rest = {0, 50000000};
  while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
  }
  printf("%ld %ld\n", profiled, strange);
  return profiled > 5 && strange == 0 ? 0 : 1;
}
