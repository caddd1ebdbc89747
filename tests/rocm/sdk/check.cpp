// Compares what tacho and the tests' imitation declare of rocprofiler-sdk with AMD's headers, at compile time:
// scripts/check-rocm-abi.sh. Nothing here runs.
#include <hip/hip_runtime_api.h>
#include <rocprofiler-sdk/buffer.h>
#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/context.h>
#include <rocprofiler-sdk/counters.h>
#include <rocprofiler-sdk/device_counting_service.h>
#include <rocprofiler-sdk/dispatch_counting_service.h>
#include <rocprofiler-sdk/external_correlation.h>
#include <rocprofiler-sdk/pc_sampling.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>
#include <rocprofiler-sdk/version.h>

#include "abi.h"
#include "vendor/amd/call_parameters.h"
#include "vendor/amd/sdk.h"
#include "vendor/amd/sdk_counting.h"
#include "vendor/amd/sdk_sampling.h"

#if ROCPROFILER_VERSION_MAJOR >= 1
#include <rocprofiler-sdk/counter_config.h>
#include <rocprofiler-sdk/experimental/counters.h>
#define TACHO_WIDE 1
using Value = rocprofiler_counter_record_t;
using DimensionOfValue = rocprofiler_counter_record_dimension_info_t;
using Imitated = imitation::Correlation1;
#else
#include <rocprofiler-sdk/profile_config.h>
#define TACHO_WIDE 0
using Value = rocprofiler_record_counter_t;
using DimensionOfValue = rocprofiler_record_dimension_info_t;
using Imitated = imitation::Correlation0;
#endif

namespace sdk = tacho::vendor::sdk;

#define SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define AT(ours, our, theirs, their) static_assert(offsetof(ours, our) == offsetof(theirs, their))
#define FIELD(ours, theirs, their)                         \
  static_assert((ours).offset == offsetof(theirs, their)); \
  static_assert(sizeof((ours).read(nullptr, 0)) == sizeof(static_cast<theirs*>(nullptr)->their))
#define VALUE(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))

// Registration
#if TACHO_WIDE
using Client = sdk::ClientId;
using ImitatedClient = imitation::Client;
#else
using Client = sdk::ClientIdNarrow;
using ImitatedClient = imitation::Client0;
#endif
SIZE(Client, rocprofiler_client_id_t);
AT(Client, name, rocprofiler_client_id_t, name);
AT(Client, handle, rocprofiler_client_id_t, handle);
SIZE(sdk::ConfigureResult, rocprofiler_tool_configure_result_t);
AT(sdk::ConfigureResult, initialize, rocprofiler_tool_configure_result_t, initialize);
AT(sdk::ConfigureResult, finalize, rocprofiler_tool_configure_result_t, finalize);
AT(sdk::ConfigureResult, data, rocprofiler_tool_configure_result_t, tool_data);
SIZE(ImitatedClient, rocprofiler_client_id_t);
SIZE(imitation::Tool, rocprofiler_tool_configure_result_t);

// Enumerators
VALUE(sdk::kSuccess, ROCPROFILER_STATUS_SUCCESS);
VALUE(sdk::category::kTracing, ROCPROFILER_BUFFER_CATEGORY_TRACING);
VALUE(sdk::category::kPcSampling, ROCPROFILER_BUFFER_CATEGORY_PC_SAMPLING);
VALUE(sdk::category::kCounters, ROCPROFILER_BUFFER_CATEGORY_COUNTERS);
VALUE(sdk::kCounterHeader, ROCPROFILER_COUNTER_RECORD_PROFILE_COUNTING_DISPATCH_HEADER);
VALUE(sdk::kCounterValue, ROCPROFILER_COUNTER_RECORD_VALUE);
VALUE(sdk::kPolicyLossless, ROCPROFILER_BUFFER_POLICY_LOSSLESS);
VALUE(sdk::kPhaseEnter, ROCPROFILER_CALLBACK_PHASE_ENTER);
VALUE(sdk::kPhaseEnter, ROCPROFILER_CALLBACK_PHASE_LOAD);
VALUE(sdk::kPhaseExit, ROCPROFILER_CALLBACK_PHASE_EXIT);
VALUE(sdk::kernel_symbol::kOperation, ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER);
VALUE(sdk::kCallbackCodeObject, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT);
VALUE(sdk::agent::kGpu, ROCPROFILER_AGENT_TYPE_GPU);
VALUE(sdk::kAgentVersion, ROCPROFILER_AGENT_INFO_VERSION_0);
VALUE(sdk::kCounterInfoVersion, ROCPROFILER_COUNTER_INFO_VERSION_0);
#if TACHO_WIDE
VALUE(imitation::kExceeds, ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT);
#endif
VALUE(imitation::kNotImplemented, ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED);
VALUE(imitation::kInvalid, ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT);

