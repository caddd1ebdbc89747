// Kernel replay on AMD GPUs (counting.h): every launch that is to be measured runs once for each pass, and each time
// finds memory as it was before the first. Launches that follow one another are a batch, of up to 64.
//
//   first launch   other threads' HIP calls wait; the GPUs become idle; memory that kernels can write is copied
//   each launch    runs, as its first pass, and is kept with a copy of its arguments
//   another call   that waits, asks whether work is done, or changes anything: before it, for each further pass, the GPUs become idle,
//                  memory is put back, and the launches that are kept run again
//   after          the last pass is what the program sees; nobody waits for it
//
// A launch that names memory of the host, or is made while there is managed memory, is a batch of its own, which ends
// inside its call: the program may touch such memory without a call.
//
// Copied: all device memory that HSA gave out, of all GPUs, the variables of loaded code, managed memory, and host
// memory that the launch's arguments point to. Copies stay on the GPU if they fit, else they go to the host. Between
// batches, tacho frees the copies on the GPU if an allocation of the program fails. Not copied: memory that other
// processes share, memory that the program maps itself.
//
// A launch that cannot be run again runs once, and its first pass is measured: spool::RanOnce says why.
//
//   replay.cpp          threads, the wait for an idle GPU, launches and batches
//   replay_memory.cpp   memory that kernels can write, its copies
//   replay_kernels.cpp  kernels, their code and arguments
//
// The calling thread identifies the dispatches of a launch: HIP hands packets over on it.
//
// This has run on the bed and over the real rocprofiler-sdk, never on a GPU. It goes if fewer than 99 of 100 kernels
// have the values of separate runs within 2 % there, or once rocprofiler-sdk replays kernels itself.
#pragma once

#include "capture/counter_spool.h"
#include "capture/source/rocm/hip_calls.h"
#include "capture/source/rocm/rocm.h"
#include "event/spool/spool_instances.h"

namespace tacho::capture::rocm::replay {

/// From here on launches are run again, `passes` times in all; once. A GPU that is not idle after `patience_ms` is not
/// waited for. `values_open`: true while values of a dispatch are still to come.
void begin(const counter::CounterSpool& spool, size_t passes, int64_t patience_ms, bool (*values_open)());
/// True in the process in which begin() was called.
bool on();

// hip.cpp, in a process with on(): around every outermost call but launches that can be made again.
/// True if leave() is to be called behind the call.
bool enter(const HipCall& does);
void leave(const HipCall& does, const uint64_t* words, bool worked);

/// HIP's function, with the words that it takes.
using Next = uint64_t(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                      uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
/// Makes an outermost launch, as often as it takes. Returns what HIP returned.
uint64_t launch(const HipCall& does, const uint64_t* words, Next* next);

/// Ends open batches; HIP and HSA are still up.
void finish();

/// The state of a dispatch on the calling thread, when the SDK asks how to count it.
struct Turn {
  bool launched;  ///< it is the dispatch of a launch that runs again
  bool ignored;   ///< it has been seen, in an earlier pass of its launch, and does not count
  bool again;     ///< it is the dispatch `index`, in a further pass
  uint64_t index;
  size_t pass;
  spool::RanOnce once;  ///< why it has no further pass
};
/// `kernel`: its mangled name, nullptr = unknown.
Turn turn_of(const char* kernel);
/// Behind turn_of(), for the first dispatch of a launch that runs again: the number that it got, and whether it is to
/// be measured.
void counted_as(uint64_t index, bool selected);

}  // namespace tacho::capture::rocm::replay
