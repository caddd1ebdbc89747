// What a trace lacks, and why: counted, and said in sentences for the user.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "decode/decoder.h"
#include "launch/recording.h"
#include "launch/run/process_tree.h"
#include "tape/pool.h"

namespace tacho::launch {

/// Parts of file names that only processes that use a GPU have in their memory map (ProcessTree::Settings).
std::vector<std::string> device_marks();

/// Counts the records that the pool had no room for.
void count_losses(tape::Pool& pool, trace::TraceWriter& writer, decode::Decoder& decoder);

/// Looks at the tree: the processes of the target that run now, and of which this run may still record something.
std::vector<TreeMember> still_recorded(ProcessTree& tree, pid_t target);

/// A process that outlives the target.
struct Survivor {
  TreeMember process;
  bool busy = false;  ///< it used CPU time after the target's end
};
/// Processes of the target that are still there some 300 ms after its end; returns at once when there are none. Helpers
/// that end with their program, as Python's resource tracker, are given that time.
std::vector<Survivor> survivors(ProcessTree& tree, pid_t target);

/// What a run was to record, and what is known about it at its end.
struct RunEvidence {
  const Recording& recording;
  const std::string& executable;
  bool inject = true;   ///< libtacho.so was to be loaded into the program
  bool preload = true;  ///< also through LD_PRELOAD
  std::vector<decode::ProcessFacts> attached = {};
  std::vector<TreeMember> members = {};  ///< all processes that the kernel showed
  std::vector<Survivor> survivors = {};
  uint32_t refused = 0;   ///< processes that may not open the pool
  double cpu_s = 0;       ///< CPU time of the target and of its children that ended, by the kernel
  double cpu_seen_s = 0;  ///< of it, of processes that the tree saw
};
struct Gaps {
  std::vector<std::string> warnings;  ///< each names processes, what the trace lacks, and the remedy
  std::vector<std::string> remarks;   ///< processes that outlive the program and need not matter
  int64_t processes = 0;              ///< recorded in part or not at all
};
/// Holds the processes that ran against those that attached, and with what.
Gaps find_gaps(const RunEvidence& evidence);

}  // namespace tacho::launch
