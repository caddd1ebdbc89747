// What the events of a rocpd database happened on: nodes, processes, threads, agents, queues, streams and the tracks of
// marks, with their ids. A file (write.cpp) and SQL over a trace (query/dialect/rocpd.cpp) show the same rows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/table.h"
#include "trace/trace.h"
#include "walk/names/agents.h"
#include "walk/time/clock.h"

namespace tacho::format::rocpd {

class RocpdOwners {
 public:
  /// Rows of a table, ascending by id: the id, the guid, and further columns as relations.h lists them.
  using Rows = std::vector<std::vector<report::Cell>>;
  struct OfProcess {
    int64_t id = 0, pid = 0, node = 0, main_thread = 0;
    bool wanted = true;
  };
  struct OfTrack {
    int64_t process = 0;  // row of the trace; the others are ids of the database
    int64_t process_id = 0, node = 0, thread = 0, queue = 0, agent = 0;
    int64_t tid = 0;  // of the thread
    bool wanted = true;
  };

  /// `process`: the row of the only one that is wanted; 0 = all. `clock` gives the database's times. All arguments must
  /// outlive this.
  RocpdOwners(const trace::Trace& trace, const walk::Agents& agents, const walk::OutputClock& clock, std::string guid,
              int64_t process);
  /// Finds the threads that set marks, whose ids mark_track() gives. Errors: bad data.
  Status find_marks();

  /// Row 0's for a row that does not exist, as in a damaged file.
  const OfTrack& track(int64_t row) const {
    return tracks_[static_cast<size_t>(row) < tracks_.size() ? static_cast<size_t>(row) : 0];
  }
  /// The process of a row. Row 0 stands for tracks that name no process; where there are none, it gives row 1.
  const OfProcess& process(int64_t row) const;
  /// The id in rocpd_track of the thread of a mark; 0 before find_marks().
  int64_t mark_track(int64_t track) const;

  /// The process that owns what belongs to none in particular.
  const OfProcess& first() const { return process(processes_.size() > 1 ? 1 : 0); }

  Rows nodes() const;
  Rows processes() const;
  Rows threads() const;
  Rows agents() const;
  Rows queues() const { return lines("Queue"); }
  Rows streams() const { return lines("Stream"); }
  /// The name of a queue or stream with this id; `word` is Queue or Stream.
  static std::string line_name(std::string_view word, int64_t id);
  /// `name_id`: rocpd_string.id of their name.
  Rows mark_tracks(int64_t name_id) const;

 private:
  struct Thread {
    int64_t id, process, row;  // rows of the trace; row 0: the main thread of a process that recorded none
    auto operator<=>(const Thread&) const = default;
  };
  void number_processes();
  void number_threads();
  void number_queues();
  Rows lines(std::string_view word) const;

  const trace::Trace& trace_;
  const walk::Agents& agents_;
  const walk::OutputClock& clock_;
  std::string guid_;
  bool nameless_ = false;                 // some track names no process: row 0 then stands for that process
  std::map<int64_t, std::string> nodes_;  // id -> host
  std::vector<OfProcess> processes_;      // by row
  std::vector<Thread> threads_;           // by id
  std::vector<OfTrack> tracks_;           // by row
  std::vector<int64_t> owner_of_queue_;   // by id - 1: row of its process
  std::map<int64_t, int64_t> marks_;      // thread -> id in rocpd_track
  std::vector<int64_t> mark_tracks_;      // by id - 1: row of a track of its thread
};

}  // namespace tacho::format::rocpd
