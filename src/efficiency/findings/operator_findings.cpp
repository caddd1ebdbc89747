// Sums up operators for findings (operator_findings.h).
#include "efficiency/findings/operator_findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "efficiency/findings/causes.h"
#include "efficiency/findings/costly.h"
#include "efficiency/findings/optimizers.h"
#include "efficiency/findings/unfused_attention.h"
#include "efficiency/kernel_names.h"
#include "efficiency/models.h"
#include "efficiency/operator_work.h"
#include "report/text.h"
#include "trace/read/rows.h"

namespace tacho::efficiency {

namespace {

namespace column = event::column;
using analysis::OperatorLevel;
using analysis::OperatorNode;
using analysis::OperatorPhase;
using analysis::OperatorRoofs;
using analysis::OperatorShare;
using analysis::OperatorTree;
using event::Table;

constexpr double kPartOfRow = 0.3;

std::string time_text(double ns) {
  return report::format_duration(ns);
}

// Whether the cause explains most of what an operator loses.
bool decided(const std::vector<RoofCause>& causes) {
  return std::any_of(causes.begin(), causes.end(), [](const RoofCause& cause) { return cause.decides; });
}

void below_roof(const trace::Trace& trace, const Efficiency& efficiency, OperatorRoofs& out) {
  struct Low {
    const OperatorWork* row;
    std::vector<RoofCause> causes;
  };
  std::vector<Low> low;
  double lost = 0, least = 0;
  for (const OperatorWork& row : efficiency.rows) {
    if (row.why != RoofDoubt::kJudged) continue;
    add_saturating(out.modelled, row.ns);
    const double below = row.compute_bound ? kLowCompute : kLowMemory,
                 healthy = row.compute_bound ? kHealthyCompute : kHealthyMemory;
    if (*row.percent >= healthy) {
      // A kernel that is a small part of it may be far from any peak.
      for (const OperatorsKernel& each : row.of_kernels)
        if (static_cast<double>(each.ns) > kPartOfRow * static_cast<double>(row.ns))
          out.near_peak[static_cast<size_t>(each.kernel)] = true;
      continue;
    }
    std::vector<RoofCause> causes = causes_of(trace, row, efficiency.units);
    if (*row.percent >= below && !decided(causes)) continue;
    low.push_back({&row, std::move(causes)});
    lost += *row.lost_ns;
    least += static_cast<double>(row.ns) * (1 - *row.percent / healthy);
  }
  out.lost = std::llround(lost);
  out.lost_least = std::llround(least);
  out.operators = static_cast<int64_t>(low.size());
  std::stable_sort(low.begin(), low.end(),
                   [](const Low& a, const Low& b) { return *a.row->lost_ns > *b.row->lost_ns; });
  for (size_t i = 0; i < std::min(low.size(), kFindingLines); ++i) {
    const OperatorWork& row = *low[i].row;
    std::string line = fmt::format("{}: {} at {} of the {} roof, {} lost", operator_text(row.name, row.shapes),
                                   time_text(static_cast<double>(row.ns)), percent_text(*row.percent),
                                   row.compute_bound ? "compute" : "memory", time_text(*row.lost_ns));
    for (const RoofCause& cause : low[i].causes) line += "; " + cause.text;
    out.lines.push_back(std::move(line));
  }
  if (low.size() > kFindingLines)
    out.lines.push_back(
        fmt::format("and {} more: tacho stats --by operator --input-shapes", low.size() - kFindingLines));
  if (low.empty()) return;
  out.worst = operator_text(low.front().row->name, low.front().row->shapes);
  out.percent = *low.front().row->percent;
  out.bound = low.front().row->compute_bound ? "compute" : "memory";
}

// Products of 32-bit numbers on a device that multiplies others much faster.
void single_precision(const Efficiency& efficiency, const Product* product, OperatorRoofs& out) {
  if (product == nullptr) return;
  std::string_view type = "TF32";
  auto rate = product->matrix.find(Precision::kTF32);
  if (rate == product->matrix.end()) {
    type = "half precision";
    rate = product->matrix.find(Precision::kF16);
  }
  if (rate == product->matrix.end()) return;
  std::vector<Costly> all;
  for (const OperatorWork& row : efficiency.rows) {
    if (!row.matrix || row.precision != Precision::kF32 || row.why != RoofDoubt::kJudged || !row.compute_bound)
      continue;
    const double time = static_cast<double>(row.ns),
                 better = row.flops / (rate->second * 1e12 * kHealthyCompute / 100) * 1e9;
    if (better * 2 > time) continue;
    add_saturating(out.single.ns, row.ns);
    out.single.saved += std::llround(time - better);
    all.push_back({operator_text(row.name, row.shapes),
                   fmt::format("{}: {}, and {} at {} of the rate of {}", operator_text(row.name, row.shapes),
                               time_text(time), time_text(better), percent_text(kHealthyCompute), type),
                   row.ns});
  }
  finish(all, out.single);
}

// Products move to the matrix units, everything else moves half of its bytes.
void double_precision(const Efficiency& efficiency, const Product* product, OperatorRoofs& out) {
  std::vector<Costly> all;
  for (const OperatorWork& row : efficiency.rows) {
    if (row.precision != Precision::kF64 || row.kernels == 0 || row.why == RoofDoubt::kPartCopies) continue;
    const double time = static_cast<double>(row.ns);
    double less = time / 2;
    if (row.matrix && product != nullptr)
      if (const auto peak = compute_peak(*product, true, Precision::kTF32))
        less = std::min(less, row.flops / (peak->rate * kHealthyCompute / 100) * 1e9);
    add_saturating(out.doubles.ns, row.ns);
    out.doubles.saved += std::llround(time - less);
    const std::string name = operator_text(row.name, row.shapes);
    all.push_back({name,
                   fmt::format("{}: {} in {}", name, time_text(time),
                               row.calls == 1 ? std::string("1 call") : fmt::format("{} calls", row.calls)),
                   row.ns});
  }
  finish(all, out.doubles);
}

void few_rows(const Efficiency& efficiency, OperatorRoofs& out) {
  std::vector<Costly> all;
  for (const OperatorWork& row : efficiency.rows) {
    const double rows = row.call.output[0], columns = row.call.output[1], least = std::min(rows, columns);
    if (!row.matrix || row.why != RoofDoubt::kJudged || row.compute_bound || row.call.output[2] > 1 || !(least > 0) ||
        least >= kFewRows || std::max(rows, columns) < 2 * kFewRows)
      continue;
    add_saturating(out.few_rows.ns, row.ns);
    all.push_back({operator_text(row.name, row.shapes),
                   fmt::format("{}: {} for {:.0f} {}", operator_text(row.name, row.shapes),
                               time_text(static_cast<double>(row.ns)), least, rows <= columns ? "rows" : "columns"),
                   row.ns});
  }
  finish(all, out.few_rows);
}

// What is asked of the tree itself: conversions within operators.
class InTree {
 public:
  InTree(const trace::Trace& trace, const OperatorTree& tree, std::span<const std::vector<OperatorsKernel>> kernels,
         const Models& models)
      : trace_(trace), tree_(tree), kernels_(kernels) {
    const size_t nodes = tree.nodes.size();
    whole_.resize(nodes);
    matrix_.resize(nodes);
    for (size_t at = nodes; at-- > 1;) {
      const OperatorNode& node = tree.nodes[at];
      add_saturating(whole_[at], node.work.ns);
      if (models.matrix(tree.texts[node.name])) matrix_[at] = true;
      if (tree.nodes[node.parent].phase != node.phase) continue;
      add_saturating(whole_[node.parent], whole_[at]);
      if (matrix_[at]) matrix_[node.parent] = true;
    }
  }

