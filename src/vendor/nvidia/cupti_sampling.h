// CUPTI's PC sampling as far as tacho calls it, declared here so that no NVIDIA header is needed to build;
// tests/vendor/nvidia/profiler_abi_test.cpp compares with the headers if they are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::vendor::cupti::sampling {

struct ContextCall {  // CUpti_PCSampling{Enable,Disable,Start,Stop}Params
  size_t size;
  void* priv;
  void* context;
};
struct ReasonCount {
  size_t size;
  void* priv;
  void* context;
  size_t* count;
};
struct Reasons {
  size_t size;
  void* priv;
  void* context;
  size_t count;
  uint32_t* indices;
  char** names;  // each of 128 bytes
};
struct SamplingSetting {  // CUpti_PCSamplingConfigurationInfo
  int type;
  int status;
  union {
    uint64_t words[3];
    uint32_t number;
    size_t bytes;
    void* buffer;
  } value;
};
struct Configure {
  size_t size;
  void* priv;
  void* context;
  size_t count;
  SamplingSetting* settings;
};
struct Reason {
  uint32_t index, samples;
};
struct Sampled {  // CUpti_PCSamplingPCData
  size_t size;
  uint64_t cubin, offset;
  uint32_t function, pad;
  char* name;  // to be freed, but shared between records
  size_t reason_count;
  Reason* reasons;
  uint32_t correlation;
} __attribute__((packed, aligned(8)));
struct Data {  // CUpti_PCSamplingData
  size_t size, wanted;
  uint64_t total, dropped;
  size_t got, remaining;
  uint64_t range;
  Sampled* sampled;
  uint64_t of_others;
  uint8_t hardware_buffer_full;
} __attribute__((packed, aligned(8)));
struct GetData {
  size_t size;
  void* priv;
  void* context;
  void* data;
};
struct Crc {  // CUpti_GetCubinCrcParams
  size_t size, bytes;
  const void* image;
  uint64_t crc;
};

inline constexpr int kScratchBuffer = 3, kCollectionMode = 5, kOutputFormat = 7,
                     kDataBuffer = 8;  // of SamplingSetting
inline constexpr uint32_t kContinuous = 1, kParsed = 1;

}  // namespace tacho::vendor::cupti::sampling
