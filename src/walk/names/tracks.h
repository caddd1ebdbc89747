// Processes and tracks for viewers: numbers that never clash, and names as in rocprofv3's Perfetto files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"
#include "walk/names/agents.h"
#include "walk/names/names.h"

namespace tacho::walk {

/// Identifies a queue's track in a timeline, so that rows that differ only in the launching thread share a line:
/// process, device, stream or queue, context, name, category. A stream that ran on several hardware queues (property
/// "queue") is one line; with `by_queue` each of these queues is one.
std::array<int64_t, 6> queue_identity(const trace::Trace& trace, int64_t track, bool by_queue);

class Tracks {
 public:
  Tracks(const trace::Trace& trace, const Agents& agents, const Naming& naming);
  /// The process id. If it is unknown, 0 or taken by an earlier row (another host or run), a number that no other
  /// process of the trace has. Always positive.
  int64_t pid(int64_t process) const { return pids_[static_cast<size_t>(process)]; }
  /// The executable's name, with rank, run or host if they distinguish processes.
  std::string process_name(int64_t process) const;
  /// "THREAD 3 (1234)", "STREAM [\" 2 \"] ", "COMPUTE Agent [1] QUEUE [0] GPU", "ranges"; for a main thread its own
  /// name.
  std::string name(int64_t track) const;
  /// Kernel thread id of a thread's track, or of the thread that launched into a queue if known; else 0.
  int64_t tid(int64_t track) const;
  /// Kernel thread id of a thread's track; 0 for every other track, since a queue's line is not the thread's.
  int64_t own_tid(int64_t track) const;
  int64_t process(int64_t track) const {
    return trace_.cell(event::Table::kTrack, track, event::column::Track::process);
  }
  /// The numbers in rocprofv3's columns Queue_Id and Stream_Id; event::kUnknown if the trace has none.
  int64_t queue(int64_t track) const;
  int64_t stream(int64_t track) const;

 private:
  const trace::Trace& trace_;
  const Agents& agents_;
  Naming naming_;
  Threads threads_;
  std::vector<int64_t> pids_;
  std::vector<int64_t> queue_index_;  // for queue tracks: index among their agent's queues
  std::vector<bool> shared_stream_;   // another device of the process has a stream with this number too
  std::vector<int64_t> stream_;
  bool several_hosts_ = false, several_runs_ = false;
};

}  // namespace tacho::walk