// Records that are handed to callbacks
SIZE(sdk::SdkRecordHeader, rocprofiler_record_header_t);
AT(sdk::SdkRecordHeader, kind, rocprofiler_record_header_t, kind);
AT(sdk::SdkRecordHeader, payload, rocprofiler_record_header_t, payload);
SIZE(imitation::Header, rocprofiler_record_header_t);
#if TACHO_WIDE
using Callback = sdk::CallbackRecordWide;
AT(Callback, ancestor, rocprofiler_callback_tracing_record_t, correlation_id.ancestor);
#else
using Callback = sdk::CallbackRecordNarrow;
#endif
SIZE(Callback, rocprofiler_callback_tracing_record_t);
AT(Callback, thread, rocprofiler_callback_tracing_record_t, thread_id);
AT(Callback, correlation, rocprofiler_callback_tracing_record_t, correlation_id);
AT(Callback, kind, rocprofiler_callback_tracing_record_t, kind);
AT(Callback, operation, rocprofiler_callback_tracing_record_t, operation);
AT(Callback, phase, rocprofiler_callback_tracing_record_t, phase);
AT(Callback, payload, rocprofiler_callback_tracing_record_t, payload);
SIZE(imitation::CallbackRecord<Imitated>, rocprofiler_callback_tracing_record_t);

using Symbol = rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t;
FIELD(sdk::kernel_symbol::id, Symbol, kernel_id);
FIELD(sdk::kernel_symbol::code_object, Symbol, code_object_id);
FIELD(sdk::kernel_symbol::name, Symbol, kernel_name);
FIELD(sdk::kernel_symbol::object, Symbol, kernel_object);
FIELD(sdk::kernel_symbol::group_bytes, Symbol, group_segment_size);
FIELD(sdk::kernel_symbol::private_bytes, Symbol, private_segment_size);
FIELD(sdk::kernel_symbol::scalar, Symbol, sgpr_count);
FIELD(sdk::kernel_symbol::vector, Symbol, arch_vgpr_count);
FIELD(sdk::kernel_symbol::accumulation, Symbol, accum_vgpr_count);
static_assert(sizeof(Symbol) >= sdk::kernel_symbol::kLeast && sizeof(Symbol) <= sdk::kernel_symbol::kMost);
AT(sdk::KernelSymbol, kernel, Symbol, kernel_id);
AT(sdk::KernelSymbol, name, Symbol, kernel_name);
AT(sdk::KernelSymbol, sgprs, Symbol, sgpr_count);
AT(sdk::KernelSymbol, vgprs, Symbol, arch_vgpr_count);
AT(sdk::KernelSymbol, accum_vgprs, Symbol, accum_vgpr_count);
AT(imitation::KernelSymbol, accum_vgprs, Symbol, accum_vgpr_count);

