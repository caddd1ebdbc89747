// Variables that kernels change without being given their address: cuda_variables N
// A managed variable that the host changes between launches, a variable of the module that only a graph built node by
// node changes, and one whose address is handed to a kernel. Prints their values at the end.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

__managed__ unsigned shared_sum;
__device__ unsigned graph_sum, pointed_sum;

__global__ void add_shared(unsigned value) {
  atomicAdd(&shared_sum, value);
}
__global__ void add_in_graph(unsigned value) {
  atomicAdd(&graph_sum, value);
}
__global__ void add_to(unsigned* sum, unsigned value) {
  atomicAdd(sum, value);
}

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "cuda_variables: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 4;
  unsigned *pointed = nullptr, one = 1, graph_total = 0, pointed_total = 0;
  check(cudaGetSymbolAddress(reinterpret_cast<void**>(&pointed), pointed_sum), "address");
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaGraphNode_t node, before = nullptr;
  cudaKernelNodeParams description{};
  void* arguments[] = {&one};
  description.func = reinterpret_cast<void*>(add_in_graph);
  description.gridDim = dim3(2);
  description.blockDim = dim3(32);
  description.kernelParams = arguments;
  check(cudaGraphCreate(&graph, 0), "graph");
  for (int i = 0; i < 3; ++i) {
    check(cudaGraphAddKernelNode(&node, graph, before == nullptr ? nullptr : &before, before == nullptr ? 0 : 1,
                                 &description),
          "node");
    before = node;
  }
  check(cudaGraphInstantiate(&ready, graph, 0), "graph");
  for (int i = 0; i < n; ++i) {
    add_shared<<<1, 32>>>(2);
    add_to<<<1, 32>>>(pointed, 3);
    check(cudaGraphLaunch(ready, nullptr), "graph");
    check(cudaDeviceSynchronize(), "run");
    shared_sum += 5;
  }
  check(cudaMemcpyFromSymbol(&graph_total, graph_sum, sizeof graph_total), "copy");
  check(cudaMemcpyFromSymbol(&pointed_total, pointed_sum, sizeof pointed_total), "copy");
  std::printf("sums %u %u %u\n", shared_sum, graph_total, pointed_total);
  return 0;
}
