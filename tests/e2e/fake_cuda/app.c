/* A "CUDA program" on the stand-in CUPTI: starts as the CUDA driver does (loads what CUDA_INJECTION64_PATH names and calls
 * InitializeInjection), launches N kernels, and ends in some way: fake_cuda MODE N
 *   done       everything completed    inflight  nothing completed, normal exit   fastexit  half completed, _exit
 *   hang       half completed, prints "ready", sleeps until killed
 *   client     uses CUPTI itself meanwhile   names  every kernel has its own name
 *   beside     uses CUPTI itself meanwhile, with a subscriber of its own, and counts its kernels
 *   live       loads the driver, prints "ready" and launches a kernel each millisecond, whether CUPTI is there or not, until
 *              SIGTERM, on N threads (1 where N is not given). SIGUSR1: launches a graph, too, SIGUSR2: instantiates one,
 *              SIGHUP: launches a kernel of three seconds. Ends with its launches, how often CUPTI's clock was set and it was
 *              finalised, whether it is in use, and for how long finalising held it up
 *   graphs     the same with launches of a graph that was made before
 *   pace       loads CUPTI, launches a graph without a pause, from SIGHUP on for a second time, until SIGTERM; prints the fastest
 *              stretch of 20,000 launches of both times
 *   burst      500 threads begin together and launch N kernels each   backed  the same, once tacho has 60 MiB ready */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

__attribute__((weak)) int cuptiSubscribe(void** subscriber, void* callback, void* user);
__attribute__((weak)) int cuptiActivityDisable(int kind);
struct subscriber_params {
  size_t size;
  const char* name;
  char* old_name;
  size_t old_size;
  uint8_t several;
  uint8_t padding[7];
};
__attribute__((weak)) int cuptiSubscribe_v2(void** subscriber, void* callback, void* user,
                                            struct subscriber_params* params);

/* A profiler of the program's own, as JAX and PyTorch have one. */
static long g_own_kernels;
static void own_requested(uint8_t** buffer, size_t* size, size_t* records, const void* about) {
  (void)about;
  *buffer = malloc(4096);
  *size = 4096;
  *records = 0;
}
static void own_completed(uint8_t* buffer, size_t size, size_t valid, const void* about) {
  (void)size;
  (void)about;
  g_own_kernels += valid / 216;
  free(buffer);
}
static void subscribe_beside(void* cupti) {
  typedef int (*register_fn)(void*, void (*)(uint8_t**, size_t*, size_t*, const void*),
                             void (*)(uint8_t*, size_t, size_t, const void*));
  typedef int (*enable_fn)(void*, int, void*);
  const register_fn callbacks = (register_fn)dlsym(cupti, "cuptiActivityRegisterCallbacks_v2");
  const enable_fn enable = (enable_fn)dlsym(cupti, "cuptiActivityEnable_v2");
  struct subscriber_params params = {sizeof params, "program", NULL, 0, 1, {0}};
  void* subscriber = NULL;
  if (callbacks == NULL || enable == NULL || cuptiSubscribe_v2 == NULL) return;
  const int result = cuptiSubscribe_v2(&subscriber, NULL, NULL, &params);
  printf("subscribe %d\n", result);
  if (result == 0 && callbacks(subscriber, own_requested, own_completed) == 0) enable(subscriber, 10, NULL);
}

enum { kThreads = 500 };
static void (*g_launch)(const char*);
static long g_each;
static pthread_barrier_t g_together;
static void* launch_some(void* unused) {
  (void)unused;
  pthread_barrier_wait(&g_together);
  for (long i = 0; i < g_each; ++i) g_launch("_Z6vecAddPfi");
  return NULL;
}
/* Until the shared memory that tacho collects in is backed: at most a minute. */
static int wait_for_memory(void) {
  const char* const pool = getenv("TACHO_POOL");
  struct stat status;
  for (int i = 0; i < 60000 && pool != NULL && stat(pool, &status) == 0; ++i, usleep(1000))
    if ((long long)status.st_blocks * 512 >= 60ll << 20) return 1;
  return 0;
}
static int burst(long each) {
  static pthread_t threads[kThreads];
  g_each = each;
  pthread_barrier_init(&g_together, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i)
    if (pthread_create(&threads[i], NULL, launch_some, NULL) != 0) return 0;
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return 1;
}

