// Walking through a graph's nodes (graph_parts.h).
#include "capture/plugin/watch/graph_parts.h"

#include <string.h>
#include <sys/mman.h>

#include "capture/plugin/watch/hooks.h"
#include "capture/room/pages.h"

namespace tacho::capture::watch {
namespace {

// CU_GRAPH_NODE_TYPE_...
constexpr int kKernelNode = 0, kChildGraph = 4, kEmptyNode = 5, kWaitEvent = 6, kRecordEvent = 7;

// The parts of one graph. Kernels beyond kMost of them are among the other nodes.
struct Parts {
  static constexpr uint32_t kMost = 512, kPlaces = 1024;
  uint32_t count, others;
  uint32_t places[kPlaces];  // index into `all` plus 1, by row
  GraphPart all[kMost + 1];

  void add(WatchRow* row) {
    auto at = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(row) / sizeof(WatchRow)) % kPlaces;
    for (; places[at] != 0; at = (at + 1) % kPlaces)
      if (all[places[at] - 1].row == row) {
        ++all[places[at] - 1].nodes;
        return;
      }
    if (count == kMost) {
      ++others;
      return;
    }
    all[count] = {row, 1};
    places[at] = ++count;
  }
};

class Reader {
 public:
  Reader(const GraphFunctions& driver, Parts& parts, WatchRow* (*row_of)(void*, const WatchedShape&))
      : driver_(driver), parts_(parts), row_of_(row_of) {}
  // False: the driver does not tell.
  bool read(void* graph, uint32_t depth) {
    constexpr uint32_t kDeepest = 16;
    size_t count = 0;
    if (depth > kDeepest || driver_.cuGraphGetNodes(graph, nullptr, &count) != 0) return false;
    if (count == 0) return true;
    const size_t bytes = count * sizeof(void*);
    auto** const nodes = static_cast<void**>(map_pages(bytes));
    if (nodes == nullptr) return false;
    bool told = driver_.cuGraphGetNodes(graph, nodes, &count) == 0;
    for (size_t i = 0; told && i < count; ++i) told = read_node(nodes[i], depth);
    munmap(nodes, bytes);
    return told;
  }

 private:
  bool read_node(void* node, uint32_t depth) {
    int type = 0;
    if (driver_.cuGraphNodeGetType(node, &type) != 0) return false;
    if (type == kChildGraph) {
      void* child = nullptr;
      return driver_.cuGraphChildGraphNodeGetGraph != nullptr &&
             driver_.cuGraphChildGraphNodeGetGraph(node, &child) == 0 && read(child, depth + 1);
    }
    if (type != kKernelNode) {
      const bool is_work = type != kEmptyNode && type != kWaitEvent && type != kRecordEvent;
      parts_.others += is_work ? 1 : 0;
      return true;
    }
    GraphKernelNode kernel{};
    if (!read_kernel_node(driver_, node, kernel)) return false;
    WatchedShape shape;
    for (size_t i = 0; i < 3; ++i) {
      shape.grid[i] = threads(kernel.grid[i], kernel.block[i]);
      shape.group[i] = kernel.block[i];
    }
    WatchRow* const row = row_of_(kernel.function, shape);
    if (row != nullptr)
      parts_.add(row);
    else
      ++parts_.others;
    return true;
  }

  const GraphFunctions& driver_;
  Parts& parts_;
  WatchRow* (*row_of_)(void*, const WatchedShape&);
};

}  // namespace

bool read_kernel_node(const GraphFunctions& driver, void* node, GraphKernelNode& kernel) {
  auto* const read = driver.cuGraphKernelNodeGetParams_v2 != nullptr ? driver.cuGraphKernelNodeGetParams_v2
                                                                     : driver.cuGraphKernelNodeGetParams;
  if (read == nullptr || read(node, &kernel) != 0) return false;
  if (kernel.function == nullptr) kernel.function = kernel.kernel;
  return kernel.function != nullptr;
}

bool same_launch(const GraphKernelNode& a, const GraphKernelNode& b) {
  // In the first version there is nothing behind a function.
  const void* const function = b.function != nullptr ? b.function : b.kernel;
  return a.function == function && memcmp(a.grid, b.grid, sizeof a.grid) == 0 &&
         memcmp(a.block, b.block, sizeof a.block) == 0;
}

WatchRow* read_graph(const GraphFunctions& driver, uint32_t domain, void* graph,
                     WatchRow* (*row_of)(void* function, const WatchedShape& shape)) {
  if (driver.cuGraphGetNodes == nullptr || driver.cuGraphNodeGetType == nullptr) return nullptr;
  auto* const parts = static_cast<Parts*>(map_pages(sizeof(Parts)));
  if (parts == nullptr) return nullptr;
  WatchRow* row = nullptr;
  if (Reader(driver, *parts, row_of).read(graph, 0)) {
    size_t count = parts->count;
    if (parts->others > 0) parts->all[count++] = {nullptr, parts->others};
    row = find_graph(domain, parts->all, count);
  }
  munmap(parts, sizeof(Parts));
  return row;
}

}  // namespace tacho::capture::watch
