// The AMD source on AMD's own library, rocprofiler-sdk: libtacho.so as a tool of it. It needs nothing of ROCm to build.
//
//   sdk_road.cpp     which road a process takes, this one or HSA's interface for tools (rocm.h), and where the library is
//   sdk_session.cpp  rocprofiler_configure: what is recorded, its names, the thread that flushes, the end of a process
//   sdk_buffers.cpp  the library's buffers, copied to the pool as they are
//   sdk_calls.cpp    HIP's calls as they begin and end: for the sampler
//   sdk_work.cpp     what is handed to the GPU: its stream, its node of a graph, launches that switch recording
//   sdk_exit.cpp     a process that would never end because its GPU hangs
//   sdk_queues.cpp   cooperative queues, which stay the runtime's own
//   device_counters.cpp  counters of whole GPUs while the program runs (device_counters.h)
//   counting.cpp     the same library in a run that counts (counting.h)
//   replay.cpp       launches that run once for each pass there (replay.h); code_object.cpp says what arguments they take
//   pc_samples.cpp   the same library in a run that samples the program counter (pc_samples.h)
//
// A process takes one road for good: the library and HSA's interface would both see every kernel.
#pragma once

#include <cstdint>
#include <string_view>

#include "tape/layout.h"
#include "vendor/amd/hsa.h"
#include "vendor/amd/sdk.h"

namespace tacho::capture::rocm {

namespace sdk = vendor::sdk;

enum class Road : uint32_t { kUndecided, kSdk, kHsa };

// sdk_road.cpp
Road road();
/// Takes the road of the library that calls rocprofiler_configure, unless another road was taken. False: do not become
/// its tool.
bool take_sdk_road(const char* library);
/// Takes HSA's road, unless the SDK's was taken. Some HSA runtimes load tools before they register: the first road
/// taken stays.
bool take_hsa_road();
/// Leaves the SDK's road, before anything was recorded there; `why` is a sentence for the user.
void leave_sdk_road(const char* why);

// sdk_session.cpp
/// True while the library records for tacho in this process.
bool sdk_active();
/// Watches exit() (below), once there is work.
void watch_recordings_exit();
/// Writes down what GPUs there are, once. The library opens their devices for that: not before there is work on one, so
/// that a child that is forked before inherits nothing.
void describe_agents();

// sdk_calls.cpp
/// The functions below need this to set up their services; -1 = the library has no such kind.
struct Services {
  const sdk::Functions& functions;
  uint32_t version;
  sdk::Context context;
  int32_t hip_records, hip_callback;
};
/// Follows HIP's calls if the run samples call stacks.
void watch_calls(const Services& services);

// sdk_work.cpp
void follow_work(const Services& services, bool dispatches, bool copies);
/// True while launches have to be counted because recording begins with one of them.
bool waits_for_launch();
/// Says where recording begins or ends, in runs that count launches. From the thread that switches it.
void recording_switched(bool on);
/// The library's end: no work is in flight.
void end_work();
/// In a forked child.
void forget_work();
/// True while work that the library was seen to begin has not come back as a record.
bool work_is_open();
/// Stops counting the work that is open now: records of work that ends while recording is off may never come.
void forgive_open_work();

// sdk_exit.cpp
/// Behaviour of a run when exit() has begun and the library waits for GPU work. Called by a thread of tacho's own.
struct ExitWatch {
  bool (*open)();              // true while GPU work is open; nothing else is a reason to end the process
  void (*hand_over)();         // makes the library hand over its records
  void (*finish)();            // ends the recording, and says so; the process ends right behind it
  void (*begins)() = nullptr;  // first of all, by the exiting thread: HIP and HSA are up still
};
/// Watches this process's exit(), once for a process. To be called with the first work that goes to a GPU: HIP's own
/// end, which may wait for it, is registered before.
void watch_exit(const ExitWatch& watch);
/// Watches the library's hsa_queue_destroy, which waits; with the tables as the library left them.
void watch_queue_ends(vendor::hsa::Tables* tables);
/// Watches where HIP's own end is over; to be called as soon as the library has started.
void watch_hip_end();
/// True from the first call of watch_exit() on.
bool exit_is_watched();
/// Something came back from the library.
void sign_of_life();
/// The library came to its end.
void end_exit_watch();

// sdk_queues.cpp
/// Cooperative queues stay the runtime's own. The first before the library has registered, with the runtime's tables;
/// the second behind that. `counts`: this run counts, or samples, instead of tracing.
void note_own_queues(const vendor::hsa::Tables* tables);
void keep_cooperative_queues(vendor::hsa::Tables* tables, bool counts);

// sdk_buffers.cpp
inline constexpr tape::BlockKind kSdkBlocks = tape::BlockKind::kRocprofiler;
void set_up_sdk_buffers(const sdk::Functions& functions, uint32_t version);
/// How many dispatches and copies have come back, as records or as records that the library dropped.
uint64_t work_back();
/// States what records of this kind are called and which table they fill.
void describe_kind(int32_t kind, const char* name, event::Table table);
/// A record of ours among the library's.
void put_piece(uint32_t category, uint32_t kind, const void* record, uint64_t bytes);
/// The library's callback for full buffers.
void copy_records(sdk::Context, sdk::Buffer, sdk::SdkRecordHeader** headers, size_t count, void*, uint64_t dropped);

}  // namespace tacho::capture::rocm
