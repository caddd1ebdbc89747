/* A program on the stand-in driver that works for long at a small share of a processor: fake_long LAUNCHES SECONDS makes that
 * many launches, evenly over that time, in a burst each tenth of a second: 8 kernels most of the time, 120 others now and then
 * in 3 shapes, and a new one each minute; a graph of 5 kernels, copies, allocations that are freed again, and waits. It ends
 * with what the driver counted. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kHot = 8, kRare = 120, kMost = 4000 };
static void* library;
static struct {
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  int (*function)(void**, void*, const char*);
  int (*stream)(void**, unsigned);
  int (*wait)(void*);
  int (*begin)(void*, int);
  int (*end)(void*, void**);
  int (*instantiate)(void**, void*, unsigned long long);
  int (*graph)(void*, void*);
  int (*allocate)(unsigned long long*, size_t);
  int (*release)(unsigned long long);
  int (*to_device)(unsigned long long, const void*, size_t, void*);
} cu;
static void* g_kernels[kMost];
static int g_count;
static void* g_stream;

static int find(void) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return 0;
  *(void**)&cu.launch = dlsym(library, "cuLaunchKernel");
  *(void**)&cu.function = dlsym(library, "cuModuleGetFunction");
  *(void**)&cu.stream = dlsym(library, "cuStreamCreate");
  *(void**)&cu.wait = dlsym(library, "cuStreamSynchronize");
  *(void**)&cu.begin = dlsym(library, "cuStreamBeginCapture_v2");
  *(void**)&cu.end = dlsym(library, "cuStreamEndCapture");
  *(void**)&cu.instantiate = dlsym(library, "cuGraphInstantiateWithFlags");
  *(void**)&cu.graph = dlsym(library, "cuGraphLaunch");
  *(void**)&cu.allocate = dlsym(library, "cuMemAlloc_v2");
  *(void**)&cu.release = dlsym(library, "cuMemFree_v2");
  *(void**)&cu.to_device = dlsym(library, "cuMemcpyHtoDAsync_v2");
  return 1;
}
static void name_another(const char* kind, int ns) {
  char name[64];
  if (g_count == kMost) return;
  snprintf(name, sizeof name, "%s%d_%d", kind, g_count, ns);
  cu.function(&g_kernels[g_count++], NULL, name);
}
static void launch(int kernel, unsigned blocks) {
  cu.launch(g_kernels[kernel], blocks, 1, 1, 256, 1, 1, 0, g_stream, NULL, NULL);
}
static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
  if (argc < 3 || !find()) return 2;
  const long launches = atol(argv[1]);
  const long bursts = atol(argv[2]) * 10;
  static char bytes[4096];
  void *graph = NULL, *exec = NULL;
  cu.stream(&g_stream, 0);
  for (int i = 0; i < kHot; ++i) name_another("hot", 1000 + 500 * i);
  for (int i = 0; i < kRare; ++i) name_another("rare", 20000);
  cu.begin(g_stream, 0);
  for (int i = 0; i < 5; ++i) launch(i, 16);
  cu.end(g_stream, &graph);
  cu.instantiate(&exec, graph, 0);
  const double start = now();
  long done = 0;
  for (long burst = 0; burst < bursts; ++burst) {
    const long until = (long)((double)launches * (double)(burst + 1) / (double)bursts);
    unsigned long long at[4];
    if (burst % 600 == 599) name_another("late", 30000);
    for (int i = 0; i < 4; ++i) cu.allocate(&at[i], 65536);
    for (long i = done; i < until; ++i) {
      const int rare = i % 500 == 0;
      launch(rare ? kHot + (int)(i / 500 % (g_count - kHot)) : (int)(i % kHot), rare ? 16U << (i / 500 % 3) : 16U);
      if (i % 2000 == 0) {
        cu.to_device(at[0], bytes, sizeof bytes, g_stream);
        cu.graph(exec, g_stream);
        cu.wait(g_stream);
      }
    }
    done = until;
    for (int i = 0; i < 4; ++i) cu.release(at[i]);
    const double left = start + (double)(burst + 1) * 0.1 - now();
    if (left > 0) nanosleep(&(struct timespec){(time_t)left, (long)((left - (double)(time_t)left) * 1e9)}, NULL);
  }
  cu.wait(NULL);
  ((void (*)(void))dlsym(library, "fake_report"))();
  return 0;
}
