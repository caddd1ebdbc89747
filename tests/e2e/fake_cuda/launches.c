/* The part of the stand-in driver that does work: launches, graphs, copies, fills, captures and events, on a clock of its own
 * that only the work advances. A kernel named "..._N" takes N ns, the first 10 launches of each one twice that. It counts
 * everything, and what a driver would punish: events that are recorded into or asked for during a capture.
 * fake_report() prints the counts. FAKE_CUDA_SPIN=N: each launch takes N turns of a loop on the host, too. FAKE_CUDA_FLOOR=NS: so
 * long an event takes on the device. FAKE_CUDA_IDLE=1: the device has ended everything by the time that it is
 * asked; FAKE_CUDA_LAG=N: it has not if an event was recorded N times in a row; FAKE_CUDA_BARRIERS=N: nor
 * after N barriers, which it refuses otherwise. FAKE_CUDA_BESIDE=NS: so long it takes from an event to a kernel and back.
 * FAKE_CUDA_FAULT=N: after N launches all further ones report an illegal address. FAKE_CUDA_MEMORY=BYTES: the device has so
 * much. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct Kernel {
  char name[128];
  double ns;
  long launches;
};
struct Context {
  int generation; /* of the primary one: it was reset so often */
  int dead;
};
struct Node {
  int type; /* CU_GRAPH_NODE_TYPE_...: 0 kernel, 1 copy */
  struct Kernel* kernel;
  unsigned grid, block;
};
#define MOST_NODES 64
struct Queue {
  double clock;
  struct Node nodes[MOST_NODES];
  struct Context* context; /* NULL: the current one */
  int capturing;
  double captured_ns;
  long captured_kernels;
  int worked; /* since the last event */
};
struct Graph {
  struct Node nodes[MOST_NODES];
  double ns;
  long kernels, launches;
};
struct Event {
  double at;
  int times, asked;  /* times: it was recorded since it was asked for last */
  unsigned barriers; /* in front of it */
  struct Context* context;
  int generation; /* of the context, when it was made */
};

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static struct Kernel g_kernels[6000];
static int g_kernel_count;
static struct Queue g_default, g_per_thread;
static struct Context g_primary;
static __thread struct Context* t_context = &g_primary;
static int g_captures;
static long g_dead_events, g_foreign_events, g_replaced_launches;
static long g_launches, g_graph_launches, g_copies, g_waits, g_allocations, g_events_made, g_events_destroyed;
static long g_events_in_captures, g_asked_in_captures;
static unsigned long long g_copied, g_allocated;
static double g_kernel_ns, g_graph_ns;
static volatile long g_sink;
static unsigned g_barriers; /* in the last batch */
static int g_reuses;        /* a module was unloaded */
/* Called within the 200th launch. */
EXPORT void (*fake_inside_launch)(void);

static double number(const char* name) {
  return getenv(name) != NULL ? atof(getenv(name)) : 0;
}
static struct Queue* queue(void* stream, int per_thread) {
  return stream != NULL ? (struct Queue*)stream : per_thread ? &g_per_thread : &g_default;
}
static int launch_shape(struct Kernel* kernel, void* stream, int per_thread, unsigned grid, unsigned block) {
  static long spin = -1;
  if (spin < 0) spin = getenv("FAKE_CUDA_SPIN") != NULL ? atol(getenv("FAKE_CUDA_SPIN")) : 0;
  for (long i = 0; i < spin; ++i) g_sink = i;
  if (kernel == NULL) return 400; /* CUDA_ERROR_INVALID_HANDLE */
  static long calls;
  if (fake_inside_launch != NULL && __sync_add_and_fetch(&calls, 1) == 200) fake_inside_launch();
  if (getenv("FAKE_CUDA_FAULT") != NULL && g_launches >= atol(getenv("FAKE_CUDA_FAULT"))) return 700;
  pthread_mutex_lock(&g_lock);
  struct Queue* const to = queue(stream, per_thread);
  const double ns = kernel->launches < 10 ? 2 * kernel->ns : kernel->ns;
  if (to->capturing) {
    to->captured_ns += kernel->ns;
    if (to->captured_kernels < MOST_NODES) to->nodes[to->captured_kernels++] = (struct Node){0, kernel, grid, block};
  } else {
    to->clock += ns;
    to->worked = 1;
    g_kernel_ns += ns;
    ++kernel->launches;
    ++g_launches;
  }
  pthread_mutex_unlock(&g_lock);
  return 0;
}
static int launch(struct Kernel* kernel, void* stream, int per_thread) {
  return launch_shape(kernel, stream, per_thread, 1, 1);
}
static int copy(size_t bytes, void* stream) {
  pthread_mutex_lock(&g_lock);
  struct Queue* const to = queue(stream, 0);
  if (to->capturing) {
    if (to->captured_kernels < MOST_NODES) to->nodes[to->captured_kernels++] = (struct Node){1, NULL, 0, 0};
  } else {
    ++g_copies;
    g_copied += bytes;
    to->clock += (double)bytes / 10;
  }
  pthread_mutex_unlock(&g_lock);
  return 0;
}

