/* A stand-in for the CUDA driver: device memory is the host's, kernels are functions of this file, streams do nothing.
 * Calls that CUPTI would tell a subscriber about are told to the stand-in of CUPTI beside it (cupti.c).
 * Every kernel is of one module but `nodes` and `counts`, which have one each; `counts` changes a managed variable.
 *   FAKE_GPU_FLUSHES=1      the kernel driver (/dev/nvidiactl) empties the L2; 2: it says so and does not; else there is none
 *   FAKE_GPU_MEMORY=BYTES   what the device has      FAKE_GPU_COUNT=N   devices      FAKE_GPU_CRASH=N   the kernel
 *   `crashing` aborts the process at its N-th execution      FAKE_GPU_GRAPH_FAILS=1   graphs launched by a subscriber run
 *   and say that they failed */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook.h"

#define EXPORT __attribute__((visibility("default")))
typedef uint64_t Address;

static struct Hook g_hook;
static void *g_current, *g_stack[16];
static int g_depth, g_contexts[4]; /* the device of each */
static struct {
  Address at;
  size_t bytes;
  int device, managed;
} g_memory[4096];
static size_t g_allocations, g_used;

EXPORT void fake_set_hook(const struct Hook* hook) {
  g_hook = *hook;
}

EXPORT const char* const fake_names[] = {NULL,
                                         "cuMemAlloc_v2",
                                         "cuMemFree_v2",
                                         "cuMemAllocManaged",
                                         "cuMemHostAlloc",
                                         "cuMemFreeHost",
                                         "cuMemcpyDtoH_v2",
                                         "cuMemcpyHtoD_v2",
                                         "cuMemcpyAsync",
                                         "cuMemsetD8_v2",
                                         "cuLaunchKernel",
                                         "cuLaunchKernelEx",
                                         "cuLaunchCooperativeKernel",
                                         "cuArrayCreate_v2",
                                         "cuStreamBeginCapture_v2",
                                         "cuStreamEndCapture",
                                         "cuCtxDestroy_v2",
                                         "cuCtxSynchronize",
                                         "cuGraphLaunch",
                                         "cuGraphAddKernelNode_v2",
                                         "cuLibraryLoadData",
                                         NULL};
enum {
  ALLOC = 1,
  FREE,
  MANAGED,
  HOST,
  FREE_HOST,
  TO_HOST,
  TO_DEVICE,
  COPY,
  FILL,
  LAUNCH,
  LAUNCH_EX,
  COOPERATIVE,
  ARRAY,
  CAPTURE,
  END_CAPTURE,
  DESTROY,
  SYNC,
  GRAPH,
  NODE,
  LIBRARY
};

