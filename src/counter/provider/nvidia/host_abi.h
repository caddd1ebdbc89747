// Parameter structures of CUPTI's profiler host API, as far as tacho calls it. Facts from NVIDIA's public headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::counter::nvidia::abi {

inline constexpr int kRangeProfiler = 0;  // CUpti_ProfilerType

struct Initialize {
  std::size_t size;
  void* priv;
  int type;
  const char* chip;
  const std::uint8_t* availability;
  void* object;
};
struct Deinitialize {
  std::size_t size;
  void* priv;
  void* object;
};
struct Chips {
  std::size_t size;
  void* priv;
  std::size_t count;
  const char* const* names;
};
struct BaseMetrics {
  std::size_t size;
  void* priv;
  void* object;
  int type;
  const char** names;
  std::size_t count;
};
struct SubMetrics {
  std::size_t size;
  void* priv;
  void* object;
  int type;
  const char* name;
  std::size_t count;
  const char** names;
};
struct Properties {
  std::size_t size;
  void* priv;
  void* object;
  const char* name;
  const char* description;
  const char* unit;
  const char* dimension;
  int type;
};
struct AddMetrics {
  std::size_t size;
  void* priv;
  void* object;
  const char** names;
  std::size_t count;
};
struct ConfigImageSize {
  std::size_t size;
  void* priv;
  void* object;
  std::size_t bytes;
};
struct ConfigImage {
  std::size_t size;
  void* priv;
  void* object;
  std::size_t bytes;
  std::uint8_t* image;
};
struct Passes {
  std::size_t size;
  void* priv;
  std::size_t bytes;
  std::uint8_t* image;
  std::size_t passes;
};
struct Evaluate {
  std::size_t size;
  void* priv;
  void* object;
  const std::uint8_t* image;
  std::size_t bytes, range;
  const char** names;
  std::size_t count;
  double* values;
};
struct DataInfo {
  std::size_t size;
  void* priv;
  const std::uint8_t* image;
  std::size_t bytes, ranges;
};

template <typename T>
inline constexpr std::size_t kSizeOf = sizeof(T);
template <>
inline constexpr std::size_t kSizeOf<Properties> = offsetof(Properties, type) + sizeof(int);

}  // namespace tacho::counter::nvidia::abi
