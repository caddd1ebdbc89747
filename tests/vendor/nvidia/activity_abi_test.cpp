// Our own descriptions of CUPTI's records against NVIDIA's headers, where those are installed.
#if __has_include(<cupti.h>)
#include <cupti.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "vendor/nvidia/cupti_activity.h"
#include "vendor/nvidia/cupti_callback.h"

namespace tacho::vendor {
namespace {

namespace abi = cupti;

#define EXPECT_FIELD(ours, type, field)                               \
  EXPECT_EQ(ours.offset, offsetof(type, field)) << #type "::" #field; \
  EXPECT_EQ(sizeof(ours.read(nullptr, 0)), sizeof(static_cast<type*>(nullptr)->field)) << #type "::" #field

TEST(CuptiHeaders, LayoutsAgree) {
  EXPECT_FIELD(cupti::api::callback, CUpti_ActivityAPI, cbid);
  EXPECT_FIELD(cupti::api::start, CUpti_ActivityAPI, start);
  EXPECT_FIELD(cupti::api::end, CUpti_ActivityAPI, end);
  EXPECT_FIELD(cupti::api::thread, CUpti_ActivityAPI, threadId);
  EXPECT_FIELD(cupti::api::correlation, CUpti_ActivityAPI, correlationId);
  EXPECT_FIELD(cupti::api::result, CUpti_ActivityAPI, returnValue);

  EXPECT_FIELD(cupti::kernel::registers, CUpti_ActivityKernel9, registersPerThread);
  EXPECT_FIELD(cupti::kernel::start, CUpti_ActivityKernel9, start);
  EXPECT_FIELD(cupti::kernel::end, CUpti_ActivityKernel9, end);
  EXPECT_FIELD(cupti::kernel::device, CUpti_ActivityKernel9, deviceId);
  EXPECT_FIELD(cupti::kernel::context, CUpti_ActivityKernel9, contextId);
  EXPECT_FIELD(cupti::kernel::stream, CUpti_ActivityKernel9, streamId);
  EXPECT_EQ(cupti::kernel::kShapeOffset, offsetof(CUpti_ActivityKernel9, gridX));
  EXPECT_FIELD(cupti::kernel::block_z, CUpti_ActivityKernel9, blockZ);
  EXPECT_FIELD(cupti::kernel::shared_static, CUpti_ActivityKernel9, staticSharedMemory);
  EXPECT_FIELD(cupti::kernel::shared_dynamic, CUpti_ActivityKernel9, dynamicSharedMemory);
  EXPECT_FIELD(cupti::kernel::local_per_thread, CUpti_ActivityKernel9, localMemoryPerThread);
  EXPECT_FIELD(cupti::kernel::correlation, CUpti_ActivityKernel9, correlationId);
  EXPECT_FIELD(cupti::kernel::name, CUpti_ActivityKernel9, name);
  EXPECT_FIELD(cupti::kernel::queued, CUpti_ActivityKernel9, queued);
  EXPECT_FIELD(cupti::kernel::submitted, CUpti_ActivityKernel9, submitted);
  EXPECT_FIELD(cupti::kernel::carveout_requested, CUpti_ActivityKernel9, isSharedMemoryCarveoutRequested);
  EXPECT_FIELD(cupti::kernel::carveout, CUpti_ActivityKernel9, sharedMemoryCarveoutRequested);
  EXPECT_FIELD(cupti::kernel::graph_node, CUpti_ActivityKernel9, graphNodeId);
  EXPECT_FIELD(cupti::kernel::graph, CUpti_ActivityKernel9, graphId);
  EXPECT_FIELD(cupti::kernel::cluster_x, CUpti_ActivityKernel9, clusterX);
  EXPECT_FIELD(cupti::kernel::cluster_z, CUpti_ActivityKernel9, clusterZ);

  EXPECT_FIELD(cupti::copy::direction, CUpti_ActivityMemcpy5, copyKind);
  EXPECT_FIELD(cupti::copy::source, CUpti_ActivityMemcpy5, srcKind);
  EXPECT_FIELD(cupti::copy::target, CUpti_ActivityMemcpy5, dstKind);
  EXPECT_FIELD(cupti::copy::flags, CUpti_ActivityMemcpy5, flags);
  EXPECT_FIELD(cupti::copy::bytes, CUpti_ActivityMemcpy5, bytes);
  EXPECT_FIELD(cupti::copy::correlation, CUpti_ActivityMemcpy5, correlationId);
  EXPECT_FIELD(cupti::copy::graph_node, CUpti_ActivityMemcpy5, graphNodeId);
  EXPECT_FIELD(cupti::peer_copy::source_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
  EXPECT_FIELD(cupti::peer_copy::target_device, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
  EXPECT_FIELD(cupti::peer_copy::correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
  EXPECT_FIELD(cupti::peer_copy::graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);

  EXPECT_FIELD(cupti::fill::value, CUpti_ActivityMemset4, value);
  EXPECT_FIELD(cupti::fill::bytes, CUpti_ActivityMemset4, bytes);
  EXPECT_FIELD(cupti::fill::memory, CUpti_ActivityMemset4, memoryKind);
  EXPECT_FIELD(cupti::fill::correlation, CUpti_ActivityMemset4, correlationId);

  EXPECT_FIELD(cupti::memory::operation, CUpti_ActivityMemory3, memoryOperationType);
  EXPECT_FIELD(cupti::memory::memory_kind, CUpti_ActivityMemory3, memoryKind);
  EXPECT_FIELD(cupti::memory::correlation, CUpti_ActivityMemory3, correlationId);
  EXPECT_FIELD(cupti::memory::address, CUpti_ActivityMemory3, address);
  EXPECT_FIELD(cupti::memory::bytes, CUpti_ActivityMemory3, bytes);
  EXPECT_FIELD(cupti::memory::time, CUpti_ActivityMemory3, timestamp);
  EXPECT_FIELD(cupti::memory::name, CUpti_ActivityMemory3, name);

  EXPECT_FIELD(cupti::sync::type, CUpti_ActivitySynchronization, type);
  EXPECT_FIELD(cupti::sync::start, CUpti_ActivitySynchronization, start);
  EXPECT_FIELD(cupti::sync::correlation, CUpti_ActivitySynchronization, correlationId);
  EXPECT_FIELD(cupti::sync::context, CUpti_ActivitySynchronization, contextId);
  EXPECT_FIELD(cupti::sync::stream, CUpti_ActivitySynchronization, streamId);

  EXPECT_FIELD(cupti::overhead::type, CUpti_ActivityOverhead, overheadKind);
  EXPECT_FIELD(cupti::overhead::object, CUpti_ActivityOverhead, objectKind);
  EXPECT_EQ(cupti::overhead::thread.offset, offsetof(CUpti_ActivityOverhead, objectId.pt.threadId));
  EXPECT_FIELD(cupti::overhead::start, CUpti_ActivityOverhead, start);

  EXPECT_FIELD(cupti::graph_trace::correlation, CUpti_ActivityGraphTrace, correlationId);
  EXPECT_FIELD(cupti::graph_trace::start, CUpti_ActivityGraphTrace, start);
  EXPECT_FIELD(cupti::graph_trace::graph, CUpti_ActivityGraphTrace, graphId);
  EXPECT_FIELD(cupti::graph_trace::stream, CUpti_ActivityGraphTrace, streamId);

  EXPECT_FIELD(cupti::jit::operation, CUpti_ActivityJit, jitOperationType);
  EXPECT_FIELD(cupti::jit::start, CUpti_ActivityJit, start);
  EXPECT_FIELD(cupti::jit::cache_path, CUpti_ActivityJit, cachePath);

  EXPECT_FIELD(cupti::device::bandwidth, CUpti_ActivityDevice4, globalMemoryBandwidth);
  EXPECT_FIELD(cupti::device::multiprocessors, CUpti_ActivityDevice4, numMultiprocessors);
  EXPECT_FIELD(cupti::device::capability_minor, CUpti_ActivityDevice4, computeCapabilityMinor);
  EXPECT_FIELD(cupti::device::id, CUpti_ActivityDevice4, id);
  EXPECT_EQ(cupti::device::kUuidOffset, offsetof(CUpti_ActivityDevice4, uuid));
  EXPECT_EQ(cupti::device::kMigUuidOffset, offsetof(CUpti_ActivityDevice4, migUuid));
  EXPECT_FIELD(cupti::device::mig_enabled, CUpti_ActivityDevice4, isMigEnabled);
  EXPECT_FIELD(cupti::device::name, CUpti_ActivityDevice4, name);

  EXPECT_FIELD(cupti::context::id, CUpti_ActivityContext, contextId);
  EXPECT_FIELD(cupti::context::null_stream, CUpti_ActivityContext, nullStreamId);
  EXPECT_FIELD(cupti::stream::priority, CUpti_ActivityStream, priority);
  EXPECT_EQ(cupti::name::stream.offset, offsetof(CUpti_ActivityName, objectId.dcs.streamId));
  EXPECT_FIELD(cupti::name::text, CUpti_ActivityName, name);
}

TEST(CuptiHeaders, SizesOfThisVersionAgree) {
  const uint32_t version = CUPTI_API_VERSION;
  const auto agrees = [&](uint32_t kind, size_t size) {
    const uint32_t ours = cupti::size_by_version(kind, version);
    EXPECT_TRUE(ours == 0 || ours == size) << "kind " << kind << ": " << ours << ", header " << size;
  };
  agrees(CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI));
  agrees(CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4));
  agrees(CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4));
  agrees(CUPTI_ACTIVITY_KIND_NAME, sizeof(CUpti_ActivityName));
  agrees(CUPTI_ACTIVITY_KIND_STREAM, sizeof(CUpti_ActivityStream));
  agrees(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation));
#if CUPTI_API_VERSION >= 130000 && CUPTI_API_VERSION < 130100
  agrees(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel10));
  agrees(CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6));
  agrees(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2));
  agrees(CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(CUpti_ActivityOverhead3));
  agrees(CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(CUpti_ActivityMemory4));
  agrees(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, sizeof(CUpti_ActivityGraphTrace2));
  agrees(CUPTI_ACTIVITY_KIND_JIT, sizeof(CUpti_ActivityJit2));
  agrees(CUPTI_ACTIVITY_KIND_DEVICE, sizeof(CUpti_ActivityDevice5));
  agrees(CUPTI_ACTIVITY_KIND_CONTEXT, sizeof(CUpti_ActivityContext3));
