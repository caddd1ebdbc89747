// Decoder: turns the drainer's pieces of the pool into rows of a trace. Runs in tacho's process only. All its input
// comes from targets and is untrusted: it counts and skips malformed records.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "decode/clock_map.h"
#include "decode/process_facts.h"
#include "tape/pool.h"
#include "trace/write/writer.h"

namespace tacho::decode {

class ModuleCache;
class ProcessState;

class Decoder {
 public:
  /// The caller must keep `clocks` up to date: add a tuple before each drainer pass.
  Decoder(trace::TraceWriter& writer, ClockMap& clocks);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Decodes a piece; the drainer's sink.
  void piece(const tape::Piece& piece);
  /// Call before the writer's flush(), about twice a second: writes rows that wait for their clock to be compared.
  void settle();
  /// Call after the last piece: closes open rows, with unknown duration, counts them, and writes the clock tuples.
  void finish();
  /// Call after finish(): counts the commands lost with killed processes (tape::CommandCounts). `dropped`: rows dropped
  /// for lack of room in the pool, by table.
  void count_in_flight(std::span<const uint64_t> dropped);

  /// All processes that described themselves.
  std::vector<ProcessFacts> processes() const;

  /// For sources that see processes from outside: the row of the newest process with this pid, 0 = none yet.
  int64_t process_row(uint32_t pid) const;
  /// Makes `row` the row of a process that no record has described yet.
  void adopt(uint32_t pid, int64_t row) { adopted_[pid] = row; }

 private:
  ProcessState& process(uint32_t slot);

  trace::TraceWriter& writer_;
  ClockMap& clocks_;
  std::unique_ptr<ModuleCache> modules_;
  std::map<uint32_t, std::unique_ptr<ProcessState>> processes_;                 // by slot
  std::map<uint32_t, int64_t> adopted_;                                         // by pid
  std::map<std::pair<uint64_t, uint32_t>, const ProcessState*> newest_of_pid_;  // described; by namespace and pid
};

}  // namespace tacho::decode
