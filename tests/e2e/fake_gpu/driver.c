/* A stand-in for the CUDA driver: device memory is the host's, kernels are functions of this file, streams do nothing.
 * Calls that CUPTI would tell a subscriber about are told to the stand-in of CUPTI beside it (cupti.c).
 *   FAKE_GPU_MEMORY=BYTES   what the device has      FAKE_GPU_COUNT=N   devices      FAKE_GPU_CRASH=N   the kernel
 *   `crashing` aborts the process at its N-th execution      FAKE_GPU_GRAPH_FAILS=1   graphs launched by a subscriber run
 *   and say that they failed */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook.h"

#define EXPORT __attribute__((visibility("default")))
typedef uint64_t Address;

static struct Hook g_hook;
static void *g_current, *g_stack[16];
static int g_depth, g_contexts[2];
static struct { Address at; size_t bytes; int device; } g_memory[4096];
static size_t g_allocations, g_used;

EXPORT void fake_set_hook(const struct Hook* hook) { g_hook = *hook; }

EXPORT const char* const fake_names[] = {NULL, "cuMemAlloc_v2", "cuMemFree_v2", "cuMemAllocManaged", "cuMemHostAlloc", "cuMemFreeHost", "cuMemcpyDtoH_v2",
  "cuMemcpyHtoD_v2", "cuMemcpyAsync", "cuMemsetD8_v2", "cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuArrayCreate_v2",
  "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuCtxDestroy_v2", "cuCtxSynchronize", "cuGraphLaunch", NULL};
enum { ALLOC = 1, FREE, MANAGED, HOST, FREE_HOST, TO_HOST, TO_DEVICE, COPY, FILL, LAUNCH, LAUNCH_EX, COOPERATIVE, ARRAY, CAPTURE, END_CAPTURE, DESTROY, SYNC, GRAPH };

#define CALL(id, symbol, work, ...)                                              \
  do {                                                                           \
    struct { __VA_ARGS__; } p = ARGS;                                            \
    int result = 0;                                                              \
    if (g_hook.call) g_hook.call(id, fake_names[id], &p, &result, 0, symbol, g_current); \
    work;                                                                        \
    if (g_hook.call) g_hook.call(id, fake_names[id], &p, &result, 1, symbol, g_current); \
    return result;                                                               \
  } while (0)

static size_t limit(void) {
  const char* const text = getenv("FAKE_GPU_MEMORY");
  return text ? strtoull(text, NULL, 10) : (size_t)1 << 30;
}
static int take(Address* to, size_t bytes, int device) {
  if (device && g_used + bytes > limit()) return 2;
  void* const at = aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset(at, 0, bytes);
  *to = (Address)(uintptr_t)at;
  g_memory[g_allocations].at = *to;
  g_memory[g_allocations].bytes = bytes;
  g_memory[g_allocations++].device = device;
  if (device) g_used += bytes;
  return 0;
}
static int give(Address at) {
  for (size_t i = 0; i < g_allocations; ++i)
    if (g_memory[i].at == at) {
      if (g_memory[i].device) g_used -= g_memory[i].bytes;
      free((void*)(uintptr_t)at);
      g_memory[i] = g_memory[--g_allocations];
      return 0;
    }
  return 1;
}