#define CALL(id, symbol, work, ...)                                                      \
  do {                                                                                   \
    struct {                                                                             \
      __VA_ARGS__;                                                                       \
    } p = ARGS;                                                                          \
    int result = 0;                                                                      \
    if (g_hook.call) g_hook.call(id, fake_names[id], &p, &result, 0, symbol, g_current); \
    work;                                                                                \
    if (g_hook.call) g_hook.call(id, fake_names[id], &p, &result, 1, symbol, g_current); \
    return result;                                                                       \
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
  g_memory[g_allocations].managed = 0;
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
EXPORT int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
EXPORT int cuDeviceGetCount(int* count) {
  *count = getenv("FAKE_GPU_COUNT") ? atoi(getenv("FAKE_GPU_COUNT")) : 1;
  return 0;
}
EXPORT int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
EXPORT int cuDeviceGetName(char* name, int length, int device) {
  (void)device;
  snprintf(name, (size_t)length, "NVIDIA Stand-in");
  return 0;
}
EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = limit();
  return 0;
}
EXPORT int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  memset(uuid, device + 1, 16);
  return 0;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  *value = attribute == 75   ? 9
           : attribute == 76 ? 0
           : attribute == 10 ? 32
           : attribute == 16 ? 4
           : attribute == 38 ? 262144
                             : 1024;
  return 0;
}
EXPORT int cuCtxCreate_v2(void** context, unsigned flags, int device) {
  static int made;
  (void)flags;
  g_contexts[made] = device;
  g_current = *context = &g_contexts[made++];
  if (g_hook.context) g_hook.context(*context, 1);
  return 0;
}
EXPORT int cuCtxGetCurrent(void** context) {
  *context = g_current;
  return 0;
}
EXPORT int cuCtxGetDevice(int* device) {
  *device = *(int*)g_current;
  return 0;
}
EXPORT int cuCtxPushCurrent_v2(void* context) {
  g_stack[g_depth++] = g_current;
  g_current = context;
  return 0;
}
EXPORT int cuCtxPopCurrent_v2(void** context) {
  *context = g_current;
  g_current = g_stack[--g_depth];
  return 0;
}
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
EXPORT int cuMemGetInfo_v2(size_t* left, size_t* total) {
  *total = limit();
  *left = limit() - g_used;
  return 0;
}
EXPORT int cuMemAlloc_v2(Address* to, size_t bytes) {
#define ARGS {to, bytes}
  CALL(ALLOC, NULL, result = take(to, bytes, 1), Address * to; size_t bytes);
}
EXPORT int cuMemHostAlloc(void** to, size_t bytes, unsigned flags) {
  (void)flags;
  CALL(HOST, NULL, result = take((Address*)to, bytes, 0), void** to; size_t bytes);
#undef ARGS
}
EXPORT int cuMemAllocManaged(Address* to, size_t bytes, unsigned flags) {
#define ARGS {to, bytes, flags}
  CALL(MANAGED, NULL, (result = take(to, bytes, 0), g_memory[g_allocations - 1].managed = 1), Address * to;
       size_t bytes; unsigned flags);
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
  CALL(COPY, NULL, memmove((void*)(uintptr_t)to, (void*)(uintptr_t)from, bytes), Address to; Address from; size_t bytes;
       void* stream);
#undef ARGS
}
EXPORT int cuMemsetD8_v2(Address to, unsigned char value, size_t bytes) {
#define ARGS {to, value, bytes}
  CALL(FILL, NULL, memset((void*)(uintptr_t)to, value, bytes), Address to; unsigned char value; size_t bytes);
#undef ARGS
}

/* ---- streams */
static int g_capturing;
EXPORT int cuStreamIsCapturing(void* stream, int* status) {
  *status = stream != NULL && g_capturing;
  return 0;
}
static struct {
  void* function;
  uint64_t threads, values[4];
} g_graph[16]; /* the one graph: what was captured last */
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
__attribute__((section(".nv.global"))) int fake_counter = 1, fake_node_counter = 1, fake_managed = 1;
static int g_executions;
EXPORT int cuPointerGetAttribute(void* to, int attribute, Address at) {
  if (attribute == 8) *(unsigned*)to = at == (Address)(uintptr_t)&fake_managed;
  for (size_t i = 0; i < g_allocations && attribute == 8; ++i)
    if (g_memory[i].at == at) *(unsigned*)to = (unsigned)g_memory[i].managed;
  return 0;
}

