// Kinds of CUDA graphs that PyTorch does not make itself: nodes added by hand, child graphs (within each other and
// within a conditional node's body too), conditional nodes, an executable graph that is updated from a second capture,
// one whose node gets another kernel, a clone, two executable graphs of one, launches from another thread. Each node is
// made within an NVTX range, named as torch's own emitter names an operator. Prints how many kernels each operator made
// in all launches: "aten::mul 30".
//   cuda_graph_kinds [LAUNCHES]      default 10
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>

#define CHECK(call)                                                                          \
  do {                                                                                       \
    const cudaError_t error = call;                                                          \
    if (error != cudaSuccess) {                                                              \
      std::fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(error)); \
      std::exit(1);                                                                          \
    }                                                                                        \
  } while (0)

namespace {

constexpr int kThreads = 256, kBlocks = 64, kTurns = 3;

__global__ void add(float* values, float by) {
  values[blockIdx.x * blockDim.x + threadIdx.x] += by;
}
__global__ void scale(float* values, float by) {
  values[blockIdx.x * blockDim.x + threadIdx.x] *= by;
}
__global__ void turn(float* values, int* turns, cudaGraphConditionalHandle handle) {
  values[blockIdx.x * blockDim.x + threadIdx.x] += 1;
  if (blockIdx.x == 0 && threadIdx.x == 0) cudaGraphSetConditional(handle, --*turns > 0);
}

struct Range {
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
};

float* g_values;
int* g_turns;
std::map<std::string, int> g_made;  // kernels of a launch, by operator, times the launches

void add_in(const char* name, cudaStream_t stream, float by) {
  const Range range(name);
  add<<<kBlocks, kThreads, 0, stream>>>(g_values, by);
}

cudaGraph_t one_captured(const char* name, cudaStream_t stream) {
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  add_in(name, stream, 1);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

cudaGraph_t captured(cudaStream_t stream, float by) {
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  add_in("aten::add", stream, by);
  {
    const Range range("aten::mul");
    scale<<<kBlocks, kThreads, 0, stream>>>(g_values, by);
  }
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

cudaGraphExec_t instantiated(cudaGraph_t graph) {
  cudaGraphExec_t made;
  CHECK(cudaGraphInstantiate(&made, graph, 0));
  return made;
}

void launch(cudaGraphExec_t graph, cudaStream_t stream, int times) {
  for (int i = 0; i < times; ++i) CHECK(cudaGraphLaunch(graph, stream));
  CHECK(cudaStreamSynchronize(stream));
}

// A kernel node made by hand, below it a child graph that was captured.
void by_hand(cudaStream_t stream, int times) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t node, child;
  {
    const Range range("aten::sigmoid");
    float by = 2;
    void* arguments[] = {&g_values, &by};
    cudaKernelNodeParams parameters{};
    parameters.func = reinterpret_cast<void*>(add);
    parameters.gridDim = dim3(kBlocks);
    parameters.blockDim = dim3(kThreads);
    parameters.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
  }
  const cudaGraph_t inner = captured(stream, 1.5f);
  CHECK(cudaGraphAddChildGraphNode(&child, graph, &node, 1, inner));
  launch(instantiated(graph), stream, times);
  g_made["aten::sigmoid"] += times;
  g_made["aten::add"] += times;
  g_made["aten::mul"] += times;
}

// Adds a conditional node whose condition is 1 at every launch; its bodies and its condition.
std::pair<const cudaGraph_t*, cudaGraphConditionalHandle> bodies_of(cudaGraph_t graph,
                                                                    cudaGraphConditionalNodeType type,
                                                                    unsigned bodies) {
  cudaGraphConditionalHandle handle;
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = handle;
  parameters.conditional.type = type;
  parameters.conditional.size = bodies;
  cudaGraphNode_t node;
#if CUDART_VERSION >= 13000
  CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
#else
  CHECK(cudaGraphAddNode(&node, graph, nullptr, 0, &parameters));
#endif
  return {parameters.conditional.phGraph_out, handle};
}

// while (--turns > 0) body: the body is captured into the graph of the conditional node.
void conditional(cudaStream_t stream, int times) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  const auto [bodies, handle] = bodies_of(graph, cudaGraphCondTypeWhile, 1);
  CHECK(cudaStreamBeginCaptureToGraph(stream, bodies[0], nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
  add_in("aten::relu", stream, 1);
  {
    const Range range("aten::cumsum");
    turn<<<kBlocks, kThreads, 0, stream>>>(g_values, g_turns, handle);
  }
  CHECK(cudaStreamEndCapture(stream, nullptr));
  const cudaGraphExec_t made = instantiated(graph);
  for (int i = 0; i < times; ++i) {
    CHECK(cudaMemcpy(g_turns, &kTurns, sizeof kTurns, cudaMemcpyHostToDevice));
    launch(made, stream, 1);
  }
  g_made["aten::relu"] += times * kTurns;
  g_made["aten::cumsum"] += times * kTurns;
}

// As servers of language models do when a size changes: captured again, and the executable graph updated in place.
void updated(cudaStream_t stream, int times) {
  const cudaGraphExec_t made = instantiated(captured(stream, 1.25f));
  launch(made, stream, times);
  cudaGraphExecUpdateResultInfo info{};
  CHECK(cudaGraphExecUpdate(made, captured(stream, 0.75f), &info));
  std::thread([&] { launch(made, stream, times); }).join();
  g_made["aten::add"] += 2 * times;
  g_made["aten::mul"] += 2 * times;
}

// A child graph whose child graph holds a kernel.
void nested(cudaStream_t stream, int times) {
  cudaGraph_t middle, outer;
  CHECK(cudaGraphCreate(&middle, 0));
  CHECK(cudaGraphCreate(&outer, 0));
  cudaGraphNode_t node;
  CHECK(cudaGraphAddChildGraphNode(&node, middle, nullptr, 0, one_captured("aten::silu", stream)));
  CHECK(cudaGraphAddChildGraphNode(&node, outer, nullptr, 0, middle));
  launch(instantiated(outer), stream, times);
  g_made["aten::silu"] += times;
}

// if (1) a child graph, else a kernel, which never runs.
void child_in_body(cudaStream_t stream, int times) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  const auto [bodies, handle] = bodies_of(graph, cudaGraphCondTypeIf, 2);
  cudaGraphNode_t child;
  CHECK(cudaGraphAddChildGraphNode(&child, bodies[0], nullptr, 0, one_captured("aten::tanh", stream)));
  CHECK(cudaStreamBeginCaptureToGraph(stream, bodies[1], nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
  add_in("aten::ceil", stream, 1);
  CHECK(cudaStreamEndCapture(stream, nullptr));
  launch(instantiated(graph), stream, times);
  g_made["aten::tanh"] += times;
}

// A clone, and two executable graphs of it.
void cloned(cudaStream_t stream, int times) {
  cudaGraph_t clone;
  CHECK(cudaGraphClone(&clone, one_captured("aten::gelu", stream)));
  launch(instantiated(clone), stream, times);
  launch(instantiated(clone), stream, times);
  g_made["aten::gelu"] += 2 * times;
}

// The kernel of a node of the executable graph becomes another one; the node stays with the operator that made it.
void changed(cudaStream_t stream, int times) {
  const cudaGraph_t graph = one_captured("aten::exp", stream);
  const cudaGraphExec_t made = instantiated(graph);
  launch(made, stream, times);
  cudaGraphNode_t node;
  size_t nodes = 1;
  CHECK(cudaGraphGetNodes(graph, &node, &nodes));
  float by = 0.5f;
  void* arguments[] = {&g_values, &by};
  cudaKernelNodeParams parameters{};
  parameters.func = reinterpret_cast<void*>(scale);
  parameters.gridDim = dim3(kBlocks);
  parameters.blockDim = dim3(kThreads);
  parameters.kernelParams = arguments;
  CHECK(cudaGraphExecKernelNodeSetParams(made, node, &parameters));
  launch(made, stream, times);
  g_made["aten::exp"] += 2 * times;
}

}  // namespace

int main(int argc, char** argv) {
  const int times = argc > 1 ? std::atoi(argv[1]) : 10;
  CHECK(cudaMalloc(&g_values, sizeof(float) * kBlocks * kThreads));
  CHECK(cudaMemset(g_values, 0, sizeof(float) * kBlocks * kThreads));
  CHECK(cudaMalloc(&g_turns, sizeof(int)));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  by_hand(stream, times);
  conditional(stream, times);
  updated(stream, times);
  nested(stream, times);
  child_in_body(stream, times);
  cloned(stream, times);
  changed(stream, times);
  CHECK(cudaDeviceSynchronize());
  for (const auto& [name, kernels] : g_made) std::printf("%s %d\n", name.c_str(), kernels);
}
