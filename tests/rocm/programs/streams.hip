// Streams, the default ones among them, a graph, and ROCTx markers. Prints what ran where, for the test to compare: streams are
// numbered in the order in which they are made, 0 is the default stream.
#include <dlfcn.h>

#include <thread>

#include "bed.h"

__host__ __device__ void touch_item(uint32_t at, uint32_t* out) {
  if (at == 0) ++*out;
}
BED_KERNEL(touch, (uint32_t * out), (out))

static uint32_t* g_count;
static int g_launched = 0;

static void launch(hipStream_t stream, int times) {
  for (int i = 0; i < times; ++i) touch<<<4, 64, 0, stream>>>(g_count);
  g_launched += times;
}

int main() {
  constexpr size_t kBytes = 1 << 20;
  using Push = int (*)(const char*);
  using Pop = int (*)();
  void* const roctx = dlopen("libroctx64.so.4", RTLD_LAZY);
  const auto push = roctx != nullptr ? reinterpret_cast<Push>(dlsym(roctx, "roctxRangePushA")) : nullptr;
  const auto pop = roctx != nullptr ? reinterpret_cast<Pop>(dlsym(roctx, "roctxRangePop")) : nullptr;
  char *device = nullptr, *host = nullptr;
  HIP(hipHostMalloc(&g_count, sizeof *g_count));
  HIP(hipHostMalloc(&host, kBytes));
  HIP(hipMalloc(&device, kBytes));
  *g_count = 0;
  hipStream_t streams[5];
  for (hipStream_t& stream : streams) HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  if (push != nullptr) push("streams");
  for (int number = 0; number < 5; ++number) launch(streams[number], number + 1);
  launch(nullptr, 2);
  HIP(hipDeviceSynchronize());
  if (pop != nullptr) pop();
  for (int i = 0; i < 2; ++i)
    HIP(hipMemcpyAsync(device, host, kBytes, hipMemcpyHostToDevice, streams[1]));
  HIP(hipMemcpyAsync(host, device, kBytes, hipMemcpyDeviceToHost, streams[2]));
  HIP(hipDeviceSynchronize());
  // One after the other, so that the first one's stream has the lower number.
  for (int number = 0; number < 2; ++number)
    std::thread([] {
      HIP(hipSetDevice(0));
      launch(hipStreamPerThread, 3);
      HIP(hipStreamSynchronize(hipStreamPerThread));
    }).join();
  HIP(hipStreamDestroy(streams[0]));
  HIP(hipStreamCreate(&streams[0]));
  launch(streams[0], 1);

  hipGraph_t graph;
  hipGraphExec_t ready;
  HIP(hipStreamBeginCapture(streams[3], hipStreamCaptureModeGlobal));
  HIP(hipMemcpyAsync(device, host, kBytes, hipMemcpyHostToDevice, streams[3]));
  launch(streams[3], 3);
  g_launched -= 3;
  HIP(hipStreamEndCapture(streams[3], &graph));
  HIP(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
  for (int i = 0; i < 2; ++i) {
    HIP(hipGraphLaunch(ready, streams[4]));
    HIP(hipStreamSynchronize(streams[4]));
    g_launched += 3;
  }
  HIP(hipDeviceSynchronize());
  printf("kernels %d\ncounted %u\n", g_launched, *g_count);
  return *g_count == 0;
}
