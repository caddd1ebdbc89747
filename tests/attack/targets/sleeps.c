// Sleeps in one way (sleeps WAY [COUNT [MS]]) and prints the calls' results, and "early" for every call that came back
// before its time. Under wall-clock sampling that must be as without it.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static struct timespec after(clockid_t clock, int ms) {
  struct timespec time;
  clock_gettime(clock, &time);
  time.tv_nsec += ms % 1000 * 1000000L;
  time.tv_sec += ms / 1000 + time.tv_nsec / 1000000000L;
  time.tv_nsec %= 1000000000L;
  return time;
}

static volatile sig_atomic_t alarms;
static void on_alarm(int number) {
  (void)number;
  ++alarms;
}
static void alarm_in(int ms) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;  // without SA_RESTART
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval once = {{0, 0}, {ms / 1000, ms % 1000 * 1000}};
  setitimer(ITIMER_REAL, &once, NULL);
}

static int one(const char* way, int ms) {
  const struct timespec span = {ms / 1000, ms % 1000 * 1000000L};
  struct timespec rest = {0, 0};
  errno = 0;
  if (!strcmp(way, "usleep")) return usleep((useconds_t)ms * 1000);
  if (!strcmp(way, "nanosleep")) return nanosleep(&span, &rest);
  if (!strcmp(way, "nanosleep_null")) return nanosleep(&span, NULL);
  if (!strcmp(way, "clock_nanosleep")) return clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL);
  if (!strcmp(way, "clock_nanosleep_abs")) {
    const struct timespec until = after(CLOCK_MONOTONIC, ms);
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  }
  if (!strcmp(way, "sleep")) return (int)sleep((unsigned)(ms + 999) / 1000);
  if (!strcmp(way, "thrd_sleep")) return thrd_sleep(&span, NULL);
  if (!strcmp(way, "poll")) return poll(NULL, 0, ms);
  if (!strcmp(way, "ppoll")) return ppoll(NULL, 0, &span, NULL);
  if (!strcmp(way, "select")) {
    struct timeval time = {ms / 1000, ms % 1000 * 1000};
    return select(0, NULL, NULL, NULL, &time);
  }
  if (!strcmp(way, "pselect")) return pselect(0, NULL, NULL, NULL, &span, NULL);
  if (!strcmp(way, "epoll_wait") || !strcmp(way, "epoll_pwait")) {
    static int epoll = -1;
    if (epoll < 0) epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;
    return way[6] == 'w' ? epoll_wait(epoll, &event, 1, ms) : epoll_pwait(epoll, &event, 1, ms, NULL);
  }
  if (!strcmp(way, "sem_timedwait")) {
    static sem_t semaphore;
    const struct timespec until = after(CLOCK_REALTIME, ms);
    const int result = sem_timedwait(&semaphore, &until);
    return result == -1 && errno == ETIMEDOUT ? 0 : result;
  }
  if (!strcmp(way, "cond_timedwait")) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    const struct timespec until = after(CLOCK_REALTIME, ms);
    pthread_mutex_lock(&mutex);
    const int result = pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
    return result == ETIMEDOUT ? 0 : result;
  }
  if (!strcmp(way, "semtimedop")) {
    static int set = -1;
    if (set < 0) set = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf wait = {0, -1, 0};
    const int result = semtimedop(set, &wait, 1, &span);
    const int error = errno;
    semctl(set, 0, IPC_RMID);
    set = -1;
    errno = error;
    return result == -1 && error == EAGAIN ? 0 : result;
  }
  if (!strcmp(way, "sigtimedwait")) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR2);
    const int result = sigtimedwait(&signals, NULL, &span);
    return result == -1 && errno == EAGAIN ? 0 : result;
  }
  // Waits that only a signal of the program's own ends.
  alarm_in(ms);
  if (!strcmp(way, "pause")) return pause() == -1 && errno == EINTR ? 0 : 1;
  if (!strcmp(way, "poll_forever")) return poll(NULL, 0, -1) == -1 && errno == EINTR ? 0 : 1;
  if (!strcmp(way, "sigsuspend")) {
    sigset_t none;
    sigemptyset(&none);
    return sigsuspend(&none) == -1 && errno == EINTR ? 0 : 1;
  }
  if (!strcmp(way, "interrupted")) {  // its own signal must still end a sleep
    const struct timespec longer = {20, 0};
    const int result = nanosleep(&longer, &rest);
    return result == -1 && errno == EINTR && rest.tv_sec >= 15 ? 0 : 1;
  }
  if (!strcmp(way, "interrupted_poll")) return poll(NULL, 0, 20000) == -1 && errno == EINTR ? 0 : 1;
  return 99;
}

int main(int argc, char** argv) {
  const char* const way = argc > 1 ? argv[1] : "usleep";
  const int count = argc > 2 ? atoi(argv[2]) : 10;
  const int ms = argc > 3 ? atoi(argv[3]) : 50;
  int early = 0;
  for (int i = 0; i < count; ++i) {
    const double begin = now();
    const int result = one(way, ms);
    const double took = now() - begin;
    if (result != 0) printf("%s: %d %s\n", way, result, strerror(errno));
    if (took < ms * 1e-3 * 0.98) ++early;
    if (took > ms * 1e-3 * 1.5 + 1.5) printf("%s: late\n", way);
  }
  printf("%d early\n", early);
  return 0;
}
