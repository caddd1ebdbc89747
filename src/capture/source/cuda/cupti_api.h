// Typed access to CUPTI and the few driver functions that the CUDA source needs. Nothing of NVIDIA's is linked: the
// functions are looked up at run time in the copy of CUPTI that belongs to the CUDA runtime which the process uses.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace tacho::capture::cuda {

// name in the table, symbol, required
#define TACHO_CUPTI_FUNCTIONS(F)                                            \
  F(get_version, cuptiGetVersion, true)                                     \
  F(get_result_string, cuptiGetResultString, true)                          \
  F(subscribe, cuptiSubscribe, true)                                        \
  F(unsubscribe, cuptiUnsubscribe, true)                                    \
  F(enable_callback, cuptiEnableCallback, true)                             \
  F(get_callback_name, cuptiGetCallbackName, true)                          \
  F(activity_enable, cuptiActivityEnable, true)                             \
  F(activity_disable, cuptiActivityDisable, true)                           \
  F(register_callbacks, cuptiActivityRegisterCallbacks, true)               \
  F(flush_all, cuptiActivityFlushAll, true)                                 \
  F(next_record, cuptiActivityGetNextRecord, true)                          \
  F(dropped_records, cuptiActivityGetNumDroppedRecords, true)               \
  F(set_attribute, cuptiActivitySetAttribute, true)                         \
  F(get_timestamp, cuptiGetTimestamp, true)                                 \
  F(set_thread_id_type, cuptiSetThreadIdType, false)                        \
  F(flush_period, cuptiActivityFlushPeriod, false)                          \
  F(register_timestamp, cuptiActivityRegisterTimestampCallback, false)      \
  F(enable_driver_api, cuptiActivityEnableDriverApi, false)                 \
  F(enable_runtime_api, cuptiActivityEnableRuntimeApi, false)               \
  F(enable_hw_trace, cuptiActivityEnableHWTrace, false)                     \
  F(enable_latency, cuptiActivityEnableLatencyTimestamps, false)            \
  F(get_graph_node_id, cuptiGetGraphNodeId, false)                          \
  F(get_graph_id, cuptiGetGraphId, false)                                   \
  F(get_graph_exec_id, cuptiGetGraphExecId, false)                          \
  F(get_context_id, cuptiGetContextId, false)                               \
  F(get_device_id, cuptiGetDeviceId, false)

struct Cupti {
#define TACHO_CUPTI_MEMBER(member, symbol, required) decltype(&::symbol) member = nullptr;
  TACHO_CUPTI_FUNCTIONS(TACHO_CUPTI_MEMBER)
#undef TACHO_CUPTI_MEMBER
  decltype(&::cuptiSubscribe) subscribe_v2 = nullptr;  // cast where it is called: not in every header
  char path[512] = {};       // file it was loaded from
  const char* found_by = ""; // how it was found, for the trace
};

/// Loads CUPTI into `cupti`: the copy already in the process, else the one beside the CUDA runtime in use (a Python
/// wheel's), else $CUDA_HOME's or $CUDA_PATH's, else the system's; `configured` (a file, may be empty) before all.
/// False: none was usable and `tried` says in words what was looked for.
bool load_cupti(Cupti& cupti, const char* configured, char* tried, size_t tried_capacity);

}  // namespace tacho::capture::cuda
