// Works until it is told to end (SIGTERM): kernels on two streams, copies and, with "graph", launches of a graph made
// before. Prints "ready" when all is made and, at its end, the number of rounds and what they computed.
//   attach [PAUSE IN US] [graph]
#include <csignal>
#include <unistd.h>

#include "bed.h"

__host__ __device__ void mix_item(uint32_t at, uint32_t* out, uint32_t size, uint32_t round) {
  if (at < size) out[at] = out[at] * 31 + at + round;
}
BED_KERNEL(mix, (uint32_t * out, uint32_t size, uint32_t round), (out, size, round))
__host__ __device__ void step_item(uint32_t at, uint32_t* out) {
  if (at == 0) out[0] = out[0] * 17 + 3;
}
BED_KERNEL(step, (uint32_t * out), (out))

static volatile std::sig_atomic_t g_stop = 0;

int main(int argc, char** argv) {
  constexpr uint32_t kSize = 1024;
  constexpr size_t kBytes = 1 << 18;  // HIP makes smaller copies by kernels of its own, which the bed only times
  const int pause = argc > 1 ? atoi(argv[1]) : 1000;
  const bool with_graph = argc > 2 && strcmp(argv[2], "graph") == 0;
  signal(SIGTERM, [](int) { g_stop = 1; });
  uint32_t *device = nullptr, *other = nullptr, *host = nullptr;
  HIP(hipMalloc(&device, kBytes));
  HIP(hipMalloc(&other, kBytes));
  HIP(hipHostMalloc(&host, kBytes));
  memset(host, 0, kBytes);
  HIP(hipMemcpy(device, host, kBytes, hipMemcpyHostToDevice));
  HIP(hipMemcpy(other, host, kBytes, hipMemcpyHostToDevice));
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  hipGraph_t graph = nullptr;
  hipGraphExec_t ready = nullptr;
  if (with_graph) {
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    for (int i = 0; i < 3; ++i) step<<<1, 64, 0, stream>>>(other);
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
  }
  mix<<<kSize / 64, 64>>>(device, kSize, 0);
  HIP(hipDeviceSynchronize());
  puts("ready");
  fflush(stdout);
  uint32_t round = 0;
  for (; g_stop == 0; ++round) {
    mix<<<kSize / 64, 64>>>(device, kSize, round);
    step<<<1, 64, 0, stream>>>(other);
    if (with_graph) HIP(hipGraphLaunch(ready, stream));
    HIP(hipMemcpyAsync(host, other, kBytes, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipDeviceSynchronize());
    if (pause != 0) usleep(static_cast<useconds_t>(pause));
  }
  HIP(hipMemcpy(host, device, kBytes, hipMemcpyDeviceToHost));
  uint32_t expected[kSize] = {}, stepped = 0;
  mix_item(0, expected, kSize, 0);
  for (uint32_t at = 1; at < kSize; ++at) mix_item(at, expected, kSize, 0);
  for (uint32_t done = 0; done < round; ++done) {
    for (uint32_t at = 0; at < kSize; ++at) mix_item(at, expected, kSize, done);
    for (int i = 0; i < (with_graph ? 4 : 1); ++i) step_item(0, &stepped);
  }
  const bool right = memcmp(expected, host, sizeof expected) == 0;
  HIP(hipMemcpy(host, other, kBytes, hipMemcpyDeviceToHost));
  printf("%u rounds: %s\n", round, right && host[0] == stepped ? "right" : "wrong");
  return 0;
}
