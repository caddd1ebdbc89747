// Counter values of a run as a trace, so that every writer of traces (rocprofv3's csv and json, rocpd, Perfetto) can write
// them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "counter/provider.h"

namespace tacho::counter {

/// Writes `path` (replaced when it exists): dispatches with their times and the values of all passes.
Status write_counter_trace(const std::string& path, const Device& device,
                           const std::vector<std::string>& command, std::span<const PassResult> passes);

}  // namespace tacho::counter
