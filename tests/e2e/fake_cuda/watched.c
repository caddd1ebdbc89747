/* A program on the stand-in driver: fake_watched WAY MODE N. WAY is how it gets the driver's functions: dlsym, address
 * (cuGetProcAddress, as CUDA's runtime does), thread (the same, with per-thread default streams), and, built with LINKED,
 * linked. MODE:
 *   plain    N launches of one kernel, a hundredth of another, copies and waits
 *   graph    captures 5 kernels while another thread launches, then launches the graph N times
 *   threads  8 threads with a stream each, N launches of one kernel each
 *   many     1100 kernels of different names, or as many as a fourth word says, N launches each
 *   fork     a child launches nothing and leaves, the parent goes on
 *   contexts N launches in each of three contexts with streams of their own, in turn; the second goes after half of them
 *   green    the same, and the second one is a green context
 *   reset    N launches, the device is reset, N launches of another kernel that has the first one's handle
 *   shares   a graph of 3 launches of one kernel in one shape, 1 in another and 2 of another kernel and a copy, N launches; a second
 *            graph with the same kernels in another order, N launches; and a third one of a kernel that runs nowhere else, N launches,
 *            then updated to what the first one is, N launches. Then a node of the first gets other arguments, N launches, and another
 *            shape, N launches, and one of the second is disabled, N launches
 *   inside   another thread begins a capture while a launch is under way, and ends it N launches later
 * It ends with what the driver counted. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*Launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                      void**);
static struct {
  Launch launch;
  int (*function)(void**, void*, const char*);
  int (*stream)(void**, unsigned);
  int (*wait)(void*);
  int (*begin)(void*, int);
  int (*end)(void*, void**);
  int (*instantiate)(void**, void*, unsigned long long);
  int (*graph)(void*, void*);
  int (*allocate)(unsigned long long*, size_t);
  int (*to_device)(unsigned long long, const void*, size_t, void*);
  int (*to_host)(void*, unsigned long long, size_t);
} cu;
static void (*report)(void);

#ifdef LINKED
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
int cuModuleGetFunction(void**, void*, const char*);
int cuStreamCreate(void**, unsigned);
int cuStreamSynchronize(void*);
int cuStreamBeginCapture_v2(void*, int);
int cuStreamEndCapture(void*, void**);
int cuGraphInstantiateWithFlags(void**, void*, unsigned long long);
int cuGraphLaunch(void*, void*);
int cuMemAlloc_v2(unsigned long long*, size_t);
int cuMemcpyHtoDAsync_v2(unsigned long long, const void*, size_t, void*);
int cuMemcpyDtoH_v2(void*, unsigned long long, size_t);
void fake_report(void);
static int find(const char* way) {
  (void)way;
  cu.launch = cuLaunchKernel, cu.function = cuModuleGetFunction, cu.stream = cuStreamCreate,
  cu.wait = cuStreamSynchronize;
  cu.begin = cuStreamBeginCapture_v2, cu.end = cuStreamEndCapture, cu.instantiate = cuGraphInstantiateWithFlags;
  cu.graph = cuGraphLaunch, cu.allocate = cuMemAlloc_v2, cu.to_device = cuMemcpyHtoDAsync_v2,
  cu.to_host = cuMemcpyDtoH_v2;
  report = fake_report;
  return 1;
}
#else
static void* library;
static int (*address)(const char*, void**, int, unsigned long long, int*);
static unsigned long long flags;
static void* get(const char* name, const char* version) {
  char symbol[64];
  void* found = NULL;
  if (address != NULL) {
    int status;
    address(name, &found, 12000, flags, &status);
  } else {
    snprintf(symbol, sizeof symbol, "%s%s", name, version);
    found = dlsym(library, symbol);
  }
  return found;
}
static int find(const char* way) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return 0;
  if (strcmp(way, "dlsym") != 0) {
    int (*first)(const char*, void**, int, unsigned long long, int*) =
        (int (*)(const char*, void**, int, unsigned long long, int*))dlsym(library, "cuGetProcAddress_v2");
    int status;
    /* As CUDA's runtime: cuGetProcAddress gives out itself. */
    if (first("cuGetProcAddress", (void**)&address, 12000, 0, &status) != 0) return 0;
  }
  if (strcmp(way, "thread") == 0) flags = 2;
  cu.launch = (Launch)get("cuLaunchKernel", "");
  cu.function = (int (*)(void**, void*, const char*))get("cuModuleGetFunction", "");
  cu.stream = (int (*)(void**, unsigned))get("cuStreamCreate", "");
  cu.wait = (int (*)(void*))get("cuStreamSynchronize", "");
  cu.begin = (int (*)(void*, int))get("cuStreamBeginCapture", "_v2");
  cu.end = (int (*)(void*, void**))get("cuStreamEndCapture", "");
  cu.instantiate = (int (*)(void**, void*, unsigned long long))get("cuGraphInstantiateWithFlags", "");
  cu.graph = (int (*)(void*, void*))get("cuGraphLaunch", "");
  cu.allocate = (int (*)(unsigned long long*, size_t))get("cuMemAlloc", "_v2");
  cu.to_device = (int (*)(unsigned long long, const void*, size_t, void*))get("cuMemcpyHtoDAsync", "_v2");
  cu.to_host = (int (*)(void*, unsigned long long, size_t))get("cuMemcpyDtoH", "_v2");
  report = (void (*)(void))dlsym(library, "fake_report");
  return 1;
}
#endif