  void conversions(OperatorShare& share) {
    struct Sum {
      int64_t ns = 0, types = 0;
      std::string type;
      std::map<uint32_t, bool> nodes;
    };
    std::map<std::pair<uint32_t, uint32_t>, Sum> sums;  // name and shapes
    for (uint32_t at = 1; at < tree_.nodes.size(); ++at) {
      const uint32_t within = converter(at);
      if (within == 0) continue;
      std::string type;
      const Conversion kind = conversion(at, type);
      const int64_t ns = kind == Conversion::kNone ? 0 : kernel_time(at, kind == Conversion::kOfKernels);
      if (ns == 0) continue;
      Sum& sum = sums[{tree_.nodes[within].name, tree_.nodes[within].shapes}];
      add_saturating(sum.ns, ns);
      add_saturating(share.ns, ns);
      sum.nodes[within] = true;
      if (kind == Conversion::kType) {
        add_saturating(sum.types, ns);
        sum.type = std::move(type);
      }
    }
    std::vector<Costly> all;
    for (const auto& [key, sum] : sums) {
      int64_t whole = 0;
      for (const auto& [node, there] : sum.nodes) add_saturating(whole, whole_[node]);
      const std::string name = operator_text(tree_.texts[key.first], tree_.texts[key.second]);
      const bool types = sum.types > sum.ns / 2;
      all.push_back({name,
                     fmt::format("{}: {} of its {} ({}) changes the {}", name, time_text(static_cast<double>(sum.ns)),
                                 time_text(static_cast<double>(whole)),
                                 percent_text(100 * static_cast<double>(sum.ns) / static_cast<double>(whole)),
                                 !types             ? std::string("layout of data")
                                 : sum.type.empty() ? std::string("type of data")
                                                    : "type of data, " + sum.type),
                     sum.ns});
    }
    share.saved = share.ns;
    finish(all, share);
  }

