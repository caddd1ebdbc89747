/* A program on the stand-in driver that works when it is told to: fake_steps WAY reads commands from its standard input and
 * answers each with a line. WAY is where it keeps the driver's functions: table (filled by cuGetProcAddress, in its own data,
 * as CUDA's runtime does), dlsym (the same, filled by dlsym), heap (in memory that it has allocated); built with LINKED it is
 * linked to the driver, and its calls are bound when they are made first. Commands:
 *   run N       N launches of one kernel, a tenth of another, copies and waits
 *   capture     captures 5 launches, answers "capturing", reads a line, captures 5 more and launches the graph 20 times
 *   fork N      a child makes N launches; it says whether it could
 *   worker      makes a child that goes on: it does what "work" tells it. Answers with its number
 *   work N      N launches by that child
 *   again N     gets cuLaunchKernel anew, by dlsym and cuGetProcAddress, keeps it on the heap, and makes N launches by each
 *   kept N      N launches by each of those
 *   exec        becomes another program
 *   report      what the driver counted */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*Launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                      void**);
typedef int (*Address)(const char*, void**, int, unsigned long long, int*);
struct Functions {
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
};
static void* g_driver;
static Address g_address;

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
#define CU(member, name) name
#else
static struct Functions g_table;
static struct Functions* cu = &g_table;
#define CU(member, name) cu->member
static void* get(const char* name, const char* version) {
  char symbol[64];
  void* found = NULL;
  int status;
  if (g_address != NULL) {
    g_address(name, &found, 12000, 0, &status);
    return found;
  }
  snprintf(symbol, sizeof symbol, "%s%s", name, version);
  return dlsym(g_driver, symbol);
}
static void fill(const char* way) {
  int status;
  if (strcmp(way, "heap") == 0) cu = malloc(sizeof *cu);
  if (strcmp(way, "table") == 0)
    ((Address)dlsym(g_driver, "cuGetProcAddress_v2"))("cuGetProcAddress", (void**)&g_address, 12000, 0, &status);
  cu->launch = (Launch)get("cuLaunchKernel", "");
  cu->function = (int (*)(void**, void*, const char*))get("cuModuleGetFunction", "");
  cu->stream = (int (*)(void**, unsigned))get("cuStreamCreate", "");
  cu->wait = (int (*)(void*))get("cuStreamSynchronize", "");
  cu->begin = (int (*)(void*, int))get("cuStreamBeginCapture", "_v2");
  cu->end = (int (*)(void*, void**))get("cuStreamEndCapture", "");
  cu->instantiate = (int (*)(void**, void*, unsigned long long))get("cuGraphInstantiateWithFlags", "");
  cu->graph = (int (*)(void*, void*))get("cuGraphLaunch", "");
  cu->allocate = (int (*)(unsigned long long*, size_t))get("cuMemAlloc", "_v2");
  cu->to_device = (int (*)(unsigned long long, const void*, size_t, void*))get("cuMemcpyHtoDAsync", "_v2");
  cu->to_host = (int (*)(void*, unsigned long long, size_t))get("cuMemcpyDtoH", "_v2");
}
#endif

