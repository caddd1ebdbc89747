// What CUPTI's range profiler costs: setting a configuration, starting and stopping a pass, a launch in it, reading, by
// the number of ranges; and whether fills and copies inside a session become ranges, and what a sweep of the L2 before a
// kernel does to its DRAM traffic. Prints a table; the batches of src/capture/counter follow from it.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <stdio.h>
#include <stdlib.h>

#include <chrono>
#include <vector>

#define PARAMETERS(type, name)     \
  CUpti_##type##_Params name = {}; \
  name.structSize = CUpti_##type##_Params_STRUCT_SIZE
static bool check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return true;
  const char* text = "";
  cuptiGetResultString(result, &text);
  printf("  %s: %s\n", what, text);
  return false;
}
static double now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
__global__ void copy_kernel(const float4* from, float4* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}
__global__ void sweep_kernel(const uint4* from, size_t n, unsigned* to) {
  unsigned sum = 0;
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const uint4 v = __ldcg(from + i);
    sum |= v.x | v.y | v.z | v.w;
  }
  if (sum == 12345u) *to = sum;
}
static const char* g_chip;
static CUpti_RangeProfiler_Object* g_profiler;
struct Config {
  std::vector<const char*> metrics;
  std::vector<uint8_t> image;
  size_t passes;
  CUpti_Profiler_Host_Object* host;
};
static Config make(std::vector<const char*> metrics) {
  Config c;
  c.metrics = metrics;
  PARAMETERS(Profiler_Host_Initialize, host);
  host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  host.pChipName = g_chip;
  check(cuptiProfilerHostInitialize(&host), "host");
  c.host = host.pHostObject;
  PARAMETERS(Profiler_Host_ConfigAddMetrics, add);
  add.pHostObject = c.host;
  add.ppMetricNames = c.metrics.data();
  add.numMetrics = c.metrics.size();
  check(cuptiProfilerHostConfigAddMetrics(&add), "metrics");
  PARAMETERS(Profiler_Host_GetConfigImageSize, size);
  size.pHostObject = c.host;
  check(cuptiProfilerHostGetConfigImageSize(&size), "size");
  c.image.resize(size.configImageSize);
  PARAMETERS(Profiler_Host_GetConfigImage, image);
  image.pHostObject = c.host;
  image.configImageSize = c.image.size();
  image.pConfigImage = c.image.data();
  check(cuptiProfilerHostGetConfigImage(&image), "config");
  PARAMETERS(Profiler_Host_GetNumOfPasses, passes);
  passes.configImageSize = c.image.size();
  passes.pConfigImage = c.image.data();
  check(cuptiProfilerHostGetNumOfPasses(&passes), "passes");
  c.passes = passes.numOfPasses;
  return c;
}
static std::vector<uint8_t> g_data;
static void image_for(Config& c, size_t ranges) {
  PARAMETERS(RangeProfiler_GetCounterDataSize, data);
  data.pRangeProfilerObject = g_profiler;
  data.pMetricNames = c.metrics.data();
  data.numMetrics = c.metrics.size();
  data.maxNumOfRanges = ranges;
  data.maxNumRangeTreeNodes = ranges;
  check(cuptiRangeProfilerGetCounterDataSize(&data), "data size");
  g_data.assign(data.counterDataSize, 0);
}
static void fresh() {
  PARAMETERS(RangeProfiler_CounterDataImage_Initialize, f);
  f.pRangeProfilerObject = g_profiler;
  f.pCounterData = g_data.data();
  f.counterDataSize = g_data.size();
  check(cuptiRangeProfilerCounterDataImageInitialize(&f), "image");
}
static bool set(Config& c, size_t ranges, CUpti_ProfilerReplayMode mode) {
  PARAMETERS(RangeProfiler_SetConfig, s);
  s.pRangeProfilerObject = g_profiler;
  s.pConfig = c.image.data();
  s.configSize = c.image.size();
  s.pCounterDataImage = g_data.data();
  s.counterDataImageSize = g_data.size();
  s.range = CUPTI_AutoRange;
  s.replayMode = mode;
  s.maxRangesPerPass = ranges;
  s.numNestingLevels = s.minNestingLevel = s.targetNestingLevel = 1;
  return check(cuptiRangeProfilerSetConfig(&s), "set config");
}
static bool start() {
  PARAMETERS(RangeProfiler_Start, s);
  s.pRangeProfilerObject = g_profiler;
  return check(cuptiRangeProfilerStart(&s), "start");
}
static bool stop() {
  PARAMETERS(RangeProfiler_Stop, s);
  s.pRangeProfilerObject = g_profiler;
  return check(cuptiRangeProfilerStop(&s), "stop");
}
static bool decode() {
  PARAMETERS(RangeProfiler_DecodeData, d);
  d.pRangeProfilerObject = g_profiler;
  const bool good = check(cuptiRangeProfilerDecodeData(&d), "decode");
  if (d.numOfRangeDropped) printf("  dropped %zu\n", d.numOfRangeDropped);
  return good;
}
static size_t ranges_in() {
  PARAMETERS(RangeProfiler_GetCounterDataInfo, i);
  i.pCounterDataImage = g_data.data();
  i.counterDataImageSize = g_data.size();
  check(cuptiRangeProfilerGetCounterDataInfo(&i), "info");
  return i.numTotalRanges;
}
static void print_values(Config& c) {
  const size_t n = ranges_in();
  printf("    %zu ranges:", n);
  for (size_t r = 0; r < n && r < 12; ++r) {
    std::vector<double> v(c.metrics.size());
    PARAMETERS(Profiler_Host_EvaluateToGpuValues, e);
    e.pHostObject = c.host;
    e.pCounterDataImage = g_data.data();
    e.counterDataImageSize = g_data.size();
    e.rangeIndex = r;
    e.ppMetricNames = c.metrics.data();
    e.numMetrics = c.metrics.size();
    e.pMetricValues = v.data();
    if (!check(cuptiProfilerHostEvaluateToGpuValues(&e), "evaluate")) return;
    printf(" [");
    for (size_t i = 0; i < v.size() && i < 4; ++i) printf("%s%.0f", i ? " " : "", v[i]);
    printf("]");
  }
  printf("\n");
}

