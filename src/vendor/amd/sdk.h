// The part of AMD's rocprofiler-sdk that tacho uses, declared without its headers: one build works with both ABIs, 0.x
// (ROCm 6.2 to 6.4, librocprofiler-sdk.so.0) and 1.x (ROCm 7, librocprofiler-sdk.so.1). The source in the target and
// the decoder share it.
//
// The ABIs differ in the correlation id: 16 bytes (own number, the tool's) in 0.x, 24 (and the number of the call
// around it) in 1.x. Records therefore have two layouts, which their leading `size` distinguishes; within an ABI they
// only grow at the end. Kinds of records have other numbers in each version, so tacho uses only their names, which the
// library gives at run time. Facts from the public headers of 0.4, 0.5, 0.6 and 1.0; tests/rocm/sdk compares with
// headers if they are installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tacho::vendor::sdk {

using Status = int32_t;
inline constexpr Status kSuccess = 0;

/// The oldest version with the layouts below (10000 * major + 100 * minor + patch, as rocprofiler_configure() gets it).
inline constexpr uint32_t kOldest = 400;
/// From here on correlation ids have 24 bytes.
inline constexpr uint32_t kFirstWide = 10000;

// rocprofiler_context_id_t and the like are structs of one 64-bit word, which C's calling convention passes as that
// word.
using Context = uint64_t;
using Buffer = uint64_t;

// Registration

struct ClientId {  // 1.x
  size_t size;
  const char* name;
  uint32_t handle;
};
static_assert(sizeof(ClientId) == 24);
struct ClientIdNarrow {  // 0.x
  const char* name;
  uint32_t handle;
};
static_assert(sizeof(ClientIdNarrow) == 16);
/// Sets the tool's name in the id that rocprofiler_configure() gets from the library of this version.
inline void name_client(uint32_t version, ClientId* client, const char* name) {
  (version >= kFirstWide ? client->name : reinterpret_cast<ClientIdNarrow*>(client)->name) = name;
}
using Finalize = void(ClientId);              // 24 bytes: by value, in memory
using FinalizeNarrow = void(ClientIdNarrow);  // 16 bytes: by value, in registers
struct ConfigureResult {
  size_t size;
  int (*initialize)(Finalize*, void*);
  void (*finalize)(void*);
  void* data;
};
static_assert(sizeof(ConfigureResult) == 32);

/// Results of rocprofiler_register_library_api_table().
inline constexpr int kRegistered = 0, kNoTools = 1;
using Register = int(const char* name, uint32_t (*import)(), uint32_t version, void** tables, uint64_t count,
                     uint64_t* id);

// Functions

/// The argument of a buffer's callback, one for each record.
struct SdkRecordHeader {
  uint32_t category, kind;
  const void* payload;
};
static_assert(sizeof(SdkRecordHeader) == 16);
namespace category {
inline constexpr uint32_t kTracing = 1, kPcSampling = 2, kCounters = 3;
}
/// Kinds of category::kCounters.
inline constexpr uint32_t kCounterHeader = 1, kCounterValue = 2;
inline constexpr int32_t kPolicyLossless = 2;

/// rocprofiler_callback_tracing_record_t: passed by value, in memory.
struct CallbackRecordNarrow {  // 0.x
  Context context;
  uint64_t thread, correlation, external;
  int32_t kind, operation, phase;
  const void* payload;
};
static_assert(sizeof(CallbackRecordNarrow) == 56);
struct CallbackRecordWide {  // 1.x
  Context context;
  uint64_t thread, correlation, external, ancestor;
  int32_t kind, operation, phase;
  const void* payload;
};
static_assert(sizeof(CallbackRecordWide) == 64);
inline constexpr int32_t kPhaseEnter = 1, kPhaseExit = 2;  // of code objects: load, unload

