// The sweep that gives device work to operators (operators.h).
#include "analysis/operators/operators.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "analysis/operators/graph_nodes.h"
#include "analysis/pair_hash.h"
#include "base/format.h"
#include "base/saturating.h"
#include "event/schema.h"
#include "report/text.h"
#include "trace/read/operator_causes.h"
#include "trace/read/rows.h"
#include "vendor/definitions.h"
#include "walk/calls/call_index.h"
#include "walk/calls/open_ranges.h"
#include "walk/merge.h"
#include "walk/work.h"

namespace tacho::analysis {

using event::kUnknown;
using event::Table;
namespace column = event::column;

std::string_view to_string(OperatorPhase phase) {
  static constexpr std::string_view kNames[] = {"forward", "backward", "optimizer", "data"};
  return kNames[static_cast<size_t>(phase)];
}

namespace {

// Functions of torch.nn.functional that are ATen operators under another name: nothing else tells of their calls where
// torch's emitter runs.
constexpr std::string_view kFunctional[] = {"adaptive_avg_pool1d",
                                            "avg_pool1d",
                                            "avg_pool2d",
                                            "avg_pool3d",
                                            "bilinear",
                                            "channel_shuffle",
                                            "conv1d",
                                            "conv2d",
                                            "conv3d",
                                            "conv_tbc",
                                            "conv_transpose1d",
                                            "conv_transpose2d",
                                            "conv_transpose3d",
                                            "cosine_similarity",
                                            "gelu",
                                            "hardshrink",
                                            "linear",
                                            "one_hot",
                                            "pairwise_distance",
                                            "pdist",
                                            "pixel_shuffle",
                                            "pixel_unshuffle",
                                            "prelu",
                                            "scaled_dot_product_attention",
                                            "softplus",
                                            "softshrink"};

constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";

// Properties that the name of a range or operator gives.
struct Kind {
  bool is = false;  // an operator at all
  OperatorLevel level = OperatorLevel::kAten;
  std::string name, module, place, fused;
  uint64_t link = 0;  // of the text: "seq = 12", plus 1; 0 = none
  bool engine = false;
};

bool all_digits(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "MmBackward0", "torch::autograd::AccumulateGrad", "ScaleBackward"
bool is_backward(std::string_view name) {
  if (name == "torch::autograd::AccumulateGrad" || name == "torch::autograd::CopyBackwards" ||
      name == "torch::autograd::CopySlices" || name == "torch::autograd::GraphRoot")
    return true;
  const size_t at = name.rfind("Backward");
  return at != std::string_view::npos && at > 0 && all_digits(name.substr(at + 8)) &&
         name.find(' ') == std::string_view::npos;
}

// "aten::mm, seq = 7, op_id = 31": the name alone, and the 7 as 8.
std::string_view cut_numbers(std::string_view text, uint64_t& link) {
  constexpr std::string_view kSequence = ", seq = ";
  if (const size_t at = text.find(kSequence); at != std::string_view::npos) {
    uint64_t number = 0;
    const char* const begin = text.data() + at + kSequence.size();
    if (std::from_chars(begin, text.data() + text.size(), number).ec == std::errc()) link = number + 1;
  }
  for (const std::string_view counter : {kSequence, std::string_view(", op_id = "), std::string_view(", sizes = ")})
    text = text.substr(0, text.find(counter));
  return text;
}

// Names as torch itself gives them, in ranges of its emitter and in torch.profiler's files.
Kind of_name(std::string_view text) {
  Kind kind;
  const std::string_view name = cut_numbers(text, kind.link);
  kind.name = name;
  kind.is = true;
  if (name.starts_with(kEngine)) {
    kind.level = OperatorLevel::kCall;
    kind.name = "autograd engine";
    kind.engine = true;
  } else if (is_backward(name)) {
    kind.level = OperatorLevel::kBackward;
  } else if (name.starts_with("Optimizer.")) {
    kind.level = OperatorLevel::kOptimizer;
  } else if (name.starts_with("enumerate(DataLoader)")) {
    kind.level = OperatorLevel::kData;
  } else if (name.find("::") != std::string_view::npos && name.find(' ') == std::string_view::npos) {
    kind.level = OperatorLevel::kAten;
  } else {
    kind.is = kind.link != 0;  // a function of the program's own
    kind.level = OperatorLevel::kFunction;
  }
  return kind;
}

// Ranges of --torch-trace: the category is "kind place @ file:line" (python/tacho/torch_trace.py).
Kind of_own(std::string_view name, std::string_view category) {
  Kind kind;
  kind.is = true;
  kind.name = name;
  if (const size_t at = category.rfind(" @ "); at != std::string_view::npos) {
    kind.place = category.substr(at + 3);
    category = category.substr(0, at);
  }
  const size_t space = category.find(' ');
  const std::string_view word = category.substr(0, space),
                         rest = space == std::string_view::npos ? std::string_view() : category.substr(space + 1);
  if (word == "module") {
    kind.level = OperatorLevel::kModule;
    kind.module = rest;
  } else if (word == "function" || word == "autograd") {
    kind.level = OperatorLevel::kFunction;
  } else if (word == "backward") {
    kind.level = OperatorLevel::kBackward;
  } else if (word == "optimizer") {
    kind.level = OperatorLevel::kOptimizer;
  } else if (word == "data") {
    kind.level = OperatorLevel::kData;
  } else if (word == "compiled") {
    kind.level = OperatorLevel::kCompiled;
    kind.fused = rest;
  } else if (word == "call") {
    kind.level = OperatorLevel::kCall;
  } else {
    kind.level = OperatorLevel::kUser;
  }
  return kind;
}

// "nn.Module: Linear_0" of torch.profiler's files with modules.
std::optional<Kind> of_python(std::string_view name) {
  constexpr std::string_view kModule = "nn.Module: ";
  if (!name.starts_with(kModule)) return std::nullopt;
  name.remove_prefix(kModule.size());
  Kind kind;
  kind.is = true;
  kind.level = OperatorLevel::kModule;
  kind.module = name;
  const size_t number = name.rfind('_');
  if (number != std::string_view::npos && number > 0 && all_digits(name.substr(number + 1)))
    name = name.substr(0, number);
  kind.name = "nn.Module." + std::string(name) + ".forward";
  return kind;
}

// Marks of --torch-shapes: a stretch of the run whose operators have shapes begins or ends.
constexpr std::string_view kShapesCategory = "shapes";
enum class ShapesMark : uint8_t { kNone, kBegin, kEnd, kOther };

// Forward operators whose backward may still come: the newest of them.
constexpr size_t kMostRemembered = 2'000'000;

// The part of a name that an operator is.
std::string part_of(const OperatorTree& tree, const OperatorNode& node) {
  const std::string& name = tree.texts[node.name];
  constexpr std::string_view kAten = "aten::";
  if (node.level == OperatorLevel::kAten && name.starts_with(kAten)) {
    const std::string_view short_name = std::string_view(name).substr(kAten.size());
    if (std::find(std::begin(kFunctional), std::end(kFunctional), short_name) != std::end(kFunctional))
      return "torch.nn.functional." + std::string(short_name);
  }
  return name;
}

// The operators on the way to a node that its path names, from the outermost on: ATen operators only where the next
// outer part is neither one nor a function that stands for it.
std::vector<uint32_t> named(const OperatorTree& tree, uint32_t node) {
  std::vector<uint32_t> chain;
  for (uint32_t at = node; at != 0; at = tree.nodes[at].parent) chain.push_back(at);
  std::reverse(chain.begin(), chain.end());
  auto last = OperatorLevel::kRoot;
  std::erase_if(chain, [&](uint32_t at) {
    const OperatorLevel level = tree.nodes[at].level;
    const bool said = last == OperatorLevel::kFunction || last == OperatorLevel::kAten ||
                      last == OperatorLevel::kBackward || last == OperatorLevel::kOptimizer ||
                      last == OperatorLevel::kCompiled;
    if (level == OperatorLevel::kAten && said) return true;
    last = level;
    return false;
  });
  return chain;
}

class OperatorSweep {
 public:
  OperatorSweep(const trace::Trace& trace, const OperatorVisitor& visitor, const GraphShares* shares, bool shapes)
      : trace_(trace),
        visitor_(visitor),
        shares_(shares),
        shapes_(shapes),
        calls_(trace.rows(Table::kApi)),
        caused_by_operators_(trace::caused_by_operators(trace)) {
    tree_.texts.emplace_back();
    tree_.nodes.emplace_back();
  }

  Result<OperatorTree> run() {
    labels_.resize(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kLabel), 1)));
    functions_.resize(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kFunction), 1)));
    with_shapes_.resize(static_cast<size_t>(std::max<int64_t>(trace_.rows(Table::kProcess), 1)));
    sampled_ = tree_.sampled = shapes_ && shapes_were_sampled(trace_);
    TACHO_TRY(read_links());
    TACHO_TRY(sweep());
    return std::move(tree_);
  }

 private:
  struct Known {
    bool read = false;
    bool launches = false;  // an API call, no operator
    Kind kind;
    uint32_t name = 0, module = 0, place = 0, fused = 0;  // texts
    bool torch = false;
    bool memory = false;  // a mark that says what an address holds
    ShapesMark shapes = ShapesMark::kNone;
    bool function = false;  // Python's own
    GraphMark graph = GraphMark::kNone;
  };
  struct Open {
    int64_t start = 0, duration = 0;
    uint32_t node = 0;
    OperatorPhase phase = OperatorPhase::kForward;
    int64_t number = 0;
    bool engine = false;
    int64_t covered = std::numeric_limits<int64_t>::min();  // calls within it have its time until then
  };
  struct Call {
    OperatorCall operation;
    bool counted = false;
  };
  struct Forward {
    uint32_t node;
    int64_t track;
    bool ambiguous;
  };

  int64_t cell(Table table, int64_t row, int at) const { return trace_.cell(table, row, at); }
  int64_t process_of(int64_t track) const { return cell(Table::kTrack, track, column::Track::process); }

  uint32_t text(const std::string& value) {
    if (value.empty()) return 0;
    const auto [at, fresh] = text_of_.try_emplace(value, static_cast<uint32_t>(tree_.texts.size()));
    if (fresh) tree_.texts.push_back(value);
    return at->second;
  }

  void fill(Known& known, Kind kind) {
    known.read = true;
    known.kind = std::move(kind);
    if (!known.kind.is) return;
    known.name = text(known.kind.name);
    known.module = text(known.kind.module);
    known.place = text(known.kind.place);
    known.fused = text(known.kind.fused);
  }

  const Known& label(int64_t row) {
    Known& known = labels_[row > 0 && static_cast<size_t>(row) < labels_.size() ? static_cast<size_t>(row) : 0];
    if (known.read) return known;
    const std::string_view name = trace_.text(Table::kLabel, row, column::Label::name),
                           domain = trace_.text(Table::kLabel, row, column::Label::domain),
                           category = trace_.text(Table::kLabel, row, column::Label::category);
    if (domain == "torch") {
      known.torch = true;
      known.graph = graph_mark(trace_, row);
      if (known.graph != GraphMark::kNone) {
        known.read = true;
      } else if (category.starts_with("version ")) {
        tree_.torch_seen = true;
        tree_.torch_version = name;
        known.read = true;
      } else if (category == "memory") {
        known.memory = known.read = true;
      } else if (category == kShapesCategory) {
        known.shapes = name == "begin" ? ShapesMark::kBegin : name == "end" ? ShapesMark::kEnd : ShapesMark::kOther;
        known.read = true;
      } else {
        fill(known, of_own(name, category));
      }
    } else if (domain.empty() || vendor::is_marker_library(domain)) {
      // Where torch's emitter writes; libraries have domains of their own (CUB: "CCCL").
      fill(known, of_name(name));
    } else {
      known.read = true;
    }
    return known;
  }

  Known& function(int64_t row) {
    Known& known = functions_[row > 0 && static_cast<size_t>(row) < functions_.size() ? static_cast<size_t>(row) : 0];
    if (known.read) return known;
    const auto domain = static_cast<event::Domain>(cell(Table::kFunction, row, column::Function::domain));
    const std::string_view name = trace_.text(Table::kFunction, row, column::Function::name);
    known.read = true;
    if (domain == event::Domain::kOperator) {
      Kind kind = of_name(name);
      kind.is = true;
      fill(known, std::move(kind));
    } else if (domain == event::Domain::kPython) {
      if (auto kind = of_python(name))
        fill(known, std::move(*kind));
      else
        known.function = true;
    } else {
      known.launches = true;
    }
    return known;
  }

  // Forward and backward operators of torch.profiler's files.
  Status read_links() {
    using L = column::Link;
    Status status;
    for (const auto& links : trace::chunks<L::kind, L::process, L::from, L::to>(trace_, status))
      for (size_t i = 0; i < links.size(); ++i)
        if (links.kind[i] == event::LinkKind::kFlow) {
          forward_of_[{links.process[i], links.to[i]}] = links.from[i];
          linked_.insert({links.process[i], links.from[i]});
        }
    return status;
  }

  // The text of an operator's input shapes, a row of table operator_input.
  uint32_t shapes_of(int64_t inputs, bool& together) {
    if (!shapes_ || inputs == 0) return 0;
    if (tree_.nodes.size() > kMostShapedNodes) {
      ++tree_.shapes_together;
      together = true;
      return text(std::string(kOtherShapes));
    }
    return text(std::string(trace_.text(Table::kOperatorInput, inputs, column::OperatorInput::dims)));
  }

  // `inputs`: the row of table operator_input whose text `shapes` is.
  uint32_t child(uint32_t parent, const Known& known, OperatorPhase phase, uint32_t shapes = 0, int64_t inputs = 0) {
    // A module's place in the model tells it from others of its class; of other operators the name does, and for the
    // innermost their place in the source.
    const std::array<uint32_t, 5> key = {parent, known.name, known.module,
                                         known.place ^ static_cast<uint32_t>(phase) << 28,
                                         shapes == 0   ? 0
                                         : inputs == 0 ? ~uint32_t{0}
                                                       : static_cast<uint32_t>(inputs)};
    const auto [at, fresh] = child_of_.try_emplace(key, static_cast<uint32_t>(tree_.nodes.size()));
    if (fresh) {
      OperatorNode node;
      node.parent = parent;
      node.name = known.name;
      node.place = known.place;
      node.module = known.module != 0 ? known.module : tree_.nodes[parent].module;
      node.fused = known.fused;
      node.shapes = shapes;
      node.inputs = inputs;
      node.level = known.kind.level;
      node.phase = phase;
      tree_.nodes.push_back(node);
    }
    return at->second;
  }

  static OperatorPhase phase_of(OperatorLevel level, bool engine, OperatorPhase outer) {
    if (level == OperatorLevel::kBackward || engine) return OperatorPhase::kBackward;
    if (level == OperatorLevel::kOptimizer) return OperatorPhase::kOptimizer;
    if (level == OperatorLevel::kData) return OperatorPhase::kData;
    return outer;
  }

  // An operator's call begins. `number`: a link of forward and backward, 0 = none; `own`: correlation of the call
  // itself; `inputs`: a row of table operator_input.
  void begin(int64_t track, int64_t start, int64_t duration, const Known& known, uint64_t number, bool emitted,
             int64_t own, int64_t inputs = 0) {
    auto& stack = open_.at(track, start);
    const Open* const around = stack.empty() ? nullptr : &stack.back().value;
    const uint32_t outer = around == nullptr ? 0 : around->node;
    const OperatorPhase phase = known.kind.name == "torch.autograd.backward" || known.kind.name == "torch.autograd.grad"
                                    ? OperatorPhase::kBackward
                                    : phase_of(known.kind.level, known.kind.engine,
                                               around == nullptr ? OperatorPhase::kForward : around->phase);
    uint32_t parent = outer;
    const int64_t process = process_of(track);
    if (known.kind.level == OperatorLevel::kBackward) {
      const uint32_t forward = forward_node(process, track, number, emitted, own);
      if (forward != 0)
        parent = forward;
      else if (!sampled_)
        ++tree_.backward_alone;
    }
    bool together = false;
    const bool outside = sampled_ && !with_shapes_[static_cast<size_t>(process)];
    const uint32_t shapes = outside ? 0 : shapes_of(inputs, together);
    if (parent == tree_.outside) parent = outside ? 0 : outer == tree_.outside ? 0 : outer;
    const uint32_t node =
        outside ? outside_node() : child(parent, known, phase, shapes, shapes == 0 || together ? 0 : inputs);
    OperatorNode& at = tree_.nodes[node];
    ++at.calls;
    const bool ended = duration != kUnknown && duration >= 0;
    if (ended) {
      add_saturating(at.host_ns, duration);
      add_saturating(at.whole_ns, duration);
      cover(stack, start, duration);
    } else {
      ++at.unended;
    }
    int64_t& count = counts_[{node, track}];
    stack.push_back({ended ? start + duration : INT64_MAX,
                     {start, ended ? duration : kUnknown, node, phase, ++count, known.kind.engine}});
    if (phase == OperatorPhase::kForward && number != 0 && !outside)
      remember_forward(process, track, number, emitted, node);
    if (own != 0 && linked_.contains({process, own})) profiler_forward_[{process, own}] = node;
  }

  // The node of all operators that were called outside of the stretches with shapes.
  uint32_t outside_node() {
    if (tree_.outside != 0) return tree_.outside;
    Known known;
    known.name = text(std::string(kWithoutShapes));
    known.kind.level = OperatorLevel::kUser;
    return tree_.outside = child(0, known, OperatorPhase::kForward);
  }

  // Takes a call's time from the self time of those around it: of each the part that lies within it and that no earlier
  // call has taken. A call may end after the one around it (threads that share an id, asynchronous operators).
  void cover(std::vector<walk::OpenRanges<Open>::Range>& stack, int64_t start, int64_t duration) {
    const int64_t end = saturating_add(start, duration);
    int64_t from = start;
    for (auto range = stack.rbegin(); range != stack.rend() && from < end; ++range) {
      Open& around = range->value;
      if (around.duration == kUnknown) return;
      const int64_t to = std::min(end, around.start + around.duration), fresh = std::max(from, around.covered);
      if (to > fresh) {
        if (around.node != 0) tree_.nodes[around.node].host_ns -= to - fresh;
        around.covered = to;
      }
      from = std::max(from, to);
    }
  }

  // Sequence numbers of the emitter and of --torch-trace are different numbers.
  static int64_t link_key(uint64_t number, bool emitted) {
    return static_cast<int64_t>(number << 1 | (emitted ? 1 : 0));
  }

  void remember_forward(int64_t process, int64_t track, uint64_t number, bool emitted, uint32_t node) {
    const std::pair key(process, link_key(number, emitted));
    const auto [at, fresh] = forwards_.try_emplace(key, Forward{node, track, false});
    if (fresh) {
      forward_order_.push_back(key);
      if (forward_order_.size() > kMostRemembered) {
        forwards_.erase(forward_order_.front());
        forward_order_.pop_front();
      }
    } else {
      // Each thread counts by itself, so two threads may give the same number.
      at->second = {node, track, at->second.ambiguous || at->second.track != track};
    }
  }

  uint32_t forward_node(int64_t process, int64_t, uint64_t number, bool emitted, int64_t own) const {
    if (own != 0) {
      const auto link = forward_of_.find({process, own});
      if (link == forward_of_.end()) return 0;
      const auto node = profiler_forward_.find({process, link->second});
      return node == profiler_forward_.end() ? 0 : node->second;
    }
    if (number == 0) return 0;
    const auto found = forwards_.find({process, link_key(number, emitted)});
    return found == forwards_.end() || found->second.ambiguous ? 0 : found->second.node;
  }

  // The sweep

  using M = column::Marker;
  using A = column::Api;
  using MarkerRow = event::RowOf<M::track, M::start, M::duration, M::dim, M::payload, M::inputs>;
  using Held = column::Allocation;
  using CallRow = event::RowOf<A::track, A::start, A::duration, A::dim, A::correlation, A::inputs>;
  using AllocationRow = event::RowOf<Held::track, Held::start, Held::dim, Held::correlation, Held::bytes, Held::address,
                                     Held::stack, Held::in_use, Held::reserved>;
  // A range goes before a call of the same moment, and both before an allocation in it.
  using Host = walk::Merge<trace::RowCursor<M::track, M::start, M::duration, M::dim, M::payload, M::inputs>,
                           trace::RowCursor<A::track, A::start, A::duration, A::dim, A::correlation, A::inputs>,
                           trace::RowCursor<Held::track, Held::start, Held::dim, Held::correlation, Held::bytes,
                                            Held::address, Held::stack, Held::in_use, Held::reserved>>;

  void read(const MarkerRow& marker) {
    const Known& known = label(marker.dim);
    if (known.shapes != ShapesMark::kNone) {
      if (known.shapes == ShapesMark::kBegin) ++tree_.stretches;
      with_shapes_[static_cast<size_t>(process_of(marker.track))] = known.shapes == ShapesMark::kBegin;
      return;
    }
    if (known.graph != GraphMark::kNone) return node_mark(known.graph, marker.track, marker.start, marker.payload);
    if (known.memory && visitor_.described)
      visitor_.described(process_of(marker.track), marker.payload,
                         trace::text<column::Label::name>(trace_, marker.dim));
    if (trace::cell<column::Label::kind>(trace_, marker.dim) != event::MarkerKind::kPushPop) return;
    if (!known.kind.is) {
      if (visitor_.allocation) ranges_open_.push(marker.track, marker.start, marker.duration, marker.dim);
      return;
    }
    uint64_t number = known.kind.link;
    if (number == 0 && trace::cell<column::Label::payload>(trace_, marker.dim) == event::PayloadKind::kInteger)
      number = static_cast<uint64_t>(marker.payload) + (known.torch ? 0 : 1);
    begin(marker.track, marker.start, marker.duration, known, number, !known.torch, 0, marker.inputs);
  }

  // A node of a CUDA graph belongs to the operator that was open when it was made.
  void node_mark(GraphMark mark, int64_t track, int64_t time, int64_t node) {
    OperatorCall call;
    if (mark == GraphMark::kCopy)
      graph_nodes_.copy(track, node);
    else if (mark == GraphMark::kOrigin)
      graph_nodes_.origin(track, process_of(track), node);
    else if (launched_by(track, time, call))
      graph_nodes_.made(process_of(track), node, call);
  }

  // Fills in the operator that is open on a thread; false when there is none.
  bool launched_by(int64_t track, int64_t start, OperatorCall& call) {
    const auto& stack = open_.at(track, start);
    if (stack.empty()) return false;
    call.node = stack.back().value.node;
    call.process = process_of(track);
    call.thread = cell(Table::kTrack, track, column::Track::thread);
    call.outer = outer_of(call.node);
    const Open* named = &stack.back().value;
    for (size_t i = stack.size(); i-- > 0;)
      if (stack[i].value.node == call.outer) {
        named = &stack[i].value;
        break;
      }
    call.start = named->start;
    call.duration = named->duration;
    call.number = named->number;
    return true;
  }

  void read(const CallRow& row) {
    const Known& known = function(row.dim);
    if (known.kind.is) {
      begin(row.track, row.start, row.duration, known, 0, false, row.correlation, row.inputs);
      if (!caused_by_operators_[static_cast<size_t>(process_of(row.track))]) return;
      Call* const cause = calls_.add(process_of(row.track), row.correlation, {});
      if (cause == nullptr) return;
      launched_by(row.track, row.start, cause->operation);
      cause->counted = true;  // it is no launch
      return;
    }
    if (known.function && visitor_.allocation) functions_open_.push(row.track, row.start, row.duration, row.dim);
    if (!known.launches) return;
    Call* const call = calls_.add(process_of(row.track), row.correlation, {});
    // Of the root, where no operator is open.
    if (call != nullptr) launched_by(row.track, row.start, call->operation);
  }

  void read(const AllocationRow& row) {
    if (!visitor_.allocation) return;
    OperatorAllocation what{.track = row.track,
                            .start = row.start,
                            .dim = row.dim,
                            .correlation = row.correlation,
                            .bytes = row.bytes,
                            .address = row.address,
                            .stack = row.stack,
                            .in_use = row.in_use,
                            .reserved = row.reserved};
    const auto& stack = open_.at(row.track, row.start);
    if (!stack.empty()) what.phase = stack.back().value.phase;
    if (const auto& ranges = ranges_open_.at(row.track, row.start); !ranges.empty()) what.range = ranges.back().value;
    functions_around_.clear();
    for (const auto& each : functions_open_.at(row.track, row.start)) functions_around_.push_back(each.value);
    what.functions = functions_around_;
    OperatorCall call;
    const bool any = launched_by(row.track, row.start, call);
    visitor_.allocation(what, any ? &call : nullptr, tree_);
  }

  // The node at which path() ends.
  uint32_t outer_of(uint32_t node) const {
    const std::vector<uint32_t> kept = named(tree_, node);
    return kept.empty() ? node : kept.back();
  }

  Status sweep() {
    Host host(trace_);
    walk::WorkCursor cursor(trace_);
    while (cursor.next()) {
      const walk::Work& row = *cursor;
      host.take_up_to(walk::launched_by(row.start), [&](const auto& at) { read(at); });
      const bool dispatch = row.table == Table::kDispatch;
      const int64_t process = process_of(row.track);
      Call* const call = calls_.find(process, row.correlation);
      DeviceWork work;
      work.ns = row.duration != kUnknown && row.duration > 0 ? row.duration : 0;
      work.kernels = dispatch ? 1 : 0;
      work.bytes = row.bytes != kUnknown ? row.bytes : 0;
      if (row.table == Table::kCopy && crosses_the_link(row.dim)) work.host_copy_ns = work.ns;
      work.launches = call != nullptr && !call->counted ? 1 : 0;
      if (call != nullptr) call->counted = true;
      const OperatorCall* operation = call != nullptr && call->operation.node != 0 ? &call->operation : nullptr;
      const OperatorCall* const launcher = operation;
      if (row.graph_node != 0) {
        const OperatorCall* const made_by = graph_nodes_.find(process, row.graph_node);
        if (made_by != nullptr)
          operation = made_by;
        else
          ++tree_.graph_unnamed;
        if (visitor_.graph_node)
          visitor_.graph_node({.process = process,
                               .correlation = row.correlation,
                               .graph = dispatch ? trace::cell<column::Kernel::graph>(trace_, row.dim) : 0,
                               .work = work,
                               .node = made_by != nullptr ? made_by->node : 0,
                               .launcher = launcher});
      }
      const uint32_t node = operation != nullptr ? operation->node : 0;
      if (const GraphShares::Graph* const graph = shared_graph(row.table, row.dim)) {
        divide(*graph, work, node);
      } else {
        tree_.nodes[node].work.add(work);
        tree_.whole.add(work);
        if (node == 0 && call == nullptr) tree_.uncalled.add(work);
      }
      if (dispatch && visitor_.kernel)
        visitor_.kernel({row.track, row.start, row.duration, row.dim, row.correlation, row.graph_node}, operation);
    }
    host.take_up_to(INT64_MAX, [&](const auto& at) { read(at); });
    tree_.forgotten = calls_.forgotten();
    TACHO_TRY(cursor.status());
    return host.status();
  }

  // Whether a copy goes between host and device.
  bool crosses_the_link(int64_t shape) const {
    const auto direction = trace::cell<column::CopyShape::direction>(trace_, shape);
    return direction == event::CopyDirection::kHostToDevice || direction == event::CopyDirection::kDeviceToHost;
  }

  // Graphs whose launch is one span

  // The graph of another trace that a span is a launch of; nullptr for other work, and where nothing is known of it.
  const GraphShares::Graph* shared_graph(Table table, int64_t dim) {
    if (shares_ == nullptr || table != Table::kDispatch ||
        cell(Table::kKernel, dim, column::Kernel::kind) != static_cast<int64_t>(event::DispatchKind::kGraph))
      return nullptr;
    const auto [at, fresh] = spans_.try_emplace(dim, nullptr);
    if (fresh) {
      const auto found = shares_->graphs.find(std::string(trace_.text(Table::kKernel, dim, column::Kernel::name)));
      if (found != shares_->graphs.end()) {
        // The place of this graph among those of its name, by the order of their ids.
        const int64_t name = cell(Table::kKernel, dim, column::Kernel::name);
        std::set<int64_t> ids;
        for (int64_t row = 1; row < trace_.rows(Table::kKernel); ++row)
          if (cell(Table::kKernel, row, column::Kernel::name) == name)
            ids.insert(cell(Table::kKernel, row, column::Kernel::graph));
        const auto place = std::distance(ids.begin(), ids.find(cell(Table::kKernel, dim, column::Kernel::graph)));
        const std::vector<GraphShares::Graph>& known = found->second;
        at->second = known.size() == ids.size() ? &known[static_cast<size_t>(place)] : &together(found->first);
      }
    }
    if (at->second == nullptr) ++tree_.spans_undivided;
    return at->second;
  }

  // All graphs of a name as one.
  const GraphShares::Graph& together(const std::string& name) {
    const auto [at, fresh] = together_.try_emplace(name);
    if (fresh)
      for (const GraphShares::Graph& each : shares_->graphs.at(name)) {
        at->second.launches += each.launches;
        add_saturating(at->second.ns, each.ns);
        at->second.work.insert(at->second.work.end(), each.work.begin(), each.work.end());
      }
    return at->second;
  }

  // The operator of the other trace, in this one.
  uint32_t node_like(uint32_t other) {
    if (other == 0) return 0;
    if (const auto known = like_.find(other); known != like_.end()) return known->second;
    const OperatorNode node = shares_->tree.nodes[other];
    const uint32_t parent = node_like(node.parent);
    const auto same_text = [&](uint32_t number) { return text(shares_->tree.texts[number]); };
    Known known;
    known.name = same_text(node.name);
    known.place = same_text(node.place);
    known.fused = same_text(node.fused);
    if (node.level == OperatorLevel::kModule || node.module != shares_->tree.nodes[node.parent].module)
      known.module = same_text(node.module);
    known.kind.level = node.level;
    return like_[other] = child(parent, known, node.phase);
  }

  void divide(const GraphShares::Graph& graph, const DeviceWork& span, uint32_t launcher) {
    int64_t left = span.ns;
    DeviceWork whole;
    for (size_t i = 0; i < graph.work.size(); ++i) {
      const auto& [node, measured] = graph.work[i];
      DeviceWork part;
      part.ns =
          i + 1 == graph.work.size() || graph.ns <= 0
              ? left
              : std::min(left, static_cast<int64_t>(static_cast<double>(span.ns) * static_cast<double>(measured.ns) /
                                                    static_cast<double>(graph.ns)));
      left -= part.ns;
      part.kernels = measured.kernels / graph.launches;
      part.bytes = measured.bytes / graph.launches;
      tree_.nodes[node == 0 ? launcher : node_like(node)].work.add(part);
      whole.add(part);
    }
    tree_.nodes[launcher].work.launches += span.launches;
    whole.launches += span.launches;
    tree_.whole.add(whole);
    tree_.estimated.add(whole);
    ++tree_.spans_divided;
    if (tree_.estimated_from == 0 || graph.launches < tree_.estimated_from) tree_.estimated_from = graph.launches;
  }

  struct KeyHash {
    size_t operator()(const std::array<uint32_t, 5>& key) const {
      uint64_t hash = 0xcbf29ce484222325ull;
      for (const uint32_t part : key) hash = (hash ^ part) * 0x9e3779b97f4a7c15ull;
      return static_cast<size_t>(hash ^ hash >> 29);
    }
  };

  const trace::Trace& trace_;
  const OperatorVisitor& visitor_;
  const GraphShares* shares_;
  bool shapes_;                                                   // of inputs tell nodes apart
  bool sampled_ = false;                                          // and were recorded in stretches of the run
  std::vector<bool> with_shapes_;                                 // by process: a stretch is open
  std::unordered_map<int64_t, const GraphShares::Graph*> spans_;  // by row of table kernel
  std::unordered_map<std::string, GraphShares::Graph> together_;
  std::unordered_map<uint32_t, uint32_t> like_;
  OperatorTree tree_;
  std::vector<Known> labels_, functions_;
  std::unordered_map<std::string, uint32_t> text_of_;
  std::unordered_map<std::array<uint32_t, 5>, uint32_t, KeyHash> child_of_;
  walk::OpenRanges<Open> open_;
  walk::OpenRanges<int64_t> ranges_open_;     // of the program's own, rows of table label; for visitor_.allocation
  walk::OpenRanges<int64_t> functions_open_;  // Python's, rows of table function; for visitor_.allocation
  std::vector<int64_t> functions_around_;
  std::map<std::pair<uint32_t, int64_t>, int64_t> counts_;  // of calls, by (node, track)
  walk::CallIndex<Call> calls_;
  std::vector<bool> caused_by_operators_;  // by process
  std::deque<std::pair<int64_t, int64_t>> forward_order_;
  std::unordered_map<std::pair<int64_t, int64_t>, Forward, PairHash> forwards_;
  std::unordered_map<std::pair<int64_t, int64_t>, int64_t, PairHash>
      forward_of_;  // torch.profiler: backward -> forward
  GraphNodes<OperatorCall> graph_nodes_;
  std::set<std::pair<int64_t, int64_t>> linked_;
  std::unordered_map<std::pair<int64_t, int64_t>, uint32_t, PairHash> profiler_forward_;
};

}  // namespace

