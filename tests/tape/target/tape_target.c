/* A program that does to its tracer what real programs do: forks, clones, threads, signals, closed
 * descriptors. Run by the tests of the pool with libtacho.so preloaded: tape_target MODE [arguments]. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <tacho/tacho.h>
#include <unistd.h>

static void pairs(const char* text, long count) {
  for (long i = 0; i < count; ++i) {
    tacho_range_push(text);
    tacho_range_pop();
  }
}

static int end_of(pid_t child) {
  int status = -1;
  if (child <= 0 || waitpid(child, &status, 0) != child) return 99;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static _Atomic int stop_all;
static long per_thread;
static void* count_pairs(void* name) {
  pairs((const char*)name, per_thread);
  return NULL;
}
static void* until_stopped(void* name) {
  while (!stop_all) {
    pairs((const char*)name, 10);
    usleep(100); /* the reader keeps up */
  }
  return NULL;
}

static int mode_pairs(long count) {
  pairs("pair", count);
  return 0;
}

static int mode_fork(void) {
  pairs("parent", 10);
  tacho_range_push("open in parent");
  const pid_t child = fork();
  if (child == 0) {
    tacho_range_pop(); /* the parent's range is not open here: no record */
    pairs("child", 20);
    _exit(7);
  }
  pairs("parent", 10);
  tacho_range_pop();
  return end_of(child) == 7 ? 0 : 1;
}

static int mode_fork_storm(int forks) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, until_stopped, "busy");
  int bad = 0;
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      tacho_attributes attributes = TACHO_ATTRIBUTES;
      char domain[32];
      snprintf(domain, sizeof domain, "domain %d", i); /* a definition: needs the lock that a thread may hold */
      attributes.domain = domain;
      tacho_mark_with("in child", &attributes);
      _exit(0);
    }
    char domain[32];
    snprintf(domain, sizeof domain, "parent domain %d", i);
    tacho_attributes attributes = TACHO_ATTRIBUTES;
    attributes.domain = domain;
    tacho_mark_with("in parent", &attributes);
    bad += end_of(child) != 0;
  }
  stop_all = 1;
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  return bad;
}

static int mode_raw_clone(void) {
  pairs("parent", 5);
  const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    pairs("child", 6);
    syscall(SYS_exit_group, 3);
  }
  pairs("parent", 5);
  return end_of((pid_t)child) == 3 ? 0 : 1;
}

static int mode_vfork(const char* self) {
  pairs("parent", 5);
  const pid_t child = vfork();
  if (child == 0) {
    tacho_mark("in vfork");
    execl(self, self, "pairs", "7", (char*)NULL);
    _exit(1);
  }
  pairs("parent", 5000); /* crosses blocks that the vfork'ed child may have opened */
  return end_of(child);
}

static int mode_threads(int count, long each) {
  pthread_t* threads = calloc((size_t)count, sizeof *threads);
  per_thread = each;
  for (int i = 0; i < count; ++i) pthread_create(&threads[i], NULL, count_pairs, "threaded");
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  return 0;
}

static int mode_churn(int count) {
  per_thread = 2;
  for (int i = 0; i < count; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, count_pairs, "churned") != 0) return 1;
    pthread_join(thread, NULL);
    if (i % 200 == 199) raise(SIGSTOP); /* until the reader has caught up */
  }
  return 0;
}

