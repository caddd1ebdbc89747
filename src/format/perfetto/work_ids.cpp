// Counts the work of calls (work_ids.h).
#include "format/perfetto/work_ids.h"

#include <algorithm>
#include <bit>

#include "trace/read/rows.h"

namespace tacho::format::perfetto {

namespace column = event::column;
using event::Table;

Result<WorkIds> WorkIds::make(const trace::Trace& trace, const walk::EventFilter& filter) {
  int64_t works = 0;
  for (const Table table : {Table::kDispatch, Table::kCopy, Table::kFill})
    if (filter.wants(table)) works += trace.rows(table);
  const size_t wanted = std::bit_ceil(static_cast<size_t>(works) * 4);
  WorkIds ids(std::clamp(wanted, kFewestCells, kMostCells), std::max<int64_t>(trace.rows(Table::kProcess), 1));
  using F = column::Fact;
  for (const Table table :
       {Table::kDispatch, Table::kCopy, Table::kFill, Table::kMarker, Table::kSync, Table::kOverhead}) {
    if (!filter.wants(table)) continue;
    const bool work = table == Table::kDispatch || table == Table::kCopy || table == Table::kFill;
    Status status;
    for (const auto& rows : trace::chunks<F::track, F::correlation>(trace, table, status))
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows.correlation[i] == 0) continue;
        const int64_t process = trace::cell<column::Track::process>(trace, rows.track[i]);
        uint32_t& cell = ids.cells()[ids.place(process, rows.correlation[i])].works;
        if (!work)
          cell |= kHasOthers;
        else if ((cell & ~kHasOthers) < kHasOthers - 1)
          ++cell;
      }
    TACHO_TRY(status);
  }
  return ids;
}

// Even numbers below 2^62: the first work of a call whose correlation is a counter's. Odd ones: work without a call.
// From 2^63 on: everything else, by a hash.
uint64_t WorkIds::id(int64_t process, int64_t correlation, uint32_t at) const {
  constexpr uint64_t kMost = 1ull << 48;
  if (at == 0 && correlation > 0 && static_cast<uint64_t>(correlation) < kMost && processes_ < 1 << 12)
    return (static_cast<uint64_t>(correlation) * processes_ + static_cast<uint64_t>(process)) * 2;
  uint64_t hash = static_cast<uint64_t>(process) * 0x9e3779b97f4a7c15ull;
  for (const uint64_t part : {static_cast<uint64_t>(correlation), static_cast<uint64_t>(at)}) {
    hash = (hash ^ part) * 0xbf58476d1ce4e5b9ull;
    hash ^= hash >> 31;
  }
  return hash | 1ull << 63;
}

uint64_t WorkIds::next(int64_t process, int64_t correlation) {
  if (correlation == 0) return without_call_++ * 2 + 1;
  Cell& cell = cells()[place(process, correlation)];
  return id(process, correlation, cell.taken++);
}

}  // namespace tacho::format::perfetto
