// What OpenCL's files under `tacho watch` share: the runtime's functions, and what a forked child must not inherit.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

#include "capture/plugin/watch/sums.h"
#include "capture/room/lock.h"
#include "event/schema.h"

namespace tacho::capture::watch::cl {

using D = cl_icd_dispatch;
inline constexpr auto kDomain = static_cast<uint32_t>(event::Domain::kOpenCL);

/// The functions below tacho's.
extern constinit D g_next;

/// An operation's record in the ring, and between which moments (CLOCK_MONOTONIC_RAW, ns) the runtime took it.
struct KeptWork {
  uint64_t ticket = 0;  ///< 0: there is none
  int64_t from = 0, to = 0;
};

/// An operation whose time is to be read when it has ended.
struct Waiting {
  cl_event event;      ///< nullptr: it has been read
  cl_event around[2];  ///< of a detour, or nullptr: PoCL needs them when the operation fails
  const void* queue;   ///< whose operations end in order; nullptr: some other
  WatchRow* row;
  uint32_t level;
  KeptWork kept;
};
inline constexpr uint32_t kMostWaiting = 4096;

/// A forked child finds it zeroed: no lock is held, nothing waits, and queues of tacho's are not its own.
struct OwnState {
  LockWord objects;
  std::atomic<bool> made;  ///< by make_own(): false in a forked child
  LockWord waiting_lock;
  std::atomic<uint32_t> waiting_count;  ///< those that have not been read
  uint32_t first, end;                  ///< waiting[first ... end), modulo kMostWaiting; some have been read
  uint32_t turn;                        ///< where to look next
  Waiting waiting[kMostWaiting];
};
extern constinit OwnState* g_own;
/// False without memory.
bool make_own();

template <typename T>
bool ask(cl_int (*question)(cl_event, cl_uint, size_t, void*, size_t*), cl_event event, cl_uint what, T& answer) {
  return question(event, what, sizeof answer, &answer, nullptr) == CL_SUCCESS;
}

// Times (times.cpp)

/// Reads the times of operations that have ended, looking at `most` of those that wait.
void read_times(uint32_t most);
/// After the program has waited for its device.
void read_after_wait();
/// Takes the events over, a reference of each.
void wait_for_time(const Waiting& one);
/// True if one of those that wait has this event: it has one reference more.
bool is_waited_for(cl_event event);

}  // namespace tacho::capture::watch::cl
