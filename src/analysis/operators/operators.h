// Operators of PyTorch and what they did on the devices: modules, functions, ATen operators, backward passes. They come
// from ranges of the domain "torch" (--torch-trace), ranges of torch's own NVTX or ROCTx emitter, and operators of
// torch.profiler's files. `tacho stats --by operator|module` and the operators of a profile are made of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/saturating.h"
#include "trace/trace.h"

namespace tacho::analysis {

enum class OperatorLevel : uint8_t {
  kRoot,
  kModule,     // nn.Module.Linear.forward
  kFunction,   // torch.nn.functional.linear, an autograd function of the program's own
  kAten,       // aten::addmm
  kBackward,   // AddmmBackward0; below the forward operator that made it
  kCall,       // torch.autograd.backward, the autograd engine
  kOptimizer,  // Optimizer.step#SGD.step
  kData,       // a data loader
  kUser,       // torch.profiler.record_function
  kCompiled,   // a kernel that inductor made
};

/// Which part of a training step an operator ran in.
enum class OperatorPhase : uint8_t { kForward, kBackward, kOptimizer, kData };
std::string_view to_string(OperatorPhase phase);

/// Device work.
struct DeviceWork {
  int64_t ns = 0;  ///< summed over kernels, copies and fills
  int64_t kernels = 0;
  int64_t launches = 0;      ///< API calls that caused it
  int64_t bytes = 0;         ///< of copies and fills
  int64_t host_copy_ns = 0;  ///< of `ns`: copies between host and device
  void add(const DeviceWork& other) {
    add_saturating(ns, other.ns);
    add_saturating(host_copy_ns, other.host_copy_ns);
    kernels += other.kernels;
    launches += other.launches;
    add_saturating(bytes, other.bytes);
  }
};

/// Work of operators that was held against a roof (efficiency/operator_work.h).
struct RoofedWork {
  int64_t ns = 0;   ///< of device work
  double roof = 0;  ///< ns that the roofs ask for it
  double flops = 0, bytes = 0;
  void add(const RoofedWork& other) {
    add_saturating(ns, other.ns);
    roof += other.roof;
    flops += other.flops;
    bytes += other.bytes;
  }
};

struct OperatorNode {
  uint32_t parent = 0;  ///< index into nodes; the root is its own parent
  uint32_t name = 0;    ///< index into texts
  uint32_t place = 0;   ///< index into texts: "/home/u/train.py:31"; 0 = unknown
  uint32_t module = 0;  ///< index into texts: the module's place in the model, of the innermost module; 0 = none
  uint32_t fused = 0;   ///< kCompiled: index into texts: the ATen operators and the lines, as inductor gave them
  uint32_t shapes = 0;  ///< index into texts: the shapes of its inputs, where they were asked for; 0 = unknown
  int64_t inputs = 0;   ///< row of table operator_input, likewise; 0 = unknown, or one of many (kOtherShapes)
  OperatorLevel level = OperatorLevel::kRoot;
  OperatorPhase phase = OperatorPhase::kForward;
  int64_t calls = 0;
  int64_t unended = 0;   ///< calls whose end is not known; no time below has them
  int64_t host_ns = 0;   ///< without what it called that is an operator itself
  int64_t whole_ns = 0;  ///< with it
  DeviceWork work;       ///< launched by the operator itself
};

struct OperatorTree {
  std::vector<std::string> texts;  // 0 is empty
  std::vector<OperatorNode>
      nodes;            // parents before children; 0 is the root, which has the work outside of all operators
  DeviceWork whole;     // of the trace
  DeviceWork uncalled;  // of the root's work, that whose launching call is not in the trace
  int64_t graph_unnamed =
      0;                 // kernels, copies and fills of CUDA graphs whose node was made before tracing, or out of sight
  DeviceWork estimated;  // divided by GraphShares; part of `whole`
  int64_t spans_divided = 0;    // launches of graphs as one span that make up `estimated`
  int64_t estimated_from = 0;   // launches that the shares were measured in, of the graph with the fewest
  int64_t spans_undivided = 0;  // launches of graphs as one span that GraphShares does not know
  int64_t backward_alone = 0;   // calls of backward operators whose forward operator is not known
  int64_t shapes_together = 0;  // calls whose shapes were too many to be told apart: kOtherShapes
  // Shapes that were asked for and recorded in stretches of the run (--torch-shapes):
  bool sampled = false;
  int64_t stretches = 0;
  uint32_t outside = 0;   // the node of all calls outside of them (kWithoutShapes); 0 = none
  int64_t forgotten = 0;  // work whose launching call may have been forgotten (walk/calls/call_index.h)
  bool any() const { return nodes.size() > 1; }
  /// `sampled`: GPU time of operators in the stretches.
  int64_t with_shapes_ns() const { return whole.ns - nodes[0].work.ns - (outside != 0 ? nodes[outside].work.ns : 0); }
  /// True if the trace was recorded with --torch-trace in a process that imported torch.
  bool torch_seen = false;
  std::string torch_version;  // "torch 2.11.0"; empty = unknown

