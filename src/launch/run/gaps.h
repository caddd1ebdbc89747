// What a trace lacks, and why: counted, and said in sentences for the user.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "decode/decoder.h"
#include "launch/recording.h"
#include "tape/pool.h"

namespace tacho::launch {

/// Observations of the target while it ran.
struct Watched {
  bool opencl_loaded = false, ours_loaded = false;
  int wait_status = 0;
};

/// True if `library` is in the memory map of the process. False if this user may not look at it.
bool maps_mention(pid_t pid, const char* library);
/// Whether a process that is younger than `since` has the pool in its environment: one that outlives the target, and
/// attaches when the pool is no longer drained. Only processes that this user may look at.
bool anybody_has(const std::string& pool, pid_t since);
/// Counts the records that the pool had no room for.
void count_losses(tape::Pool& pool, trace::TraceWriter& writer, decode::Decoder& decoder);
/// What a run was to record, and of which program.
struct Expected {
  const Recording& recording;
  const std::string& executable;
  bool inject;  ///< libtacho.so was to be loaded into it
};
/// Warns of data that the user may expect and the trace lacks. `refused`: processes that may not open the pool.
void explain_gaps(const Expected& expected, const Watched& seen, uint32_t refused,
                  const std::vector<decode::ProcessFacts>& processes, std::vector<std::string>& warnings);

}  // namespace tacho::launch
