// HIP in a program that was running when tacho attached to it: HIP tells a tracer, which may come at any time, what is
// called and what the GPU has done (vendor/amd/hip_tracer.h).
//
//   late.cpp       the source's life: finding HIP, becoming its tracer, leaving
//   calls.cpp      calls as they begin and end
//   work.cpp       kernels, copies and fills that have ended
//   launches.cpp   what is known of work between its call and its end
#pragma once

#include <atomic>
#include <cstdint>

#include "event/schema.h"
#include "vendor/amd/hip_tracer.h"

namespace tacho::capture::rocm {

// late.cpp
/// For capture/sources.def.
void start_late();
void look_late();
void leave_late();
void leave_late_in_child();

namespace tracer = vendor::hip_tracer;

/// True while calls and work are recorded.
bool recording_late();

// launches.cpp

/// A call that makes work, from its beginning until its work has ended.
struct LateLaunch {
  std::atomic<uint64_t> id;  // what HIP has for its correlation; 0 = free
  LateLaunch* next;
  uint64_t correlation;
  uint32_t operation;  // HIP's number
  uint32_t stream;     // kNoStream = unknown
  uint64_t grid[3];    // work-items
  uint32_t group[3];
  uint32_t shared_dynamic;
  uint32_t ordinal;
  std::atomic<uint32_t> told;      // pieces of its work that have ended
  bool kernel;                     // makes one kernel
  bool graph, shaped;              // launches a graph; grid, group and shared_dynamic are known
  bool asynchronous;               // of a copy: the call does not wait
  event::CopyDirection direction;  // of a copy, as the call says
  uint64_t bytes;                  // of a copy, as the call says; 0 = it does not
  bool dispatches, copies;         // recorded at the time of the call
};
/// nullptr when there is no memory. Every field is 0 but `id`.
LateLaunch* take_launch();
/// That of a correlation of HIP's; nullptr when it is none of this session's.
LateLaunch* launch_of(uint64_t id);
/// Once, when a piece of its work has ended or it has made none. One that may make more (graphs, copies in parts) is
/// kept for a while: nobody says which piece is the last.
void end_launch(LateLaunch& launch);
void forget_launches();

// calls.cpp
/// Learns HIP's numbers of its functions.
void learn_operations(tracer::NameOf* name_of);
/// HIP asks about a call: 0 = it is wanted.
int begin_call(uint32_t operation, tracer::TracedCall& call);
/// HIP asks whether it is to time work that a call is making: 0 = yes.
int wants_work(tracer::TracedWork work);
/// HIP says that a record of work will come. `announces`: it always says so.
void work_will_come(tracer::TracedWork work);
void set_announces(bool announces);
/// Calls that are recorded and have not returned.
uint64_t open_calls();
void forget_calls();

// work.cpp
void record_work(const tracer::Record& record);
/// Of the loaded HSA runtime; false when it has not these functions.
struct HsaFunctions {
  void *system, *agents, *agent;  // hsa_system_get_info, hsa_iterate_agents, hsa_agent_get_info
};
void use_hsa(const HsaFunctions& functions);
/// HSA's clock in ns; 0 when HSA does not run.
uint64_t hsa_now();
/// Defines the GPUs, once a session.
void find_late_devices();
void define_late_clocks();
/// Work that was made and has not been told.
struct Unfinished {
  uint64_t kernels, copies;
};
Unfinished unfinished_work();
void work_made(bool copy);
void work_told(bool copy);
/// A session begins at a moment of HSA's clock, in ns: work that began before is not recorded.
void begin_work(uint64_t now);

}  // namespace tacho::capture::rocm
