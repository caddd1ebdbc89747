// What every recording begins with: its pool, and what its trace says about the run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/recording.h"
#include "tape/pool.h"
#include "trace/write/writer.h"

namespace tacho::launch {

/// A pool with the configuration that the recording wants, of at most `max_bytes`; in one of `folders` if one of them
/// has room, else where pools are.
Result<tape::Pool> make_pool(const Recording& recording, uint64_t max_bytes, std::vector<std::string> folders = {});

/// Properties of the run: the command, the machine, the time, the variables of recorded_environment().
void describe_recording(trace::TraceWriter& writer, const Recording& recording,
                        const std::vector<std::string>& command);

}  // namespace tacho::launch
