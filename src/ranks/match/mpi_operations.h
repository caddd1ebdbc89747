// One rank's calls of MPI in order of start: collectives with the facts that all ranks agree on, other calls as time in
// MPI. Also collects the rank's messages.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ranks/read/rank_run.h"
#include "trace/read/rows.h"

namespace tacho::ranks {

struct MpiOperation {
  int64_t start, end;
  bool collective;
  // Of a collective:
  int64_t begun;  // where MPI_Wait or its like completed it, by another call
  uint32_t communicator, sequence;
  Operation operation;
  int64_t bytes;  // S of nccl-tests; 0 = unknown, or it differs between ranks
};

/// "MPI_Wait", "MPI_Barrier" ...: calls that move nothing themselves.
bool only_waits(std::string_view function);

class MpiOperations {
 public:
  /// Reads the calls of `run`'s process, and adds them to the run's calls, mpi and mpi_waiting.
  MpiOperations(const trace::Trace& trace, RankRun& run, Names& names);
  bool next(MpiOperation& operation);
  Status status() const;
  /// Call it after the last operation. Ascending by `begun`.
  std::vector<MessageEvent> take_messages();

 private:
  using A = event::column::Api;
  using M = event::column::Message;
  using Messages = trace::RowCursor<M::track, M::start, M::duration, M::dim, M::kind, M::function, M::sent, M::received,
                                    M::peer, M::tag, M::sequence, M::begun_ahead>;
  bool next_call();
  bool next_collective();
  bool of_rank(int64_t track) const;
  uint32_t communicator(int64_t row);
  void add_message(const Messages::Row& row, int64_t end);
  bool read_collective(const Messages::Row& row, int64_t end);

  const trace::Trace& trace_;
  RankRun& run_;
  Names& names_;
  bool any_;
  trace::RowCursor<A::track, A::start, A::duration, A::dim> calls_;
  Messages messages_;
  std::vector<uint8_t> functions_;  // by row of table function: 0 = not counted, 1 = MPI, 2 = only waits
  std::unordered_map<int64_t, uint32_t> communicators_;                 // by row
  std::unordered_map<int64_t, std::pair<Operation, bool>> operations_;  // by row of the function's name
  MpiOperation call_{}, collective_{};
  bool have_call_ = false, have_collective_ = false;
  int64_t counted_until_ = INT64_MIN;  // time in MPI is counted up to here
  std::vector<MessageEvent> found_;
};

}  // namespace tacho::ranks