#endif
}

// The target relies on this to learn the sizes of records from the library itself (capture/source/cuda/buffers.cpp).
TEST(CuptiHeaders, IteratorTellsSizes) {
  void* library = nullptr;
  for (const char* file : {TACHO_CUDA_HOME "/lib64/libcupti.so.13", TACHO_CUDA_HOME "/lib64/libcupti.so",
                           TACHO_CUDA_HOME "/extras/CUPTI/lib64/libcupti.so"})
    if (library == nullptr) library = dlopen(file, RTLD_NOW);
  if (library == nullptr) GTEST_SKIP() << "no libcupti beside the headers";
  const auto next_record =
      reinterpret_cast<int (*)(uint8_t*, size_t, void**)>(dlsym(library, "cuptiActivityGetNextRecord"));
  ASSERT_NE(next_record, nullptr);
  const auto learn = [&](uint32_t kind) {
    alignas(8) uint8_t probe[576] = {};
    std::memcpy(probe, &kind, sizeof kind);
    size_t size = 0;
    for (size_t length = 8; length <= 512; length += 8) {
      void* next = probe;
      if (next_record(probe, length, &next) != abi::kMaxLimitReached) break;
      size = length;
    }
    return size;
  };
  EXPECT_EQ(learn(CUPTI_ACTIVITY_KIND_RUNTIME), sizeof(CUpti_ActivityAPI));
  EXPECT_EQ(learn(CUPTI_ACTIVITY_KIND_MEMSET), sizeof(CUpti_ActivityMemset4));
  EXPECT_EQ(learn(CUPTI_ACTIVITY_KIND_STREAM), sizeof(CUpti_ActivityStream));
  EXPECT_GE(learn(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), sizeof(CUpti_ActivityKernel8));
  EXPECT_EQ(learn(120), 0u);
}