std::string OperatorTree::path(uint32_t node) const {
  std::string out;
  for (const uint32_t each : named(*this, node)) out += (out.empty() ? "" : "/") + part_of(*this, nodes[each]);
  return out;
}

Result<OperatorTree> operator_tree(const trace::Trace& trace, const OperatorVisitor& visitor, const GraphShares* shares,
                                   bool input_shapes) {
  return OperatorSweep(trace, visitor, shares, input_shapes).run();
}

Result<GraphShares> graph_shares(const trace::Trace& trace) {
  struct Launch {
    int64_t graph = 0;
    std::vector<std::pair<uint32_t, DeviceWork>> work;
  };
  std::map<std::pair<int64_t, int64_t>, Launch> open;  // by process, correlation: several may run at once
  struct Sum {
    GraphShares::Graph graph;
    std::map<uint32_t, DeviceWork> work;
  };
  std::map<std::pair<int64_t, int64_t>, Sum> sums;  // by process, graph
  const auto close = [&](int64_t process, const Launch& launch) {
    if (launch.graph == 0) return;
    Sum& sum = sums[{process, launch.graph}];
    ++sum.graph.launches;
    for (const auto& [node, work] : launch.work) {
      sum.work[node].add(work);
      add_saturating(sum.graph.ns, work.ns);
    }
  };
  constexpr size_t kMostOpen = 4096;  // launches
  OperatorVisitor visitor;
  visitor.graph_node = [&](const GraphNodeWork& node) {
    Launch& launch = open[{node.process, node.correlation}];
    if (node.graph != 0) launch.graph = node.graph;
    launch.work.emplace_back(node.node, node.work);
    launch.work.back().second.launches = 0;
    if (open.size() > kMostOpen) {
      close(open.begin()->first.first, open.begin()->second);
      open.erase(open.begin());
    }
  };
  GraphShares shares;
  TACHO_ASSIGN(shares.tree, operator_tree(trace, visitor));
  for (const auto& [key, launch] : open) close(key.first, launch);
  for (auto& [key, sum] : sums) {
    const auto name = trace.property(Table::kProcess, key.first, fmt::format("cuda.graph.{}", key.second));
    if (!name) continue;
    sum.graph.work.assign(sum.work.begin(), sum.work.end());
    shares.graphs[std::string(*name)].push_back(std::move(sum.graph));
  }
  if (shares.graphs.empty())
    return fail("{}: no nodes of CUDA graphs; record them with tacho trace --torch-trace --graph-trace node",
                trace.path());
  return shares;
}

