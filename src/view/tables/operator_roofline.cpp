// Work, time and roofs of operators as JSON (operator_roofline.h).
#include "view/tables/operator_roofline.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "analysis/operators/operators.h"
#include "efficiency/answer.h"
#include "efficiency/operator_work.h"
#include "efficiency/steps.h"

namespace tacho::view {

namespace {

using event::Table;

constexpr size_t kMostPoints = 500;

using Kernel = analysis::OperatorKernel;

// The longest kernel of each row: that of its operators, and of those below without a row of their own.
std::vector<Kernel> longest_kernels(const analysis::OperatorTree& tree, const std::vector<Kernel>& of_nodes,
                                    const efficiency::Efficiency& reached) {
  std::map<std::tuple<std::string_view, std::string_view, analysis::OperatorPhase>, size_t> rows;
  for (size_t i = 0; i < reached.rows.size(); ++i)
    rows.try_emplace({reached.rows[i].name, reached.rows[i].shapes, reached.rows[i].phase}, i);
  std::vector<Kernel> out(reached.rows.size());
  for (size_t at = 1; at < of_nodes.size() && at < tree.nodes.size(); ++at) {
    if (of_nodes[at].duration <= 0) continue;
    size_t up = at;
    for (; up != 0; up = tree.nodes[up].parent) {
      const analysis::OperatorNode& node = tree.nodes[up];
      const auto found = rows.find({tree.texts[node.name], tree.texts[node.shapes], node.phase});
      if (found != rows.end()) {
        Kernel& longest = out[found->second];
        if (of_nodes[at].duration > longest.duration) longest = of_nodes[at];
        break;
      }
      if (tree.nodes[node.parent].phase != node.phase) break;
    }
  }
  return out;
}

void put_point(JsonWriter& json, const efficiency::OperatorWork& row, const Kernel& longest, const Run& run) {
  json.newline()
      .begin_object()
      .member("name", row.name)
      .member("shapes", row.shapes)
      .member("phase", analysis::to_string(row.phase))
      .member("type", to_string(row.precision))
      .member("matrix", row.matrix)
      .member("calls", row.calls)
      .member("ns", row.ns)
      .member("flops", row.flops)
      .member("bytes", row.bytes);
  if (row.peak > 0) json.member("peak", row.peak);
  if (row.bandwidth > 0) json.member("bandwidth", row.bandwidth);
  if (row.percent) json.member("percent", *row.percent).member("bound", row.compute_bound ? "compute" : "memory");
  if (row.why != efficiency::RoofDoubt::kJudged)
    json.member("not_judged", to_string(row.why));
  else if (row.lost_ns)
    json.member("lost", *row.lost_ns);
  const int64_t line = longest.duration > 0 ? run.tree().line_of(Table::kDispatch, longest.track) : -1;
  if (line >= 0)
    json.name("longest").begin_array().value(line).value(longest.start - run.t0()).value(longest.duration).end_array();
  json.end_object();
}

}  // namespace

Status put_operator_roofline(JsonWriter& json, const Run& run) {
  if (run.trace().rows(Table::kOperatorInput) <= 1) {
    json.null();
    return {};
  }
  efficiency::KernelsOfNodes kernels;
  std::vector<Kernel> longest;
  analysis::OperatorVisitor visitor = kernels.visitor();
  visitor.kernel = [&longest, kernel_of_node = std::move(visitor.kernel)](const Kernel& kernel,
                                                                          const analysis::OperatorCall* call) {
    kernel_of_node(kernel, call);
    if (call == nullptr) return;
    if (call->node >= longest.size()) longest.resize(call->node + 1);
    if (kernel.duration > longest[call->node].duration) longest[call->node] = kernel;
  };
  TACHO_ASSIGN(const analysis::OperatorTree tree, analysis::operator_tree(run.trace(), visitor, nullptr, true));
  efficiency::EfficiencyOptions options;
  TACHO_TRY(efficiency::find_steps(run.trace(), options));
  TACHO_ASSIGN(const efficiency::Efficiency reached,
               efficiency::efficiency_of(run.trace(), tree, kernels.of(tree), options));
  if (reached.rows.empty()) {
    json.null();
    return {};
  }
  const std::vector<Kernel> of_rows = longest_kernels(tree, longest, reached);
  json.begin_object().member("gpu", tree.whole.ns);
  json.name("notes").begin_array();
  if (tree.sampled) json.value(analysis::sampled_shapes_sentence(tree));
  for (const std::string& sentence : efficiency::sentences(reached)) json.value(sentence);
  for (const std::string& sentence : reached.remarks) json.value(sentence);
  json.end_array().member("count", reached.rows.size()).name("points").begin_array();
  for (size_t i = 0; i < std::min(reached.rows.size(), kMostPoints); ++i)
    put_point(json, reached.rows[i], of_rows[i], run);
  json.end_array().end_object();
  return {};
}

}  // namespace tacho::view
