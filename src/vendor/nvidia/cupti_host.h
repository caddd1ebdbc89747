// The parameter structures that tacho uses of CUPTI's profiler host API. Facts from NVIDIA's public headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vendor/nvidia/cupti_range.h"

namespace tacho::vendor::cupti::host {

inline constexpr int kRangeProfiler = 0;  // CUpti_ProfilerType

struct HostInitialize {
  size_t size;
  void* priv;
  int type;
  const char* chip;
  const uint8_t* availability;
  void* object;
};
struct Deinitialize {
  size_t size;
  void* priv;
  void* object;
};
struct Chips {
  size_t size;
  void* priv;
  size_t count;
  const char* const* names;
};
struct BaseMetrics {
  size_t size;
  void* priv;
  void* object;
  int type;
  const char** names;
  size_t count;
};
struct SubMetrics {
  size_t size;
  void* priv;
  void* object;
  int type;
  const char* name;
  size_t count;
  const char** names;
};
struct Properties {
  size_t size;
  void* priv;
  void* object;
  const char* name;
  const char* description;
  const char* unit;
  const char* dimension;
  int type;
};
struct AddMetrics {
  size_t size;
  void* priv;
  void* object;
  const char** names;
  size_t count;
};
struct ConfigImageSize {
  size_t size;
  void* priv;
  void* object;
  size_t bytes;
};
struct ConfigImage {
  size_t size;
  void* priv;
  void* object;
  size_t bytes;
  uint8_t* image;
};
struct Passes {
  size_t size;
  void* priv;
  size_t bytes;
  uint8_t* image;
  size_t passes;
};
struct Evaluate {
  size_t size;
  void* priv;
  void* object;
  const uint8_t* image;
  size_t bytes, range;
  const char** names;
  size_t count;
  double* values;
};
using range::DataInfo;

template <typename T>
inline constexpr size_t kSizeOf = sizeof(T);
template <>
inline constexpr size_t kSizeOf<Properties> = offsetof(Properties, type) + sizeof(int);

}  // namespace tacho::vendor::cupti::host
