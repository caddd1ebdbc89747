// Facts about a whole run that findings need besides its activity: the call that took the most time, threads of Python
// that wait for each other, time that the profiler took.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

struct RunFacts {
  /// The function with the most time on one thread, of those that neither launch, copy, wait nor load code; its longest
  /// call is left out, since the first one may start the runtime.
  int64_t call_time = 0, call_count = 0;  ///< ns
  std::string call, call_thread;
  int64_t call_first = 0, call_last = 0, call_track = 0;

  /// Wall-time samples of threads with Python in them, of the thread that waited most for the interpreter's lock.
  int64_t wall_samples = 0;            ///< 0 = no such samples
  int64_t lock_time = 0, lock_of = 0;  ///< ns waiting for the lock; all of that thread's samples
  std::string lock_thread;
  int64_t lock_track = 0, lock_first = 0, lock_last = 0;

  int64_t profiler_time = 0;  ///< ns of overhead that a profiler said it caused in one process, at most
  int64_t gpus = 0;           ///< different GPUs that the trace names
  bool ranks = false;         ///< a process says that it is a rank
};

Result<RunFacts> run_facts(const trace::Trace& trace);

}  // namespace tacho::analysis
