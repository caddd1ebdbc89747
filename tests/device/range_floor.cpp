// The floor that multiplexing is measured against: one single-pass session of CUPTI's range profiler over every launch
// of a program, with nothing done with the counters. Loaded by CUDA_INJECTION64_PATH; starts with the first launch and
// says on stderr how many milliseconds that took.
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <chrono>
#include <vector>

namespace {

const char* g_metrics[] = {"smsp__inst_executed.sum", "gpu__time_duration.sum"};
std::vector<uint8_t> g_config, g_image;
CUpti_RangeProfiler_Object* g_profiler = nullptr;
CUpti_SubscriberHandle g_subscriber;
constexpr size_t kRanges = 2048;

#define PARAMETERS(type, name)     \
  CUpti_##type##_Params name = {}; \
  name.structSize = CUpti_##type##_Params_STRUCT_SIZE

void check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "";
  cuptiGetResultString(result, &text);
  fprintf(stderr, "range_floor: %s: %s\n", what, text);
  exit(1);
}

void begin(CUcontext context) {
  PARAMETERS(Profiler_Initialize, initialize);
  check(cuptiProfilerInitialize(&initialize), "initialize");
  PARAMETERS(Device_GetChipName, chip);
  check(cuptiDeviceGetChipName(&chip), "chip");
  PARAMETERS(Profiler_Host_Initialize, host);
  host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  host.pChipName = chip.pChipName;
  check(cuptiProfilerHostInitialize(&host), "host");
  PARAMETERS(Profiler_Host_ConfigAddMetrics, add);
  add.pHostObject = host.pHostObject;
  add.ppMetricNames = g_metrics;
  add.numMetrics = 2;
  check(cuptiProfilerHostConfigAddMetrics(&add), "metrics");
  PARAMETERS(Profiler_Host_GetConfigImageSize, size);
  size.pHostObject = host.pHostObject;
  check(cuptiProfilerHostGetConfigImageSize(&size), "size");
  g_config.resize(size.configImageSize);
  PARAMETERS(Profiler_Host_GetConfigImage, image);
  image.pHostObject = host.pHostObject;
  image.configImageSize = g_config.size();
  image.pConfigImage = g_config.data();
  check(cuptiProfilerHostGetConfigImage(&image), "config");
  PARAMETERS(RangeProfiler_Enable, enable);
  enable.ctx = context;
  check(cuptiRangeProfilerEnable(&enable), "enable");
  g_profiler = enable.pRangeProfilerObject;
  PARAMETERS(RangeProfiler_GetCounterDataSize, data);
  data.pRangeProfilerObject = g_profiler;
  data.pMetricNames = g_metrics;
  data.numMetrics = 2;
  data.maxNumOfRanges = kRanges;
  data.maxNumRangeTreeNodes = kRanges;
  check(cuptiRangeProfilerGetCounterDataSize(&data), "data size");
  g_image.resize(data.counterDataSize);
  PARAMETERS(RangeProfiler_CounterDataImage_Initialize, fresh);
  fresh.pRangeProfilerObject = g_profiler;
  fresh.pCounterData = g_image.data();
  fresh.counterDataSize = g_image.size();
  check(cuptiRangeProfilerCounterDataImageInitialize(&fresh), "image");
  PARAMETERS(RangeProfiler_SetConfig, config);
  config.pRangeProfilerObject = g_profiler;
  config.pConfig = g_config.data();
  config.configSize = g_config.size();
  config.pCounterDataImage = g_image.data();
  config.counterDataImageSize = g_image.size();
  config.range = CUPTI_AutoRange;
  config.replayMode = CUPTI_ApplicationReplay;
  config.maxRangesPerPass = kRanges;
  config.numNestingLevels = config.minNestingLevel = config.targetNestingLevel = 1;
  check(cuptiRangeProfilerSetConfig(&config), "set config");
  PARAMETERS(RangeProfiler_Start, start);
  start.pRangeProfilerObject = g_profiler;
  check(cuptiRangeProfilerStart(&start), "start");
}

bool g_only_callbacks = false;  // RANGE_FLOOR_CALLBACKS: nothing is profiled, launches are only reported

void callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const CUpti_CallbackData* data) {
  if (data->callbackSite != CUPTI_API_ENTER || g_profiler != nullptr || g_only_callbacks) return;
  const auto start = std::chrono::steady_clock::now();
  begin(data->context);
  fprintf(stderr, "range_floor: started in %.3f ms\n",
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  g_only_callbacks = getenv("RANGE_FLOOR_CALLBACKS") != nullptr;
  check(cuptiSubscribe(&g_subscriber, reinterpret_cast<CUpti_CallbackFunc>(callback), nullptr), "subscribe");
  for (const CUpti_CallbackId id : {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx})
    cuptiEnableCallback(1, g_subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
  return 1;
}