EXPORT int cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
EXPORT int cuStreamBatchMemOp_v2(void* stream, unsigned count, const unsigned* operations, unsigned flags) {
  if (queue(stream, 0)->capturing) ++g_events_in_captures;
  if (number("FAKE_CUDA_BARRIERS") == 0) return 801;
  for (unsigned i = 0; i < count; ++i)
    if (operations[i * 12] != 6 || flags != 0) return 1; /* CU_STREAM_MEM_OP_BARRIER */
  g_barriers = count;
  return 0;
}
/* Of the calling thread: 2 = calls of it may disturb others' captures (CU_STREAM_CAPTURE_MODE_RELAXED). */
static __thread int t_mode;
EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  const int before = t_mode;
  t_mode = *mode;
  *mode = before;
  return 0;
}
EXPORT int cuCtxGetCurrent(void** context) {
  *context = t_context;
  return 0;
}
EXPORT int cuCtxSetCurrent(void* context) {
  t_context = context;
  return 0;
}
EXPORT int cuCtxCreate_v2(void** context, unsigned flags, int device) {
  (void)flags, (void)device;
  *context = t_context = calloc(1, sizeof(struct Context));
  return 0;
}
EXPORT int cuCtxDestroy_v2(void* context) {
  ((struct Context*)context)->dead = 1;
  if (t_context == context) t_context = &g_primary;
  return 0;
}
/* A green context is its own CUcontext here. */
EXPORT int cuGreenCtxCreate(void** green, void* resources, int device, unsigned flags) {
  (void)resources, (void)device, (void)flags;
  *green = calloc(1, sizeof(struct Context));
  return 0;
}
EXPORT int cuCtxFromGreenCtx(void** context, void* green) {
  *context = green;
  return 0;
}
EXPORT int cuGreenCtxDestroy(void* green) {
  return cuCtxDestroy_v2(green);
}
EXPORT int cuDevicePrimaryCtxReset_v2(int device) {
  (void)device;
  ++g_primary.generation;
  return 0;
}
/* The next function gets the handle of the one that was asked for last. */
EXPORT int cuModuleUnload(void* module) {
  (void)module;
  g_reuses = 1;
  return 0;
}
EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)module;
  pthread_mutex_lock(&g_lock);
  if (g_reuses) --g_kernel_count, g_replaced_launches += g_kernels[g_kernel_count].launches;
  g_reuses = 0;
  struct Kernel* const kernel = &g_kernels[g_kernel_count++];
  kernel->launches = 0;
  snprintf(kernel->name, sizeof kernel->name, "%s", name);
  const char* const number = strrchr(name, '_');
  kernel->ns = number != NULL ? atof(number + 1) : 1000;
  pthread_mutex_unlock(&g_lock);
  *function = kernel;
  return 0;
}
EXPORT int cuFuncGetName(const char** name, void* function) {
  *name = ((struct Kernel*)function)->name;
  return 0;
}
EXPORT int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void* stream, void** params, void** extra) {
  (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)params, (void)extra;
  return launch_shape(f, stream, 0, gx, bx);
}
EXPORT int cuLaunchKernel_ptsz(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                               unsigned shared, void* stream, void** params, void** extra) {
  (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)params, (void)extra;
  return launch_shape(f, stream, 1, gx, bx);
}
struct Config {
  unsigned gx, gy, gz, bx, by, bz, shared;
  void* stream;
};
EXPORT int cuLaunchKernelEx(const struct Config* config, void* f, void** params, void** extra) {
  (void)params, (void)extra;
  return launch(f, config->stream, 0);
}

