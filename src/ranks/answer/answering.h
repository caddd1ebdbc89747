// The answers while they are being worked out: each question is one step, in the order of answering.cpp.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ranks/answer/answers.h"
#include "ranks/read/align.h"

namespace tacho::ranks {

/// What one communicator's ranks give to others, bytes of each rank in all: for the ring, or for all to all.
struct Traffic {
  double ring = 0, all_to_all = 0;
};

/// A collective by its communicator and its number there.
inline uint64_t key_of(uint32_t communicator, uint32_t sequence) {
  return static_cast<uint64_t>(communicator) << 32 | sequence;
}

struct Answering {
  Job& job;
  const bool details;
  const std::vector<RankRun>& runs = job.runs;
  Report report = {};
  std::vector<RunClock> clocks = {};

  std::unordered_map<uint64_t, size_t> by_key = {};     // collectives, in report.collectives
  std::vector<std::vector<int64_t>> waited_in = {};     // by run and step, ns
  std::map<uint32_t, Traffic> traffic = {};             // by communicator
  std::set<uint32_t> by_host = {};                      // communicators of MPI
  std::map<uint32_t, std::vector<bool>> in_group = {};  // by communicator: which runs take part
  std::string disagreement = {};                        // of the first collective that is left out for one

  /// A time of a run's trace on the common clock.
  int64_t on_common(uint32_t run, int64_t time) const { return common_time(clocks, run, time + runs[run].clock_shift); }
  /// The rank's part in a step; nullptr where details were not asked for.
  RankStep* step_at(uint32_t run, int32_t step);
  /// What a run waited in one of its steps.
  void add_waited(uint32_t run, int32_t step, int64_t time);
  /// What the sender of late messages did between `from` and `to` of the common clock.
  void add_meanwhile(uint32_t sender, int64_t from, int64_t to, Cause& cause) const;
};

/// Relates the ranks' clocks: corrected where collectives say that they differ, and not within one host.
Status relate_ranks(Answering& work);
/// Who came last to each collective and why, how long the others waited, how fast it was.
Status answer_collectives(Answering& work);
/// Steps: who held them up, how even they were, their critical paths. Also who is to blame in all.
Status answer_steps(Answering& work);
/// Collectives of one kind together, with their bandwidths and what these are compared with.
void answer_kinds(Answering& work);
/// Bytes between ranks, by the model of docs/ranks.md, and ranks that no file is of.
void answer_bytes(Answering& work);
/// Sentences about what the answers leave out.
void add_remarks(Answering& work);

}  // namespace tacho::ranks
