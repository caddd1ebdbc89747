// The AMD source without AMD's profiling library (rocprofiler-sdk), on HSA's own interface for tools: the runtime (ROCr) loads
// libtacho.so because HSA_TOOLS_LIB names it, and hands over its dispatch tables.
//
//   session.cpp   OnLoad, devices and their clocks, the thread that collects, the end of a process
//   kernels.cpp   names and resources of kernels, from the loader as executables are frozen
//   queues.cpp    queues become intercept queues; each dispatch gets a signal of ours, whose times become a record
//   copies.cpp    asynchronous copies
//   hsa_calls.cpp HSA's calls, by wrapping what the tables hold
//   hip.cpp       HIP's calls, by interposing its exported functions
//
// What a call launches carries the call's correlation: HIP and HSA hand packets over on the calling thread.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <type_traits>

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

class Lock {
 public:
  explicit Lock(std::atomic<uint32_t>& word) : word_(word) {
    while (word.exchange(1, std::memory_order_acquire) != 0) sched_yield();
  }
  ~Lock() { word_.store(0, std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::atomic<uint32_t>& word_;
};

struct Device {
  hsa::Agent agent;
  uint32_t number;         // in the pool; 0 = the processor
  uint32_t copies;         // its queue of copies, in the pool
  uint32_t vgpr_granule;   // registers per step of a kernel's descriptor
  bool unified_registers;  // vector and accumulation registers share a file (gfx90a and later)
};
/// nullptr for an agent that is no GPU, or unknown.
Device* device_of(hsa::Agent agent);
/// Finds the GPUs, once.
void find_devices();
uint32_t device_count();
Device& device_at(uint32_t index);

// kernels.cpp
struct Kernel {
  uint32_t number;  // in the pool; 0 = none
  uint32_t shared_static;
  bool wanted;  // by the user's filter
};
Kernel kernel_at(uint64_t object);
hsa::Status freeze(hsa::Executable executable, const char* options);

// queues.cpp
hsa::Status create_queue(hsa::Agent agent, uint32_t size, uint32_t type,
                         void (*callback)(hsa::Status, hsa::Queue*, void*), void* data,
                         uint32_t private_bytes, uint32_t group_bytes, hsa::Queue** queue);
hsa::Status destroy_queue(hsa::Queue* queue);
/// Writes records of the dispatches that have completed. Returns how many have not. `patient` false: gives up where another
/// thread is at it.
uint64_t collect(bool patient);
/// At the end of the process: counts the dispatches whose times never came, and gives up the signals that are not in use.
void end_queues();

// copies.cpp
hsa::Status async_copy(void* to, hsa::Agent to_agent, const void* from, hsa::Agent from_agent, size_t bytes,
                       uint32_t count, const hsa::Signal* wait_for, hsa::Signal completion);
hsa::Status async_copy_on(void* to, hsa::Agent to_agent, const void* from, hsa::Agent from_agent,
                          size_t bytes, uint32_t count, const hsa::Signal* wait_for, hsa::Signal completion,
                          uint32_t engine, bool force);
/// Copies that have not completed.
uint64_t open_copies();
/// At the end of the process: gives up the signals that are not in use.
void end_copies();

// hsa_calls.cpp
/// Makes every call through the tables a record, for --hsa-trace. After tacho's own replacements are in the tables.
void trace_calls(hsa::CoreTable& core, hsa::AmdTable& amd);

// session.cpp
/// True while records are taken: in the process that loaded the source, until its end.
bool active();

}  // namespace tacho::capture::rocm