  // Copies on the device that no operator with matrix work asked for, of forward and backward passes.
  void copies(OperatorShare& share) {
    struct Sum {
      int64_t ns = 0, calls = 0;
      std::map<std::string, int64_t> kinds;
    };
    std::map<std::pair<uint32_t, uint32_t>, Sum> sums;  // name and shapes
    std::map<Conversion, int64_t> kinds;
    for (uint32_t at = 1; at < tree_.nodes.size(); ++at) {
      const OperatorNode& node = tree_.nodes[at];
      const int64_t ns = node.work.ns - node.work.host_copy_ns;
      if (!is_copy(name(at)) || ns <= 0 || converter(at) != 0 ||
          (node.phase != OperatorPhase::kForward && node.phase != OperatorPhase::kBackward))
        continue;
      std::string type;
      const Conversion kind = conversion(at, type);
      uint32_t outermost = at;
      while (tree_.nodes[outermost].parent != 0 && is_copy(name(tree_.nodes[outermost].parent)) &&
             tree_.nodes[tree_.nodes[outermost].parent].phase == node.phase)
        outermost = tree_.nodes[outermost].parent;
      Sum& sum = sums[{tree_.nodes[outermost].name, tree_.nodes[outermost].shapes}];
      add_saturating(sum.ns, ns);
      sum.calls += node.calls;
      add_saturating(sum.kinds[kind != Conversion::kType ? std::string(kind == Conversion::kLayout ? "the layout" : "")
                               : type.empty()            ? std::string("the type")
                                                         : "the type, " + type],
                     ns);
      add_saturating(kinds[kind], ns);
      add_saturating(share.ns, ns);
    }
    std::vector<Costly> all;
    for (const auto& [key, sum] : sums) {
      const std::string name = operator_text(tree_.texts[key.first], tree_.texts[key.second]);
      const auto most = std::max_element(sum.kinds.begin(), sum.kinds.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      all.push_back({name,
                     fmt::format("{}: {} in {}{}", name, time_text(static_cast<double>(sum.ns)),
                                 sum.calls == 1 ? std::string("1 copy") : fmt::format("{} copies", sum.calls),
                                 most->first.empty() ? std::string() : ", which change " + most->first),
                     sum.ns});
    }
    for (const auto& [kind, words] :
         {std::pair(Conversion::kType, "change the type"), std::pair(Conversion::kLayout, "change the layout"),
          std::pair(Conversion::kNone, "change neither")})
      if (const auto found = kinds.find(kind); found != kinds.end())
        share.what += fmt::format("{}{} {}", share.what.empty() ? "" : ", ",
                                  time_text(static_cast<double>(found->second)), words);
    share.saved = share.ns;
    finish(all, share);
  }

 private:
  enum class Conversion : uint8_t { kNone, kType, kLayout, kOfKernels };

  std::string_view name(uint32_t at) const { return tree_.texts[tree_.nodes[at].name]; }

  static bool is_copy(std::string_view name) {
    return name == "aten::copy_" || name == "aten::_to_copy" || name == "aten::clone" || name == "aten::contiguous" ||
           name == "aten::to" || name == "aten::reshape" || name == "aten::_reshape_copy" ||
           name == "aten::constant_pad_nd" || name == "aten::pad";
  }

  // The operator with matrix work that a copy within it serves, or that moves layouts by kernels of its own; 0 = none.
  uint32_t converter(uint32_t at) const {
    const auto operator_level = [&](uint32_t node) {
      const OperatorLevel level = tree_.nodes[node].level;
      return level == OperatorLevel::kAten || level == OperatorLevel::kFunction || level == OperatorLevel::kBackward;
    };
    if (!operator_level(at)) return 0;
    if (!is_copy(name(at))) return matrix_[at] ? at : 0;
    uint32_t node = at;
    while (is_copy(name(node))) {
      const uint32_t parent = tree_.nodes[node].parent;
      if (parent == 0 || !operator_level(parent) || tree_.nodes[parent].phase != tree_.nodes[at].phase) return 0;
      node = parent;
    }
    return matrix_[node] ? node : 0;
  }

  Conversion conversion(uint32_t at, std::string& type) const {
    if (!is_copy(name(at))) return Conversion::kOfKernels;
    const OperatorNode& node = tree_.nodes[at];
    using I = column::OperatorInput;
    const auto text = [&](int number) { return trace_.text(Table::kOperatorInput, node.inputs, number); };
    if (node.inputs != 0) {
      const auto inputs = read_inputs(text(I::dims), text(I::types), text(I::strides), {});
      if (inputs && inputs->size() >= 2 && (*inputs)[0].tensors.size() == 1 && (*inputs)[1].tensors.size() == 1) {
        const Tensor &to = (*inputs)[0].tensors[0], &from = (*inputs)[1].tensors[0];
        if (to.type.precision != Precision::kUnknown && from.type.precision != Precision::kUnknown) {
          if (to.type.precision != from.type.precision || to.type.bytes != from.type.bytes) {
            type = fmt::format("{} to {}", to_string(from.type.precision), to_string(to.type.precision));
            return Conversion::kType;
          }
          if (!to.strides.empty() && !from.strides.empty() && to.dims == from.dims)
            return same_layout(to, from) ? Conversion::kNone : Conversion::kLayout;
        }
      }
    }
    // Shapes alone: what asked for the copy tells.
    for (uint32_t above = node.parent; above != 0 && is_copy(name(above)); above = tree_.nodes[above].parent)
      if (name(above) == "aten::_to_copy" || name(above) == "aten::to") return Conversion::kType;
    return Conversion::kLayout;
  }

  // Steps of dimensions of one element say nothing.
  static bool same_layout(const Tensor& a, const Tensor& b) {
    for (size_t i = 0; i < a.dims.size(); ++i)
      if (a.dims[i] != 1 && a.strides[i] != b.strides[i]) return false;
    return true;
  }

  int64_t kernel_time(uint32_t at, bool moving_only) const {
    int64_t ns = 0;
    if (at < kernels_.size())
      for (const OperatorsKernel& each : kernels_[at])
        if (!moving_only || moves_layout(trace_.text(Table::kKernel, each.kernel, column::Kernel::name)))
          add_saturating(ns, each.ns);
    return ns;
  }

  const trace::Trace& trace_;
  const OperatorTree& tree_;
  std::span<const std::vector<OperatorsKernel>> kernels_;
  std::vector<int64_t> whole_;  // by node: GPU time with all below it of its phase
  std::vector<bool> matrix_;    // by node: it or one below it does matrix work
};

}  // namespace

Result<std::optional<OperatorRoofs>> operator_roofs(const trace::Trace& trace) {
  if (trace.aggregated() || trace.rows(Table::kOperatorInput) <= 1) return std::nullopt;
  KernelsOfNodes visited;
  analysis::LaunchTimes times(trace);
  analysis::OperatorVisitor visitor = visited.visitor();
  visitor.kernel = [&, of_nodes = std::move(visitor.kernel)](const analysis::OperatorKernel& kernel,
                                                             const analysis::OperatorCall* call) {
    of_nodes(kernel, call);
    times.add(kernel.track, kernel.dim, call == nullptr ? 0 : call->node, kernel.start, kernel.duration);
  };
  TACHO_ASSIGN(const OperatorTree tree, analysis::operator_tree(trace, visitor, nullptr, true));
  const auto kernels = visited.of(tree);
  TACHO_ASSIGN(const Efficiency efficiency, efficiency_of(trace, tree, kernels));
  if (efficiency.rows.empty()) return std::nullopt;
  TACHO_ASSIGN(const Models models, Models::load());
  TACHO_ASSIGN(const Products products, Products::load());
  OperatorRoofs out;
  out.gpu = efficiency.whole_ns;
  if (tree.sampled) {
    out.part = static_cast<double>(out.gpu) / static_cast<double>(tree.whole.ns - tree.nodes[0].work.ns);
    out.sampled = fmt::format(
        "shapes were recorded for {} ({:.1f} %) of {} of GPU time: shares are of that part, and what could be saved "
        "takes the rest to be like it",
        time_text(static_cast<double>(out.gpu)), 100 * out.part,
        time_text(static_cast<double>(tree.whole.ns - tree.nodes[0].work.ns)));
  }
  times.join([&](uint32_t node) { return node < tree.nodes.size() ? tree.nodes[node].inputs : 0; });
  out.slow = times.find();
  out.near_peak.resize(static_cast<size_t>(trace.rows(Table::kKernel)));
  below_roof(trace, efficiency, out);
  single_precision(efficiency, efficiency.product.empty() ? nullptr : products.named(efficiency.product), out);
  double_precision(efficiency, efficiency.product.empty() ? nullptr : products.named(efficiency.product), out);
  few_rows(efficiency, out);
  InTree in_tree(trace, tree, kernels, models);
  in_tree.conversions(out.converting);
  in_tree.copies(out.copying);
  unfused_attention(trace, tree, efficiency, out.unfused);
  single_tensor_optimizers(trace, tree, efficiency, out.optimizer);
  if (out.modelled == 0 && out.converting.ns == 0) return std::nullopt;
  return out;
}

}  // namespace tacho::efficiency
