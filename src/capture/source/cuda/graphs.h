// Reads the contents of a CUDA graph once, when the program instantiates it, so that tacho can name the span of a
// launch after the graph's nodes.
#pragma once

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::cuda {

/// Defines the ids of `graph` (CUgraph) and of `executable` (CUgraphExec), which was made from it. Call on the
/// instantiating thread, outside of the driver.
void describe_graph(const Cupti& cupti, void* graph, void* executable);

/// Has CUPTI number a graph that is made, so that graphs have numbers in the order in which they are made: a graph
/// inside a node's then has a greater one, by which the analysis knows where it belongs. Call in CUPTI's callback.
void number_graph(const Cupti& cupti, void* graph);

/// Leaves a mark in the trace of a node that is made (`original` nullptr) or copied from another one, as instantiating
/// does. The ranges that are open on the calling thread say what made it. Call in CUPTI's callback.
void mark_graph_node(const Cupti& cupti, void* node, void* original);

}  // namespace tacho::capture::cuda