static volatile long handled;
static void on_signal(int number) {
  (void)number;
  ++handled;
  tacho_mark("in handler");
  tacho_range_push("nested");
  tacho_range_pop();
}
static int mode_signals(double seconds) {
  signal(SIGALRM, on_signal);
  tacho_mark("first");
  struct itimerval timer = {{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &timer, NULL);
  struct timeval begin, now;
  gettimeofday(&begin, NULL);
  long count = 0;
  do {
    for (int i = 0; i < 400; ++i, ++count) {
      tacho_range_push("outer");
      tacho_range_pop();
    }
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    usleep(500); /* the reader keeps up */
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    gettimeofday(&now, NULL);
  } while ((double)(now.tv_sec - begin.tv_sec) + 1e-6 * (double)(now.tv_usec - begin.tv_usec) < seconds ||
           handled < 200 || count < 6000);
  memset(&timer, 0, sizeof timer);
  setitimer(ITIMER_REAL, &timer, NULL);
  printf("%ld %ld\n", count, handled);
  return 0;
}

static int mode_descriptors(void) {
  tacho_mark("before");
  for (int i = 3; i < 4096; ++i) close(i);
  const int file = open("/dev/null", O_WRONLY);
  int last = file;
  for (int i = 0; i < 200; ++i) last = open("/dev/zero", O_RDONLY);
  pairs("after", 20000);
  return file == 3 && last > 100 ? 0 : 1;
}

static int mode_open_descriptors(void) {
  tacho_mark("attached");
  int open_ones = 0;
  for (int i = 3; i < 256; ++i) open_ones += fcntl(i, F_GETFD) >= 0;
  return open_ones;
}

static void* end_by_exit(void* unused) {
  (void)unused;
  tacho_mark("exits");
  pthread_exit((void*)5);
}
static void* wait_for_cancel(void* unused) {
  (void)unused;
  tacho_mark("cancelled");
  for (;;) pause();
}
static int mode_thread_ends(void) {
  pthread_t thread;
  void* result = NULL;
  pthread_create(&thread, NULL, end_by_exit, NULL);
  pthread_join(thread, &result);
  if (result != (void*)5) return 1;
  pthread_create(&thread, NULL, wait_for_cancel, NULL);
  usleep(20000);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  return result == PTHREAD_CANCELED ? 0 : 2;
}

static int mode_storm(void) { /* until killed: text says the number, so that the reader can check for gaps */
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, until_stopped, "storm");
  char text[200];
  for (unsigned long i = 0;; ++i) {
    snprintf(text, sizeof text, "%lu", i);
    tacho_mark(text);
    if (i % 100 == 0) usleep(10); /* the reader keeps up */
  }
}

static int mode_long(void) {
  const size_t size = 200000;
  char* text = malloc(size);
  memset(text, 'x', size - 1);
  text[size - 1] = 0;
  tacho_mark(text);
  text[59999] = (char)0xc3; /* a two-byte character that the cut would split */
  text[60000] = (char)0xa4;
  tacho_range_push(text);
  tacho_range_pop();
  text[60000] = 0;
  text[59999] = 'x';
  tacho_mark(text); /* exactly as long as fits */
  free(text);
  return 0;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const long number = argc > 2 ? atol(argv[2]) : 0;
  if (!strcmp(mode, "none")) return 0;
  if (!strcmp(mode, "pairs")) return mode_pairs(number);
  if (!strcmp(mode, "fork")) return mode_fork();
  if (!strcmp(mode, "fork_storm")) return mode_fork_storm((int)number);
  if (!strcmp(mode, "raw_clone")) return mode_raw_clone();
  if (!strcmp(mode, "vfork")) return mode_vfork(argv[0]);
  if (!strcmp(mode, "threads")) return mode_threads((int)number, argc > 3 ? atol(argv[3]) : 1000);
  if (!strcmp(mode, "churn")) return mode_churn((int)number);
  if (!strcmp(mode, "signals")) return mode_signals(0.7);
  if (!strcmp(mode, "descriptors")) return mode_descriptors();
  if (!strcmp(mode, "open_descriptors")) return mode_open_descriptors();
  if (!strcmp(mode, "thread_ends")) return mode_thread_ends();
  if (!strcmp(mode, "storm")) return mode_storm();
  if (!strcmp(mode, "long")) return mode_long();
  fprintf(stderr, "tape_target: unknown mode %s\n", mode);
  return 2;
}
