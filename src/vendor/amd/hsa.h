// The part of HSA (ROCr) that tacho uses: handles, packets, the dispatch tables that a tools library gets (OnLoad).
// Declared here, so that building tacho needs no ROCm. Sources: the HSA runtime specification 1.2 and the headers of
// ROCr 7.2; the tables have only grown since ROCm 5, and a table holds its own size (Version::size).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tacho::vendor::hsa {

using Status = uint32_t;
inline constexpr Status kSuccess = 0, kError = 0x1000;
// hsa_agent_t and the like are structs of one 64-bit word, which C's calling convention passes as that word.
using Agent = uint64_t;
using Signal = uint64_t;
using Executable = uint64_t;
using Symbol = uint64_t;

inline constexpr uint32_t kSystemTimestamp = 2, kSystemTimestampFrequency = 3;
inline constexpr uint32_t kAgentName = 0, kAgentDevice = 17, kAgentProductName = 0xa009, kAgentUuid = 0xa011;
inline constexpr uint32_t kDeviceGpu = 1;
inline constexpr uint32_t kCooperativeQueue = 2;  // a bit of a queue's type, HSA_QUEUE_TYPE_COOPERATIVE
inline constexpr uint32_t kSymbolType = 0, kSymbolNameLength = 1, kSymbolName = 2, kSymbolGroupSegment = 13,
                          kSymbolPrivateSegment = 14, kSymbolKernelObject = 22;
inline constexpr uint32_t kSymbolIsKernel = 1;
inline constexpr uint32_t kConditionLess = 2;
inline constexpr uint64_t kSignalGpuOnly = 1;  // HSA_AMD_SIGNAL_AMD_GPU_ONLY: no interrupt when it changes
inline constexpr uint16_t kExtensionLoader = 0x201;

struct Queue {
  uint32_t type, features;
  void* base;
  Signal doorbell;
  uint32_t size, reserved;
  uint64_t id;
};
static_assert(sizeof(Queue) == 40);
/// A hardware queue in memory (amd_hsa_queue.h), as far as it is read here.
struct QueueMemory {
  Queue queue;
  uint8_t reserved[140];
  uint32_t properties;
};
static_assert(offsetof(QueueMemory, properties) == 180);
inline constexpr uint32_t kQueueProfiled = 1 << 3;  // AMD_QUEUE_PROPERTIES_ENABLE_PROFILING

// Packets
//    header, bit 0..7   8         9..10             11..12
//           type        barrier   acquire fence     release fence (0 none, 1 agent, 2 system)

inline constexpr uint16_t kTypeInvalid = 1, kTypeDispatch = 2, kTypeBarrierAnd = 3;
inline constexpr uint16_t kReleaseSystem = 2 << 11;

struct KernelPacket {
  uint16_t header, setup, group[3], reserved0;
  uint32_t grid[3], private_bytes, group_bytes;
  uint64_t kernel_object, arguments, reserved1;
  Signal completion;
};
static_assert(sizeof(KernelPacket) == 64);
struct Barrier {
  uint16_t header, reserved0;
  uint32_t reserved1;
  Signal wait_for[5];
  uint64_t reserved2;
  Signal completion;
};
static_assert(sizeof(Barrier) == 64);

/// A signal in memory (amd_hsa_signal.h). The kinds of doorbells are negative.
struct SignalMemory {
  int64_t kind, value;
  uint64_t mailbox;
  uint32_t event, reserved;
  uint64_t start, end;
  QueueMemory* queue;  // of a doorbell
};
static_assert(offsetof(SignalMemory, queue) == 48);

/// A kernel's descriptor in its code object (LLVM's AMDGPUUsage, "Kernel Descriptor").
struct KernelDescriptor {
  uint32_t group_bytes, private_bytes, argument_bytes, reserved0;
  int64_t entry;
  uint8_t reserved1[20];
  uint32_t resource3, resource1, resource2;
  uint16_t properties, preload;
  uint32_t reserved2;
};
static_assert(sizeof(KernelDescriptor) == 64);

/// The answer of hsa_amd_pointer_info about an address.
struct PointerInfo {
  uint32_t size, type;  // size: of this struct, by the caller; type: 0 = unknown
  void *on_agent, *on_host;
  size_t bytes;
  void* user;
  Agent owner;
  uint32_t flags;
  bool registered;
};