static void k_add(void** a) {
  int *to = *(int**)a[0], *from = *(int**)a[1];
  for (int i = 0; i < *(int*)a[2]; ++i) to[i] += from[i] + 1;
}
static void k_counting(void** a) {
  (*(int**)a[0])[0] += fake_counter++;
}
static void k_nodes(void** a) {
  (*(int**)a[0])[0] += fake_node_counter++;
}
static void k_counts(void** a) {
  (*(int**)a[0])[0] += fake_managed++;
}
EXPORT void fake_host_writes(void) {
  fake_managed += 5;
}
static void k_crashing(void** a) {
  k_add(a);
  if (getenv("FAKE_GPU_CRASH") && ++g_executions == atoi(getenv("FAKE_GPU_CRASH"))) abort();
}
static void k_empty(void** a) {
  (void)a;
}
/* A rank's part of a collective: the others take part once for each time that the program launches it. */
static int g_others_take_part;
EXPORT void fake_others_take_part(void) {
  ++g_others_take_part;
}
static void k_collective(void** a) {
  (void)a;
  if (--g_others_take_part >= 0) return;
  fprintf(stderr, "a collective waits for ever\n");
  abort();
}
static int g_empty_l2, g_flushes;
static void k_chase(void** a) {
  **(uint64_t**)a[1] = g_empty_l2 ? 42000 : 18000;
  g_empty_l2 = 0;
}
static void k_compare(void** a) {
  const uint64_t *x = *(uint64_t**)a[0], *y = *(uint64_t**)a[1], words = *(uint64_t*)a[2];
  for (uint64_t i = 0; i < words * 2; ++i)
    if (x[i] != y[i]) (*(uint8_t**)a[3])[i / 2 / 4096] = 1;
}
struct Function {
  const char *name, *symbol;
  void (*run)(void**);
  int count;
  size_t bytes[4];
};
static struct Function g_functions[] = {
    {"nodes", "_Z5nodesPi", k_nodes, 1, {8}},
    {"counts", "_Z6countsPi", k_counts, 1, {8}},
    {"add", "_Z3addPiPKii", k_add, 3, {8, 8, 4}},
    {"counting", "_Z8countingPi", k_counting, 1, {8}},
    {"crashing", "_Z8crashingPiPKii", k_crashing, 3, {8, 8, 4}},
    {"empty", "_Z5emptyv", k_empty, 0, {0}},
    {"collective", "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LLv", k_collective, 0, {0}},
    {"tacho_compare", "tacho_compare", k_compare, 4, {8, 8, 8, 8}},
    {"tacho_sweep", "tacho_sweep", k_empty, 3, {8, 8, 8}},
    {"tacho_chase", "tacho_chase", k_chase, 2, {8, 8}},
    {"tacho_nothing", "tacho_nothing", k_empty, 0, {0}}};

/* ---- the kernel driver: objects of a client, the second GPU of the list is the one at 1b:00 */
static int g_control = -1;
static int flushes(void) {
  return getenv("FAKE_GPU_FLUSHES") ? atoi(getenv("FAKE_GPU_FLUSHES")) : 0;
}
EXPORT int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int mode = va_arg(more, int);
  va_end(more);
  int (*next)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  if (strcmp(path, "/dev/nvidiactl") != 0) return next(path, flags, mode);
  return flushes() ? g_control = next("/dev/null", O_RDWR | O_CLOEXEC) : -1;
}
EXPORT int ioctl(int file, unsigned long request, ...) {
  va_list more;
  va_start(more, request);
  void* const to = va_arg(more, void*);
  va_end(more);
  int (*next)(int, unsigned long, ...) = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
  if (file != g_control || g_control < 0) return next(file, request, to);
  if (_IOC_TYPE(request) != 'F') return -1;
  if (_IOC_NR(request) == 0x2b && _IOC_SIZE(request) == 48) {
    struct {
      uint32_t client, parent, object, kind;
      const uint32_t* parameters;
      void* rights;
      uint32_t bytes, flags, status;
    }* const p = to;
    const uint32_t parent = p->kind == 0x41 ? 0 : p->kind == 0x80 ? 0xc1 : 0xd2;
    const int good = p->parent == parent && (p->kind == 0x41 || p->client == 0xc1) &&
                     (p->kind != 0x80 || (p->bytes == 56 && p->parameters[0] == 7)) &&
                     (p->kind != 0x2080 || (p->bytes == 4 && p->parameters[0] == 0));
    p->object = p->kind == 0x41 ? 0xc1 : p->kind == 0x80 ? 0xd2 : 0x5d;
    p->status = good ? 0 : 31;
    return 0;
  }
  if (_IOC_NR(request) != 0x2a || _IOC_SIZE(request) != 32) return -1;
  struct {
    uint32_t client, object, command, flags;
    uint32_t* parameters;
    uint32_t bytes, status;
  }* const p = to;
  p->status = p->client != 0xc1;
  if (p->command == 0x201 && p->bytes == 128) {
    memset(p->parameters, 0xff, 128);
    p->parameters[0] = 100;
    p->parameters[1] = 101;
  } else if (p->command == 0x21b && p->bytes == 12) {
    p->parameters[1] = 0;
    p->parameters[2] = p->parameters[0] == 101 ? 0x1b : 0x2b;
  } else if (p->command == 0x205 && p->bytes == 32) {
    p->parameters[2] = p->parameters[0] == 101 ? 7 : 3;
    p->parameters[3] = 0;
  } else if (p->command == 0x2080130e && p->bytes == 4024 && p->object == 0x5d && p->parameters[1004] == 0x1c) {
    ++g_flushes;
    g_empty_l2 = flushes() == 1;
  } else {
    p->status = 86;
  }
  return 0;
}
EXPORT int cuDeviceGetPCIBusId(char* to, int bytes, int device) {
  (void)device;
  snprintf(to, (size_t)bytes, "0000:1b:00.0");
  return 0;
}
EXPORT int cuLinkCreate_v2(unsigned n, void* options, void** values, void** state) {
  (void)n;
  (void)options;
  (void)values;
  *state = &g_flushes;
  return 0;
}
EXPORT int cuLinkAddData_v2(void* state, int kind, void* text, size_t bytes, const char* name, unsigned n,
                            void* options, void** values) {
  (void)state;
  (void)text;
  (void)bytes;
  (void)name;
  (void)n;
  (void)options;
  (void)values;
  return kind == 1 ? 0 : 1;
}
EXPORT int cuLinkComplete(void* state, void** cubin, size_t* bytes) {
  (void)state;
  *cubin = "linked";
  *bytes = 7;
  return 0;
}
EXPORT int cuLinkDestroy(void* state) {
  (void)state;
  return 0;
}

