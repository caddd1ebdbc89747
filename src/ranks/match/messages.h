// MPI's messages of all ranks: each send with its receive, who waited in a receive for whom, and what went from where
// to where.
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
  uint64_t number;  // this is the so-manieth of its communicator, pair and tag, from 0
};

/// Messages of one communicator, pair of ranks and tag are received in the order in which they are sent; receives count
/// in the order in which they are begun. Reads all ranks side by side; memory is bounded by the messages under way and
/// by how far the ranks are apart. Returns how many messages lack one half.
Result<size_t> match_messages(std::span<const RankRun> runs, const Spool<MessageEvent>& spool,
                              const std::function<void(const MatchedMessage&)>& visit);

/// Differences of two runs' clocks.
struct MessageSamples {
  std::vector<ClockSample> samples;
  int64_t half_trip = 0;  // ns, median: by so much they may be off, since nothing tells which way took longer
};
/// By messages in both directions, for (later run, earlier run): in a group of messages the fastest each way; half of
/// the difference of the two is the clocks'. For pairs that messages go between both ways only.
Result<std::map<std::pair<uint32_t, uint32_t>, MessageSamples>> message_samples(std::span<const RankRun> runs,
                                                                                const Spool<MessageEvent>& spool);

/// Part of a call in which a run waited for another's message, on the common clock; ascending and apart for one run.
struct MessageWait {
  int64_t start, end;
  uint32_t blamed;  // run; the sender, or for whom the sender itself waited meanwhile
};

/// What the sender of a late message did while the receiver waited for it: most of that time.
struct Meanwhile {
  enum class Kind : uint8_t {
    kUnknown,
    kOwnCode,   ///< its sending thread was in no call of MPI or the GPU's API; `name`: the range of the program, if any
    kKernels,   ///< it was in a call of the GPU's API while kernels ran; `name` the one that ran longest
    kCopies,    ///< likewise, and copies or fills ran, and no kernel
    kCall,      ///< in a call of the GPU's API while its GPU did nothing; `name` the longest
    kMpi,       ///< in calls of MPI, and not for a late message; `name` the longest
    kMessages,  ///< it waited itself for a message that was late, of rank `peer`
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
  std::vector<LateMessage> late;                // that the receiver waited longest for, longest first
  // By (from, to): messages and one-sided operations between two runs, bytes.
  std::map<std::pair<uint32_t, uint32_t>, std::pair<int64_t, int64_t>> pairs;
  size_t matched = 0, unmatched = 0;
};
Result<MessageReport> look_at_messages(std::span<const RankRun> runs, const Spool<MessageEvent>& spool,
                                       std::span<const RunClock> clocks);

/// ns of [from, to) on the common clock in which `waits` say that the run waited, and for whom most.
struct Waited {
  int64_t time = 0, most = 0;
  uint32_t blamed = 0;
};
Waited waited_between(std::span<const MessageWait> waits, int64_t from, int64_t to);

}  // namespace tacho::ranks