int main() {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  constexpr size_t kItems = 1 << 20, kSweep = 128u << 20;
  float4 *x, *y;
  uint4* sweep;
  unsigned* sink;
  cudaMalloc(&x, kItems * 16), cudaMalloc(&y, kItems * 16), cudaMalloc(&sweep, kSweep), cudaMalloc(&sink, 4);
  cudaMemset(x, 0, kItems * 16), cudaMemset(sweep, 0, kSweep);
  const auto work = [&] { copy_kernel<<<kItems / 256, 256>>>(x, y, kItems); };
  work();
  cudaDeviceSynchronize();
  PARAMETERS(Profiler_Initialize, initialize);
  check(cuptiProfilerInitialize(&initialize), "initialize");
  PARAMETERS(Device_GetChipName, chip);
  check(cuptiDeviceGetChipName(&chip), "chip");
  g_chip = chip.pChipName;
  CUcontext context;
  cuCtxGetCurrent(&context);
  PARAMETERS(RangeProfiler_Enable, enable);
  enable.ctx = context;
  double t = now();
  check(cuptiRangeProfilerEnable(&enable), "enable");
  g_profiler = enable.pRangeProfilerObject;
  printf("enable %.1f ms\n", now() - t);
  Config one = make({"dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum", "lts__t_sectors.sum"});
  Config many = make({"dram__bytes_read.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                      "lts__throughput.avg.pct_of_peak_sustained_elapsed", "lts__t_sector_hit_rate.pct", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                      "l1tex__t_sector_hit_rate.pct", "sm__inst_executed_pipe_lsu.sum", "gpu__time_duration.sum", "sm__warps_active.avg.pct_of_peak_sustained_active"});
  printf("one: %zu passes; many: %zu passes\n", one.passes, many.passes);
  struct Case { Config* config; size_t ranges, launches; CUpti_ProfilerReplayMode mode; const char* name; };
  const Case cases[] = {{&one, 8, 8, CUPTI_UserReplay, "one user"},        {&one, 64, 64, CUPTI_UserReplay, "one user"},
                        {&one, 64, 64, CUPTI_ApplicationReplay, "one app"}, {&one, 256, 256, CUPTI_UserReplay, "one user"},
                        {&one, 1024, 200, CUPTI_UserReplay, "one user"},    {&one, 16, 16, CUPTI_KernelReplay, "one kernel"},
                        {&many, 8, 8, CUPTI_UserReplay, "many user"},       {&many, 32, 32, CUPTI_UserReplay, "many user"},
                        {&many, 64, 64, CUPTI_UserReplay, "many user"},     {&many, 64, 8, CUPTI_UserReplay, "many user"},
                        {&many, 128, 32, CUPTI_UserReplay, "many user"},    {&many, 16, 8, CUPTI_KernelReplay, "many kernel"}};
  for (const Case& c : cases) {
    Config& config = *c.config;
    image_for(config, c.ranges);
    for (int round = 0; round < 2; ++round) {
      double t0 = now();
      fresh();
      const double f = now() - t0;
      t0 = now();
      if (!set(config, c.ranges, c.mode)) break;
      const double s = now() - t0;
      printf("%-11s ranges %4zu image %6zu KB: fresh %.1f set %.1f |", c.name, c.ranges, g_data.size() >> 10, f, s);
      const size_t passes = c.mode == CUPTI_KernelReplay ? 1 : config.passes;
      double starts = 0, stops = 0, launches = 0;
      bool good = true;
      for (size_t p = 0; p < passes && good; ++p) {
        t0 = now();
        good = start();
        const double t1 = now();
        for (size_t i = 0; i < c.launches; ++i) work();
        cudaDeviceSynchronize();
        const double t2 = now();
        good = good && stop();
        const double t3 = now();
        starts += t1 - t0, launches += t2 - t1, stops += t3 - t2;
        if (p < 3) printf(" (%.1f %.2f %.1f)", t1 - t0, (t2 - t1) / c.launches, t3 - t2);
      }
      t0 = now();
      decode();
      printf(" | mean start %.1f launch %.3f stop %.1f, decode %.1f, ranges %zu\n", starts / passes, launches / passes / c.launches, stops / passes, now() - t0, ranges_in());
    }
  }
  // Starting again without setting the configuration again.
  image_for(one, 64);
  fresh();
  if (set(one, 64, CUPTI_UserReplay))
    for (int round = 0; round < 3; ++round) {
      double t0 = now();
      if (!start()) break;
      const double t1 = now();
      for (int i = 0; i < 8; ++i) work();
      cudaDeviceSynchronize();
      const double t2 = now();
      if (!stop()) break;
      const double t3 = now();
      decode();
      printf("again without set: start %.1f launch %.3f stop %.1f decode %.1f ranges %zu\n", t1 - t0, (t2 - t1) / 8, t3 - t2, now() - t3, ranges_in());
    }
  // What becomes a range, and what a sweep does.
  const char* names[] = {"nothing", "fill 128 MB", "copy 64 MB within the device", "sweep kernel", "fill, sweep kernel", "copies of 64 x 1 MB to one place"};
  for (int kind = 0; kind < 6; ++kind) {
    image_for(one, 64);
    fresh();
    if (!set(one, 64, CUPTI_UserReplay) || !start()) break;
    const double t0 = now();
    for (int i = 0; i < 4; ++i) {
      if (kind == 1 || kind == 4) cudaMemsetAsync(sweep, 0, kSweep);
      if (kind == 2) cudaMemcpyAsync(reinterpret_cast<char*>(sweep) + kSweep / 2, sweep, kSweep / 2, cudaMemcpyDeviceToDevice);
      if (kind == 3 || kind == 4) sweep_kernel<<<132 * 8, 256>>>(sweep, kSweep / 16, sink);
      if (kind == 5)
        for (int part = 0; part < 64; ++part) cudaMemcpyAsync(sweep, reinterpret_cast<char*>(sweep) + (part + 1 << 20), 1 << 20, cudaMemcpyDeviceToDevice);
      work();
    }
    cudaDeviceSynchronize();
    const double took = (now() - t0) / 4;
    stop();
    decode();
    printf("%s before each copy of 16 MB: %.2f ms\n", names[kind], took);
    print_values(one);
  }
  // Calls that a program makes beside launches.
  image_for(one, 64);
  fresh();
  if (set(one, 64, CUPTI_UserReplay) && start()) {
    std::vector<char> host(1 << 20);
    work();
    cudaMemcpy(host.data(), x, host.size(), cudaMemcpyDeviceToHost);
    work();
    cudaMemcpy(x, host.data(), host.size(), cudaMemcpyHostToDevice);
    void* more;
    cudaMalloc(&more, 1 << 20);
    cudaFree(more);
    work();
    stop();
    decode();
    printf("with copies from and to the host and an allocation in between:\n");
    print_values(one);
  }
  return 0;
}
