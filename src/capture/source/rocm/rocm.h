// The AMD source without AMD's profiling library (rocprofiler-sdk), on HSA's own interface for tools: the runtime
// (ROCr) loads libtacho.so because HSA_TOOLS_LIB names it, and hands over its dispatch tables.
//
//   session.cpp   OnLoad, devices and their clocks, the thread that collects, the end of a process
//   kernels.cpp   names and resources of kernels, from the loader as executables are frozen
//   queues.cpp    queues become intercept queues; each dispatch gets a signal of ours, whose times become a record
//   copies.cpp    asynchronous copies
//   streams.cpp   HIP's streams: their numbers, and the pool's queue for what a stream does on a hardware queue
//   allocations.cpp  memory: HIP's as the program asks for it, else HSA's pools
//   faults.cpp    what the GPU and its queues report when they die
//   hsa_calls.cpp HSA's calls, by wrapping what the tables hold
//   hip.cpp       HIP's calls, by interposing its exported functions; hip_calls.h says what each of them does
//
// Launched work carries the call's correlation: HIP and HSA hand packets over on the calling thread.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "capture/per_thread.h"
#include "capture/room/list.h"
#include "capture/room/lock.h"
#include "event/schema.h"
#include "tape/layout.h"
#include "vendor/amd/hsa.h"

