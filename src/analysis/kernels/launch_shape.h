// The launch shape of a kernel in the words of its vendor. Traces hold all grids in work-items (docs/events.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace tacho::analysis {

/// Whether people write the trace's grids in blocks: the vendors of all its GPUs do, or, where a GPU's vendor is not
/// known, that of the API that the host called.
bool grids_in_blocks(const trace::Trace& trace);

/// Texts like "132 x 1 x 1 blocks" and "384 x 1 x 1 threads", or "50688 x 1 x 1 work-items" and "384 x 1 x 1
/// work-items"; empty where the trace does not have the size.
struct LaunchShapeText {
  std::string grid, group;
  std::string_view group_title;  ///< "block", "workgroup"
};
/// `kernel`: row of table kernel; `blocks`: grids_in_blocks(); `times`: between the sizes, " x " or "x". A grid in
/// blocks whose blocks are not known is in threads, and says so. A part of a block counts as one.
LaunchShapeText launch_shape(const trace::Trace& trace, int64_t kernel, bool blocks, std::string_view times = " x ");

}  // namespace tacho::analysis