EXPORT int cuModuleUnload(void* module) {
  (void)module;
  return 0;
}
EXPORT int cuModuleLoadData(void** module, const void* image) {
  *module = g_functions;
  static int told;
  if (g_hook.module && !told++) { /* this library's own file: its symbols name fake_counter in .nv.global */
    Dl_info about;
    dladdr((void*)cuModuleLoadData, &about);
    const int file = open(about.dli_fname, O_RDONLY);
    struct stat size;
    fstat(file, &size);
    char* const map = mmap(NULL, (size_t)size.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    /* As nvcc marks a managed variable. Where no program uses it, it is none: every launch would be a batch of its own. */
    const Elf64_Ehdr* const head = (const Elf64_Ehdr*)map;
    const Elf64_Shdr* const sections = (const Elf64_Shdr*)(map + head->e_shoff);
    for (int s = 0; s < head->e_shnum; ++s)
      if (sections[s].sh_type == SHT_SYMTAB)
        for (size_t i = 0; i < sections[s].sh_size / sizeof(Elf64_Sym); ++i) {
          Elf64_Sym* const symbol = (Elf64_Sym*)(map + sections[s].sh_offset) + i;
          if (strcmp(map + sections[sections[s].sh_link].sh_offset + symbol->st_name, "fake_managed") != 0) continue;
          if (*(const char*)image == 'm')
            symbol->st_other |= 4;
          else
            symbol->st_size = 0;
        }
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
  const struct {
    const char* name;
    int* at;
    void* module;
  } variables[] = {{"fake_counter", &fake_counter, g_functions},
                   {"fake_node_counter", &fake_node_counter, &g_functions[0].name + 1}};
  for (size_t i = 0; i < 2; ++i)
    if (strcmp(name, variables[i].name) == 0 && module == variables[i].module) {
      *at = (Address)(uintptr_t)variables[i].at;
      *bytes = sizeof(int);
      return 0;
    }
  return 500;
}
/* A managed variable is its library's, not a module's. */
EXPORT int cuLibraryLoadData(void** library, const void* code, void* options, void** values, unsigned count, void* more,
                             void** more_values, unsigned more_count) {
#define ARGS {library, code, options, values, count, more, more_values, more_count}
  CALL(LIBRARY, NULL, *library = &fake_managed, void** library; const void* code; void* options; void** values;
       unsigned count; void* more; void** more_values; unsigned more_count);
#undef ARGS
}
EXPORT int cuLibraryGetManaged(Address* at, size_t* bytes, void* library, const char* name) {
  if (library != &fake_managed || strcmp(name, "fake_managed") != 0) return 500;
  *at = (Address)(uintptr_t)&fake_managed;
  *bytes = sizeof fake_managed;
  return 0;
}
EXPORT int cuFuncGetModule(void** module, void* function) {
  struct Function* const f = function;
  *module = f == &g_functions[0] || f == &g_functions[1] ? (void*)(&f->name + 1) : (void*)g_functions;
  return 0;
}
EXPORT int cuKernelGetFunction(void** function, void* kernel) {
  (void)function;
  (void)kernel;
  return 400;
}
/* "add" stands for what the runtime launches, a library's kernel (CUkernel): no function of a context. */
EXPORT int cuFuncGetAttribute(int* value, int attribute, void* function) {
  if (function == &g_functions[2]) return 400;
  *value = attribute == 4 ? 32 : 0;
  return 0;
}
EXPORT int cuKernelGetAttribute(int* value, int attribute, void* kernel, int device) {
  (void)device;
  if (kernel != &g_functions[2]) return 400;
  *value = attribute == 4 ? 40 : attribute == 3 ? 16 : 0;
  return 0;
}
EXPORT int cuFuncGetParamInfo(void* function, size_t i, size_t* offset, size_t* bytes) {
  const struct Function* const f = function;
  if ((int)i >= f->count) return 1;
  *offset = i * 8;
  *bytes = f->bytes[i];
  return 0;
}
EXPORT int cuKernelGetParamInfo(void* kernel, size_t i, size_t* offset, size_t* bytes) {
  return cuFuncGetParamInfo(kernel, i, offset, bytes);
}

/* Memory that its arguments point to as a kernel finds it: what its "counters" tell. */
static uint64_t checksum(const struct Function* f, void** args) {
  uint64_t sum = (uint64_t)fake_counter * 37 + (uint64_t)fake_node_counter * 41 + (uint64_t)fake_managed;
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
struct Node {
  void* f;
  unsigned g[3], b[3], shared;
  void **args, **extra, *kernel, *context;
};
EXPORT int cuGraphAddKernelNode_v2(void** node, void** graph, const void* before, size_t count,
                                   const struct Node* about) {
#define ARGS {node, graph, before, count, about}
  CALL(NODE, NULL, (g_nodes = 0, *node = g_graph, capture(about->f, about->args, (uint64_t)about->g[0] * about->b[0])),
       void** node;
       void** graph; const void* before; size_t count; const struct Node* about);
#undef ARGS
}
EXPORT int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void* stream, void** args, void** extra) {
#define ARGS {f, {gx, gy, gz}, {bx, by, bz}, shared, stream, args, extra}
  CALL(LAUNCH, ((struct Function*)f)->symbol, (stream && g_capturing ? capture : execute)(f, args, (uint64_t)gx * bx),
       void* f;
       unsigned g[3], b[3], shared; void* stream; void** args; void** extra);
}
EXPORT int cuLaunchCooperativeKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                     unsigned bz, unsigned shared, void* stream, void** args) {
  void** extra = NULL;
  CALL(COOPERATIVE, ((struct Function*)f)->symbol, execute(f, args, (uint64_t)gx * bx), void* f;
       unsigned g[3], b[3], shared; void* stream; void** args; void** extra);
#undef ARGS
}
struct Config {
  unsigned g[3], b[3], shared;
  void* stream;
  void* attributes;
  unsigned count;
};
EXPORT int cuLaunchKernelEx(const struct Config* config, void* f, void** args, void** extra) {
#define ARGS {config, f, args, extra}
  CALL(LAUNCH_EX, ((struct Function*)f)->symbol, execute(f, args, (uint64_t)config->g[0] * config->b[0]),
       const struct Config* config;
       void* f; void** args; void** extra);
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
