// The state from which `tacho ranks` computes its answers, one step a question, in the order of answering.cpp.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ranks/answer/answers.h"
#include "ranks/read/align.h"

namespace tacho::ranks {

/// Bytes that each rank of a communicator sends in all: around the ring, or to all others.
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
  std::map<uint32_t, std::vector<bool>> in_group = {};  // by communicator: the runs that take part
  std::string disagreement = {};                        // of the first collective that the ranks disagree about

  /// A time of a run's trace on the common clock.
  int64_t on_common(uint32_t run, int64_t time) const { return common_time(clocks, run, time + runs[run].clock_shift); }
  /// The rank's part in a step; nullptr where details were not asked for.
  RankStep* step_at(uint32_t run, int32_t step);
  /// Adds to the time that a run waited in one of its steps.
  void add_waited(uint32_t run, int32_t step, int64_t time);
  /// Adds to `cause` what a sender of late messages did between `from` and `to` of the common clock.
  void add_meanwhile(uint32_t sender, int64_t from, int64_t to, Cause& cause) const;
};

/// Relates the ranks' clocks, and corrects those that differ by their collectives, except within one host.
Status relate_ranks(Answering& work);
/// For each collective: which rank came last and why, how long the others waited, how fast it was.
Status answer_collectives(Answering& work);
/// For each step: which rank held it up, how even it was, its critical path. Also the stragglers of the whole job.
Status answer_steps(Answering& work);
/// Sums up collectives by kind, with their bandwidths and the peaks to compare them with.
void answer_kinds(Answering& work);
/// Bytes between ranks, by the model of docs/ranks.md, and ranks without a file.
void answer_bytes(Answering& work);
/// Adds sentences about the limits of the answers.
void add_remarks(Answering& work);

}  // namespace tacho::ranks
