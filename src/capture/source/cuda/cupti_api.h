// Typed access to CUPTI and to the few driver functions that the CUDA source needs. tacho links no NVIDIA library: it
// looks the functions up at run time, in the copy of CUPTI that belongs to the process's CUDA runtime.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tape/layout.h"
#include "vendor/nvidia/cupti_activity.h"
#include "vendor/nvidia/cupti_callback.h"

namespace tacho::capture::cuda {

namespace abi = vendor::cupti;
/// The kind of pool blocks that hold CUPTI's buffers.
inline constexpr auto kBlocks = tape::BlockKind::kCupti;
/// More than CUPTI has numbers of functions in one domain.
inline constexpr uint32_t kCallbacks = 2048;

// member, symbol, required, result and parameters
#define TACHO_CUPTI_FUNCTIONS(F)                                                                            \
  F(get_version, cuptiGetVersion, true, (uint32_t*))                                                        \
  F(get_result_string, cuptiGetResultString, true, (int, const char**))                                     \
  F(subscribe, cuptiSubscribe, true, (abi::Subscriber*, abi::Callback, void*))                              \
  F(subscribe_v2, cuptiSubscribe_v2, false, (abi::Subscriber*, abi::Callback, void*, void*))                \
  F(unsubscribe, cuptiUnsubscribe, false, (abi::Subscriber))                                                \
  F(enable_callback, cuptiEnableCallback, true, (uint32_t, abi::Subscriber, int, uint32_t))                 \
  F(get_callback_name, cuptiGetCallbackName, true, (int, uint32_t, const char**))                           \
  F(activity_enable, cuptiActivityEnable, true, (int))                                                      \
  F(activity_disable, cuptiActivityDisable, true, (int))                                                    \
  F(register_callbacks, cuptiActivityRegisterCallbacks, true, (abi::BufferRequested, abi::BufferCompleted)) \
  F(flush_all, cuptiActivityFlushAll, true, (uint32_t))                                                     \
  F(next_record, cuptiActivityGetNextRecord, true, (uint8_t*, size_t, void**))                              \
  F(dropped_records, cuptiActivityGetNumDroppedRecords, true, (abi::Context, uint32_t, size_t*))            \
  F(set_attribute, cuptiActivitySetAttribute, true, (int, size_t*, void*))                                  \
  F(get_attribute, cuptiActivityGetAttribute, false, (int, size_t*, void*))                                 \
  F(enable_runtime_api, cuptiActivityEnableRuntimeApi, false, (uint32_t, uint8_t))                          \
  F(get_timestamp, cuptiGetTimestamp, true, (uint64_t*))                                                    \
  F(set_thread_id_type, cuptiSetThreadIdType, false, (int))                                                 \
  F(get_thread_id_type, cuptiGetThreadIdType, false, (int*))                                                \
  F(register_timestamp, cuptiActivityRegisterTimestampCallback, false, (abi::Timestamp))                    \
  F(enable_driver_api, cuptiActivityEnableDriverApi, false, (uint32_t, uint8_t))                            \
  F(enable_hw_trace, cuptiActivityEnableHWTrace, false, (uint8_t))                                          \
  F(enable_latency, cuptiActivityEnableLatencyTimestamps, false, (uint8_t))                                 \
  F(register_callbacks_v2, cuptiActivityRegisterCallbacks_v2, false,                                        \
    (abi::Subscriber, abi::OwnBufferRequested, abi::OwnBufferCompleted))                                    \
  F(activity_enable_v2, cuptiActivityEnable_v2, false, (abi::Subscriber, int, void*))                       \
  F(activity_disable_v2, cuptiActivityDisable_v2, false, (abi::Subscriber, int, void*))                     \
  F(next_record_v2, cuptiActivityGetNextRecord_v2, false, (abi::Subscriber, uint8_t*, size_t, void**))      \
  F(set_attribute_v2, cuptiActivitySetAttribute_v2, false, (abi::Subscriber, int, size_t*, void*))          \
  F(get_timestamp_v2, cuptiGetTimestamp_v2, false, (abi::Subscriber, uint64_t*))                            \
  F(enable_runtime_api_v2, cuptiActivityEnableRuntimeApi_v2, false, (abi::Subscriber, uint32_t, uint8_t))   \
  F(enable_driver_api_v2, cuptiActivityEnableDriverApi_v2, false, (abi::Subscriber, uint32_t, uint8_t))     \
  F(finalize, cuptiFinalize, false, ())                                                                     \
  F(get_graph_id, cuptiGetGraphId, false, (void*, uint32_t*))                                               \
  F(get_graph_exec_id, cuptiGetGraphExecId, false, (void*, uint32_t*))                                      \
  F(get_graph_node_id, cuptiGetGraphNodeId, false, (void*, uint64_t*))

struct Cupti {
#define TACHO_CUPTI_MEMBER(member, symbol, required, parameters) abi::Result(*member) parameters = nullptr;
  TACHO_CUPTI_FUNCTIONS(TACHO_CUPTI_MEMBER)
#undef TACHO_CUPTI_MEMBER
  char path[512] = {};        // file it was loaded from
  const char* found_by = "";  // how it was found, for the trace
};

/// Loads CUPTI into `cupti`. Tries the copy already in the process, the one beside the CUDA runtime in use (a Python
/// wheel's), $CUDA_HOME's or $CUDA_PATH's, and the system's. False if none was usable; `tried` then gets the list of
/// places, for the user.
bool load_cupti(Cupti& cupti, char* tried, size_t tried_capacity);

/// Address of `symbol` in a CUPTI that the process has already loaded, nullptr when there is none.
void* find_in_loaded_cupti(const char* symbol);
/// Address of `symbol` in the CUDA driver of the process, nullptr when there is none.
void* find_in_driver(const char* symbol);

/// Starts tracing GPU work; call inside cuInit. False when it cannot; the user has been warned.
bool start_session();
/// In a program that runs: starts a session if the process has loaded the CUDA driver and none runs.
void start_late();
/// While another profiler is at work: whether it has ended, so that a session can start.
void look_late();
/// Ends the session of start_late(): records that CUPTI holds go to the pool, all kinds and callbacks are off, CUPTI
/// has no subscriber. Whether it stays initialised: ending.h.
void leave_late();
/// In a child forked meanwhile, in which neither CUDA nor CUPTI works: forgets the session.
void leave_in_child();
/// The CUPTI that the session uses, nullptr before it starts.
const Cupti* session_cupti();
/// True while tacho's session owns CUPTI's activity records in this process.
bool session_active();
/// Moves the records that CUPTI still holds to the pool. Call before _exit, which runs no exit handlers. Takes at most
/// a second.
void finish_before_exit();
/// Prints a warning on stderr and adds it to the trace as a note.
void say_warning(const char* sentence);

}  // namespace tacho::capture::cuda
