// PyTorch's operators in a profile folder (profile --torch-trace): pairs of files torch_trace_*_marker_api_trace.csv
// (calls of operators) and torch_trace_*_counter_collection.csv (counters of kernels, under the call that launched
// them), and torch_trace/consolidated.csv, which joins them. Folders of rocprof-compute have the same files; newer
// versions call the pairs ml_api_trace_*.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::workload {

inline constexpr std::string_view kTorchPrefix = "torch_trace";
inline constexpr std::string_view kMarkerSuffix = "marker_api_trace.csv";
inline constexpr std::string_view kCollectionSuffix = "counter_collection.csv";
inline constexpr std::string_view kGraphSuffix = "graph_nodes.csv";  // beside the first pair of a run
inline constexpr std::string_view kGraphHeader = "Graph_Name,Graph_Id,Launches,Operator_Name,Kernels,Duration_Ns\n";

/// An operator by its whole name, with the work that it launched.
struct TorchOperator {
  std::string name;                ///< "nn.Module.Net.forward/torch.nn.functional.relu"
  size_t calls = 0;                ///< that launched something
  std::set<int64_t> dispatches;    ///< Dispatch_ID, as in pmc_perf.csv
  std::set<std::string> kernels;   ///< names
  std::set<std::string> contexts;  ///< "train.py:31"
  double kernel_ns = 0;            ///< of all its dispatches
};

/// An operator's part of a CUDA graph, which counters measure as a whole.
struct TorchGraphPart {
  std::string graph;     ///< its title: "graph of 110 nodes: vectorized_elementwise_kernel x24, ..."
  int64_t number = 0;    ///< distinguishes graphs with one title
  int64_t launches = 0;  ///< of the graph, in the run that recorded the operators
  std::string name;      ///< of the operator; "" = no operator made these nodes
  int64_t kernels = 0;   ///< in all launches
  int64_t ns = 0;        ///< of these kernels
};

struct TorchTrace {
  std::vector<TorchOperator> operators;     ///< by name
  std::vector<TorchGraphPart> graph_parts;  ///< those of a graph one after the other
  std::vector<std::string> notes;           ///< for the user: consolidated.csv could not be written ...
};

/// Reads the pairs of a folder, those of the given pass files ("pmc_perf_0.csv") alone if there are any. Writes
/// torch_trace/consolidated.csv where it is missing or older than a pair; a folder that cannot be written to gets a
/// note. Fails in a folder without pairs.
Result<TorchTrace> read_torch_trace(const std::string& folder, const std::vector<std::string>& pass_files);

/// As Python's PurePosixPath(name).match(pattern): parts are compared from the right, * and ? match within a part,
/// [a-z] and
/// [!a-z] a character. "all", "*" and "**" match every name.
bool torch_operator_matches(std::string_view pattern, std::string_view name);

}  // namespace tacho::workload
