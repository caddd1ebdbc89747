// CUPTI's sampling of a whole GPU's counters (PM sampling, CUDA 12.6 and newer), declared here so that no NVIDIA header
// is needed to build; tests/vendor/nvidia/profiler_abi_test.cpp compares with the headers if they are installed. Every
// structure begins with its size up to its last field, which tells CUPTI its version.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::vendor::cupti::pm {

inline constexpr int kPmSampling = 1;            // CUpti_ProfilerType
inline constexpr int kByClock = 0, kByTime = 1;  // CUpti_PmSampling_TriggerMode
inline constexpr int kImageFull = 1;             // CUpti_PmSampling_DecodeStopReason

struct ChipName {  // CUpti_Device_GetChipName_Params
  size_t size;
  void* priv;
  size_t device;
  const char* chip;
};
struct Availability {
  size_t size;
  void* priv;
  size_t device;
  size_t bytes;
  uint8_t* image;
};
struct PmEnable {
  size_t size;
  void* priv;
  size_t device;
  void* sampler;
};
struct PmObject {  // Disable, Start and Stop
  size_t size;
  void* priv;
  void* sampler;
};
struct PmSetConfig {
  size_t size;
  void* priv;
  void* sampler;
  size_t config_bytes;
  const uint8_t* config;
  size_t buffer_bytes;
  uint64_t interval;
  int trigger;
  int append;
};
struct PmImageSize {
  size_t size;
  void* priv;
  void* sampler;
  const char** metrics;
  size_t count;
  uint32_t most;
  size_t bytes;
};
struct PmImageInitialize {
  size_t size;
  void* priv;
  void* sampler;
  size_t bytes;
  uint8_t* image;
};
struct Decode {
  size_t size;
  void* priv;
  void* sampler;
  uint8_t* image;
  size_t bytes;
  int stop_reason;
  uint8_t overflow;
};
struct PmDataInfo {
  size_t size;
  void* priv;
  const uint8_t* image;
  size_t bytes;
  size_t total, populated, completed;
};
struct SampleInfo {
  size_t size;
  void* priv;
  void* sampler;
  const uint8_t* image;
  size_t bytes;
  size_t index;
  uint64_t start, end;
};

template <typename T>
inline constexpr size_t kSizeOf = sizeof(T);
template <>
inline constexpr size_t kSizeOf<Decode> = offsetof(Decode, overflow) + sizeof(uint8_t);

}  // namespace tacho::vendor::cupti::pm
