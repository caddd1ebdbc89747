// The functions and callbacks of CUPTI that the CUDA source uses, declared here so that one build without any CUDA
// installed serves every CUPTI from 11.8 on. Facts from NVIDIA's public headers;
// tests/vendor/nvidia/activity_abi_test.cpp compares with the headers if they are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::vendor::cupti {

using Result = int;  // CUptiResult
inline constexpr Result kSuccess = 0, kMaxLimitReached = 12, kNotInitialized = 15, kNotSupported = 27,
                        kHardwareBusy = 26, kVirtualNotSupported = 33, kInsufficientPrivileges = 35,
                        kMultipleSubscribers = 39, kVirtualPrivileges = 40, kConfidential = 41, kMigNotSupported = 43,
                        kWslNotSupported = 45;

using Subscriber = void*;
using Context = void*;
using Callback = void (*)(void* user, int domain, uint32_t id, const void* data);
using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using BufferCompleted = void (*)(Context context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);
using Timestamp = uint64_t (*)();
/// Of a subscriber (CUDA 13.2 and later); `about`: CUpti_BufferCallbackRequestInfo, CUpti_BufferCallbackCompleteInfo.
using OwnBufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records, const void* about);
using OwnBufferCompleted = void (*)(uint8_t* buffer, size_t size, size_t valid, const void* about);

namespace attribute {
inline constexpr int kDeviceBufferSize = 0, kDeviceBufferPoolLimit = 2, kDeviceBufferPreAllocate = 6,
                     kPerThreadBuffer = 9;
}
inline constexpr uint32_t kFlushForced = 1;
inline constexpr int kThreadIdSystem = 1;

namespace domain {
inline constexpr int kDriver = 1, kRuntime = 2, kResource = 3;
}
namespace callback {
inline constexpr uint32_t kDeviceReset = 164, kProfilerStart = 171, kProfilerStop = 172;     // runtime
inline constexpr uint32_t kInitFinished = 5;                                                 // resource
inline constexpr uint32_t kGraphCreated = 9, kGraphNodeCreated = 13, kGraphNodeCloned = 20;  // resource
}  // namespace callback

/// CUpti_GraphData.
struct GraphData {
  void *graph, *original_graph, *node, *original_node;
  int node_type;
  void *dependency, *executable;
};

/// CUpti_CallbackData, for the domains runtime and driver.
struct CallbackData {
  int site;  // kEnter, kExit
  const char* function;
  const void* parameters;
  void* result;
  const char* symbol;
  Context context;
  uint32_t context_id;
  uint64_t* correlation_data;
  uint32_t correlation;
};
inline constexpr int kEnter = 0, kExit = 1;

/// CUpti_ResourceData and CUpti_ModuleResourceData, for the resource domain.
struct ResourceData {
  Context context;
  void* handle;
  void* descriptor;
};
struct ModuleResource {
  uint32_t module;
  size_t bytes;
  const char* image;
};

/// CUpti_SubscriberParams.
struct SubscriberParameters {
  size_t size;
  const char* name;
  char* old_name;
  size_t old_size;
  uint8_t several;  // 1: other subscribers may be there, too; from CUDA 13.2 on
  uint8_t padding[7];
};

// CUDA driver
using DriverResult = int;  // CUresult
/// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNode {
  void* function;
  uint32_t grid[3], block[3], shared;
  void** parameters;
  void** extra;
  void* kernel;
  void* context;
};

}  // namespace tacho::vendor::cupti
