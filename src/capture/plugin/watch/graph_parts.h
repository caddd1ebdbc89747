// What a CUDA graph launches: its kernels by name and shape, read when it is made ready for launches.
#pragma once

#include "capture/plugin/watch/sums.h"

namespace tacho::capture::watch {

/// CUDA_KERNEL_NODE_PARAMS_v2; the first version ends before `kernel`.
struct GraphKernelNode {
  void* function;
  unsigned grid[3], block[3], shared_bytes;
  void **parameters, **extra;
  void *kernel, *context;
};

/// Functions of the driver; missing ones are null.
struct GraphFunctions {
  int (*cuGraphGetNodes)(void* graph, void** nodes, size_t* count);
  int (*cuGraphNodeGetType)(void* node, int* type);
  int (*cuGraphKernelNodeGetParams)(void* node, GraphKernelNode*);
  int (*cuGraphKernelNodeGetParams_v2)(void* node, GraphKernelNode*);
  int (*cuGraphChildGraphNodeGetGraph)(void* node, void** graph);
};

/// The row of graphs with what is in this CUgraph. `row_of`: the row of launches of a function in a shape. nullptr when
/// the driver does not tell, or the table is full.
WatchRow* read_graph(const GraphFunctions& driver, uint32_t domain, void* graph,
                     WatchRow* (*row_of)(void* function, const WatchedShape& shape));
/// What a kernel's node launches; false when the driver does not tell.
bool read_kernel_node(const GraphFunctions& driver, void* node, GraphKernelNode& kernel);
/// The function and the shape are the same: `a` as read_kernel_node() gave it, `b` as a program gives it.
bool same_launch(const GraphKernelNode& a, const GraphKernelNode& b);

}  // namespace tacho::capture::watch
