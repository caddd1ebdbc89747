/* A PyTorch program on the stand-ins for CUPTI and kineto: fake_profiled N
 * has opened and closed N windows of its profiler before it prints "ready", then launches a kernel each millisecond until
 * SIGTERM. SIGUSR1 opens a window, SIGUSR2 closes it. Ends with what all windows have recorded of the launches in them,
 * buffers that were not the profiler's, and how CUPTI was left. With IDLE it launches nothing until a window has been opened
 * or SIGHUP came. With ALSO set it holds CUPTI's functions itself, too; with
 * FAST it does not wait between launches; with THREADS so many more threads launch other kernels all the time. Once a window has been closed it loads another library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t g_end, g_open, g_close, g_idle;
static void on_signal(int number) {
  if (number == SIGTERM) g_end = 1;
  if (number == SIGUSR1) g_open = 1;
  if (number == SIGUSR2) g_close = 1;
  if (number == SIGHUP) g_idle = 0;
}
static void* g_kineto;
static void* g_cupti;
static void* get(void* library, const char* function) {
  void* const found = dlsym(library, function);
  if (found == NULL) {
    fprintf(stderr, "fake_profiled: %s is missing\n", function);
    exit(3);
  }
  return found;
}
int (*g_also)(int); /* as a library that has looked CUPTI up */

static void* launch_others(void* launch) {
  while (!g_end) {
    ((void (*)(const char*))launch)("_Z5otherPfi");
    usleep(20);
  }
  return NULL;
}

int main(int argc, char** argv) {
  const long before = argc > 1 ? atol(argv[1]) : 1;
  signal(SIGTERM, on_signal);
  signal(SIGUSR1, on_signal);
  signal(SIGUSR2, on_signal);
  signal(SIGHUP, on_signal);
  g_idle = getenv("IDLE") != NULL;
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == NULL) return 6;
  g_kineto = dlopen("libfake_kineto.so", RTLD_NOW | RTLD_LOCAL);
  g_cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  if (g_kineto == NULL || g_cupti == NULL) {
    fprintf(stderr, "fake_profiled: %s\n", dlerror());
    return 7;
  }
  void (*const open)(void) = (void (*)(void))get(g_kineto, "fake_window_opens");
  void (*const close)(void) = (void (*)(void))get(g_kineto, "fake_window_closes");
  long (*const records)(int) = (long (*)(int))get(g_kineto, "fake_window_records");
  void (*const launch)(const char*) = (void (*)(const char*))get(g_cupti, "fake_launch");
  void (*const complete)(void) = (void (*)(void))get(g_cupti, "fake_complete");
  int (*const kinds)(void) = (int (*)(void))get(g_cupti, "fake_kinds");
  int (*const thread_ids)(void) = (int (*)(void))get(g_cupti, "fake_thread_id_type");
  if (getenv("ALSO") != NULL) g_also = (int (*)(int))get(g_cupti, "cuptiActivityEnable");
  int (*const clocks)(void) = (int (*)(void))get(g_cupti, "fake_clocks");
  int (*const finalized)(void) = (int (*)(void))get(g_cupti, "fake_finalized");
  int (*const wrongly)(void) = (int (*)(void))get(g_cupti, "fake_wrongly_finalized");
  int (*const own_words)(void*) = (int (*)(void*))get(g_kineto, "fake_own_words");
  const int fast = getenv("FAST") != NULL;
  long in_windows = 0, launches = 0, windows = before;
  for (long i = 0; i < before; ++i) {
    open();
    launch("_Z6vecAddPfi");
    ++in_windows;
    complete();
    close();
  }
  int is_open = 0;
  const int threads = getenv("THREADS") != NULL ? atoi(getenv("THREADS")) : 0;
  pthread_t others[16];
  for (int i = 0; i < threads && i < 16; ++i) pthread_create(&others[i], NULL, launch_others, (void*)launch);
  puts("ready");
  fflush(stdout);
  for (; !g_end; ++launches) {
    while (g_idle && !g_open && !g_end) usleep(1000);
    if (g_open) {
      g_open = g_idle = 0;
      if (!is_open) open();
      windows += !is_open;
      is_open = 1;
      puts("open");
      fflush(stdout);
    }
    launch("_Z6vecAddPfi");
    in_windows += is_open;
    if (launches % 8 == 7) complete();
    if (g_close) {
      g_close = 0;
      complete();
      if (is_open) close();
      is_open = 0;
      dlopen("libanl.so.1", RTLD_NOW);
      puts("closed");
      fflush(stdout);
    }
    if (!fast) usleep(1000);
  }
  for (int i = 0; i < threads && i < 16; ++i) pthread_join(others[i], NULL);
  if (is_open) {
    complete();
    close();
  }
  printf(
      "%ld kernels and %ld calls of %ld in windows, %ld buffers of others, kinds left %d, thread ids %d, words led %d, "
      "clock set by others %ld times, finalised %d times, %d of them wrongly\n",
      records(10), records(5), in_windows, records(0), kinds(), thread_ids(), !own_words(g_cupti), clocks() - windows,
      finalized(), wrongly());
  return 0;
}