namespace signature {
using BufferCallback = void(Context, Buffer, SdkRecordHeader** headers, size_t count, void* data, uint64_t dropped);
/// The record is a CallbackRecordNarrow or CallbackRecordWide.
using AnyCallback = void();
using KindCallback = int(int32_t kind, void* data);
using OperationCallback = int(int32_t kind, int32_t operation, void* data);
using AgentsCallback = Status(int32_t version, const void** agents, size_t count, void* data);
using ExternalCallback = int(uint64_t thread, Context context, int32_t kind, int32_t operation, uint64_t correlation,
                             uint64_t* external, void* data);

using CreateContext = Status(Context*);
using OnContext = Status(Context);
using CreateBuffer = Status(Context, size_t size, size_t watermark, int32_t policy, BufferCallback*, void*, Buffer*);
using FlushBuffer = Status(Buffer);
using TraceBuffered = Status(Context, int32_t kind, const int32_t* operations, size_t count, Buffer);
using TraceCallback = Status(Context, int32_t kind, const int32_t* operations, size_t count, AnyCallback*, void*);
using KindName = Status(int32_t kind, const char** name, uint64_t* length);
using OperationName = Status(int32_t kind, int32_t operation, const char** name, uint64_t* length);
using IterateKinds = Status(KindCallback*, void*);
using IterateOperations = Status(int32_t kind, OperationCallback*, void*);
using QueryAgents = Status(int32_t version, AgentsCallback*, size_t agent_size, void*);
using ExternalRequest = Status(Context, const int32_t* kinds, size_t count, ExternalCallback*, void*);
using Timestamp = Status(uint64_t*);
using StatusText = const char*(Status);
}  // namespace signature

/// The library's functions that tacho calls: X(member, signature, name without "rocprofiler_").
#define TACHO_SDK_FUNCTIONS(X)                                                        \
  X(create_context, CreateContext, "create_context")                                  \
  X(start_context, OnContext, "start_context")                                        \
  X(stop_context, OnContext, "stop_context")                                          \
  X(create_buffer, CreateBuffer, "create_buffer")                                     \
  X(flush_buffer, FlushBuffer, "flush_buffer")                                        \
  X(trace_buffered, TraceBuffered, "configure_buffer_tracing_service")                \
  X(trace_callback, TraceCallback, "configure_callback_tracing_service")              \
  X(buffer_kind_name, KindName, "query_buffer_tracing_kind_name")                     \
  X(buffer_operation_name, OperationName, "query_buffer_tracing_kind_operation_name") \
  X(buffer_kinds, IterateKinds, "iterate_buffer_tracing_kinds")                       \
  X(buffer_operations, IterateOperations, "iterate_buffer_tracing_kind_operations")   \
  X(callback_kind_name, KindName, "query_callback_tracing_kind_name")                 \
  X(callback_kinds, IterateKinds, "iterate_callback_tracing_kinds")                   \
  X(query_agents, QueryAgents, "query_available_agents")                              \
  X(timestamp, Timestamp, "get_timestamp")                                            \
  X(status_text, StatusText, "get_status_string")
/// The number by which the library asks for the external correlation of this kind of work; -1 = it does not ask.
inline int32_t external_kind(signature::KindName* name_of, std::string_view kind) {
  for (int32_t number = 1; number < 64; ++number) {
    const char* name = nullptr;
    uint64_t length = 0;
    if (name_of(number, &name, &length) == kSuccess && name != nullptr && kind == name) return number;
  }
  return -1;
}
struct Functions {
#define TACHO_SDK_MEMBER(member, type, name) signature::type* member;
  TACHO_SDK_FUNCTIONS(TACHO_SDK_MEMBER)
#undef TACHO_SDK_MEMBER
  // Not in every version; nullptr if missing.
  signature::ExternalRequest* external_request;
  signature::KindName* external_kind_name;
};

// Names of kinds

namespace kind {
inline constexpr std::string_view kHsaCore = "HSA_CORE_API", kHsaAmd = "HSA_AMD_EXT_API",
                                  kHsaImage = "HSA_IMAGE_EXT_API", kHsaFinalize = "HSA_FINALIZE_EXT_API",
                                  kHip = "HIP_RUNTIME_API", kHipCompiler = "HIP_COMPILER_API", kCopy = "MEMORY_COPY",
                                  kDispatch = "KERNEL_DISPATCH", kScratch = "SCRATCH_MEMORY",
                                  kAllocation = "MEMORY_ALLOCATION", kRccl = "RCCL_API", kCodeObject = "CODE_OBJECT",
                                  kMigration = "KFD_PAGE_MIGRATE",  // 1.x: a record for each migration
    kMigrationEvent = "PAGE_MIGRATION";                             // 0.5 and 0.6: one as it begins, one as it ends
}  // namespace kind

// Defaults, shared with bench/rocm_empty_tool.cpp, so that it measures the library's own part of tacho's cost.

