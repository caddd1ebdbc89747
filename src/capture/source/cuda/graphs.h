// The contents of a CUDA graph, read once when the program instantiates it, so that the span of a launch can be named
// after its nodes.
#pragma once

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::cuda {

/// Defines the ids of `graph` (CUgraph) and of `executable` (CUgraphExec), which was made from it. Call on the thread
/// that instantiates, outside of the driver.
void describe_graph(const Cupti& cupti, void* graph, void* executable);

}  // namespace tacho::capture::cuda