/* ---- devices and contexts */
EXPORT int cuInit(unsigned flags) {
  static int started;
  (void)flags;
  if (started++) return 0;
  const char* const injection = getenv("CUDA_INJECTION64_PATH");
  if (injection != NULL) {
    void* const library = dlopen(injection, RTLD_NOW);
    int (*start)(void) = library != NULL ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    if (start == NULL || start() != 1) fprintf(stderr, "fake driver: the injection failed: %s\n", dlerror());
  }
  return 0;
}
EXPORT int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
EXPORT int cuDeviceGetCount(int* count) { *count = getenv("FAKE_GPU_COUNT") ? atoi(getenv("FAKE_GPU_COUNT")) : 1; return 0; }
EXPORT int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return 0; }
EXPORT int cuDeviceGetName(char* name, int length, int device) { (void)device; snprintf(name, (size_t)length, "NVIDIA Stand-in"); return 0; }
EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int device) { (void)device; *bytes = limit(); return 0; }
EXPORT int cuDeviceGetUuid_v2(unsigned char* uuid, int device) { memset(uuid, device + 1, 16); return 0; }
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 10 ? 32 : attribute == 16 ? 4 : attribute == 38 ? 4096 : 1024;
  return 0;
}
EXPORT int cuCtxCreate_v2(void** context, unsigned flags, int device) {
  (void)flags;
  g_current = *context = &g_contexts[device];
  if (g_hook.context) g_hook.context(*context, 1);
  return 0;
}
EXPORT int cuCtxGetCurrent(void** context) { *context = g_current; return 0; }
EXPORT int cuCtxGetDevice(int* device) { *device = g_current == &g_contexts[1]; return 0; }
EXPORT int cuCtxPushCurrent_v2(void* context) { g_stack[g_depth++] = g_current; g_current = context; return 0; }
EXPORT int cuCtxPopCurrent_v2(void** context) { *context = g_current; g_current = g_stack[--g_depth]; return 0; }
EXPORT int cuCtxSynchronize(void) {
#define ARGS {0}
  CALL(SYNC, NULL, (void)0, int none);
#undef ARGS
}
EXPORT int cuCtxDestroy_v2(void* context) {
#define ARGS {context}
  CALL(DESTROY, NULL, if (g_hook.context) g_hook.context(context, 0), void* context);
#undef ARGS
}

/* ---- memory */
EXPORT int cuMemGetInfo_v2(size_t* left, size_t* total) { *total = limit(); *left = limit() - g_used; return 0; }
EXPORT int cuMemAlloc_v2(Address* to, size_t bytes) {
#define ARGS {to, bytes}
  CALL(ALLOC, NULL, result = take(to, bytes, 1), Address* to; size_t bytes);
}
EXPORT int cuMemHostAlloc(void** to, size_t bytes, unsigned flags) {
  (void)flags;
  CALL(HOST, NULL, result = take((Address*)to, bytes, 0), void** to; size_t bytes);
#undef ARGS
}
EXPORT int cuMemAllocManaged(Address* to, size_t bytes, unsigned flags) {
#define ARGS {to, bytes, flags}
  CALL(MANAGED, NULL, result = take(to, bytes, 0), Address* to; size_t bytes; unsigned flags);
#undef ARGS
}
EXPORT int cuMemFree_v2(Address at) {
#define ARGS {at}
  CALL(FREE, NULL, result = give(at), Address at);
#undef ARGS
}
EXPORT int cuArrayCreate_v2(void** array, const void* about) {
#define ARGS {array, about}
  CALL(ARRAY, NULL, *array = &g_used, void** array; const void* about);
#undef ARGS
}
EXPORT int cuMemcpyDtoH_v2(void* to, Address from, size_t bytes) {
#define ARGS {to, from, bytes}
  CALL(TO_HOST, NULL, memcpy(to, (void*)(uintptr_t)from, bytes), void* to; Address from; size_t bytes);
}
EXPORT int cuMemcpyHtoD_v2(Address to, const void* from, size_t bytes) {
  CALL(TO_DEVICE, NULL, memcpy((void*)(uintptr_t)to, from, bytes), Address to; const void* from; size_t bytes);
#undef ARGS
}
EXPORT int cuMemcpyAsync(Address to, Address from, size_t bytes, void* stream) {
#define ARGS {to, from, bytes, stream}
  CALL(COPY, NULL, memmove((void*)(uintptr_t)to, (void*)(uintptr_t)from, bytes), Address to; Address from; size_t bytes; void* stream);
#undef ARGS
}
EXPORT int cuMemsetD8_v2(Address to, unsigned char value, size_t bytes) {
#define ARGS {to, value, bytes}
  CALL(FILL, NULL, memset((void*)(uintptr_t)to, value, bytes), Address to; unsigned char value; size_t bytes);
#undef ARGS
}