Result<std::string> torch_sentence(const trace::Trace& trace) {
  if (trace.property(Table::kEnd, 0, "torch_trace") != "1") return std::string();
  std::string version;
  for (int64_t row = 1; row < trace.rows(Table::kLabel) && version.empty(); ++row)
    if (trace.text(Table::kLabel, row, column::Label::domain) == "torch" &&
        trace.text(Table::kLabel, row, column::Label::category).starts_with("version "))
      version = trace.text(Table::kLabel, row, column::Label::name);
  if (version.empty())
    return std::string(
        "--torch-trace: no process of the program imported PyTorch with tacho's ranges, so no operators were recorded "
        "(python -E, -I and -S leave PYTHONPATH out, which they need)");
  if (trace.rows(Table::kDispatch) == 0) {
    if (version.starts_with("torch ")) version = "PyTorch" + version.substr(5);
    return fmt::format("--torch-trace: {} launched no kernel on a GPU, so its operators have host time only", version);
  }
  return std::string();
}

namespace {

// The rows of a table of operators, filled node by node.
class OperatorTable {
 public:
  OperatorTable(const OperatorTree& tree, OperatorBy by, std::span<const RoofedWork> roofed)
      : tree_(tree), roofed_(roofed), by_(by), modules_(by != OperatorBy::kOperator), class_(tree.nodes.size(), 0) {
    // Parents come before children.
    for (uint32_t at = 1; at < tree.nodes.size(); ++at) {
      const OperatorNode& node = tree.nodes[at];
      class_[at] = node.level == OperatorLevel::kModule ? node.name : class_[node.parent];
    }
  }