// Agents
using Agent = rocprofiler_agent_v0_t;
FIELD(sdk::agent::id, Agent, id);
FIELD(sdk::agent::type, Agent, type);
FIELD(sdk::agent::simds, Agent, simd_count);
FIELD(sdk::agent::waves_per_simd, Agent, max_waves_per_simd);
FIELD(sdk::agent::lds_kib, Agent, lds_size_in_kb);
FIELD(sdk::agent::wave_size, Agent, wave_front_size);
FIELD(sdk::agent::xccs, Agent, num_xcc);
FIELD(sdk::agent::units, Agent, cu_count);
FIELD(sdk::agent::shader_engines, Agent, num_shader_banks);
FIELD(sdk::agent::location, Agent, location_id);
FIELD(sdk::agent::domain, Agent, domain);
FIELD(sdk::agent::max_clock_mhz, Agent, max_engine_clk_fcompute);
FIELD(sdk::agent::memory_bytes, Agent, local_mem_size);
FIELD(sdk::agent::name, Agent, name);
FIELD(sdk::agent::product, Agent, product_name);
FIELD(sdk::agent::node, Agent, node_id);
FIELD(sdk::agent::logical, Agent, logical_node_id);
static_assert(sizeof(Agent) >= sdk::agent::kNarrow && sizeof(Agent) <= sdk::agent::kMost);
AT(sdk::AgentHead, id, Agent, id);
AT(sdk::AgentHead, type, Agent, type);
AT(imitation::Agent, xccs, Agent, num_xcc);
AT(imitation::Agent, name, Agent, name);
AT(imitation::Agent, node, Agent, node_id);
#if TACHO_WIDE
FIELD(sdk::agent::logical_of_type, Agent, logical_node_type_id);
static_assert(sdk::agent::uuid.offset == offsetof(Agent, uuid));
SIZE(imitation::Agent, Agent);
#endif

// Records in buffers
using Api = rocprofiler_buffer_tracing_hip_api_record_t;
FIELD(sdk::any::kind, Api, kind);
FIELD(sdk::any::operation, Api, operation);
static_assert(sdk::any::correlation.offset == offsetof(Api, correlation_id.internal));
constexpr sdk::Api kApi = TACHO_WIDE ? sdk::kApiWide : sdk::kApiNarrow;
FIELD(kApi.start, Api, start_timestamp);
FIELD(kApi.end, Api, end_timestamp);
FIELD(kApi.thread, Api, thread_id);
static_assert(sizeof(Api) == (TACHO_WIDE ? sdk::Api::kWide : sdk::Api::kNarrow));
SIZE(imitation::ApiRecord<Imitated>, Api);

using Dispatched = rocprofiler_buffer_tracing_kernel_dispatch_record_t;
FIELD(sdk::dispatch::external, Dispatched, correlation_id.external.value);
FIELD(sdk::dispatch::thread, Dispatched, thread_id);
FIELD(sdk::dispatch::start, Dispatched, start_timestamp);
FIELD(sdk::dispatch::end, Dispatched, end_timestamp);
FIELD(sdk::dispatch::agent, Dispatched, dispatch_info.agent_id);
FIELD(sdk::dispatch::queue, Dispatched, dispatch_info.queue_id);
FIELD(sdk::dispatch::kernel, Dispatched, dispatch_info.kernel_id);
FIELD(sdk::dispatch::number, Dispatched, dispatch_info.dispatch_id);
FIELD(sdk::dispatch::private_bytes, Dispatched, dispatch_info.private_segment_size);
FIELD(sdk::dispatch::group_bytes, Dispatched, dispatch_info.group_segment_size);
FIELD(sdk::dispatch::group_x, Dispatched, dispatch_info.workgroup_size.x);
FIELD(sdk::dispatch::grid_z, Dispatched, dispatch_info.grid_size.z);
SIZE(imitation::DispatchRecord, Dispatched);

