// What is in a CUDA graph: read once when the program instantiates it, so that a launch that is traced as one
// span has the names of its nodes.
#pragma once

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::cuda {

/// `graph` (CUgraph) became `executable` (CUgraphExec): defines what both ids stand for. On the thread that
/// instantiates, outside of the driver.
void describe_graph(const Cupti& cupti, void* graph, void* executable);

}  // namespace tacho::capture::cuda