namespace tacho::capture::rocm {

namespace hsa = vendor::hsa;

/// The runtime's own functions, as they were before tacho replaced some.
struct Runtime {
  hsa::CoreTable core;
  hsa::AmdTable amd;
  hsa::LoaderTable loader;
};
extern Runtime g_runtime;
/// Calls a function of a table: call<hsa::signature::SignalLoad>(g_runtime.core.hsa_signal_load_relaxed, signal).
template <typename Signature, typename... A>
auto call(void* function, A... arguments) {
  return reinterpret_cast<Signature*>(function)(arguments...);
}

struct HsaDevice {
  hsa::Agent agent;
  uint32_t number;         // in the pool; 0 = the processor
  uint32_t copies;         // its queue of copies, in the pool
  uint32_t vgpr_granule;   // registers per step of a kernel's descriptor
  bool unified_registers;  // vector and accumulation registers share a file (gfx90a and later)
};
/// nullptr for an agent that is not a GPU, or unknown.
HsaDevice* device_of(hsa::Agent agent);
/// Finds the GPUs, once.
void find_devices();
uint32_t device_count();
HsaDevice& device_at(uint32_t index);

// kernels.cpp
struct Kernel {
  uint32_t number;  // in the pool; 0 = none
  uint32_t shared_static;
  bool wanted;  // by the user's filter
};
Kernel kernel_at(uint64_t object);
/// A launch of a kernel that the user's filter leaves out.
void leave_out(uint64_t object);
/// Name of the loaded kernel, "" when it is unknown or does not fit.
void kernel_name(uint64_t object, char* out, size_t room);
hsa::Status freeze(hsa::Executable executable, const char* options);
bool known_kernel(uint64_t object);
/// Learns the kernels of all code that is loaded, for a program that ran before tacho came. False where the runtime
/// does not tell it.
bool learn_loaded_kernels();
/// Tacho attaches to the process once more: numbers of kernels mean nothing.
void forget_kernels();

// hip.cpp
/// The outermost HIP call that is open on a thread, for the work that it launches and the memory that it allocates.
struct OpenCall {
  uint64_t generation;
  uint64_t stream;      // the handle that the call names; 0 = the default stream
  uint32_t depth;       // calls of HIP's functions open; 0 = the thread is in none
  uint32_t graph_node;  // commands so far of the graph that the call launches
  bool stream_known;    // false: the call works on several streams
  bool per_thread;      // its default stream is the thread's own
  bool graph;           // it launches a graph
  bool own_memory;      // it allocates or frees memory and is recorded as such: HSA's part of it is not
  bool starts, stops;   // recording has been switched on or off by a launch of this call
};
extern PerThread<OpenCall> g_open_calls;
/// That of the calling thread. Threads that are not recorded share one that is never read.
inline OpenCall& open_call() {
  static constinit OpenCall nobodys{};
  OpenCall* const own = g_open_calls.get();
  return own != nullptr ? *own : nobodys;
}
/// Number of the next command in the graph that this thread launches, from 1; 0 = it launches none.
inline uint32_t next_graph_node() {
  OpenCall& open = open_call();
  return open.graph ? ++open.graph_node : 0;
}

// streams.cpp
inline constexpr uint32_t kNoStream = 0xffffffff;
/// Number of the stream on which the calling thread's open HIP call works: 0 = the default stream, others from 1 in the
/// order in which they were created; kNoStream outside HIP's calls.
uint32_t open_stream();
void stream_created(uint64_t handle);
/// Tacho attaches to the process once more: numbers of streams and queues of an earlier pool mean nothing.
void forget_streams();
void stream_destroyed(uint64_t handle);
/// The pool's queue for what `stream` does on `base`, a queue of `device`; `base` itself for kNoStream. `hardware`: the
/// number of the HSA queue, 0 = a copy engine.
uint32_t queue_of_stream(uint32_t base, uint32_t device, uint32_t hardware, uint32_t stream);

// allocations.cpp
struct TrackedAllocation {
  uint64_t bytes;
  event::MemoryKind kind;
  uint32_t device;  // in the pool; 0 = the processor
};
/// Remembers and records memory that the program has got between two times of the host's clock.
void allocated(uint64_t address, uint64_t bytes, event::MemoryKind kind, uint64_t correlation, uint64_t start,
               uint64_t end);
/// True where the runtime says that the processor owns the memory.
bool is_of_the_host(const void* address);
/// Takes out the record of `address`, before it is freed. False when it was not recorded.
bool take_allocation(uint64_t address, TrackedAllocation& out);
/// The freeing failed: the allocation still exists.
void keep_allocation(uint64_t address, const TrackedAllocation& allocation);
void freed(uint64_t address, const TrackedAllocation& allocation, uint64_t correlation, uint64_t start, uint64_t end);
hsa::Status pool_allocate(uint64_t pool, size_t bytes, uint32_t flags, void** out);
hsa::Status pool_free(void* at);
hsa::Status memory_allocate(uint64_t region, size_t bytes, void** out);
hsa::Status memory_free(void* at);

// faults.cpp
/// Says in the trace that a queue has died. `object`: the first kernel that it did not complete, 0 = none.
void note_queue_error(const HsaDevice* device, hsa::Status status, uint64_t object);
/// Sees page faults and resets from here on; once the runtime is up.
void watch_events();
/// In place of hsa_amd_register_system_event_handler.
hsa::Status register_events(hsa::Status (*handler)(const hsa::HsaEvent*, void*), void* data);

// queues.cpp
hsa::Status create_queue(hsa::Agent agent, uint32_t size, uint32_t type,
                         void (*callback)(hsa::Status, hsa::Queue*, void*), void* data, uint32_t private_bytes,
                         uint32_t group_bytes, hsa::Queue** queue);
hsa::Status destroy_queue(hsa::Queue* queue);
/// The trace says, once, that it lacks the kernels that the program launches cooperatively.
void note_cooperative_launches();
/// Writes records of the dispatches that have completed. Returns how many have not. `patient` false: gives up where
/// another thread is at it.
uint64_t collect(bool patient);
/// At the end of the process or of tacho's stay: counts the dispatches whose times never came, and gives up the signals
/// that are not in use.
void end_queues(event::LossReason reason);
/// Tacho attaches to the process once more: numbers of queues mean nothing.
void forget_queues();

// copies.cpp
hsa::Status async_copy(void* to, hsa::Agent to_agent, const void* from, hsa::Agent from_agent, size_t bytes,
                       uint32_t count, const hsa::Signal* wait_for, hsa::Signal completion);
hsa::Status async_copy_on(void* to, hsa::Agent to_agent, const void* from, hsa::Agent from_agent, size_t bytes,
                          uint32_t count, const hsa::Signal* wait_for, hsa::Signal completion, uint32_t engine,
                          bool force);
/// Copies that have not completed.
uint64_t open_copies();
/// At the end of the process or of tacho's stay: gives up the signals that are not in use.
void end_copies(event::LossReason reason);
/// Tacho attaches to the process once more: copies from before are no concern of this stay.
void forget_copies();

// hsa_calls.cpp
/// Makes every call through the tables a record, for --hsa-trace. After tacho's own replacements are in the tables.
void trace_calls(hsa::CoreTable& core, hsa::AmdTable& amd);

// session.cpp
/// Commands issued and not yet recorded, for tacho to count should this process be killed.
tape::CommandCounts& progress();
/// True while records are taken: in the process that loaded the source, until its end.
bool active();
/// True if the program uses AMD's OpenCL and no HIP: the OpenCL layer traces it.
bool only_opencl();
/// Puts tacho's functions in the place of the runtime's; `core` and `amd` hold these now.
void put_functions(hsa::CoreTable& core, hsa::AmdTable& amd);
/// In a program that tacho attaches to: takes the runtime's functions from its tables, and records from here on.
void begin_late_session(const hsa::CoreTable& core, const hsa::AmdTable& amd);
/// Records nothing new, and waits `patience` ns at most for what is under way.
void close_late_session(int64_t patience);
/// Then counts what has not ended, and gives everything up but memory.
void end_late_session();

}  // namespace tacho::capture::rocm
