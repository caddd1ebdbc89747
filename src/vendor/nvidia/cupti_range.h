// CUPTI's range profiler as far as the in-process half of counter collection uses it, declared here so that no NVIDIA
// header is needed to build; tests/vendor/nvidia/profiler_abi_test.cpp compares with the headers if they are installed.
// Every structure begins with its size up to its last field, which tells CUPTI its version.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::vendor::cupti::range {

using Profiler = void*;  // CUpti_RangeProfiler_Object*

struct Initialize {  // CUpti_Profiler_Initialize_Params
  size_t size;
  void* priv;
};
struct Enable {
  size_t size;
  void* priv;
  void* context;
  Profiler profiler;
};
struct Disable {  // also Start, PopRange
  size_t size;
  void* priv;
  Profiler profiler;
};
struct PushRange {
  size_t size;
  void* priv;
  Profiler profiler;
  const char* name;
};
struct SetConfig {
  size_t size;
  void* priv;
  Profiler profiler;
  size_t config_bytes;
  const uint8_t* config;
  size_t image_bytes;
  uint8_t* image;
  int range;
  int replay;
  size_t max_ranges;
  uint16_t nesting_levels, least_level;
  size_t pass;
  uint16_t target_level;
};
struct Stop {
  size_t size;
  void* priv;
  Profiler profiler;
  size_t pass, target_level;  // of the next one
  uint8_t all_submitted;
};
struct DecodeData {
  size_t size;
  void* priv;
  Profiler profiler;
  size_t dropped;
};
struct ImageSize {  // CUpti_RangeProfiler_GetCounterDataSize_Params
  size_t size;
  void* priv;
  Profiler profiler;
  const char** metrics;
  size_t metric_count, max_ranges;
  uint32_t max_nodes;
  size_t bytes;
};
struct ImageInitialize {
  size_t size;
  void* priv;
  Profiler profiler;
  size_t bytes;
  uint8_t* image;
};

struct DataInfo {  // CUpti_RangeProfiler_GetCounterDataInfo_Params
  size_t size;
  void* priv;
  const uint8_t* image;
  size_t bytes, ranges;
};

template <typename T>
inline constexpr size_t kSizeOf = sizeof(T);
template <>
inline constexpr size_t kSizeOf<SetConfig> = offsetof(SetConfig, target_level) + sizeof(uint16_t);
template <>
inline constexpr size_t kSizeOf<Stop> = offsetof(Stop, all_submitted) + sizeof(uint8_t);

inline constexpr int kAutoRange = 1, kUserRange = 2;                              // CUpti_ProfilerRange
inline constexpr int kApplicationReplay = 1, kKernelReplay = 2, kUserReplay = 3;  // CUpti_ProfilerReplayMode

}  // namespace tacho::vendor::cupti::range
