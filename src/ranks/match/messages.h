// MPI's messages of all ranks: each send with its receive, which rank waited for which, and how much went between them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ranks/match/run_clock.h"
#include "ranks/read/rank_run.h"

namespace tacho::ranks {

/// A send with its receive. Times are the runs' own.
struct MatchedMessage {
  uint32_t from, to;  // places in the list of runs
  MessageEvent send, receive;
  uint64_t number;  // among those of its communicator, pair and tag, from 0
};

/// Messages of one communicator, pair of ranks and tag are received in the order in which they are sent; receives count
/// in the order in which they are begun. Reads all ranks side by side; memory is bounded by the messages under way and
/// by how far the ranks are apart. Returns how many messages lack one half.
Result<size_t> match_messages(std::span<const RankRun> runs, const Spool<MessageEvent>& spool,
                              const std::function<void(const MatchedMessage&)>& visit);

/// Differences of two runs' clocks.
struct MessageSamples {
  std::vector<ClockSample> samples;
  int64_t half_trip = 0;  // ns, median: the samples' error, since either way may have taken longer
};
/// Estimates the clock difference of each (later run, earlier run) that exchange messages both ways: half the
/// difference between the fastest message each way, in each group of messages.
Result<std::map<std::pair<uint32_t, uint32_t>, MessageSamples>> message_samples(std::span<const RankRun> runs,
                                                                                const Spool<MessageEvent>& spool);

/// Part of a call in which a run waited for another's message, on the common clock; ascending and apart for one run.
struct MessageWait {
  int64_t start, end;
  uint32_t blamed;  // run; the sender, or the run that the sender itself waited for meanwhile
};

/// What the sender of a late message did for most of the time in which the receiver waited.
struct Meanwhile {
  enum class Kind : uint8_t {
    kUnknown,
    kOwnCode,   ///< its sending thread was in no call of MPI or the GPU's API; `name`: the range of the program, if any
    kKernels,   ///< it was in a call of the GPU's API while kernels ran; `name` the one that ran longest
    kCopies,    ///< likewise, and copies or fills ran, and no kernel
    kCall,      ///< in a call of the GPU's API while its GPU did nothing; `name` the longest
    kMpi,       ///< in calls of MPI, and not for a late message; `name` the longest
    kMessages,  ///< it waited for a late message of rank `peer`
  } kind = Kind::kUnknown;
  int64_t time = 0;  // ns of the waiting time in it
  uint64_t name = 0;
  int64_t name_time = 0;
  int64_t peer = 0;
};

struct LateMessage {
  uint32_t from, to;
  int32_t tag;
  uint32_t communicator;
  uint64_t number;
  int64_t bytes, sent_at;  // on the common clock
  int64_t waited;          // ns: from the receiver's call to the send
  int64_t until;           // on the common clock: where the waiting ended, at the latest when it was sent
  int64_t sender_until;    // the same moment on the sender's own clock
  int64_t thread;          // row of table thread of the sender's trace
  Meanwhile meanwhile;     // explain_late_messages()
};

struct MessageReport {
  std::vector<std::vector<MessageWait>> waits;  // by run
  std::vector<LateMessage> late;                // those that receivers waited longest for, longest first
  // By (from, to): messages and one-sided operations between two runs, bytes.
  std::map<std::pair<uint32_t, uint32_t>, std::pair<int64_t, int64_t>> pairs;
  size_t matched = 0, unmatched = 0;
};
Result<MessageReport> look_at_messages(std::span<const RankRun> runs, const Spool<MessageEvent>& spool,
                                       std::span<const RunClock> clocks);

/// How long the run waited in [from, to) of the common clock, ns, and for which run most.
struct Waited {
  int64_t time = 0, most = 0;
  uint32_t blamed = 0;
};
Waited waited_between(std::span<const MessageWait> waits, int64_t from, int64_t to);

}  // namespace tacho::ranks