using Copied = rocprofiler_buffer_tracing_memory_copy_record_t;
FIELD(sdk::copy::external, Copied, correlation_id.external.value);
FIELD(sdk::copy::thread, Copied, thread_id);
FIELD(sdk::copy::start, Copied, start_timestamp);
FIELD(sdk::copy::end, Copied, end_timestamp);
FIELD(sdk::copy::target, Copied, dst_agent_id);
FIELD(sdk::copy::source, Copied, src_agent_id);
FIELD(sdk::copy::bytes, Copied, bytes);
static_assert(sizeof(Copied) == (TACHO_WIDE ? sizeof(imitation::CopyRecord1) : sizeof(imitation::CopyRecord0)));

using Allocated = rocprofiler_buffer_tracing_memory_allocation_record_t;
constexpr sdk::Allocation kAllocation = TACHO_WIDE ? sdk::kAllocationWide : sdk::kAllocationNarrow;
FIELD(kAllocation.thread, Allocated, thread_id);
FIELD(kAllocation.start, Allocated, start_timestamp);
FIELD(kAllocation.end, Allocated, end_timestamp);
FIELD(kAllocation.agent, Allocated, agent_id);
FIELD(kAllocation.address, Allocated, address);
FIELD(kAllocation.bytes, Allocated, allocation_size);
static_assert(sizeof(Allocated) == (TACHO_WIDE ? sdk::Allocation::kWide : sdk::Allocation::kNarrow));

using Scratched = rocprofiler_buffer_tracing_scratch_memory_record_t;
constexpr sdk::SdkScratch kScratch = TACHO_WIDE ? sdk::kScratchWide : sdk::kScratchNarrow;
FIELD(kScratch.agent, Scratched, agent_id);
FIELD(kScratch.queue, Scratched, queue_id);
FIELD(kScratch.thread, Scratched, thread_id);
FIELD(kScratch.start, Scratched, start_timestamp);
FIELD(kScratch.end, Scratched, end_timestamp);
#if TACHO_WIDE
FIELD(kScratch.bytes, Scratched, allocation_size);
#endif
static_assert(sizeof(Scratched) == (TACHO_WIDE ? sdk::SdkScratch::kWide : sdk::SdkScratch::kNarrow));

