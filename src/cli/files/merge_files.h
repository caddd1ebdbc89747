// Several traces as one, with their clocks related: for `tacho merge` and `tacho view FOLDER`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "trace/write/writer.h"

namespace tacho::cli {

/// Copies the traces into `writer`, each as a run of its own. Moments of those that share collectives are brought onto
/// the first one's clock. `notes` gets sentences about clocks and about what is left out.
Status merge_files(const std::vector<std::string>& inputs, trace::TraceWriter& writer, std::vector<std::string>& notes);

}  // namespace tacho::cli