/// The argument of a handler of system events (hsa_amd_event_t).
struct HsaEvent {
  uint32_t type;
  union {
    struct {
      Agent agent;
      uint64_t address;
      uint32_t reasons;
    } fault;
    struct {
      Agent agent;
      uint32_t reset, cause;
    } exception;
  };
};
inline constexpr uint32_t kEventMemoryFault = 0, kEventException = 1;

struct ProfilingTime {
  uint64_t start, end;
};

// Tables

struct Version {
  uint32_t major, size, step, reserved;
};
struct CoreTable {
  Version version;
#define TACHO_HSA_CORE(name) void* name;
#include "event/functions/functions_hsa.def"
};
struct AmdTable {
  Version version;
#define TACHO_HSA_AMD(name) void* name;
#include "event/functions/functions_hsa.def"
};
struct Tables {
  Version version;
  CoreTable* core;
  AmdTable* amd;
};
/// True if `member` of a table lies within the runtime's table.
#define TACHO_HSA_HAS(table, member) \
  ((table).version.size >= offsetof(std::remove_reference_t<decltype(table)>, member) + sizeof(void*))

using PacketWriter = void (*)(const void* packets, uint64_t count);
using PacketHandler = void (*)(const void* packets, uint64_t count, uint64_t index, void* data, PacketWriter writer);

/// The loader extension's table, version 1. An older runtime fills only its beginning.
struct LoaderTable {
  Status (*query_host_address)(const void* device, const void** host);
  void* unused[5];
  Status (*iterate_executables)(Status (*)(Executable, void*), void*);  // 1.03
};

// Signatures of the functions that tacho calls or replaces.
namespace signature {
using SystemInfo = Status(uint32_t, void*);
using ExtensionTable = Status(uint16_t, uint16_t, size_t, void*);
using IterateAgents = Status(Status (*)(Agent, void*), void*);
using AgentInfo = Status(Agent, uint32_t, void*);
using QueueCreate = Status(Agent, uint32_t, uint32_t, void (*)(Status, Queue*, void*), void*, uint32_t, uint32_t,
                           Queue**);
using QueueDestroy = Status(Queue*);
using QueueIndex = uint64_t(const Queue*);
using ShutDown = Status();
using SignalCreate = Status(int64_t, uint32_t, const Agent*, Signal*);
using AmdSignalCreate = Status(int64_t, uint32_t, const Agent*, uint64_t, Signal*);
using SignalDestroy = Status(Signal);
using SignalLoad = int64_t(Signal);
using SignalChange = void(Signal, int64_t);
using SignalExchange = int64_t(Signal, int64_t);
using Freeze = Status(Executable, const char*);
using IterateSymbols = Status(Executable, Agent, Status (*)(Executable, Agent, Symbol, void*), void*);
using SymbolInfo = Status(Symbol, uint32_t, void*);
using ProfilerEnabled = Status(Queue*, int);
using CopyEnable = Status(bool);
using DispatchTime = Status(Agent, Signal, ProfilingTime*);
using CopyTime = Status(Signal, ProfilingTime*);
using AsyncHandler = Status(Signal, uint32_t, int64_t, bool (*)(int64_t, void*), void*);
using PointerInfo = Status(const void*, hsa::PointerInfo*, void* (*)(size_t), uint32_t*, Agent**);
using PoolAllocate = Status(uint64_t, size_t, uint32_t, void**);
using MemoryAllocate = Status(uint64_t, size_t, void**);
using MemoryFree = Status(void*);
using EventHandler = Status(const HsaEvent*, void*);
using RegisterEvents = Status(EventHandler*, void*);
using StatusText = Status(Status, const char**);
using InterceptRegister = Status(Queue*, PacketHandler, void*);
using AsyncCopy = Status(void*, Agent, const void*, Agent, size_t, uint32_t, const Signal*, Signal);
using AsyncCopyOn = Status(void*, Agent, const void*, Agent, size_t, uint32_t, const Signal*, Signal, uint32_t, bool);
}  // namespace signature

}  // namespace tacho::vendor::hsa