/// A buffer is handed over often, because only the library itself may do it while the program runs, and far from full,
/// because a full buffer would be flushed by the program's threads.
inline constexpr size_t kBufferBytes = 256 << 10, kFlushAt = 16 << 10;
/// Calls that only ask, are over in nanoseconds and come by the thousand: not recorded by default, as on HSA's road.
constexpr bool only_asks(std::string_view function) {
  for (const std::string_view question :
       {"hipGetDevice", "hipGetLastError", "hipExtGetLastError", "hipPeekAtLastError", "hipDeviceGetAttribute",
        "hipGetDeviceFlags", "hipStreamIsCapturing", "hipStreamGetCaptureInfo", "hipThreadExchangeStreamCaptureMode",
        "hipDriverGetVersion", "hipRuntimeGetVersion", "hipStreamGetPriority", "hipStreamGetFlags",
        "hipStreamGetDevice", "hipGetErrorName", "hipGetErrorString", "__hipPushCallConfiguration",
        "__hipPopCallConfiguration"})
    if (function == question) return true;
  return false;
}
namespace asked {
inline constexpr const char *kHipCalls = "HIP_RUNTIME_API_EXT", *kHipCompilerCalls = "HIP_COMPILER_API",
                            *kRcclCalls = "RCCL_API", *kKernels = "KERNEL_DISPATCH", *kCopies = "MEMORY_COPY",
                            *kAllocations = "MEMORY_ALLOCATION", *kScratchMemory = "SCRATCH_MEMORY";
inline constexpr const char* kAll[] = {kHipCalls, kHipCompilerCalls, kRcclCalls,    kKernels,
                                       kCopies,   kAllocations,      kScratchMemory};
}  // namespace asked

// Records

/// A field of a record: read() gives `absent` if a record of this size lacks it.
template <typename T>
struct Member {
  uint32_t offset;
  T read(const std::byte* record, size_t size, T absent = T{}) const {
    if (offset + sizeof(T) > size) return absent;
    T value;
    std::memcpy(&value, record + offset, sizeof value);
    return value;
  }
};

/// Every record of tracing begins with its size, its kind and the operation; then the correlation id.
namespace any {
inline constexpr Member<uint64_t> size{0}, correlation{16};
inline constexpr Member<int32_t> kind{8}, operation{12};
}  // namespace any

/// Calls of HIP, HSA, RCCL: 56 bytes in 0.x, 64 in 1.x.
struct Api {
  Member<uint64_t> start, end, thread;
  static constexpr Member<uint64_t> ancestor{32};  // 1.x
  static constexpr size_t kNarrow = 56, kWide = 64;
  /// Kinds "..._EXT": arguments follow, then the result in a union of this size (a hipError_t at its begin).
  static constexpr size_t kResultBytes = 24;
};
inline constexpr Api kApiNarrow{{32}, {40}, {48}}, kApiWide{{40}, {48}, {56}};

/// Kernels, 184 bytes in both. The correlation has 16 bytes in both, too.
namespace dispatch {
inline constexpr Member<uint64_t> external{24}, thread{32}, start{40}, end{48}, agent{64}, queue{72}, kernel{80},
    number{88};
inline constexpr Member<uint32_t> private_bytes{96}, group_bytes{100}, group_x{104}, group_y{108}, group_z{112},
    grid_x{116}, grid_y{120}, grid_z{124};
inline constexpr size_t kLeast = 128;
}  // namespace dispatch

/// Copies: 80 bytes in 0.x, 96 (with both addresses) in 1.x.
namespace copy {
inline constexpr Member<uint64_t> external{24}, thread{32}, start{40}, end{48}, target{56}, source{64}, bytes{72};
inline constexpr size_t kLeast = 80;
}  // namespace copy

/// Allocations: from 0.5 on, 80 bytes in 0.x, 88 in 1.x.
struct Allocation {
  Member<uint64_t> thread, start, end, agent, address, bytes;
  static constexpr size_t kNarrow = 80, kWide = 88;
};
inline constexpr Allocation kAllocationNarrow{{32}, {40}, {48}, {56}, {64}, {72}},
    kAllocationWide{{40}, {48}, {56}, {64}, {72}, {80}};

/// Scratch memory: 80 bytes in 0.x (0.4 has the correlation behind the times), 96 with the size allocated in 1.x.
struct SdkScratch {
  Member<uint64_t> correlation, agent, queue, thread, start, end, bytes;
  static constexpr size_t kNarrow = 80, kWide = 96;
};
inline constexpr uint32_t kAbsent = 1 << 20;
inline constexpr SdkScratch kScratchOldest{{56}, {16}, {24}, {32}, {40}, {48}, {kAbsent}},
    kScratchNarrow{{16}, {32}, {40}, {48}, {56}, {64}, {kAbsent}},
    kScratchWide{{16}, {40}, {48}, {56}, {64}, {72}, {88}};