EXPORT int cuStreamCreate(void** stream, unsigned flags) {
  (void)flags;
  struct Queue* const made = calloc(1, sizeof(struct Queue));
  made->context = t_context;
  *stream = made;
  return 0;
}
EXPORT int cuStreamSynchronize(void* stream) {
  (void)stream;
  __sync_fetch_and_add(&g_waits, 1);
  return 0;
}
EXPORT int cuCtxSynchronize(void) {
  __sync_fetch_and_add(&g_waits, 1);
  return 0;
}
/* From CUDA 13 on it has a parameter: here the context must be one that is never current. */
EXPORT int cuCtxSynchronize_v2(void* context) {
  return context == (void*)0x1234 ? cuCtxSynchronize() : 201;
}
EXPORT int cuStreamIsCapturing(void* stream, int* status) {
  *status = queue(stream, 0)->capturing;
  return 0;
}
EXPORT int cuStreamBeginCapture_v2(void* stream, int mode) {
  (void)mode;
  struct Queue* const of = queue(stream, 0);
  if (of->capturing) return 901;
  of->capturing = 1;
  of->captured_ns = 0;
  of->captured_kernels = 0;
  ++g_captures;
  return 0;
}
EXPORT int cuStreamEndCapture(void* stream, void** graph) {
  struct Queue* const of = queue(stream, 0);
  if (!of->capturing) return 901;
  struct Graph* const made = calloc(1, sizeof(struct Graph));
  made->ns = of->captured_ns;
  made->kernels = of->captured_kernels;
  memcpy(made->nodes, of->nodes, sizeof made->nodes);
  of->capturing = 0;
  --g_captures;
  *graph = made;
  return 0;
}
EXPORT int cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
  struct Graph* const of = graph;
  for (size_t i = 0; nodes != NULL && i < *count && i < (size_t)of->kernels; ++i) nodes[i] = &of->nodes[i];
  *count = (size_t)of->kernels;
  return 0;
}
EXPORT int cuGraphNodeGetType(void* node, int* type) {
  *type = ((struct Node*)node)->type;
  return 0;
}
struct NodeParams {
  void* function;
  unsigned gx, gy, gz, bx, by, bz, shared;
  void **params, **extra, *kernel, *context;
};
EXPORT int cuGraphKernelNodeGetParams_v2(void* node, struct NodeParams* params) {
  const struct Node* const of = node;
  *params = (struct NodeParams){of->kernel, of->grid, 1, 1, of->block, 1, 1, 0, NULL, NULL, NULL, NULL};
  return of->type == 0 ? 0 : 1;
}
/* What is launched changes, and the template's nodes do not; its time is the same here. */
EXPORT int cuGraphExecKernelNodeSetParams_v2(void* exec, void* node, const struct NodeParams* params) {
  (void)exec, (void)node, (void)params;
  return 0;
}
EXPORT int cuGraphExecUpdate_v2(void* exec, void* graph, void* result) {
  (void)result;
  struct Graph *const to = exec, *const from = graph;
  to->ns = from->ns;
  return 0;
}
EXPORT int cuGraphNodeSetEnabled(void* exec, void* node, unsigned enabled) {
  (void)exec, (void)node, (void)enabled;
  return 0;
}
EXPORT int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  (void)flags;
  *exec = graph;
  return 0;
}
EXPORT int cuGraphExecDestroy(void* exec) {
  (void)exec;
  return 0;
}
EXPORT int cuGraphLaunch(void* exec, void* stream) {
  struct Graph* const graph = exec;
  pthread_mutex_lock(&g_lock);
  queue(stream, 0)->clock += graph->ns;
  queue(stream, 0)->worked = 1;
  g_graph_ns += graph->ns;
  ++graph->launches;
  ++g_graph_launches;
  pthread_mutex_unlock(&g_lock);
  return 0;
}