/* ---- streams */
static int g_capturing;
EXPORT int cuStreamIsCapturing(void* stream, int* status) { *status = stream != NULL && g_capturing; return 0; }
static struct { void* function; uint64_t threads, values[4]; } g_graph[16];  /* the one graph: what was captured last */
static int g_nodes;
EXPORT int cuStreamBeginCapture_v2(void* stream, int mode) {
#define ARGS {stream, mode}
  CALL(CAPTURE, NULL, (g_capturing = 1, g_nodes = 0), void* stream; int mode);
#undef ARGS
}
EXPORT int cuStreamEndCapture(void* stream, void** graph) {
#define ARGS {stream, graph}
  CALL(END_CAPTURE, NULL, (g_capturing = 0, *graph = g_graph), void* stream; void** graph);
#undef ARGS
}

/* ---- kernels: (to, from, n) unless said otherwise */
__attribute__((section(".nv.global"))) int fake_counter = 1;
static int g_executions;

static void k_add(void** a) {
  int *to = *(int**)a[0], *from = *(int**)a[1];
  for (int i = 0; i < *(int*)a[2]; ++i) to[i] += from[i] + 1;
}
static void k_counting(void** a) { (*(int**)a[0])[0] += fake_counter++; }
static void k_crashing(void** a) {
  k_add(a);
  if (getenv("FAKE_GPU_CRASH") && ++g_executions == atoi(getenv("FAKE_GPU_CRASH"))) abort();
}
static void k_empty(void** a) { (void)a; }
static void k_compare(void** a) {
  const uint64_t *x = *(uint64_t**)a[0], *y = *(uint64_t**)a[1], words = *(uint64_t*)a[2];
  for (uint64_t i = 0; i < words * 2; ++i)
    if (x[i] != y[i]) (*(uint8_t**)a[3])[i / 2 / 4096] = 1;
}
struct Function { const char *name, *symbol; void (*run)(void**); int count; size_t bytes[4]; };
static struct Function g_functions[] = {
    {"add", "_Z3addPiPKii", k_add, 3, {8, 8, 4}},       {"counting", "_Z8countingPi", k_counting, 1, {8}},
    {"crashing", "_Z8crashingPiPKii", k_crashing, 3, {8, 8, 4}}, {"empty", "_Z5emptyv", k_empty, 0, {0}},
    {"tacho_compare", "tacho_compare", k_compare, 4, {8, 8, 8, 8}}, {"tacho_sweep", "tacho_sweep", k_empty, 3, {8, 8, 8}}};

EXPORT int cuModuleLoadData(void** module, const void* image) {
  (void)image;
  *module = g_functions;
  static int told;
  if (g_hook.module && !told++) {  /* this library's own file: its symbols name fake_counter in .nv.global */
    Dl_info about;
    dladdr((void*)cuModuleLoadData, &about);
    const int file = open(about.dli_fname, O_RDONLY);
    struct stat size;
    fstat(file, &size);
    void* const map = mmap(NULL, (size_t)size.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    g_hook.module(map, (size_t)size.st_size);
    munmap(map, (size_t)size.st_size);
  }
  return 0;
}
EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)module;
  for (size_t i = 0; i < sizeof g_functions / sizeof *g_functions; ++i)
    if (strcmp(g_functions[i].name, name) == 0) {
      *function = &g_functions[i];
      return 0;
    }
  return 500;
}
EXPORT int cuModuleGetGlobal_v2(Address* at, size_t* bytes, void* module, const char* name) {
  (void)module;
  if (strcmp(name, "fake_counter") != 0) return 500;
  *at = (Address)(uintptr_t)&fake_counter;
  *bytes = sizeof fake_counter;
  return 0;
}
EXPORT int cuFuncGetModule(void** module, void* function) { (void)function; *module = g_functions; return 0; }
EXPORT int cuKernelGetFunction(void** function, void* kernel) { (void)function; (void)kernel; return 400; }
EXPORT int cuFuncGetAttribute(int* value, int attribute, void* function) { (void)function; *value = attribute == 4 ? 32 : 0; return 0; }
EXPORT int cuFuncGetParamInfo(void* function, size_t i, size_t* offset, size_t* bytes) {
  const struct Function* const f = function;
  if ((int)i >= f->count) return 1;
  *offset = i * 8;
  *bytes = f->bytes[i];
  return 0;
}
EXPORT int cuKernelGetParamInfo(void* kernel, size_t i, size_t* offset, size_t* bytes) { return cuFuncGetParamInfo(kernel, i, offset, bytes); }

