// Who holds memory: the bytes that were live over time, the peak and its owners, what was never freed, how long memory
// lived, and what allocators reserve beyond it. `tacho memory` prints it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/memory/places.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

struct MemoryOptions {
  size_t buckets = 72;
  std::vector<int64_t> moments;  ///< trace time, ascending
  bool owner_curves = false;     ///< fills MemoryOwner::curve
};

/// Errors: the trace cannot be read.
Result<MemoryReport> memory_report(const trace::Trace& trace, const MemoryOptions& options = {});

/// How owners are put together. kOwner tells them apart by all of line, module, operator and use; kOwnerOfModules by
/// all but the module.
enum class MemoryBy : uint8_t { kOwner, kLine, kModule, kOperator, kUse, kOwnerOfModules };
/// Whether `by` tells owners apart by `part`: kLine, kModule, kOperator or kUse.
constexpr bool tells_apart(MemoryBy by, MemoryBy part) {
  return by == part || by == MemoryBy::kOwner || (by == MemoryBy::kOwnerOfModules && part != MemoryBy::kModule);
}
std::optional<MemoryBy> parse_memory_by(std::string_view word);
/// Owners that are equal to a reader become one; by bytes at the peak, most first.
std::vector<MemoryOwner> memory_owners(const MemoryPlace& place, MemoryBy by);

}  // namespace tacho::analysis