  void add(uint32_t at) {
    const OperatorNode& node = tree_.nodes[at];
    const bool module = node.level == OperatorLevel::kModule;
    // Work outside of modules, such as the optimizer's, has a row of its own in the table of modules.
    const std::string name = modules_ && node.module == 0 ? fmt::format("({})", to_string(node.phase)) : name_of(at);
    OperatorRow& self = row_of(name, shapes_of(node), node.phase);
    if (!modules_ || module) self.calls += node.calls;
    add_saturating(self.host_self, node.host_ns);
    self.self.add(node.work);
    if (!modules_ && node.fused != 0) self.kind = tree_.texts[node.fused];
    if (by_ == OperatorBy::kModule && module) self.kind = module_class(tree_.texts[node.name]);
    if (by_ == OperatorBy::kClass && module && modules_of_[{name, node.phase}].insert(node.module).second)
      ++self.modules;
    add_totals(at, name);
    if (node.level == OperatorLevel::kCall)
      add_saturating(row_of(name, shapes_of(node), node.phase).host_total, node.whole_ns);
  }

  std::vector<OperatorRow> take() {
    std::vector<OperatorRow> out;
    for (auto& [key, row] : rows_) out.push_back(std::move(row));
    std::stable_sort(out.begin(), out.end(), [](const OperatorRow& a, const OperatorRow& b) {
      if (a.self.ns != b.self.ns) return a.self.ns > b.self.ns;
      if (a.total.ns != b.total.ns) return a.total.ns > b.total.ns;
      return a.host_self > b.host_self;
    });
    const DeviceWork& outside = tree_.nodes[0].work;
    if (outside.ns > 0 || outside.kernels > 0) {
      OperatorRow none;
      none.name = modules_ ? "(no module)" : "(no operator)";
      none.self = none.total = outside;
      out.push_back(std::move(none));
    }
    return out;
  }