/// Pages that the driver moved: 96 bytes in 1.x. The range's end is the byte behind it.
namespace migration {
inline constexpr Member<uint64_t> start{16}, end{24}, address{40}, address_end{48}, source{56}, target{64};
inline constexpr size_t kLeast = 96;
}  // namespace migration
/// The same as events, 160 bytes in 0.5 and 0.6; operations are called "..._PAGE_MIGRATE_START" and
/// "..._PAGE_MIGRATE_END". Here the range's end is its last byte (parse_event in the library's page_migration.cpp).
namespace migration_event {
inline constexpr Member<uint64_t> time{16}, address{32}, address_end{40}, source{48}, target{56};
inline constexpr size_t kLeast = 160;
}  // namespace migration_event

/// Counters: a header for each dispatch (176 bytes: the dispatch's information at 48), then values of 40 bytes (32 in
/// 0.4, which name no agent), which do not say their size.
namespace counter {
inline constexpr Member<uint64_t> count{8}, correlation{16}, start{32}, end{40};
inline constexpr size_t kHeaderLeast = 120;
inline constexpr size_t value_bytes(uint32_t version) {
  return version < 500 ? 32 : 40;
}
}  // namespace counter

/// Payload of the code-object callback's operation 2: a kernel becomes known (or, in phase "unload", unknown). 72 bytes
/// at least.
namespace kernel_symbol {
inline constexpr int32_t kOperation = 2;
inline constexpr Member<uint64_t> id{8}, code_object{16}, name{24}, object{32};
inline constexpr Member<uint32_t> group_bytes{48}, private_bytes{52}, scalar{56}, vector{60}, accumulation{64};
inline constexpr size_t kLeast = 68, kMost = 256;
}  // namespace kernel_symbol

/// rocprofiler_agent_v0_t: 312 bytes in 1.x, 296 in 0.x, which has no uuid.
namespace agent {
inline constexpr Member<uint64_t> id{8}, memory_bytes{176}, name{248}, product{264};
inline constexpr Member<uint32_t> type{16}, simds{24}, waves_per_simd{48}, lds_kib{52}, wave_size{64}, xccs{68},
    units{72}, shader_engines{80}, location{108}, domain{112}, max_clock_mhz{140}, node{280};
inline constexpr Member<int32_t> logical{284}, logical_of_type{288};
inline constexpr Member<uint64_t> uuid{296};
inline constexpr uint32_t kGpu = 2;
inline constexpr size_t kLeast = 292, kMost = 512, kNarrow = 296, kWithUuid = 304;
}  // namespace agent

// How records go through the pool
// A block of kind tape::BlockKind::kRocprofiler holds records one after another, each behind a PieceHeader:
//
//    0          4       8       16
//   | category | kind  | bytes | the record, `bytes` long, then up to 7 bytes to a multiple of 8 |
//
// Readings of counters of a whole GPU are tacho's own records (DeviceReading) in category kCounters; NameRecords of
// kind kDeviceReadings name their counters.
//
// kind is this library version's number for it: NameRecords give the names of the kind and its operations
// (NameSpace::kOperation: number = kind << 32 | operation, text = "KIND/operation").

struct PieceHeader {
  uint32_t category, kind;
  uint64_t bytes;
};
static_assert(sizeof(PieceHeader) == 16);
inline constexpr uint32_t kDeviceReading = 100;  // a kind that the library does not have
inline constexpr int32_t kDeviceReadings = 255;  // the kind of an operation in NameRecords
struct DeviceReading {
  uint64_t size, time, agent;  // time: the library's clock
  uint32_t counter, reserved;
  double value;  // sum of all units since reading began
};
static_assert(sizeof(DeviceReading) == 40);
/// Number of an operation in NameRecords.
constexpr uint64_t operation_number(int32_t kind, int32_t operation) {
  return static_cast<uint64_t>(static_cast<uint32_t>(kind)) << 32 | static_cast<uint32_t>(operation);
}
/// Kinds of BlockObjectRecords, with their bytes and texts.
enum class Object : uint32_t {
  kKernel = 1,  // a kernel symbol's payload; text 0: its name
  kAgent,       // rocprofiler_agent_v0_t; texts: name, product's name
};

}  // namespace tacho::vendor::sdk
