// The answers of `tacho ranks`: which rank came last to each collective and why, how long the others waited, how even
// steps are, the critical path of a step, bytes between ranks. docs/ranks.md has the definitions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ranks/match/matching.h"
#include "ranks/match/messages.h"
#include "ranks/read/load.h"

namespace tacho::ranks {

/// Why a rank came late, compared with the median of the others over the same stretch.
struct Cause {
  enum class Kind : uint8_t {
    kNone,
    kMoreKernels,   ///< it ran `kernels` more than the others
    kLongerKernel,  ///< as many kernels, and they took longer; `name` the most
    kCopies,        ///< copies and fills, beside no kernel
    kHost,          ///< its GPU idled because the host had not launched
    kIdle,          ///< its GPU idled; without a launching call in the trace, the host may or may not have been late
    kEarlier,       ///< it left an earlier collective of another group later than the others
    kMessages,      ///< it waited in MPI for messages of rank `peer`
    kMpi,           ///< it was longer in calls of MPI, and not for a late message; `name` the most
    kLateSends,     ///< its messages came late, most to rank `peer`; the others waited for them
    kBegan,         ///< its first GPU operation came later; the trace does not show why
    kUnknown,       ///< none of the above makes up half of the delay
  } kind = Kind::kNone;
  int64_t kernels = 0;    // kMoreKernels
  int64_t time = 0;       // ns of the delay that this explains
  uint64_t name = 0;      // of a kernel, an API call or a range; 0 = none stands out
  int64_t name_time = 0;  // ns more than the others in it
  // kHost of a step or straggler without a `name`: where the host was in its longest delay, "between ddp.py:16 and
  // ddp.py:20", and for how long; 0 = the trace does not tell
  uint64_t place = 0;
  int64_t place_time = 0;
  // kHost of a straggler without a `name`: the call or range that explains most of the rest, and its share (0 to
  // 1) of what the others waited for the late host
  uint64_t part_name = 0;
  double part = 0;
  int64_t peer = 0;      // rank
  bool by_host = false;  // the collective is a call of MPI, which the host itself is late to
  bool range = false;    // `name` is a range of the program that the host was in, no call
  bool carried = false;  // it is the cause of an earlier collective of the step, from which the rank is still behind
  Meanwhile meanwhile;   // kLateSends, of a step or straggler: what the sender of the latest message did
};

struct Collective {
  uint32_t communicator = 0, sequence = 0;
  Operation operation = Operation::kUnknown;
  int64_t bytes = 0;  // S of nccl-tests; 0 = unknown
  int32_t step = -1;
  uint32_t ranks = 0;     // that took part
  int64_t last_rank = 0;  // that came last
  uint32_t last_run = 0;
  uint32_t blamed_run = 0;                            // the last run, or the one whose messages that run waited for
  bool complete = true;                               // has all known ranks of the communicator
  int64_t first_start = 0, last_start = 0, end = 0;   // ns on the common clock; end of the last
  int64_t spread = 0;                                 // last_start - first_start
  int64_t late = 0;                                   // of the last behind the median of the others
  int64_t waited = 0;                                 // sum over the ranks: last_start - start
  int64_t transfer = 0;                               // end - last_start
  double algorithm_bandwidth = 0, bus_bandwidth = 0;  // bytes/ns = GB/s; 0 = unknown
  Cause cause;
  // The last rank's stretch before it, for the critical path.
  int64_t from = 0, compute = 0, copy = 0, idle = 0, host = 0;
  int64_t host_from = 0, host_to = 0;  // the stretch up to its launch, on the clock of the last rank's trace
  uint32_t previous_communicator = 0, previous_sequence = 0;
  size_t arrivals_at = 0;  // in Report::arrivals, `ranks` of them
};

/// When a rank came to a collective and left it; ns on the common clock.
struct RankArrival {
  int64_t start, end;
  uint32_t run;
};

/// A rank in a step, as far as the others are concerned; ns.
struct RankStep {
  int64_t late = 0;                          // its latest arrival behind the first rank
  int64_t waited = 0;                        // for others
  int64_t caused = 0;                        // the others waited for it
  int64_t begin = kUnknown, end = kUnknown;  // its first and last GPU operation, on the common clock
};

struct PathPiece {
  int64_t rank;
  enum class Kind : uint8_t { kStretch, kTransfer, kTail } kind;
  int64_t duration;                   // ns
  int64_t compute, copy, idle, host;  // of a stretch
  size_t collective;                  // that it leads to or transfers; index in Report::collectives
};

struct StepReport {
  int64_t number = 0;          // the program's own number
  int64_t begin = 0, end = 0;  // common clock, over all ranks
  size_t collectives = 0;
  int64_t last_rank = kUnknown;  // that caused most of the waiting
  size_t last_in = 0;            // collectives to which it came last
  int64_t late = 0;              // ns, its latest arrival behind the first rank
  int64_t waited = 0;            // ns, of all ranks in all collectives
  double imbalance = 0;          // percent: the longest own time (without waiting) above the mean
  Cause cause;
  std::vector<PathPiece> path;  // in order of time
};

struct Straggler {
  int64_t rank;
  size_t collectives = 0;    // to which it came last
  int64_t waited = 0;        // ns, of the others for it
  int64_t for_messages = 0;  // ns of that, in calls that received its messages
  std::vector<int64_t> steps;
  Cause cause;  // that explains most of the waiting
};

struct Group {  // collectives of one kind
  Operation operation;
  uint32_t communicator;
  int64_t bytes;
  size_t count = 0;
  int64_t median_spread = 0, most_spread = 0, median_transfer = 0, waited = 0;
  double algorithm_bandwidth = 0, bus_bandwidth = 0;  // GB/s, by the median transfer
  double peak = 0;                                    // GB/s, to compare bus_bandwidth with; 0 = unknown
  std::string peak_of;  // the end of a sentence: whose peak, or why it is unknown; "" = no bandwidth to compare
};

struct RankAnswer {
  int64_t waited = 0, caused = 0;  // ns
  size_t last_in = 0;
  int64_t clock_offset = 0;  // ns, taken off its times
  double clock_residual = 0;
  bool corrected = false, related = false;
  std::vector<RankStep> steps;  // by number of the step, where details were asked for
};

struct Report {
  std::vector<RankAnswer> ranks;  // by run
  std::vector<Collective> collectives;
  std::vector<StepReport> steps;
  std::vector<Straggler> stragglers;  // the one for whom the others waited most comes first
  std::vector<Group> groups;
  std::map<std::pair<int64_t, int64_t>, int64_t> bytes;  // (from, to): a model, docs/ranks.md
  MessageReport messages;                                // of MPI
  std::vector<int64_t> missing;                          // ranks of communicators without a file
  size_t mismatched = 0, incomplete = 0, point_to_point = 0;
  bool aligned = false;       // ranks' clocks are related by collectives
  double clock_residual = 0;  // ns, the largest of a rank
  std::vector<std::string> remarks;
  std::optional<Spool<RankArrival>> arrivals;  // where details were asked for
};

/// Fails if the job has neither collectives nor messages. `details` adds each rank's part in each step and its arrival
/// at each collective; arrivals lie in an unnamed file. Opens the files of ranks that sent messages late once more, and
/// adds names found there to the job's.
Result<Report> answer(Job& job, bool details = false);

/// The name of a kernel, call or range for a cell: without result, arguments and template arguments, at most 28
/// columns.
std::string short_name(const std::string& full);

/// "30 more kernels (sm90_gemm)", "the host launched late", in words for a cell; `names`: of the job.
std::string cause_text(const Cause& cause, const Names& names);

}  // namespace tacho::ranks