 private:
  uint32_t shapes_of(const OperatorNode& node) const { return modules_ ? 0 : node.shapes; }
  OperatorRow& row_of(const std::string& name, uint32_t shapes, OperatorPhase phase) {
    OperatorRow& row = rows_[{name, shapes, phase}];
    row.name = name;
    row.shapes = tree_.texts[shapes];
    row.phase = phase;
    return row;
  }
  std::string name_of(uint32_t at) const {
    const OperatorNode& node = tree_.nodes[at];
    if (by_ == OperatorBy::kClass) return module_class(tree_.texts[class_[at]]);
    return tree_.texts[modules_ ? node.module : node.name];
  }

  // Adds the node to the totals of the operators around it, each name once.
  void add_totals(uint32_t at, const std::string& name) {
    const OperatorNode& node = tree_.nodes[at];
    std::set<std::pair<std::string, uint32_t>> seen;
    for (uint32_t up = at; up != 0; up = tree_.nodes[up].parent) {
      const OperatorNode& outer = tree_.nodes[up];
      if (modules_ && outer.module == 0 && node.module != 0) continue;
      std::string above = modules_ && outer.module == 0 ? name : name_of(up);
      if (!seen.emplace(above, shapes_of(outer)).second) continue;
      OperatorRow& total = row_of(above, shapes_of(outer), node.phase);
      // Operators of the backward passes stand below their forward operators, not below the call that ran them.
      if (outer.level != OperatorLevel::kCall) add_saturating(total.host_total, node.host_ns);
      total.total.add(node.work);
      if (modules_ && at < roofed_.size()) total.roofed.add(roofed_[at]);
      // A function that is an ATen operator under another name has a row, too.
      if (modules_ || outer.level != OperatorLevel::kAten || tree_.nodes[outer.parent].level == OperatorLevel::kAten)
        continue;
      std::string function = part_of(tree_, outer);
      if (function == tree_.texts[outer.name] || !seen.emplace(function, shapes_of(outer)).second) continue;
      OperatorRow& as_function = row_of(function, shapes_of(outer), node.phase);
      if (up == at) as_function.calls += node.calls;
      add_saturating(as_function.host_total, node.host_ns);
      as_function.total.add(node.work);
    }
  }