// Pages that the driver moved
// Kinds and operations are found by name: the library's names are those of the enumerators.
#define NAMED(ours, kind)         \
  static_assert((ours) == #kind); \
  static_assert(ROCPROFILER_BUFFER_TRACING_##kind > 0)
#if TACHO_WIDE
using Migrated = rocprofiler_buffer_tracing_kfd_page_migrate_record_t;
NAMED(sdk::kind::kMigration, KFD_PAGE_MIGRATE);
FIELD(sdk::any::kind, Migrated, kind);
FIELD(sdk::any::operation, Migrated, operation);
FIELD(sdk::migration::start, Migrated, start_timestamp);
FIELD(sdk::migration::end, Migrated, end_timestamp);
FIELD(sdk::migration::address, Migrated, start_address);
FIELD(sdk::migration::address_end, Migrated, end_address);
FIELD(sdk::migration::source, Migrated, src_agent);
FIELD(sdk::migration::target, Migrated, dst_agent);
static_assert(sizeof(Migrated) == sdk::migration::kLeast);
SIZE(imitation::MigrationRecord, Migrated);
AT(imitation::MigrationRecord, process, Migrated, pid);
AT(imitation::MigrationRecord, preferred, Migrated, preferred_agent);
AT(imitation::MigrationRecord, error, Migrated, error_code);
VALUE(imitation::kMigration, ROCPROFILER_BUFFER_TRACING_KFD_PAGE_MIGRATE);
SIZE(imitation::ApiRecord<imitation::Correlation1>, rocprofiler_buffer_tracing_rccl_api_record_t);
VALUE(imitation::kRccl, ROCPROFILER_BUFFER_TRACING_RCCL_API);
VALUE(imitation::kMigrationByGpuFault, ROCPROFILER_KFD_PAGE_MIGRATE_PAGEFAULT_GPU);
#else
using Migrated = rocprofiler_buffer_tracing_page_migration_record_t;
NAMED(sdk::kind::kMigrationEvent, PAGE_MIGRATION);
FIELD(sdk::any::kind, Migrated, kind);
FIELD(sdk::any::operation, Migrated, operation);
FIELD(sdk::migration_event::time, Migrated, timestamp);
FIELD(sdk::migration_event::address, Migrated, args.page_migrate_start.start_addr);
FIELD(sdk::migration_event::address_end, Migrated, args.page_migrate_start.end_addr);
FIELD(sdk::migration_event::source, Migrated, args.page_migrate_start.from_agent);
FIELD(sdk::migration_event::target, Migrated, args.page_migrate_start.to_agent);
FIELD(sdk::migration_event::address, Migrated, args.page_migrate_end.start_addr);
FIELD(sdk::migration_event::address_end, Migrated, args.page_migrate_end.end_addr);
FIELD(sdk::migration_event::source, Migrated, args.page_migrate_end.from_agent);
FIELD(sdk::migration_event::target, Migrated, args.page_migrate_end.to_agent);
static_assert(sizeof(Migrated) == sdk::migration_event::kLeast);
SIZE(imitation::MigrationEvent, Migrated);
AT(imitation::MigrationEvent, process, Migrated, pid);
AT(imitation::MigrationEvent, address, Migrated, args);
VALUE(imitation::kMigrationEvent, ROCPROFILER_BUFFER_TRACING_PAGE_MIGRATION);
SIZE(imitation::ApiRecord<imitation::Correlation0>, rocprofiler_buffer_tracing_rccl_api_record_t);
VALUE(imitation::kRccl0, ROCPROFILER_BUFFER_TRACING_RCCL_API);
VALUE(imitation::kMigrationBegins, ROCPROFILER_PAGE_MIGRATION_PAGE_MIGRATE_START);
VALUE(imitation::kMigrationEnds, ROCPROFILER_PAGE_MIGRATION_PAGE_MIGRATE_END);
#endif
NAMED(sdk::kind::kDispatch, KERNEL_DISPATCH);
NAMED(sdk::kind::kCopy, MEMORY_COPY);
NAMED(sdk::kind::kHip, HIP_RUNTIME_API);
NAMED(sdk::kind::kAllocation, MEMORY_ALLOCATION);
NAMED(sdk::kind::kScratch, SCRATCH_MEMORY);
NAMED(sdk::kind::kRccl, RCCL_API);

// Counters
SIZE(sdk::DispatchInfo, rocprofiler_kernel_dispatch_info_t);
AT(sdk::DispatchInfo, agent, rocprofiler_kernel_dispatch_info_t, agent_id);
AT(sdk::DispatchInfo, queue, rocprofiler_kernel_dispatch_info_t, queue_id);
AT(sdk::DispatchInfo, kernel, rocprofiler_kernel_dispatch_info_t, kernel_id);
AT(sdk::DispatchInfo, dispatch, rocprofiler_kernel_dispatch_info_t, dispatch_id);
AT(sdk::DispatchInfo, private_bytes, rocprofiler_kernel_dispatch_info_t, private_segment_size);
AT(sdk::DispatchInfo, group_bytes, rocprofiler_kernel_dispatch_info_t, group_segment_size);
AT(sdk::DispatchInfo, workgroup, rocprofiler_kernel_dispatch_info_t, workgroup_size);
AT(sdk::DispatchInfo, grid, rocprofiler_kernel_dispatch_info_t, grid_size);
SIZE(imitation::DispatchInfo, rocprofiler_kernel_dispatch_info_t);
SIZE(sdk::DispatchData, rocprofiler_dispatch_counting_service_data_t);
AT(sdk::DispatchData, internal, rocprofiler_dispatch_counting_service_data_t, correlation_id.internal);
AT(sdk::DispatchData, start, rocprofiler_dispatch_counting_service_data_t, start_timestamp);
AT(sdk::DispatchData, info, rocprofiler_dispatch_counting_service_data_t, dispatch_info);
SIZE(imitation::DispatchData, rocprofiler_dispatch_counting_service_data_t);
SIZE(sdk::DispatchHeader, rocprofiler_dispatch_counting_service_record_t);
AT(sdk::DispatchHeader, records, rocprofiler_dispatch_counting_service_record_t, num_records);
AT(sdk::DispatchHeader, start, rocprofiler_dispatch_counting_service_record_t, start_timestamp);
AT(sdk::DispatchHeader, info, rocprofiler_dispatch_counting_service_record_t, dispatch_info);
FIELD(sdk::counter::count, rocprofiler_dispatch_counting_service_record_t, num_records);
FIELD(sdk::counter::start, rocprofiler_dispatch_counting_service_record_t, start_timestamp);
FIELD(sdk::counter::end, rocprofiler_dispatch_counting_service_record_t, end_timestamp);
SIZE(sdk::SdkCounterRecord, Value);
AT(sdk::SdkCounterRecord, value, Value, counter_value);
AT(sdk::SdkCounterRecord, dispatch, Value, dispatch_id);
AT(sdk::SdkCounterRecord, agent, Value, agent_id);
static_assert(sdk::counter::value_bytes(100 * ROCPROFILER_VERSION_MINOR + 10000 * ROCPROFILER_VERSION_MAJOR) ==
              sizeof(Value));
SIZE(imitation::CounterRecord, Value);
SIZE(sdk::CounterDescription, rocprofiler_counter_info_v0_t);
AT(sdk::CounterDescription, name, rocprofiler_counter_info_v0_t, name);
AT(sdk::CounterDescription, expression, rocprofiler_counter_info_v0_t, expression);
SIZE(imitation::CounterInfo, rocprofiler_counter_info_v0_t);
SIZE(sdk::DimensionInfo, DimensionOfValue);
AT(sdk::DimensionInfo, instances, DimensionOfValue, instance_size);
AT(sdk::DimensionInfo, id, DimensionOfValue, id);
SIZE(imitation::Dimension, DimensionOfValue);

// PC samples
using CodeLoaded = rocprofiler_callback_tracing_code_object_load_data_t;
SIZE(sdk::CodeObject, CodeLoaded);
AT(sdk::CodeObject, id, CodeLoaded, code_object_id);
AT(sdk::CodeObject, uri, CodeLoaded, uri);
AT(sdk::CodeObject, base, CodeLoaded, load_base);
AT(sdk::CodeObject, delta, CodeLoaded, load_delta);
AT(sdk::CodeObject, storage, CodeLoaded, storage_type);
AT(sdk::CodeObject, memory, CodeLoaded, memory_base);
AT(sdk::CodeObject, memory_bytes, CodeLoaded, memory_size);
SIZE(imitation::CodeObject, CodeLoaded);
VALUE(sdk::CodeObject::kOperation, ROCPROFILER_CODE_OBJECT_LOAD);
VALUE(sdk::CodeObject::kInFile, ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_FILE);
VALUE(sdk::CodeObject::kInMemory, ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY);
SIZE(sdk::SamplingChoice, rocprofiler_pc_sampling_configuration_t);
AT(sdk::SamplingChoice, unit, rocprofiler_pc_sampling_configuration_t, unit);
AT(sdk::SamplingChoice, least, rocprofiler_pc_sampling_configuration_t, min_interval);
AT(sdk::SamplingChoice, flags, rocprofiler_pc_sampling_configuration_t, flags);
SIZE(imitation::SamplingChoice, rocprofiler_pc_sampling_configuration_t);
VALUE(sdk::SamplingMethod::kStochastic, ROCPROFILER_PC_SAMPLING_METHOD_STOCHASTIC);
VALUE(sdk::SamplingMethod::kHostTrap, ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP);
VALUE(sdk::SamplingUnit::kInstructions, ROCPROFILER_PC_SAMPLING_UNIT_INSTRUCTIONS);
VALUE(sdk::SamplingUnit::kCycles, ROCPROFILER_PC_SAMPLING_UNIT_CYCLES);
VALUE(sdk::SamplingUnit::kTime, ROCPROFILER_PC_SAMPLING_UNIT_TIME);
constexpr sdk::SampleKinds kKinds =
    sdk::sample_kinds(100 * ROCPROFILER_VERSION_MINOR + 10000 * ROCPROFILER_VERSION_MAJOR);
VALUE(kKinds.host_trap, ROCPROFILER_PC_SAMPLING_RECORD_HOST_TRAP_V0_SAMPLE);
VALUE(kKinds.stochastic, ROCPROFILER_PC_SAMPLING_RECORD_STOCHASTIC_V0_SAMPLE);
using HostTrap = rocprofiler_pc_sampling_record_host_trap_v0_t;
static_assert(sizeof(HostTrap) == sdk::kHostTrapSample.least);
FIELD(sdk::kHostTrapSample.hardware, HostTrap, hw_id);
FIELD(sdk::kHostTrapSample.code_object, HostTrap, pc.code_object_id);
FIELD(sdk::kHostTrapSample.offset, HostTrap, pc.code_object_offset);
FIELD(sdk::kHostTrapSample.exec_mask, HostTrap, exec_mask);
FIELD(sdk::kHostTrapSample.timestamp, HostTrap, timestamp);
FIELD(sdk::kHostTrapSample.dispatch, HostTrap, dispatch_id);
FIELD(sdk::kHostTrapSample.correlation, HostTrap, correlation_id.internal);
FIELD(sdk::kHostTrapSample.group_x, HostTrap, workgroup_id.x);
SIZE(imitation::HostTrapSample, HostTrap);
AT(imitation::HostTrapSample, dispatch, HostTrap, dispatch_id);
AT(imitation::HostTrapSample, group, HostTrap, workgroup_id);
#if TACHO_WIDE
VALUE(sdk::kPowerOfTwo, ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_INTERVAL_POW2);
VALUE(kKinds.invalid, ROCPROFILER_PC_SAMPLING_RECORD_INVALID_SAMPLE);
using Stochastic = rocprofiler_pc_sampling_record_stochastic_v0_t;
static_assert(sizeof(Stochastic) == sdk::kStochasticSample.least);
FIELD(sdk::kStochasticSample.hardware, Stochastic, hw_id);
FIELD(sdk::kStochasticSample.code_object, Stochastic, pc.code_object_id);
FIELD(sdk::kStochasticSample.offset, Stochastic, pc.code_object_offset);
FIELD(sdk::kStochasticSample.exec_mask, Stochastic, exec_mask);
FIELD(sdk::kStochasticSample.timestamp, Stochastic, timestamp);
FIELD(sdk::kStochasticSample.dispatch, Stochastic, dispatch_id);
FIELD(sdk::kStochasticSample.correlation, Stochastic, correlation_id.internal);
FIELD(sdk::kStochasticSample.group_z, Stochastic, workgroup_id.z);
FIELD(sdk::stochastic::waves, Stochastic, wave_count);
static_assert(sdk::stochastic::snapshot.offset == offsetof(Stochastic, snapshot));
static_assert(sdk::stochastic::issued.offset == offsetof(Stochastic, wave_in_group) + 1);
SIZE(imitation::StochasticSample, Stochastic);
AT(imitation::StochasticSample, waves, Stochastic, wave_count);
AT(imitation::StochasticSample, snapshot, Stochastic, snapshot);
#endif

// Structures of arguments
#if TACHO_WIDE
consteval size_t offset_of(std::string_view function, std::string_view name) {
  std::string_view members = tacho::vendor::amd::find_hip_call(function)->members;
  size_t end = 0;
  tacho::vendor::CallMember member;
  while (tacho::vendor::next_member(members, end, member))
    if (member.name == name) return member.offset;
  return ~size_t{0};
}
#define ARGUMENT(function, name) \
  static_assert(offset_of(#function, #name) == offsetof(rocprofiler_hip_api_args_t, function.name))
ARGUMENT(hipLaunchKernel, numBlocks);
ARGUMENT(hipLaunchKernel, args);
ARGUMENT(hipLaunchKernel, stream);
ARGUMENT(hipModuleLaunchKernel, sharedMemBytes);
ARGUMENT(hipModuleLaunchKernel, extra);
ARGUMENT(hipExtModuleLaunchKernel, flags);
ARGUMENT(hipMemcpyAsync, kind);
ARGUMENT(hipMemcpyAsync, stream);
ARGUMENT(hipMemcpyPeerAsync, srcDevice);
ARGUMENT(hipMemcpyPeerAsync, stream);
ARGUMENT(hipMemsetD8Async, count);
ARGUMENT(hipMemset2DAsync, stream);
ARGUMENT(hipMallocManaged, flags);
ARGUMENT(hipEventRecordWithFlags, flags);
using Extended = rocprofiler_buffer_tracing_hip_api_ext_record_t;
static_assert(sdk::Api::kWide == offsetof(Extended, args));
static_assert(sizeof(Extended) - sdk::Api::kResultBytes == offsetof(Extended, retval));
#endif

// Functions: the same number of words in and out
template <typename>
struct Words;
template <typename R, typename... A>
struct Words<R(A...)> {
  static constexpr size_t count = sizeof...(A), bytes = (sizeof(A) + ... + 0);
};
#define FUNCTION(ours, theirs)                                                         \
  static_assert(Words<sdk::signature::ours>::count == Words<decltype(theirs)>::count); \
  static_assert(Words<sdk::signature::ours>::bytes == Words<decltype(theirs)>::bytes)
FUNCTION(CreateContext, rocprofiler_create_context);
FUNCTION(OnContext, rocprofiler_start_context);
FUNCTION(CreateBuffer, rocprofiler_create_buffer);
FUNCTION(FlushBuffer, rocprofiler_flush_buffer);
FUNCTION(TraceBuffered, rocprofiler_configure_buffer_tracing_service);
FUNCTION(TraceCallback, rocprofiler_configure_callback_tracing_service);
FUNCTION(KindName, rocprofiler_query_buffer_tracing_kind_name);
FUNCTION(OperationName, rocprofiler_query_buffer_tracing_kind_operation_name);
FUNCTION(IterateKinds, rocprofiler_iterate_buffer_tracing_kinds);
FUNCTION(IterateOperations, rocprofiler_iterate_buffer_tracing_kind_operations);
FUNCTION(QueryAgents, rocprofiler_query_available_agents);
FUNCTION(ExternalRequest, rocprofiler_configure_external_correlation_id_request_service);
FUNCTION(Timestamp, rocprofiler_get_timestamp);
FUNCTION(AgentCounters, rocprofiler_iterate_agent_supported_counters);
FUNCTION(CounterInfo, rocprofiler_query_counter_info);
FUNCTION(CounterDimensions, rocprofiler_iterate_counter_dimensions);
FUNCTION(RecordCounter, rocprofiler_query_record_counter_id);
FUNCTION(RecordPosition, rocprofiler_query_record_dimension_position);
FUNCTION(SamplingChoices, rocprofiler_query_pc_sampling_agent_configurations);
FUNCTION(SamplePc, rocprofiler_configure_pc_sampling_service);
FUNCTION(DispatchService, rocprofiler_configure_callback_dispatch_counting_service);
#if TACHO_WIDE
FUNCTION(CreateConfig, rocprofiler_create_counter_config);
FUNCTION(DeviceService, rocprofiler_configure_device_counting_service);
FUNCTION(SampleDevice, rocprofiler_sample_device_counting_service);
FUNCTION(LoadDefinition, rocprofiler_load_counter_definition);
VALUE(sdk::kAppendDefinition, ROCPROFILER_COUNTER_FLAG_APPEND_DEFINITION);
#else
FUNCTION(CreateConfig, rocprofiler_create_profile_config);
#endif
