/* A "CUDA program" on the stand-in driver: fake_gpu_app MODE [N]
 *   loop      N launches of `add`, every third followed by a copy to the host; prints what memory holds at the end
 *   changing  copies new data to the device before every launch
 *   global    `counting`, which changes a variable of its module      managed, host   `add` on such memory
 *   nccl      `add`, `add` and a collective in turn, which may run once a launch
 *   mixed     `add` and `empty` in turn      array     `add` after a CUDA array was made
 *   crashing  N launches of a kernel that aborts (FAKE_GPU_CRASH)     capture  launches into a stream that is captured
 *   graph     every second launch is one of a graph of two kernels      graph-global   of `counting`
 *   graph-nodes   of a graph of `nodes`, which is added to it by name and launched nowhere else
 *   counts    `counts`, whose managed variable the host changes too      contexts   two contexts of one GPU in turn
 *   turned    as two, the other GPU first in every second run
 *   uneven    as many launches as the file runs.N has been started before    two  two contexts in turn
 *   regions   N launches of `add`, recorded (ROCTx) from the third to the fifth
 *   hang      launches, says "ready" and waits until killed   exit  leaves by _exit(7)   none  no launch */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cuInit(unsigned);
int cuCtxCreate_v2(void**, unsigned, int);
int cuCtxPushCurrent_v2(void*);
int cuCtxPopCurrent_v2(void**);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(uint64_t*, size_t);
int cuMemAllocManaged(uint64_t*, size_t, unsigned);
int cuMemHostAlloc(void**, size_t, unsigned);
int cuMemcpyHtoD_v2(uint64_t, const void*, size_t);
int cuMemcpyDtoH_v2(void*, uint64_t, size_t);
int cuModuleLoadData(void**, const void*);
int cuModuleGetFunction(void**, void*, const char*);
int cuArrayCreate_v2(void**, const void*);
int cuStreamBeginCapture_v2(void*, int);
int cuStreamEndCapture(void*, void**);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
int cuGraphLaunch(void*, void*);
int cuGraphAddKernelNode_v2(void**, void*, const void*, size_t, const void*);
int cuLibraryLoadData(void**, const void*, void*, void**, unsigned, void*, void**, unsigned);
void fake_host_writes(void);
void fake_others_take_part(void);
int cuLaunchKernelEx(const void*, void*, void**, void**);

enum { kItems = 1000 };
static void* g_module;
static void ask(const char* call) {
  int (*const function)(uint64_t) = (int (*)(uint64_t))dlsym(RTLD_DEFAULT, call);
  if (function != NULL) function(0);
}
static int launch(const char* name, uint64_t to, uint64_t from, unsigned blocks, void* stream) {
  void* function = NULL;
  int n = kItems;
  void* arguments[] = {&to, &from, &n};
  if (cuModuleGetFunction(&function, g_module, name) != 0) return 1;
  return cuLaunchKernel(function, blocks, 1, 1, 64, 1, 1, 0, stream, arguments, NULL);
}