static int launch(void* kernel, void* stream) {
  return cu.launch(kernel, 16, 1, 1, 256, 1, 1, 0, stream, NULL, NULL);
}
static void* g_kernel;
static long g_count;
static void* launch_some(void* unused) {
  void* stream = NULL;
  (void)unused;
  cu.stream(&stream, 0);
  for (long i = 0; i < g_count; ++i) launch(g_kernel, stream);
  cu.wait(stream);
  return NULL;
}

#ifndef LINKED
static void run_contexts(void* kernel, long count, int green) {
  int (*create)(void**, unsigned, int) = (int (*)(void**, unsigned, int))get("cuCtxCreate", "_v2");
  int (*set)(void*) = (int (*)(void*))get("cuCtxSetCurrent", "");
  int (*destroy)(void*) = (int (*)(void*))get("cuCtxDestroy", "_v2");
  void *contexts[3], *streams[3];
  for (int i = 0; i < 3; ++i) {
    if (green && i == 1) {
      int (*create_green)(void**, void*, int, unsigned) =
          (int (*)(void**, void*, int, unsigned))get("cuGreenCtxCreate", "");
      create_green(&contexts[i], NULL, 0, 0);
      destroy = (int (*)(void*))get("cuGreenCtxDestroy", "");
      set(contexts[i]);
    } else {
      create(&contexts[i], 0, 0);
    }
    cu.stream(&streams[i], 0);
  }
  for (long i = 0; i < count; ++i) {
    for (int k = 0; k < 3; ++k) {
      if (k == 1 && i >= count / 2) continue;
      set(contexts[k]);
      launch(kernel, streams[k]);
      if (k == 1 && i == count / 2 - 1) destroy(contexts[k]);
    }
  }
}
static int launch_wide(void* kernel, void* stream) {
  return cu.launch(kernel, 64, 1, 1, 256, 1, 1, 0, stream, NULL, NULL);
}
static void capture(void* stream, void* often, void* seldom, int order, void** graph) {
  static char bytes[64];
  cu.begin(stream, 0);
  if (order == 2) {
    void* other = NULL;
    cu.function(&other, NULL, "only_3000");
    launch(other, stream);
  } else {
    if (order == 1) launch(seldom, stream);
    for (int i = 0; i < 3; ++i) launch(often, stream);
    launch_wide(often, stream);
    cu.to_device(4096, bytes, 64, stream);
    for (int i = order; i < 2; ++i) launch(seldom, stream);
  }
  cu.end(stream, graph);
}
struct Params {
  void* function;
  unsigned gx, gy, gz, bx, by, bz, shared;
  void **params, **extra, *kernel, *context;
};
static void run_shares(void* often, void* seldom, void* stream, long count) {
  void *graphs[3], *exec[3], *node;
  size_t one = 1;
  int (*instantiate)(void**, void*, unsigned long long) =
      (int (*)(void**, void*, unsigned long long))get("cuGraphInstantiate", "WithFlags");
  int (*nodes)(void*, void**, size_t*) = (int (*)(void*, void**, size_t*))get("cuGraphGetNodes", "");
  int (*set)(void*, void*, const struct Params*) =
      (int (*)(void*, void*, const struct Params*))get("cuGraphExecKernelNodeSetParams", "_v2");
  int (*update)(void*, void*, void*) = (int (*)(void*, void*, void*))get("cuGraphExecUpdate", "_v2");
  int (*enable)(void*, void*, unsigned) = (int (*)(void*, void*, unsigned))get("cuGraphNodeSetEnabled", "");
  for (int i = 0; i < 20; ++i) launch(often, NULL), launch_wide(often, NULL), launch(seldom, NULL);
  for (int i = 0; i < 3; ++i) {
    capture(stream, often, seldom, i, &graphs[i]);
    instantiate(&exec[i], graphs[i], 0);
    for (long k = 0; k < count; ++k) cu.graph(exec[i], stream);
  }
  update(exec[2], graphs[0], NULL);
  for (long k = 0; k < count; ++k) cu.graph(exec[2], stream);
  nodes(graphs[0], &node, &one);
  struct Params same = {often, 16, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL, NULL};
  set(exec[0], node, &same); /* other arguments alone */
  for (long k = 0; k < count; ++k) cu.graph(exec[0], stream);
  same.gx = 17;
  set(exec[0], node, &same);
  for (long k = 0; k < count; ++k) cu.graph(exec[0], stream);
  enable(exec[1], node, 0);
  for (long k = 0; k < count; ++k) cu.graph(exec[1], stream);
}
static void* g_captured;
static void begin_another(void) {
  cu.stream(&g_captured, 0);
  cu.begin(g_captured, 0);
}
#endif