static volatile sig_atomic_t g_end, g_graph_launches, g_instantiations, g_long_launches;
static void on_end(int number) {
  (void)number;
  g_end = 1;
}
static void on_graph(int number) {
  if (number == SIGUSR1)
    g_graph_launches = 1;
  else if (number == SIGHUP)
    g_long_launches = 1;
  else
    g_instantiations = 1;
}
static int ask(void* cupti, const char* function) {
  int (*get)(void) = cupti != NULL ? (int (*)(void))dlsym(cupti, function) : NULL;
  return get != NULL ? get() : 0;
}
/* Launches of a thread; the first one, which gets a name, does what signals ask. */
static void* live_thread(void* function) {
  void* cupti = NULL;
  void (*launch)(const char*) = NULL;
  void (*complete)(void) = NULL;
  long launches = 0;
  for (; !g_end; ++launches) {
    if (cupti == NULL && (cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD)) != NULL) {
      launch = (void (*)(const char*))dlsym(cupti, function != NULL ? function : "fake_launch");
      complete = (void (*)(void))dlsym(cupti, "fake_complete");
    }
    if (launch != NULL) launch("_Z6vecAddPfi");
    if (complete != NULL && launches % 8 == 7) complete();
    if (cupti != NULL && function != NULL && g_graph_launches) {
      g_graph_launches = 0;
      ((void (*)(const char*))dlsym(cupti, "fake_graph_launch"))("_Z6vecAddPfi");
    }
    if (cupti != NULL && function != NULL && g_instantiations) {
      g_instantiations = 0;
      ((void (*)(void))dlsym(cupti, "fake_graph_instantiate"))();
    }
    if (cupti != NULL && function != NULL && g_long_launches) {
      g_long_launches = 0;
      ((void (*)(void))dlsym(cupti, "fake_launch_long"))();
    }
    usleep(1000);
  }
  return (void*)launches;
}
static double stretch(void (*launch)(const char*), void (*complete)(void)) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < 20000; ++i) {
    launch("_Z6vecAddPfi");
    if (i % 8 == 7) complete();
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
}
static void* nothing(void* unused) {
  return unused;
}
static int pace(void) {
  pthread_t other;
  double fastest[2] = {1e18, 1e18};
  static char path[4096];
  signal(SIGTERM, on_end);
  signal(SIGHUP, on_graph);
  snprintf(path, sizeof path, "%s/lib64/libcupti.so.13", getenv("CUDA_HOME"));
  void* const cupti = dlopen(path, RTLD_NOW);
  if (cupti == NULL || dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == NULL) return 6;
  /* glibc's locks are faster as long as a process has never had a second thread. */
  if (pthread_create(&other, NULL, nothing, NULL) != 0 || pthread_join(other, NULL) != 0) return 7;
  void (*launch)(const char*) = (void (*)(const char*))dlsym(cupti, "fake_graph_launch");
  void (*complete)(void) = (void (*)(void))dlsym(cupti, "fake_complete");
  puts("ready");
  fflush(stdout);
  while (!g_end) {
    const int time = g_long_launches;
    const double ns = stretch(launch, complete);
    if (time == g_long_launches && ns < fastest[time]) fastest[time] = ns;
  }
  printf("%.2f and %.2f ns a launch, in use %d\n", fastest[0] / 20000, fastest[1] / 20000, ask(cupti, "fake_enabled"));
  return 0;
}
static int live(const char* function, long threads) {
  pthread_t others[16];
  signal(SIGTERM, on_end);
  signal(SIGUSR1, on_graph);
  signal(SIGUSR2, on_graph);
  signal(SIGHUP, on_graph);
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == NULL) return 6;
  for (long i = 1; i < threads; ++i)
    if (threads > 16 || pthread_create(&others[i], NULL, live_thread, NULL) != 0) return 7;
  puts("ready");
  fflush(stdout);
  long launches = (long)live_thread((void*)function);
  for (long i = 1; i < threads; ++i) {
    void* more = NULL;
    pthread_join(others[i], &more);
    launches += (long)more;
  }
  void* const cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  printf("%ld launches, clock set %d times, in use %d, finalised %d times, wrongly %d, held up %d ms\n", launches,
         ask(cupti, "fake_clocks"), ask(cupti, "fake_enabled"), ask(cupti, "fake_finalized"),
         ask(cupti, "fake_wrongly_finalized"), ask(cupti, "fake_held_up"));
  return 0;
}

