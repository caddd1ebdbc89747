// What kernels inside graphs took: shares of the whole graph's time, since no single node of a graph is timed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/answer.h"
#include "watch/segment.h"

namespace tacho::watch {

/// What kernels took on average in an earlier trace.
struct KernelTimes {
  std::string file;                                 ///< the trace; empty: there is none
  std::map<std::string, double, std::less<>> mean;  ///< ns, by demangled name
};

struct GraphShare {
  const GraphKernel* kernel;
  uint64_t launches;                      ///< exact
  std::optional<double> share, total_ns;  ///< of the graph's time, and that part of it; nothing where it is not known
};
struct GraphTimeShares {
  std::vector<GraphShare> kernels;  ///< as in RowSums
  uint64_t unknown = 0;             ///< kernels of which no time is known; then nothing has a share
  bool by_trace = false;            ///< some of the times are the trace's; else they are those of launches outside
};
/// The shares of a graph's kernels: by the trace's average of the same name, else by the average of the same kernel's
/// own launches outside of graphs in the same shape. The kernels share all of the graph's time, that of its other nodes
/// and of gaps, too. `total_ns`: the graph's time, if it is known.
GraphTimeShares graph_shares(const RowSums& graph, const KernelTimes& times, std::optional<double> total_ns);

/// All kernels inside graphs, by time, then by launches; no rows if no graph is known from inside.
report::Answer graph_answer(const WatchSnapshot& snapshot, const KernelTimes& times);

}  // namespace tacho::watch
