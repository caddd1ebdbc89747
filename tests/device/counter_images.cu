// Records what a test of evaluation needs from a machine with several GPUs: for each of two a counter data image of CUPTI's
// range profiler with two launches of a kernel that executes 6144 warp instructions.
//   nvcc -arch=native -o counter_images counter_images.cu -lcupti -lcuda && ./counter_images FOLDER
// leaves gpu0.image and gpu1.image there; the test has them compressed with zstd.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define PARAMETERS(type, name)     \
  CUpti_##type##_Params name = {}; \
  name.structSize = CUpti_##type##_Params_STRUCT_SIZE

static void check(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "counter_images: %s: error %d\n", what, result);
  std::exit(1);
}

__global__ void add(float* to) {
  to[threadIdx.x + blockIdx.x * blockDim.x] += 1;
}

int main(int argc, char** argv) {
  const char* metric = "smsp__inst_executed.sum";
  constexpr size_t kRanges = 2;
  std::vector<uint8_t> config;
  for (int gpu = 0; gpu < 2; ++gpu) {
    check(cudaSetDevice(gpu), "a second GPU");
    float* memory = nullptr;
    check(cudaMalloc(&memory, 1 << 20), "malloc");
    PARAMETERS(Profiler_Initialize, initialize);
    check(cuptiProfilerInitialize(&initialize), "initialize");
    PARAMETERS(Device_GetChipName, chip);
    chip.deviceIndex = static_cast<size_t>(gpu);
    check(cuptiDeviceGetChipName(&chip), "chip");
    if (config.empty()) {
      PARAMETERS(Profiler_Host_Initialize, host);
      host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
      host.pChipName = chip.pChipName;
      check(cuptiProfilerHostInitialize(&host), "host");
      PARAMETERS(Profiler_Host_ConfigAddMetrics, metrics);
      metrics.pHostObject = host.pHostObject;
      metrics.ppMetricNames = &metric;
      metrics.numMetrics = 1;
      check(cuptiProfilerHostConfigAddMetrics(&metrics), "metric");
      PARAMETERS(Profiler_Host_GetConfigImageSize, size);
      size.pHostObject = host.pHostObject;
      check(cuptiProfilerHostGetConfigImageSize(&size), "size");
      config.resize(size.configImageSize);
      PARAMETERS(Profiler_Host_GetConfigImage, image);
      image.pHostObject = host.pHostObject;
      image.configImageSize = config.size();
      image.pConfigImage = config.data();
      check(cuptiProfilerHostGetConfigImage(&image), "config");
    }
    CUcontext context;
    check(cuCtxGetCurrent(&context), "context");
    PARAMETERS(RangeProfiler_Enable, enable);
    enable.ctx = context;
    check(cuptiRangeProfilerEnable(&enable), "enable");
    PARAMETERS(RangeProfiler_GetCounterDataSize, size);
    size.pRangeProfilerObject = enable.pRangeProfilerObject;
    size.pMetricNames = &metric;
    size.numMetrics = 1;
    size.maxNumOfRanges = size.maxNumRangeTreeNodes = kRanges;
    check(cuptiRangeProfilerGetCounterDataSize(&size), "data size");
    std::vector<uint8_t> data(size.counterDataSize);
    PARAMETERS(RangeProfiler_CounterDataImage_Initialize, fresh);
    fresh.pRangeProfilerObject = enable.pRangeProfilerObject;
    fresh.pCounterData = data.data();
    fresh.counterDataSize = data.size();
    check(cuptiRangeProfilerCounterDataImageInitialize(&fresh), "image");
    PARAMETERS(RangeProfiler_SetConfig, set);
    set.pRangeProfilerObject = enable.pRangeProfilerObject;
    set.pConfig = config.data();
    set.configSize = config.size();
    set.pCounterDataImage = data.data();
    set.counterDataImageSize = data.size();
    set.range = CUPTI_AutoRange;
    set.replayMode = CUPTI_UserReplay;
    set.maxRangesPerPass = kRanges;
    set.numNestingLevels = set.minNestingLevel = set.targetNestingLevel = 1;
    check(cuptiRangeProfilerSetConfig(&set), "set config");
    PARAMETERS(RangeProfiler_Start, start);
    start.pRangeProfilerObject = enable.pRangeProfilerObject;
    check(cuptiRangeProfilerStart(&start), "start");
    for (size_t i = 0; i < kRanges; ++i) add<<<128, 128>>>(memory);
    PARAMETERS(RangeProfiler_Stop, stop);
    stop.pRangeProfilerObject = enable.pRangeProfilerObject;
    check(cuptiRangeProfilerStop(&stop), "stop");
    PARAMETERS(RangeProfiler_DecodeData, decode);
    decode.pRangeProfilerObject = enable.pRangeProfilerObject;
    check(cuptiRangeProfilerDecodeData(&decode), "decode");
    const std::string path = std::string(argc > 1 ? argv[1] : ".") + "/gpu" + std::to_string(gpu) + ".image";
    FILE* const file = std::fopen(path.c_str(), "wb");
    check(file == nullptr || std::fwrite(data.data(), 1, data.size(), file) != data.size() || std::fclose(file) != 0, path.c_str());
    std::printf("%s: %zu bytes\n", path.c_str(), data.size());
  }
  return 0;
}
