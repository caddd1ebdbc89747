// For HIP programs of the test bed: a kernel is a function of one work-item, compiled for the GPU and, as bed_NAME, for
// the processor, where the imitated driver runs it (tests/rocm/kfd/kernels.cpp) so that results are right without a
// GPU.
//
//   __host__ __device__ void scale_item(uint32_t at, float* out, const float* in, uint32_t size) { ... }
//   BED_KERNEL(scale, (float* out, const float* in, uint32_t size), (out, in, size))
//
// Work-items are numbered along x. A kernel with barriers has no such form; without a host version a kernel takes time
// and changes nothing.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>

#define HIP(call)                                                                               \
  do {                                                                                          \
    const hipError_t error_ = (call);                                                           \
    if (error_ != hipSuccess) {                                                                 \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(error_)); \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)

namespace bed {

struct Dispatch {  // the packet; kfd::Dispatch
  uint16_t header, setup, group_x, group_y, group_z, reserved0;
  uint32_t grid_x, grid_y, grid_z, private_bytes, group_bytes;
  uint64_t kernel_object, arguments, reserved2, signal;
};

// Reads the next argument of a kernel's argument block.
template <typename T>
T next(const char*& at) {
  at = reinterpret_cast<const char*>((reinterpret_cast<uintptr_t>(at) + alignof(T) - 1) / alignof(T) * alignof(T));
  T value;
  memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

template <typename... A>
void run(const Dispatch* dispatch, const void* arguments, void (*item)(uint32_t, A...)) {
  const char* at = static_cast<const char*>(arguments);
  const std::tuple<A...> values{next<A>(at)...};  // braces: in order
  for (uint32_t i = 0; i < dispatch->grid_x; ++i) std::apply([&](A... each) { item(i, each...); }, values);
}

}  // namespace bed

#define BED_KERNEL(name, parameters, arguments)                                                                      \
  extern "C" __global__ void name parameters {                                                                       \
    BED_CALL(name##_item, BED_STRIP arguments);                                                                      \
  }                                                                                                                  \
  extern "C"                                                                                                         \
      __attribute__((visibility("default"), used)) void bed_##name(const bed::Dispatch* packet, const void* block) { \
    bed::run(packet, block, name##_item);                                                                            \
  }
#define BED_STRIP(...) __VA_ARGS__
#define BED_CALL(function, ...) function(blockIdx.x* blockDim.x + threadIdx.x, __VA_ARGS__)