EXPORT int cuMemAlloc_v2(unsigned long long* at, size_t bytes) {
  if (getenv("FAKE_CUDA_MEMORY") != NULL && g_allocated + bytes > number("FAKE_CUDA_MEMORY")) return 2;
  __sync_fetch_and_add(&g_allocations, 1);
  g_allocated += bytes;
  *at = 4096 * (unsigned long long)g_allocations;
  return 0;
}
/* It counts as allocated all the same. */
EXPORT int cuMemFree_v2(unsigned long long at) {
  return at == 0 ? 1 : 0;
}
EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  (void)to, (void)from;
  return copy(bytes, stream);
}
EXPORT int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
  (void)to, (void)from;
  return copy(bytes, NULL);
}

EXPORT int cuEventCreate(void** event, unsigned flags) {
  (void)flags;
  __sync_fetch_and_add(&g_events_made, 1);
  struct Event* const made = calloc(1, sizeof(struct Event));
  made->context = t_context;
  made->generation = t_context->generation;
  *event = made;
  return 0;
}
/* Events that went with their context: a driver would read freed memory, or not. */
static int is_dead(const struct Event* event) {
  if (!event->context->dead && event->generation == event->context->generation) return 0;
  ++g_dead_events;
  return 1;
}
EXPORT int cuEventDestroy_v2(void* event) {
  if (is_dead(event)) return 400;
  ++g_events_destroyed;
  free(event);
  return 0;
}
static int record(struct Event* event, void* stream, int per_thread) {
  if (is_dead(event)) return 400;
  const struct Context* const of = queue(stream, per_thread)->context;
  if ((of != NULL ? of : t_context) != event->context) {
    ++g_foreign_events;
    return 400;
  }
  pthread_mutex_lock(&g_lock);
  if (queue(stream, per_thread)->capturing) ++g_events_in_captures;
  struct Queue* const to = queue(stream, per_thread);
  if (to->worked) to->clock += number("FAKE_CUDA_BESIDE");
  to->worked = 0;
  event->at = to->clock;
  event->barriers = g_barriers;
  to->clock += number("FAKE_CUDA_FLOOR");
  ++event->times;
  event->asked = 0;
  pthread_mutex_unlock(&g_lock);
  return 0;
}
EXPORT int cuEventRecord(void* event, void* stream) {
  return record(event, stream, 0);
}
EXPORT int cuEventRecord_ptsz(void* event, void* stream) {
  return record(event, stream, 1);
}
EXPORT int cuEventQuery(void* event) {
  if (is_dead(event)) return 400;
  if (g_captures > 0 && t_mode != 2) ++g_asked_in_captures;
  struct Event* const asked = event;
  const double barriers = number("FAKE_CUDA_BARRIERS");
  const int reached =
      number("FAKE_CUDA_IDLE") != 0 || asked->times < number("FAKE_CUDA_LAG") || asked->barriers < barriers;
  asked->times = 0;
  g_barriers = 0;
  return !reached && asked->asked++ == 0 ? 600 : 0; /* the first time it has not ended */
}
EXPORT int cuEventElapsedTime(float* ms, void* from, void* to) {
  if (is_dead(from) || is_dead(to)) return 400;
  *ms = (float)((((struct Event*)to)->at - ((struct Event*)from)->at) * 1e-6);
  return 0;
}

