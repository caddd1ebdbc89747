// Reads the contents of a CUDA graph once, when the program instantiates it, so that tacho can name the span
// of a launch after the graph's nodes.
#pragma once

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::cuda {

/// Defines the ids of `graph` (CUgraph) and of `executable` (CUgraphExec), which was made from it. Call on
/// the instantiating thread, outside of the driver.
void describe_graph(const Cupti& cupti, void* graph, void* executable);

}  // namespace tacho::capture::cuda
