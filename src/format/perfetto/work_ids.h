// Ids of device work: the call that caused some names them before the work is at hand.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/write/scratch.h"
#include "walk/filter.h"

namespace tacho::format::perfetto {

/// Gives each kernel, copy and fill an id that no other has, which follows from its call and its place among the call's
/// works. Calls share counts if there are many (32 MiB hold them all): such a call names a few ids that no work has.
class WorkIds {
 public:
  /// Reads the correlations of what `filter` wants. Errors: bad data.
  static Result<WorkIds> make(const trace::Trace& trace, const walk::EventFilter& filter);

  /// Calls f(id) for the work of a call; `correlation` is not 0.
  template <typename F>
  void each(int64_t process, int64_t correlation, F f) const {
    const uint32_t works = cells()[place(process, correlation)].works & ~kHasOthers;
    for (uint32_t at = 0; at < works; ++at) f(id(process, correlation, at));
  }
  /// Whether waits, ranges or the like share the correlation of a call.
  bool has_others(int64_t process, int64_t correlation) const {
    return (cells()[place(process, correlation)].works & kHasOthers) != 0;
  }
  /// The id of the work at hand; `correlation` 0 = it has no call.
  uint64_t next(int64_t process, int64_t correlation);

 private:
  struct Cell {
    uint32_t works;  // of all calls that share this cell; the highest bit says that one has others
    uint32_t taken;
  };
  static constexpr uint32_t kHasOthers = 1u << 31;
  static constexpr size_t kFewestCells = 1 << 10, kMostCells = 1 << 22;

  WorkIds(size_t cells, int64_t processes)
      : cells_(trace::Scratch::temporary(cells * sizeof(Cell))),
        mask_(cells - 1),
        processes_(static_cast<uint64_t>(processes)) {}
  Cell* cells() const { return static_cast<Cell*>(cells_.data()); }
  size_t place(int64_t process, int64_t correlation) const {
    return (static_cast<uint64_t>(correlation) + static_cast<uint64_t>(process) * 0x9e3779b97f4a7c15ull) & mask_;
  }
  uint64_t id(int64_t process, int64_t correlation, uint32_t at) const;

  trace::Scratch cells_;
  size_t mask_;
  uint64_t processes_, without_call_ = 0;
};

}  // namespace tacho::format::perfetto
