// The part of rocprofiler-sdk's ABI that counting takes (sdk.h has the rest), from SDK 0.5 (ROCm 6.3) on: layouts and
// values are the same in 0.5, 0.6 and 1.x. scripts/check-rocm-abi.sh compares them with AMD's headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vendor/amd/sdk.h"

namespace tacho::vendor::sdk {

/// Counting needs at least this version: before it had other functions.
inline constexpr uint32_t kOldestCounting = 500;

struct Handle {
  uint64_t handle;
};
struct Size3 {
  uint32_t x, y, z;
};
union UserData {
  uint64_t value;
  void* pointer;
};

// Code objects

inline constexpr int32_t kCallbackCodeObject = 10;  // rocprofiler_callback_tracing_kind_t, in all versions

/// rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t, as far as it is needed.
struct KernelSymbol {
  uint64_t size, kernel, code_object;
  const char* name;  // mangled, ".kd" behind it
  uint64_t object;
  uint32_t argument_bytes, argument_alignment, group_bytes, private_bytes;
  uint32_t sgprs, vgprs, accum_vgprs;
};
static_assert(offsetof(KernelSymbol, name) == 24 && offsetof(KernelSymbol, sgprs) == 56);

// Agents

inline constexpr int32_t kAgentVersion = 1;  // ROCPROFILER_AGENT_INFO_VERSION_0
/// The beginning of rocprofiler_agent_v0_t.
struct AgentHead {
  uint64_t size;
  Handle id;
  int32_t type;
};
static_assert(offsetof(AgentHead, type) == 16);
/// The `agent_size` for rocprofiler_query_available_agents: the SDK refuses a struct that is larger than its own.
inline constexpr size_t kAgentBytes = sizeof(AgentHead);

// Counters

inline constexpr int32_t kCounterInfoVersion = 1;  // ROCPROFILER_COUNTER_INFO_VERSION_0
inline constexpr int32_t kAppendDefinition = 2;    // ROCPROFILER_COUNTER_FLAG_APPEND_DEFINITION
/// rocprofiler_counter_info_v0_t.
struct CounterDescription {
  Handle id;
  const char *name, *description, *block, *expression;
  uint8_t is_constant : 1, is_derived : 1;
};
static_assert(sizeof(CounterDescription) == 48 && offsetof(CounterDescription, name) == 8);
/// rocprofiler_counter_record_dimension_info_t.
struct DimensionInfo {
  const char* name;  // "DIMENSION_XCC"
  size_t instances;
  uint64_t id;
};
static_assert(sizeof(DimensionInfo) == 24);

/// rocprofiler_kernel_dispatch_info_t.
struct DispatchInfo {
  uint64_t size;
  Handle agent, queue;
  uint64_t kernel, dispatch;
  uint32_t private_bytes, group_bytes;
  Size3 workgroup, grid;
  uint8_t reserved[56];
};
static_assert(sizeof(DispatchInfo) == 128 && offsetof(DispatchInfo, workgroup) == 48);

/// rocprofiler_dispatch_counting_service_data_t, handed over by value.
struct DispatchData {
  uint64_t size;
  uint64_t internal;  // correlation
  UserData external;
  uint64_t start, end;  // ns, CLOCK_BOOTTIME
  DispatchInfo info;
};
static_assert(sizeof(DispatchData) == 168 && offsetof(DispatchData, info) == 40);

/// rocprofiler_dispatch_counting_service_record_t: heads the values of a dispatch in a buffer.
struct DispatchHeader {
  uint64_t size, records;
  uint64_t internal;
  UserData external;
  uint64_t start, end;
  DispatchInfo info;
};
static_assert(sizeof(DispatchHeader) == 176 && offsetof(DispatchHeader, info) == 48);

/// rocprofiler_counter_record_t (rocprofiler_record_counter_t before 1.0).
struct SdkCounterRecord {
  uint64_t id;  // of the counter in one unit
  double value;
  uint64_t dispatch;
  UserData user;
  Handle agent;
};
static_assert(sizeof(SdkCounterRecord) == 40 && offsetof(SdkCounterRecord, dispatch) == 16);

/// The functions, by name (dlsym): the library is loaded when it calls rocprofiler_configure.
namespace signature {
template <typename Record>
using CodeObjectCallback = void(Record, UserData*, void*);
using AgentCounters = Status(Handle agent, Status (*)(Handle, Handle*, size_t, void*), void*);
using CounterInfo = Status(Handle counter, int32_t version, void*);
using CounterDimensions = Status(Handle counter, Status (*)(Handle, const DimensionInfo*, size_t, void*), void*);
using CreateConfig = Status(Handle agent, Handle* counters, size_t count, Handle* config);
/// Not in 0.x. (1.0 declares rocprofiler_create_counter as well, and does not export it.)
using LoadDefinition = Status(const char* yaml, size_t size, int32_t flags);
using DispatchCallback = void(DispatchData, Handle* config, UserData*, void*);
using RecordCallback = void(DispatchData, SdkCounterRecord*, size_t, UserData, void*);
using DispatchService = Status(Context, DispatchCallback*, void*, RecordCallback*, void*);
/// From 1.0 on. The callback gets a function by which it states the configuration of the agent.
using DeviceCallback = void(Context, Handle agent, Status (*set)(Context, Handle config), void*);
using DeviceService = Status(Context, Buffer, Handle agent, DeviceCallback*, void*);
/// With `records` the values are complete when it returns; `count` has the room, and then the number of values.
using SampleDevice = Status(Context, UserData, int32_t flags, SdkCounterRecord* records, size_t* count);
using RecordCounter = Status(uint64_t id, Handle* counter);
using RecordPosition = Status(uint64_t id, uint64_t dimension, size_t* position);
}  // namespace signature

}  // namespace tacho::vendor::sdk
