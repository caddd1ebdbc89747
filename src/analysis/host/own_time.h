// Own time of what nests on the host: each moment of a thread counts for the innermost call, and once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "analysis/accumulate.h"
#include "analysis/host/host_kind.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// Sums over the own times of calls, and of ranges, by kind.
struct OwnTimes {
  std::array<Sums, kHostKinds> of{};
  const Sums& operator[](HostKind kind) const { return of[static_cast<size_t>(kind)]; }
};

/// One pass over calls and ranges. Own time is without the calls and ranges within, as in exclusive() of questions.h.
/// Ranges are the program's (walk/names/program_ranges.h). `process`: its row; nullopt = all.
Result<OwnTimes> own_times(const trace::Trace& trace, std::optional<int64_t> process);

}  // namespace tacho::analysis