/* Memory that its arguments point to as a kernel finds it: what its "counters" tell. */
static uint64_t checksum(const struct Function* f, void** args) {
  uint64_t sum = (uint64_t)fake_counter;
  for (int a = 0; a < f->count; ++a)
    for (size_t i = 0; i < g_allocations && f->bytes[a] == 8; ++i)
      if (g_memory[i].at == *(Address*)args[a])
        for (size_t b = 0; b < g_memory[i].bytes; ++b) sum = sum * 31 + ((uint8_t*)(uintptr_t)g_memory[i].at)[b];
  return sum;
}
static void capture(struct Function* f, void** args, uint64_t threads) {
  g_graph[g_nodes].function = f;
  g_graph[g_nodes].threads = threads;
  for (int a = 0; a < f->count; ++a) memcpy(&g_graph[g_nodes].values[a], args[a], f->bytes[a]);
  ++g_nodes;
}
static void execute(struct Function* f, void** args, uint64_t threads) {
  if (g_hook.executing) g_hook.executing(f->symbol, threads, checksum(f, args));
  f->run(args);
}
EXPORT int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream, void** args, void** extra) {
#define ARGS {f, {gx, gy, gz}, {bx, by, bz}, shared, stream, args, extra}
  CALL(LAUNCH, ((struct Function*)f)->symbol, (stream && g_capturing ? capture : execute)(f, args, (uint64_t)gx * bx), void* f; unsigned g[3], b[3], shared; void* stream; void** args; void** extra);
}
EXPORT int cuLaunchCooperativeKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream, void** args) {
  void** extra = NULL;
  CALL(COOPERATIVE, ((struct Function*)f)->symbol, execute(f, args, (uint64_t)gx * bx), void* f; unsigned g[3], b[3], shared; void* stream; void** args; void** extra);
#undef ARGS
}
struct Config { unsigned g[3], b[3], shared; void* stream; void* attributes; unsigned count; };
EXPORT int cuLaunchKernelEx(const struct Config* config, void* f, void** args, void** extra) {
#define ARGS {config, f, args, extra}
  CALL(LAUNCH_EX, ((struct Function*)f)->symbol, execute(f, args, (uint64_t)config->g[0] * config->b[0]), const struct Config* config; void* f; void** args; void** extra);
#undef ARGS
}
static void run_graph(void) {
  if (g_hook.graph) g_hook.graph();
  for (int node = 0; node < g_nodes; ++node) {
    uint64_t* const values = g_graph[node].values;
    void* args[] = {&values[0], &values[1], &values[2], &values[3]};
    execute(g_graph[node].function, args, g_graph[node].threads);
  }
}
static int launch_graph(void* graph, void* stream) {
#define ARGS {graph, stream}
  CALL(GRAPH, NULL, run_graph(), void* graph; void* stream);
#undef ARGS
}
EXPORT int cuGraphLaunch(void* graph, void* stream) {
  static int inside;
  if (inside && getenv("FAKE_GPU_GRAPH_FAILS")) {
    run_graph();
    return 719;
  }
  ++inside;
  const int result = launch_graph(graph, stream);
  --inside;
  return result;
}