EXPORT int cuGetProcAddress_v2(const char* symbol, void** found, int version, unsigned long long flags, int* status);
EXPORT int cuInit(unsigned flags);
static const struct {
  const char* name;
  void *plain, *per_thread;
} kFunctions[] = {{"cuInit", (void*)cuInit, NULL},
                  {"cuGetProcAddress", (void*)cuGetProcAddress_v2, NULL},
                  {"cuModuleGetFunction", (void*)cuModuleGetFunction, NULL},
                  {"cuLaunchKernel", (void*)cuLaunchKernel, (void*)cuLaunchKernel_ptsz},
                  {"cuLaunchKernelEx", (void*)cuLaunchKernelEx, NULL},
                  {"cuStreamCreate", (void*)cuStreamCreate, NULL},
                  {"cuStreamSynchronize", (void*)cuStreamSynchronize, NULL},
                  {"cuCtxSynchronize", (void*)cuCtxSynchronize, NULL},
                  {"cuStreamBeginCapture", (void*)cuStreamBeginCapture_v2, NULL},
                  {"cuStreamEndCapture", (void*)cuStreamEndCapture, NULL},
                  {"cuGraphInstantiateWithFlags", (void*)cuGraphInstantiateWithFlags, NULL},
                  {"cuGraphLaunch", (void*)cuGraphLaunch, NULL},
                  {"cuGraphInstantiate", (void*)cuGraphInstantiateWithFlags, NULL}, /* from CUDA 12 on */
                  {"cuGraphGetNodes", (void*)cuGraphGetNodes, NULL},
                  {"cuGraphExecKernelNodeSetParams", (void*)cuGraphExecKernelNodeSetParams_v2, NULL},
                  {"cuGraphExecUpdate", (void*)cuGraphExecUpdate_v2, NULL},
                  {"cuGraphNodeSetEnabled", (void*)cuGraphNodeSetEnabled, NULL},
                  {"cuMemAlloc", (void*)cuMemAlloc_v2, NULL},
                  {"cuMemcpyHtoDAsync", (void*)cuMemcpyHtoDAsync_v2, NULL},
                  {"cuMemcpyDtoH", (void*)cuMemcpyDtoH_v2, NULL},
                  {"cuCtxCreate", (void*)cuCtxCreate_v2, NULL},
                  {"cuCtxSetCurrent", (void*)cuCtxSetCurrent, NULL},
                  {"cuCtxDestroy", (void*)cuCtxDestroy_v2, NULL},
                  {"cuGreenCtxCreate", (void*)cuGreenCtxCreate, NULL},
                  {"cuGreenCtxDestroy", (void*)cuGreenCtxDestroy, NULL},
                  {"cuDevicePrimaryCtxReset", (void*)cuDevicePrimaryCtxReset_v2, NULL},
                  {"cuModuleUnload", (void*)cuModuleUnload, NULL}};
EXPORT int cuGetProcAddress_v2(const char* symbol, void** found, int version, unsigned long long flags, int* status) {
  *found = NULL;
  for (size_t i = 0; i < sizeof kFunctions / sizeof *kFunctions; ++i)
    if (strcmp(kFunctions[i].name, symbol) == 0)
      *found = (flags & 2) != 0 && kFunctions[i].per_thread != NULL ? kFunctions[i].per_thread : kFunctions[i].plain;
  if (strcmp(symbol, "cuCtxSynchronize") == 0 && version >= 13000) *found = (void*)cuCtxSynchronize_v2;
  if (status != NULL) *status = *found != NULL ? 0 : 1;
  return *found != NULL ? 0 : 500;
}
EXPORT int cuGetProcAddress(const char* symbol, void** found, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(symbol, found, version, flags, NULL);
}

EXPORT void fake_report(void) {
  printf(
      "{\"launches\": %ld, \"kernel_ns\": %.0f, \"graph_launches\": %ld, \"graph_ns\": %.0f, \"copies\": %ld, \"copied\": %llu, "
      "\"waits\": %ld, \"allocations\": %ld, \"allocated\": %llu, \"events\": %ld, \"events_destroyed\": %ld, \"events_in_captures\": %ld, "
      "\"asked_in_captures\": %ld, \"dead_events\": %ld, \"foreign_events\": %ld, \"replaced_launches\": %ld, \"kernels\": {",
      g_launches, g_kernel_ns, g_graph_launches, g_graph_ns, g_copies, g_copied, g_waits, g_allocations, g_allocated,
      g_events_made, g_events_destroyed, g_events_in_captures, g_asked_in_captures, g_dead_events, g_foreign_events,
      g_replaced_launches);
  for (int i = 0; i < g_kernel_count; ++i)
    printf("%s\"%s\": %ld", i == 0 ? "" : ", ", g_kernels[i].name, g_kernels[i].launches);
  printf("}}\n");
}
