// Writes the counter values of a run as a trace, so that every output format for traces (rocprofv3's csv and json,
// rocpd, Perfetto) can hold them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "counter/provider.h"

namespace tacho::counter {

/// Writes the dispatches with their times and the values of all passes to `path`, replacing an existing file.
Status write_counter_trace(const std::string& path, const Device& device, const std::vector<std::string>& command,
                           std::span<const PassResult> passes);

}  // namespace tacho::counter