int main(int argc, char** argv) {
  if (argc < 4 || !find(argv[1])) return 2;
  const char* const mode = argv[2];
  const long count = atol(argv[3]);
  void *often = NULL, *seldom = NULL, *stream = NULL;
  cu.function(&often, NULL, "_Z10often_1000");
  cu.function(&seldom, NULL, "seldom_50000");
  g_kernel = often;
  g_count = count;
  if (strcmp(mode, "plain") == 0) {
    static char bytes[4096];
    unsigned long long at = 0;
    cu.allocate(&at, 1 << 20);
    for (long i = 0; i < count; ++i) {
      launch(often, NULL);
      if (i % 100 == 0) {
        launch(seldom, NULL);
        cu.to_device(at, bytes, 4000, NULL);
        cu.to_host(bytes, at, 100);
        cu.wait(NULL);
      }
    }
    launch(NULL, NULL); /* refused */
  } else if (strcmp(mode, "graph") == 0) {
    void *graph = NULL, *exec = NULL;
    pthread_t other;
    cu.stream(&stream, 0);
    pthread_create(&other, NULL, launch_some, NULL);
    cu.begin(stream, 0);
    for (int i = 0; i < 5; ++i) {
      launch(often, stream);
      usleep(2000);
    }
    cu.end(stream, &graph);
    cu.instantiate(&exec, graph, 0);
    for (long i = 0; i < count; ++i) {
      cu.graph(exec, stream);
      if (i % 10 == 0) cu.wait(stream);
    }
    pthread_join(other, NULL);
  } else if (strcmp(mode, "threads") == 0) {
    pthread_t threads[8];
    for (int i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, launch_some, NULL);
    for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
  } else if (strcmp(mode, "many") == 0) {
    const int names = argc > 4 ? atoi(argv[4]) : 1100;
    for (int i = 0; i < names; ++i) {
      char name[32];
      void* kernel = NULL;
      snprintf(name, sizeof name, "kernel%d_100", i);
      cu.function(&kernel, NULL, name);
      for (long k = 0; k < count; ++k) launch(kernel, NULL);
    }
  } else if (strcmp(mode, "fork") == 0) {
    for (long i = 0; i < count; ++i) launch(often, NULL);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    for (long i = 0; i < count; ++i) launch(often, NULL);
  }
#ifndef LINKED
  if (strcmp(mode, "contexts") == 0 || strcmp(mode, "green") == 0) {
    run_contexts(often, count, mode[0] == 'g');
  } else if (strcmp(mode, "reset") == 0) {
    int (*reset)(int) = (int (*)(int))get("cuDevicePrimaryCtxReset", "_v2");
    int (*unload)(void*) = (int (*)(void*))get("cuModuleUnload", "");
    for (long i = 0; i < count; ++i) launch(seldom, NULL);
    unload(NULL);
    reset(0);
    cu.function(&often, NULL, "again_2000");
    for (long i = 0; i < count; ++i) launch(often, NULL);
  } else if (strcmp(mode, "shares") == 0) {
    cu.stream(&stream, 0);
    run_shares(often, seldom, stream, count);
  } else if (strcmp(mode, "inside") == 0) {
    void* graph = NULL;
    *(void (**)(void))dlsym(library, "fake_inside_launch") = begin_another;
    cu.stream(&stream, 0);
    for (long i = 0; i < 200; ++i) launch(often, stream);
    for (long i = 0; i < count; ++i) launch(often, stream);
    cu.end(g_captured, &graph);
    for (long i = 0; i < count; ++i) launch(often, stream);
  }
#endif
  cu.wait(NULL);
  report();
  return 0;
}
