// PyTorch's profiler (kineto) beside tacho in a program that ran before. From its first use on it is CUPTI's only
// subscriber, but between its windows all its kinds are off and CUPTI's buffers are anyone's: each window registers its
// buffers, its clock and its kinds anew. So tacho may record between two windows, if it knows for sure that none is
// open and is told before the next one opens. Facts: kineto's sources (github.com/pytorch/kineto), and PyTorch 2.11.
#pragma once

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::cuda {

enum class OtherProfiler {
  kNone,     ///< the program has no PyTorch whose profiler uses this CUPTI, or has never used it
  kIdle,     ///< it was used, and no window is open
  kRecords,  ///< a window is open, or is being prepared or read
  kUnknown,  ///< this PyTorch has another kineto than those whose state can be asked
};
/// Only reads. On a thread of tacho's own.
OtherProfiler ask_other_profiler(const Cupti& cupti);

/// Where PyTorch's profiler finalises CUPTI after a window (TEARDOWN_CUPTI=1), at the end of the program's next call of
/// the runtime: makes that call, which does nothing else. The profiler subscribes anew for its next window. False: it
/// does not do so, or the program has no shared library of the runtime. On a thread of tacho's own.
bool let_other_finalize();

/// Whether libraries besides PyTorch's hold functions by which CUPTI is taken over; true also where that is not known.
bool others_hold_cupti(const Cupti& cupti);

/// Leads the words by which libraries call functions that take CUPTI over to hooks, which call `before`, on a thread of
/// the program's, with the function's name, and then the function: PyTorch's words, and those of all libraries where
/// `everywhere` says so. Again: also those of libraries that were loaded since. False, and nothing is led, where not
/// all words can be led, or PyTorch has none.
bool watch_other_profiler(const Cupti& cupti, void (*before)(const char* function), bool everywhere);
/// The number of calls that have come to the hooks in this process's life.
uint64_t calls_of_others();
/// Leads the words back. A thread that is in a hook goes on.
void stop_watching();

}  // namespace tacho::capture::cuda
