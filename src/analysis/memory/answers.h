// The tables and sentences of `tacho memory` and of the page's tab Memory, made of a MemoryReport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/memory/memory.h"
#include "report/answer.h"

namespace tacho::analysis {

/// A row for each memory: peak, end, what was there before, reserved, counts.
report::Answer memory_places(const MemoryReport& report, int64_t zero);
/// Who held the memory of a place at its peak, and what was there before the recording began. With moments instead:
/// at each of them, and what changed from the first to the last.
report::Answer memory_holders(const MemoryPlace& place, MemoryBy by, size_t moments);
/// What was allocated in the recording and is live at its end; by bytes, most first.
report::Answer memory_unfreed(const MemoryPlace& place, MemoryBy by);
report::Answer memory_lifetimes(const MemoryPlace& place);
/// Live and reserved bytes over time.
report::Answer memory_curve(const MemoryPlace& place, int64_t from, int64_t to, int64_t zero);
/// What an owner had of the live bytes over time.
struct MemoryArea {
  std::string name;  ///< "activation, train.py:31 forward, aten::linear"; "(others)", "(before the recording)"
  std::vector<report::Cell> names;  ///< as its row of memory_holders() has them; empty for the last two
  std::vector<int64_t> live;        ///< by bucket of the curve
};
/// The owners that had the most at the peak or on average, at most `most` of them, then the others together, then what
/// was there before the recording. They add up to the curve. For places of a report with owner_curves; an area that is
/// 0 throughout is left out.
std::vector<MemoryArea> memory_areas(const MemoryPlace& place, MemoryBy by, size_t most);
/// The same as a table over time, a column for each.
report::Answer memory_owner_curves(const MemoryPlace& place, MemoryBy by, size_t most, int64_t from, int64_t to,
                                   int64_t zero);
/// The peaks of one place in two runs, owner by owner.
report::Answer memory_difference(const MemoryPlace& one, const MemoryPlace& other, MemoryBy by);

/// One row of blocks, as many as the curve has buckets: how full memory was. Empty for a place without a peak.
std::string memory_sparkline(const MemoryPlace& place);
/// Peak, end and reserve in sentences.
std::vector<std::string> memory_sentences(const MemoryPlace& place, int64_t zero);
/// What looks wrong: a peak that one temporary makes, memory that grows, fragmentation, activations.
std::vector<std::string> memory_findings(const MemoryPlace& place, const MemoryReport& report);
/// What the rows do not add up to.
std::vector<std::string> memory_doubts(const MemoryPlace& place, const MemoryReport& report);

}  // namespace tacho::analysis