TEST(CuptiHeaders, CallbackInterfaceAgrees) {
  EXPECT_EQ(offsetof(abi::CallbackData, parameters), offsetof(CUpti_CallbackData, functionParams));
  EXPECT_EQ(offsetof(abi::CallbackData, result), offsetof(CUpti_CallbackData, functionReturnValue));
  EXPECT_EQ(offsetof(abi::CallbackData, correlation), offsetof(CUpti_CallbackData, correlationId));
  EXPECT_EQ(abi::callback::kProfilerStart, static_cast<uint32_t>(CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000));
  EXPECT_EQ(abi::callback::kProfilerStop, static_cast<uint32_t>(CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000));
  EXPECT_EQ(abi::callback::kDeviceReset, static_cast<uint32_t>(CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020));
  EXPECT_EQ(abi::callback::kInitFinished, static_cast<uint32_t>(CUPTI_CBID_RESOURCE_CU_INIT_FINISHED));
  EXPECT_EQ(abi::kInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  EXPECT_EQ(abi::attribute::kPerThreadBuffer, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
  EXPECT_EQ(abi::attribute::kDeviceBufferPoolLimit, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
  EXPECT_EQ(sizeof(abi::KernelNode), sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
#if CUPTI_API_VERSION >= 26
  EXPECT_EQ(abi::kMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
#if CUPTI_API_VERSION >= 130200
  EXPECT_EQ(sizeof(abi::SubscriberParameters), sizeof(CUpti_SubscriberParams));
#else
  EXPECT_EQ(offsetof(abi::SubscriberParameters, several), sizeof(CUpti_SubscriberParams));
#endif
#endif
}

}  // namespace
}  // namespace tacho::vendor
#endif