  /// The operator's name as rocprof-compute's files have it: modules and functions from the outermost on, and below
  /// them the outermost ATen operator where no function stands for it, joined by '/':
  /// "nn.Module.Net.forward/nn.Module.Conv2d.forward/ torch.nn.functional.conv2d". Empty for the root.
  std::string path(uint32_t node) const;
};

/// A launch that an operator made: one call of it.
struct OperatorCall {
  uint32_t node = 0;     ///< the innermost operator
  uint32_t outer = 0;    ///< the node that path() ends with
  int64_t process = 0;   ///< row
  int64_t thread = 0;    ///< row
  int64_t start = 0;     ///< of that operator's call, trace time
  int64_t duration = 0;  ///< ns; kUnknown = its end is not known
  int64_t number = 0;    ///< how many calls the place had made of it, this one included
};

/// A row of the trace's kernels.
struct OperatorKernel {
  int64_t track = 0, start = 0, duration = 0, dim = 0;
  int64_t correlation = 0;  ///< 0 = unknown
  int64_t graph_node = 0;   ///< 0 = it is not a node of a CUDA graph
};

/// The work of a CUDA graph's node in one launch.
struct GraphNodeWork {
  int64_t process = 0, correlation = 0;  ///< the launch
  int64_t graph = 0;                     ///< its id; 0 = unknown: a copy or a fill
  DeviceWork work;
  uint32_t node = 0;                       ///< the operator's node that made it; 0 = none
  const OperatorCall* launcher = nullptr;  ///< the operator's call that launched the graph; nullptr = none
};

/// A row of the trace's allocations, with what its thread was doing.
struct OperatorAllocation {
  int64_t track = 0, start = 0, dim = 0, correlation = 0, bytes = 0, address = 0, stack = 0, in_use = 0, reserved = 0;
  OperatorPhase phase = OperatorPhase::kForward;
  int64_t range = 0;                        ///< the innermost range of the program's own, row of table label; 0 = none
  std::span<const int64_t> functions = {};  ///< Python's that are open, rows of table function, innermost last
};

struct OperatorVisitor {
  /// Called for each row of table allocation in the order of their starts, with the operator's call in which it
  /// happened; nullptr = none. `tree`: as far as it is known.
  std::function<void(const OperatorAllocation& allocation, const OperatorCall* call, const OperatorTree& tree)>
      allocation = {};
  /// Called for each mark of --memory that says what an address holds ("parameter"), among the allocations.
  std::function<void(int64_t process, int64_t address, std::string_view what)> described = {};
  /// Called for each kernel in the order of their starts, with the operator's call that launched it, or that made the
  /// node of a CUDA graph; nullptr = none.
  std::function<void(const OperatorKernel& kernel, const OperatorCall* call)> kernel = {};
  /// Called for each kernel, copy and fill that is a node of a CUDA graph, for a kernel just before `kernel`.
  std::function<void(const GraphNodeWork& work)> graph_node = {};
};

/// What the nodes of CUDA graphs took in a trace with --graph-trace node, by the name that a launch as one span has. Of
/// several graphs with one name the n-th of one trace is the n-th of the other, if they have as many; else they share.
struct GraphShares {
  struct Graph {
    int64_t launches = 0, ns = 0;
    std::vector<std::pair<uint32_t, DeviceWork>> work;  // by node of `tree`, summed over all launches
  };
  OperatorTree tree;
  std::unordered_map<std::string, std::vector<Graph>> graphs;  // by name, in the order in which they were made
};
Result<GraphShares> graph_shares(const trace::Trace& trace);

/// Of nodes whose shapes came after kMostShapedNodes nodes.
inline constexpr std::string_view kOtherShapes = "(other shapes)";
inline constexpr size_t kMostShapedNodes = 100'000;

/// The calls that a trace with shapes in stretches of the run has outside of them.
inline constexpr std::string_view kWithoutShapes = "(calls without shapes)";

/// Whether the trace has shapes of operators' inputs in stretches of the run only.
bool shapes_were_sampled(const trace::Trace& trace);

/// "Shapes were recorded for 45.65 ms (1.7 %) of 2.68 s of GPU time, ..."; empty for other trees.
std::string sampled_shapes_sentence(const OperatorTree& tree);

/// `shares`: divides launches of CUDA graphs that are one span; nullptr = they belong to what launched them.
/// `input_shapes`: calls of an operator with other inputs are a node of their own.
Result<OperatorTree> operator_tree(const trace::Trace& trace, const OperatorVisitor& visitor = {},
                                   const GraphShares* shares = nullptr, bool input_shapes = false);

/// What a user who asked for operators should know when there are none, or none with device work: PyTorch was not
/// imported, or ran on the CPU. Empty when there is nothing to say, and for a trace without --torch-trace.
Result<std::string> torch_sentence(const trace::Trace& trace);

/// "Linear" of a module's operator, "nn.Module.Linear.forward"; other names as they are.
std::string module_class(std::string_view name);

enum class OperatorBy : uint8_t {
  kOperator,
  kModule,  ///< each place in the model by itself: "Net.conv1"
  kClass,   ///< all modules of a class together: "Conv2d"
};

struct OperatorRow {
  std::string name;  // "torch.nn.functional.conv2d", "Net.conv1"
  OperatorPhase phase = OperatorPhase::kForward;
  std::string
      kind;  // kModule: its class, "Conv2d"; a compiled kernel: what was fused, "aten.add,aten.relu train.py:31"
  std::string shapes;   // kOperator: of the inputs, "[[8, 3], []]", if the tree tells them apart; empty = unknown
  int64_t modules = 0;  // kClass: how many modules of the class ran
  int64_t calls = 0;
  int64_t host_self = 0, host_total = 0;  // ns
  DeviceWork self, total;
  RoofedWork roofed;  ///< kModule, kClass: of `total`, if the caller has it
};
/// A row for each name, shapes and phase; by device time, then by host time, longest first, and at the end
/// "(no operator)" or "(no module)" with the work outside of all. Times of operators within operators of the same name
/// and shapes count once. Work of a backward operator belongs, in the backward phase, to its forward operators and
/// modules. `roofed`: by node of the tree; empty = not known.
std::vector<OperatorRow> operator_rows(const OperatorTree& tree, OperatorBy by,
                                       std::span<const RoofedWork> roofed = {});

/// "13.74 ms of it (30.1 %) has no operator: the calls that launched it are not in this recording."; empty if all work
/// has one.
std::string without_operator_sentence(const OperatorTree& tree);

}  // namespace tacho::analysis
