// The imitation's own declarations of rocprofiler-sdk's ABI, so that tacho's are not tested against themselves.
// scripts/check-rocm-abi.sh compares both with AMD's headers. Two versions: 1.0, and 0.6 with narrower correlations.
#pragma once

#include <cstdint>

namespace imitation {

using Status = int32_t;
enum : Status {
  kOk = 0,
  kError = 1,
  kKindNotFound = 4,
  kCounterNotFound = 8,
  kNotImplemented = 17,
  kInvalid = 19,
  kNotAvailable = 37,
  kExceeds = 38
};

struct Id {
  uint64_t handle;
};
struct Dim3 {
  uint32_t x, y, z;
};

struct Client {
  uint64_t size;
  const char* name;
  uint32_t handle;
};
struct Client0 {  // 0.x
  const char* name;
  uint32_t handle;
};
struct Tool {
  uint64_t size;
  int (*initialize)(void (*)(Client), void*);
  void (*finalize)(void*);
  void* data;
};

struct Correlation1 {
  uint64_t internal, external, ancestor;
};
struct Correlation0 {  // 0.x, and records of asynchronous work in 1.x
  uint64_t internal, external;
};

template <typename Correlation>
struct CallbackRecord {
  Id context;
  uint64_t thread;
  Correlation correlation;
  int32_t kind, operation, phase;
  void* payload;
};
template <typename Correlation>
struct ApiRecord {
  uint64_t size;
  int32_t kind, operation;
  Correlation correlation;
  uint64_t start, end, thread;
};
static_assert(sizeof(ApiRecord<Correlation1>) == 64 && sizeof(ApiRecord<Correlation0>) == 56);
enum : int32_t { kRccl = 14, kRccl0 = 15 };  // kinds of 1.x, and of 0.5 and 0.6
struct DispatchInfo {
  uint64_t size;
  Id agent, queue;
  uint64_t kernel, dispatch;
  uint32_t private_bytes, group_bytes;
  Dim3 workgroup, grid;
  uint8_t reserved[56];
};
struct DispatchRecord {
  uint64_t size;
  int32_t kind, operation;
  Correlation0 correlation;
  uint64_t thread, start, end;
  DispatchInfo info;
};
struct CopyRecord0 {
  uint64_t size;
  int32_t kind, operation;
  Correlation0 correlation;
  uint64_t thread, start, end;
  Id target, source;
  uint64_t bytes;
};
struct CopyRecord1 : CopyRecord0 {
  uint64_t target_address, source_address;
};
struct MigrationRecord {  // 1.x: the range's end is the byte behind it
  uint64_t size;
  int32_t kind, operation;
  uint64_t start, end;
  uint32_t process;
  uint64_t address, address_end;
  Id source, target, prefetch, preferred;
  int32_t error;
};
struct MigrationEvent {  // 0.5 and 0.6: the range's end is its last byte
  uint64_t size;
  int32_t kind, operation;
  uint64_t time;
  uint32_t process;
  uint64_t address, address_end;
  Id source, target;
  uint64_t rest[12];
};
static_assert(sizeof(MigrationRecord) == 96 && sizeof(MigrationEvent) == 160);
enum : int32_t {  // kinds and operations, 1.x and 0.x
  kMigration = 29,
  kMigrationByGpuFault = 1,
  kMigrationEvent = 12,
  kMigrationBegins = 1,
  kMigrationEnds = 2
};
struct Header {
  uint32_t category, kind;
  void* payload;
};

struct CodeObject {
  uint64_t size, id;
  Id agent;
  uint64_t hsa_agent;
  const char* uri;
  uint64_t base, bytes;
  int64_t delta;
  int32_t storage;  // 1: a file, 2: memory
  uint64_t memory, memory_bytes;
};
struct KernelSymbol {
  uint64_t size, kernel, code_object;
  const char* name;
  uint64_t object;
  uint32_t argument_bytes, argument_alignment, group_bytes, private_bytes, sgprs, vgprs, accum_vgprs;
  int64_t entry_offset;
  uint64_t address;
};
struct Agent {
  uint64_t size;
  Id id;
  int32_t type;
  uint32_t cpu_cores, simds, banks, caches, links, first_core, first_simd, waves_per_simd, lds_kib, gds_kib, gws,
      wave_size, xccs, units, arrays, shader_banks, arrays_per_engine, units_per_array, simds_per_unit, scratch_slots,
      target_version;
  uint16_t vendor, device;
  uint32_t location, domain, render_minor, sdma_engines, xgmi_engines, sdma_queues, cp_queues, cpu_clock, gpu_clock,
      sdma_fw, fw, capability, units_per_engine, waves_per_unit, family, workgroup_most, grid_most;
  uint64_t memory, hive, gpu_id;
  Dim3 workgroup_dim, grid_dim;
  const void *bank_list, *cache_list, *link_list;
  const char *name, *vendor_name, *product, *model;
  uint32_t node;
  int32_t logical, logical_of_type;
  uint32_t visibility;
  uint8_t uuid[16];  // 1.x
};
static_assert(sizeof(Agent) == 312);

struct SamplingChoice {
  uint64_t size;
  int32_t method, unit;
  uint64_t least, most, flags;
};
struct HostTrapSample {
  uint64_t size, hardware, code_object, offset, exec_mask, time, dispatch;
  Correlation0 correlation;
  Dim3 group;
  uint32_t wave;
};
struct StochasticSample {
  uint64_t size;
  uint8_t flags, wave, issued_and_type;
  uint64_t hardware, code_object, offset, exec_mask;
  Dim3 group;
  uint32_t waves;
  uint64_t time, dispatch;
  Correlation0 correlation;
  uint32_t snapshot, memory;
};
static_assert(sizeof(HostTrapSample) == 88 && sizeof(StochasticSample) == 104);

struct CounterInfo {
  Id id;
  const char *name, *description, *block, *expression;
  uint8_t flags;
};
struct Dimension {
  const char* name;
  uint64_t instances, id;
};
struct DispatchData {
  uint64_t size;
  Correlation0 correlation;
  uint64_t start, end;
  DispatchInfo info;
};
struct DispatchHeader {
  uint64_t size, records;
  Correlation0 correlation;
  uint64_t start, end;
  DispatchInfo info;
};
struct CounterRecord {
  uint64_t id;
  double value;
  uint64_t dispatch, user;
  Id agent;
};

}  // namespace imitation