int main(int argc, char** argv) {
  const char* const mode = argc > 1 ? argv[1] : "done";
  const long launches = argc > 2 ? atol(argv[2]) : 10;
  if (strcmp(mode, "live") == 0) return live("fake_launch", argc > 2 ? launches : 1);
  if (strcmp(mode, "graphs") == 0) return live("fake_graph_launch", 1);
  if (strcmp(mode, "pace") == 0) return pace();
  const char* const injection = getenv("CUDA_INJECTION64_PATH");
  if (injection != NULL) {
    void* const library = dlopen(injection, RTLD_NOW);
    int (*start)(void) = library != NULL ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    if (start == NULL || start() != 1) fprintf(stderr, "fake_cuda: the injection failed: %s\n", dlerror());
  }
  void* const cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  void (*driver_starts)(void) = NULL;
  void (*launch)(const char*) = NULL;
  void (*complete)(void) = NULL;
  if (cupti != NULL) {
    driver_starts = (void (*)(void))dlsym(cupti, "fake_start");
    launch = (void (*)(const char*))dlsym(cupti, "fake_launch");
    complete = (void (*)(void))dlsym(cupti, "fake_complete");
  }
  if (launch != NULL) driver_starts();
  if (strcmp(mode, "client") == 0 && cuptiSubscribe != NULL) {
    void* subscriber;
    printf("subscribe %d\n", cuptiSubscribe(&subscriber, NULL, NULL));
    if (cuptiActivityDisable != NULL) cuptiActivityDisable(10);
  }
  if (strcmp(mode, "beside") == 0 && cupti != NULL) subscribe_beside(cupti);
  if (launch != NULL && (strcmp(mode, "burst") == 0 || strcmp(mode, "backed") == 0)) {
    g_launch = launch;
    if (strcmp(mode, "backed") == 0 && !wait_for_memory()) return 3;
    if (!burst(launches)) return 4;
    complete();
    printf("%s %ld\n", mode, kThreads * launches);
    return 5;
  }
  char* const names = malloc((size_t)launches * 32 + 32);
  for (long i = 0; launch != NULL && i < launches; ++i) {
    if (strcmp(mode, "names") == 0) {
      snprintf(names + i * 32, 32, "kernel_%ld", i);
      launch(names + i * 32);
    } else {
      launch("_Z6vecAddPfi");
    }
    const int half = strcmp(mode, "hang") == 0 || strcmp(mode, "fastexit") == 0;
    if (i + 1 == (half ? launches / 2 : launches) && strcmp(mode, "inflight") != 0) complete();
  }
  if (strcmp(mode, "beside") == 0) printf("own kernels %ld\n", g_own_kernels);
  printf("%s %ld\n", mode, launches);
  fflush(stdout);
  if (strcmp(mode, "fastexit") == 0) {
    usleep(200000); /* long enough for a look at the names */
    _exit(9);
  }
  if (strcmp(mode, "hang") == 0)
    for (;;) pause();
  return 5;
}