int main(int argc, char** argv) {
  const char* const mode = argc > 1 ? argv[1] : "loop";
  int launches = argc > 2 ? atoi(argv[2]) : 10;
  void *context[2] = {NULL, NULL}, *other = NULL;
  uint64_t to = 0, from = 0;
  int host[kItems];
  if (cuInit(0) != 0) return 3;
  uint64_t second = 0;
  int turned = 0;
  if (strcmp(mode, "turned") == 0) {
    turned = access("turned", F_OK) == 0;
    if (turned)
      remove("turned");
    else
      fclose(fopen("turned", "w"));
  }
  const int two = strcmp(mode, "two") == 0 || strcmp(mode, "turned") == 0 || strcmp(mode, "contexts") == 0;
  if (two) {
    cuCtxCreate_v2(&context[1], 0, mode[0] == 't');
    cuMemAlloc_v2(&second, sizeof host);
  }
  cuCtxCreate_v2(&context[0], 0, 0);
  if (strcmp(mode, "counts") == 0) cuLibraryLoadData(&other, "", NULL, NULL, 0, NULL, NULL, 0);
  cuModuleLoadData(&g_module, strcmp(mode, "counts") == 0 ? "managed" : "");
  if (cuMemAlloc_v2(&from, sizeof host) != 0) return 3;
  if (strcmp(mode, "managed") == 0)
    cuMemAllocManaged(&to, sizeof host, 1);
  else if (strcmp(mode, "host") == 0)
    cuMemHostAlloc((void**)&to, sizeof host, 0);
  else
    cuMemAlloc_v2(&to, sizeof host);
  for (int i = 0; i < kItems; ++i) host[i] = i;
  cuMemcpyHtoD_v2(from, host, sizeof host);
  if (strcmp(mode, "array") == 0) cuArrayCreate_v2(&other, NULL);
  if (strcmp(mode, "uneven") == 0) {
    char path[64];
    for (int i = 0;; ++i) {
      snprintf(path, sizeof path, "runs.%d", i);
      if (access(path, F_OK) == 0) continue;
      fclose(fopen(path, "w"));
      launches += i;
      break;
    }
  }
  const int graph = strncmp(mode, "graph", 5) == 0;
  if (strcmp(mode, "graph-nodes") == 0) {
    struct {
      void* f;
      unsigned g[3], b[3], shared;
      void **args, **extra, *kernel, *context;
    } node = {NULL, {16, 1, 1}, {64, 1, 1}, 0, NULL, NULL, NULL, NULL};
    void* arguments[] = {&to};
    cuModuleGetFunction(&node.f, g_module, "nodes");
    node.args = arguments;
    cuGraphAddKernelNode_v2(&other, NULL, NULL, 0, &node);
  } else if (graph) {
    cuStreamBeginCapture_v2(&other, 0);
    launch(mode[5] != '\0' ? "counting" : "add", to, from, 16, &other);
    launch("add", to, from, 8, &other);
    cuStreamEndCapture(&other, &other);
  }
  for (int i = 0; i < launches && strcmp(mode, "none") != 0; ++i) {
    if (graph && i % 2 == 1) {
      if (cuGraphLaunch(other, NULL) != 0) return 5;
      continue;
    }
    if (strcmp(mode, "regions") == 0 && i == 2) ask("roctxProfilerResume");
    if (strcmp(mode, "regions") == 0 && i == 5) ask("roctxProfilerPause");
    const unsigned blocks = strcmp(mode, "mixed") == 0 && i % 4 == 1 ? 32 : 16;
    if (strcmp(mode, "changing") == 0) {
      host[0] = i;
      cuMemcpyHtoD_v2(from, host, sizeof host);
    }
    if (strcmp(mode, "capture") == 0 && i == launches / 2) {
      cuStreamBeginCapture_v2(&other, 0);
      launch("add", to, from, 16, &other);
      cuStreamEndCapture(&other, &context[1]);
    }
    if (two) cuCtxPushCurrent_v2(context[(i + turned) % 2]);
    const char* const name = strcmp(mode, "global") == 0                ? "counting"
                             : strcmp(mode, "counts") == 0              ? "counts"
                             : strcmp(mode, "crashing") == 0            ? "crashing"
                             : strcmp(mode, "mixed") == 0 && i % 2 == 1 ? "empty"
                             : strcmp(mode, "nccl") == 0 && i % 3 == 2  ? "collective"
                                                                        : "add";
    if (strcmp(name, "collective") == 0) fake_others_take_part();
    if (launch(name, second != 0 && (i + turned) % 2 == 1 ? second : to, from, blocks, NULL) != 0) return 4;
    if (two) cuCtxPopCurrent_v2(&other);
    if (strcmp(mode, "counts") == 0) fake_host_writes();
    if (i % 3 == 2) cuMemcpyDtoH_v2(host, to, sizeof host);
    if ((strcmp(mode, "managed") == 0 || strcmp(mode, "host") == 0) && i % 2 == 1) {
      cuCtxSynchronize();
      ((int*)(uintptr_t)to)[1] += 5; /* the host writes it too */
    }
  }
  cuCtxSynchronize();
  cuMemcpyDtoH_v2(host, to, sizeof host);
  uint32_t sum = 0;
  for (int i = 0; i < kItems; ++i) sum = sum * 31 + (uint32_t)host[i];
  printf("%s %d: %u\n", mode, launches, sum);
  fflush(stdout);
  if (strcmp(mode, "hang") == 0) {
    printf("ready\n");
    fflush(stdout);
    for (;;) pause();
  }
  if (strcmp(mode, "exit") == 0) _exit(7);
  return 0;
}