  const OperatorTree& tree_;
  std::span<const RoofedWork> roofed_;
  OperatorBy by_;
  bool modules_;
  std::vector<uint32_t> class_;  // by node: the text of its innermost module's name; 0 = none
  std::map<std::tuple<std::string, uint32_t, OperatorPhase>, OperatorRow> rows_;
  std::map<std::pair<std::string, OperatorPhase>, std::set<uint32_t>> modules_of_;
};

}  // namespace

bool shapes_were_sampled(const trace::Trace& trace) {
  using L = column::Label;
  for (int64_t row = 1; row < trace.rows(Table::kLabel); ++row)
    if (trace.text(Table::kLabel, row, L::category) == kShapesCategory &&
        trace.text(Table::kLabel, row, L::domain) == "torch")
      return true;
  return false;
}

std::string sampled_shapes_sentence(const OperatorTree& tree) {
  if (!tree.sampled) return {};
  const int64_t within = tree.with_shapes_ns(), whole = tree.whole.ns - tree.nodes[0].work.ns;
  if (within <= 0)
    return "No stretch of the run in which shapes were recorded launched any work: --torch-shapes=all records all "
           "shapes.";
  return fmt::format(
      "Shapes were recorded for {} ({:.1f} %) of {} of GPU time, in {} stretch{} of the run; the rest is \"{}\". "
      "Nothing is scaled up: --torch-shapes=all records all shapes.",
      report::format_duration(static_cast<double>(within)),
      100 * static_cast<double>(within) / static_cast<double>(whole),
      report::format_duration(static_cast<double>(whole)), tree.stretches, tree.stretches == 1 ? "" : "es",
      kWithoutShapes);
}

