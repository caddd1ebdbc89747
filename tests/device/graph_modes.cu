// What a launch of a CUDA graph costs under CUPTI, traced as one span or node by node, and whether a program can see a launch
// node by node now and then and be as fast as before afterwards. A bare CUPTI client; prints one line a phase.
//   graph_modes [NODES [LAUNCHES]]         nvcc -O2 -arch=native -o graph_modes graph_modes.cu -lcuda -lcupti
#include <cuda_runtime.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

static bool g_tracing;
static size_t g_kernels, g_graphs, g_with_node;

static void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  printf("graph_modes: %s: %s\n", what, cudaGetErrorString(result));
  exit(1);
}
static void try_cupti(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "";
  cuptiGetResultString(result, &text);
  printf("  (%s: %s)\n", what, text);
}

static void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* records) {
  *size = 8 << 20;
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, *size));
  *records = 0;
}
static void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      ++g_kernels;
      g_with_node += reinterpret_cast<CUpti_ActivityKernel9*>(record)->graphNodeId != 0;
    }
    g_graphs += record->kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  }
  free(buffer);
}

__global__ void step(float* x) { x[threadIdx.x] = x[threadIdx.x] * 0.999f + 1.0f; }

static cudaStream_t g_stream;
static cudaGraphExec_t make(int nodes, float* x) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaStreamBeginCapture(g_stream, cudaStreamCaptureModeGlobal), "capture");
  for (int i = 0; i < nodes; ++i) step<<<1, 128, 0, g_stream>>>(x);
  check(cudaStreamEndCapture(g_stream, &graph), "end of capture");
  check(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
  return executable;
}

// Microseconds a launch: the host's part, and the whole with the device; medians of batches.
static void phase(const char* name, cudaGraphExec_t graph, int launches) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> host, whole;
  g_kernels = g_graphs = g_with_node = 0;
  for (int batch = 0; batch < 9; ++batch) {
    check(cudaStreamSynchronize(g_stream), "synchronize");
    const auto begin = Clock::now();
    for (int i = 0; i < launches; ++i) check(cudaGraphLaunch(graph, g_stream), "launch");
    const auto launched = Clock::now();
    check(cudaStreamSynchronize(g_stream), "synchronize");
    host.push_back(std::chrono::duration<double, std::micro>(launched - begin).count() / launches);
    whole.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / launches);
  }
  if (g_tracing) cuptiActivityFlushAll(0);
  std::sort(host.begin(), host.end());
  std::sort(whole.begin(), whole.end());
  printf("  %-40s host %8.2f us  whole %8.2f us a launch; %zu spans, %zu kernels (%zu with a node)\n", name, host[4], whole[4],
         g_graphs, g_kernels, g_with_node);
  fflush(stdout);
}

static void on(CUpti_ActivityKind kind) { try_cupti(cuptiActivityEnable(kind), "enable"); }
static void off(CUpti_ActivityKind kind) { try_cupti(cuptiActivityDisable(kind), "disable"); }

static float* g_x;
static int g_nodes, g_launches;
static constexpr CUpti_ActivityKind kKernel = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kSpan = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
static void attach() {
  try_cupti(cuptiActivityRegisterCallbacks(requested, completed), "callbacks");
  g_tracing = true;
}

// Each in its own process: some end in the driver.
struct Scenario {
  const char* name;
  void (*run)();
};
static const Scenario kScenarios[] = {
    {"made before CUPTI is there, then spans",
     [] {
       cudaGraphExec_t graph = make(g_nodes, g_x);
       phase("no tracing", graph, g_launches);
       attach();
       on(kKernel);
       on(kSpan);
       phase("spans", graph, g_launches);
     }},
    {"made while everything is off, then spans",
     [] {
       attach();
       cudaGraphExec_t graph = make(g_nodes, g_x);
       phase("all off", graph, g_launches);
       on(kKernel);
       on(kSpan);
       phase("spans", graph, g_launches);
       off(kKernel);
       off(kSpan);
       phase("all off again", graph, g_launches);
     }},
    {"made while everything is off, then nodes",
     [] {
       attach();
       cudaGraphExec_t graph = make(g_nodes, g_x);
       phase("all off", graph, g_launches);
       on(kKernel);
       phase("nodes", graph, g_launches);
     }},
    {"made under spans, a launch by nodes, spans again",
     [] {
       attach();
       on(kKernel);
       on(kSpan);
       cudaGraphExec_t graph = make(g_nodes, g_x);
       phase("spans", graph, g_launches);
       off(kSpan);
       phase("nodes, one launch", graph, 1);
       on(kSpan);
       phase("spans again", graph, g_launches);
       off(kKernel);
       off(kSpan);
       phase("all off", graph, g_launches);
       on(kKernel);
       on(kSpan);
       phase("spans after all was off", graph, g_launches);
     }},
    {"made by nodes, then spans",
     [] {
       attach();
       on(kKernel);
       cudaGraphExec_t graph = make(g_nodes, g_x);
       phase("nodes", graph, g_launches);
       on(kSpan);
       phase("spans", graph, g_launches);
     }},
};

int main(int argc, char** argv) {
  g_nodes = argc > 1 ? atoi(argv[1]) : 108;
  g_launches = argc > 2 ? atoi(argv[2]) : 200;
  for (const Scenario& scenario : kScenarios) {
    printf("%s\n", scenario.name);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      check(cudaMalloc(&g_x, 4096), "malloc");
      check(cudaStreamCreate(&g_stream), "stream");
      scenario.run();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) printf("  died of signal %d\n", WTERMSIG(status));
  }
  return 0;
}
