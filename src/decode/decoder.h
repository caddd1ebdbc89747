// Decoder: turns what the drainer takes from the pool into rows of a trace. Runs in tacho's process only.
// Everything it reads comes from targets and is untrusted: a record that makes no sense is counted and
// skipped, never believed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/clock_map.h"
#include "tape/pool.h"
#include "trace/writer.h"

namespace tacho::decode {

/// What the run looked like from inside, for the summary and for checks.
struct ProcessFacts {
  int64_t row = 0;  // of table process
  uint32_t pid = 0;
  std::string name;
  double hook_ns = 0;     // measured cost of one hook
  int64_t hooks = 0;      // records that hooks wrote (calls, markers)
  uint64_t attached = 0;  // bits (1 << Domain) of the APIs whose calls a source saw
  bool sees(event::Domain domain) const { return (attached >> static_cast<uint32_t>(domain) & 1) != 0; }
};

class ModuleCache;
class ProcessState;

class Decoder {
 public:
  /// `clocks` is kept up to date by the caller: a tuple sampled before each drainer pass.
  Decoder(trace::TraceWriter& writer, ClockMap& clocks);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// The drainer's sink.
  void piece(const tape::Piece& piece);
  /// After the last piece: closes what is still open (unknown duration, counted) and writes the clock tuples.
  void finish();
  /// Call after finish(): counts what killed processes took with them (tape::CommandCounts). `dropped`: rows
  /// that found no room in the pool, by table.
  void count_in_flight(std::span<const uint64_t> dropped);

  /// All processes that described themselves.
  std::vector<ProcessFacts> processes() const;

  /// For sources that see processes from outside: the row of the newest process with this pid, 0 = none yet.
  int64_t process_row(uint32_t pid) const;
  /// The row made for a process that nothing has described yet: its description goes there.
  void adopt(uint32_t pid, int64_t row) { adopted_[pid] = row; }

 private:
  ProcessState& process(uint32_t slot);

  trace::TraceWriter& writer_;
  ClockMap& clocks_;
  std::unique_ptr<ModuleCache> modules_;
  std::map<uint32_t, std::unique_ptr<ProcessState>> processes_;  // by slot
  std::map<uint32_t, int64_t> adopted_;                          // by pid
};

}  // namespace tacho::decode
