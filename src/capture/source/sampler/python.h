// Reads CPython's frames of the interrupted thread inside a signal handler, by offsets per version (3.9 to 3.13, builds
// with the interpreter lock). The only Python function it calls is PyGILState_GetThisThreadState, which reads one
// pthread key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/source/sampler/memory.h"
#include "event/sample.h"

namespace tacho::capture::sampler {

/// Looks for an interpreter in this process and learns its layout. Not in signal handlers; cheap when there is none or
/// it is known. A version that is not supported is reported in a note, once.
void find_python();

struct PythonScratch {
  static constexpr uint32_t kMost = 128;
  uint64_t words[kMost];  // as event/sample.h
  struct Frame {
    uintptr_t code, instruction;
    uint64_t flags;
  } frames[kMost];
  char text[2048];
  alignas(8) std::byte record[40960];  // of a new code object
};

/// Frames of the calling thread, innermost first, into scratch.words; their number in `count`. [sp, stack_high) is the
/// C stack, stack_high 0 if unknown.
event::PythonState python_frames(Prober& prober, uintptr_t sp, uintptr_t stack_high, PythonScratch& scratch,
                                 uint32_t& count);

/// The answer of waiting_frames() and the memory that it was drawn from; all bytes 0 at first.
struct WaitingScratch {
  Snapshot memory;
  int64_t until;           // CLOCK_MONOTONIC_COARSE ns: how long the answer may be given again
  uint32_t threads_known;  // changes of the list of threads then
  uint32_t count;
  event::PythonState state;
  uint64_t words[PythonScratch::kMost];
  struct {
    uintptr_t code;
    int64_t until;
    bool waits;
  } codes[16];
};

/// Frames of the one Python thread that waits in torch/autograd, for a launch by a thread that has none of its own: the
/// backward pass of PyTorch runs on threads of its engine, while the thread that called backward() waits. kNone if no
/// thread waits, or several do, because the work could then be anyone's. At least one Python thread must have been
/// sampled or have launched before. Not in signal handlers.
event::PythonState waiting_frames(WaitingScratch& waiting, PythonScratch& scratch, uint32_t& count);

/// Begins anew in another pool, with no code object known. Not while a sample may be taken.
void forget_python();

}  // namespace tacho::capture::sampler