static void *g_often, *g_seldom;
static int launch(void* kernel, void* stream) {
  return CU(launch, cuLaunchKernel)(kernel, 16, 1, 1, 256, 1, 1, 0, stream, NULL, NULL);
}
static void run(long count) {
  static char bytes[4096];
  unsigned long long at = 0;
  CU(allocate, cuMemAlloc_v2)(&at, 1 << 20);
  for (long i = 0; i < count; ++i) {
    launch(g_often, NULL);
    if (i % 10 != 0) continue;
    launch(g_seldom, NULL);
    CU(to_device, cuMemcpyHtoDAsync_v2)(at, bytes, 4000, NULL);
    CU(to_host, cuMemcpyDtoH_v2)(bytes, at, 100);
    CU(wait, cuStreamSynchronize)(NULL);
  }
}
static void capture(void) {
  void *stream = NULL, *graph = NULL, *exec = NULL;
  char line[64];
  CU(stream, cuStreamCreate)(&stream, 0);
  CU(begin, cuStreamBeginCapture_v2)(stream, 0);
  for (int i = 0; i < 5; ++i) launch(g_often, stream);
  puts("capturing");
  if (fgets(line, sizeof line, stdin) == NULL) return;
  for (int i = 0; i < 5; ++i) launch(g_often, stream);
  CU(end, cuStreamEndCapture)(stream, &graph);
  CU(instantiate, cuGraphInstantiateWithFlags)(&exec, graph, 0);
  for (int i = 0; i < 20; ++i) CU(graph, cuGraphLaunch)(exec, stream);
}
static int g_to_worker[2], g_from_worker[2];
static long make_worker(void) {
  if (pipe(g_to_worker) != 0 || pipe(g_from_worker) != 0) return 0;
  const pid_t child = fork();
  if (child != 0) return child;
  close(g_to_worker[1]);
  for (long count; read(g_to_worker[0], &count, sizeof count) == sizeof count;) {
    for (long i = 0; i < count; ++i) launch(g_often, NULL);
    if (write(g_from_worker[1], &count, sizeof count) != sizeof count) break;
  }
  _exit(0);
}
static void work(long count) {
  if (write(g_to_worker[1], &count, sizeof count) != sizeof count ||
      read(g_from_worker[0], &count, sizeof count) != sizeof count)
    puts("there is no worker");
}
static Launch* g_again;
static void kept(long count) {
  for (int i = 0; i < 2; ++i)
    for (long k = 0; k < count; ++k) g_again[i](g_often, 16, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL);
}
static void again(void) {
  int status;
  g_again = malloc(2 * sizeof *g_again);
  g_again[0] = (Launch)dlsym(g_driver, "cuLaunchKernel");
  ((Address)dlsym(g_driver, "cuGetProcAddress_v2"))("cuLaunchKernel", (void**)&g_again[1], 12000, 0, &status);
}

int main(int argc, char** argv) {
  char line[64];
  if (argc < 2) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  g_driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (g_driver == NULL) return 2;
#ifndef LINKED
  fill(argv[1]);
#endif
  CU(function, cuModuleGetFunction)(&g_often, NULL, "_Z10often_1000");
  CU(function, cuModuleGetFunction)(&g_seldom, NULL, "seldom_50000");
  puts("ready");
  while (fgets(line, sizeof line, stdin) != NULL) {
    const long count = strchr(line, ' ') != NULL ? atol(strchr(line, ' ')) : 0;
    if (strncmp(line, "run", 3) == 0) {
      run(count);
    } else if (strncmp(line, "capture", 7) == 0) {
      capture();
    } else if (strncmp(line, "fork", 4) == 0) {
      int status = 0;
      const pid_t child = fork();
      if (child == 0) {
        for (long i = 0; i < count; ++i)
          if (launch(g_often, NULL) != 0) _exit(1);
        _exit(0);
      }
      waitpid(child, &status, 0);
      puts(status == 0 ? "the child launched" : "the child failed");
      continue;
    } else if (strncmp(line, "worker", 6) == 0) {
      printf("%ld\n", make_worker());
      continue;
    } else if (strncmp(line, "work", 4) == 0) {
      work(count);
    } else if (strncmp(line, "again", 5) == 0) {
      again();
      kept(count);
    } else if (strncmp(line, "kept", 4) == 0) {
      kept(count);
    } else if (strncmp(line, "exec", 4) == 0) {
      execl("/bin/sleep", "sleep", "60", (char*)NULL);
    } else if (strncmp(line, "report", 6) == 0) {
      ((void (*)(void))dlsym(g_driver, "fake_report"))();
      continue;
    }
    puts("done");
  }
  return 0;
}