std::string module_class(std::string_view name) {
  if (name.starts_with("nn.Module.")) name.remove_prefix(10);
  if (name.ends_with(".forward")) name.remove_suffix(8);
  return std::string(name);
}

std::vector<OperatorRow> operator_rows(const OperatorTree& tree, OperatorBy by, std::span<const RoofedWork> roofed) {
  OperatorTable table(tree, by, roofed);
  for (uint32_t at = 1; at < tree.nodes.size(); ++at) table.add(at);
  return table.take();
}

std::string without_operator_sentence(const OperatorTree& tree) {
  const DeviceWork& outside = tree.nodes[0].work;
  if (outside.ns <= 0 && outside.kernels == 0) return {};
  const auto part = [&](int64_t ns) {
    return fmt::format("{} ({:.1f} %)", report::format_duration(static_cast<double>(ns)),
                       tree.whole.ns > 0 ? 100.0 * static_cast<double>(ns) / static_cast<double>(tree.whole.ns) : 0.0);
  };
  const int64_t called = outside.ns - tree.uncalled.ns;
  const std::string head = part(outside.ns) + " of GPU time has no operator: ";
  if (called <= 0) return head + "the calls that launched it are not in this recording.";
  if (tree.uncalled.ns <= 0) return head + "it was launched outside of all operators.";
  return head +
         fmt::format("{} was launched outside of all operators, and the calls that launched the other {} are not "
                     "in this recording.",
                     part(called), part(tree.uncalled.ns));
}

}  // namespace tacho::analysis
