// What a launch of a CUDA graph costs under CUPTI, traced as one span or node by node, and whether a program can see a launch
// node by node now and then and be as fast as before afterwards. A bare CUPTI client; prints one line a phase.
//   graph_modes [NODES [LAUNCHES [early]]]     early: also launch a graph that was made before tracing         nvcc -O2 -arch=native -o graph_modes graph_modes.cu -lcuda -lcupti
#include <cuda_runtime.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

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
  printf("%-58s host %8.2f us  whole %8.2f us a launch; %zu spans, %zu kernels (%zu with a node)\n", name, host[4], whole[4],
         g_graphs, g_kernels, g_with_node);
  fflush(stdout);
}

static void on(CUpti_ActivityKind kind) { try_cupti(cuptiActivityEnable(kind), "enable"); }
static void off(CUpti_ActivityKind kind) { try_cupti(cuptiActivityDisable(kind), "disable"); }

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? atoi(argv[1]) : 108, launches = argc > 2 ? atoi(argv[2]) : 200;
  const CUpti_ActivityKind kernel = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, span = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  const bool early = argc > 3;
  float* x = nullptr;
  check(cudaMalloc(&x, 4096), "malloc");
  check(cudaStreamCreate(&g_stream), "stream");
  cudaGraphExec_t before = make(nodes, x);
  phase("no tracing", before, launches);
  try_cupti(cuptiActivityRegisterCallbacks(requested, completed), "callbacks");
  g_tracing = true;
  on(kernel);
  on(span);
  cudaGraphExec_t graph = make(nodes, x);
  phase("spans", graph, launches);
  off(span);
  phase("spans switched off: one launch", graph, 1);
  phase("spans switched off: more launches", graph, launches);
  on(span);
  phase("spans again", graph, launches);
  off(kernel);
  phase("spans alone, without kernels", graph, launches);
  off(span);
  phase("all off again", graph, launches);
  on(kernel);
  cudaGraphExec_t third = make(nodes, x);
  phase("node by node; graph made so", third, launches);
  on(span);
  phase("spans; graph made node by node", third, launches);
  phase("spans; the first graph", graph, launches);
  off(span);
  off(kernel);
  phase("all off at the end", third, launches);
  if (early) {
    on(kernel);
    on(span);
    phase("spans; graph made before tracing", before, launches);
  }
  return 0;
}
