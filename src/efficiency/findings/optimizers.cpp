// Sums up what optimizers launch (optimizers.h).
#include "efficiency/findings/optimizers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/saturating.h"
#include "efficiency/findings/costly.h"
#include "efficiency/inputs.h"
#include "report/text.h"
#include "trace/read/rows.h"

namespace tacho::efficiency {

namespace column = event::column;
using analysis::OperatorLevel;
using analysis::OperatorNode;
using analysis::OperatorTree;
using event::Table;

namespace {

// All steps of one optimizer.
struct Steps {
  int64_t calls = 0, kernels = 0, ns = 0, single_ns = 0;
  std::map<std::string_view, double> bytes;  // by operator: of the tensors that it works on, one each call
};

// Bytes of the first tensor of a call; 0 where they are not known.
double first_tensor(const trace::Trace& trace, int64_t inputs) {
  using I = column::OperatorInput;
  const auto text = [&](int number) { return trace.text(Table::kOperatorInput, inputs, number); };
  const auto read = read_inputs(text(I::dims), text(I::types), text(I::strides), {});
  if (!read || read->empty() || (*read)[0].list || (*read)[0].tensors.size() != 1) return 0;
  const Tensor& tensor = (*read)[0].tensors[0];
  double bytes = tensor.type.bytes > 0 ? tensor.type.bytes : 4;
  for (const int64_t dim : tensor.dims) bytes *= static_cast<double>(dim);
  return bytes;
}

}  // namespace

void single_tensor_optimizers(const trace::Trace& trace, const OperatorTree& tree, const Efficiency& efficiency,
                              analysis::OperatorShare& share) {
  double bandwidth = 0;
  for (const OperatorWork& row : efficiency.rows) bandwidth = std::max(bandwidth, row.bandwidth);
  if (bandwidth <= 0) return;
  std::vector<uint32_t> optimizer(tree.nodes.size());  // by node: that which it is or lies in; 0 = none
  std::map<std::string_view, Steps> all;
  for (uint32_t at = 1; at < tree.nodes.size(); ++at) {
    const OperatorNode& node = tree.nodes[at];
    optimizer[at] = optimizer[node.parent];
    if (optimizer[at] == 0 && node.level == OperatorLevel::kOptimizer) optimizer[at] = at;
    if (optimizer[at] == 0) continue;
    Steps& steps = all[tree.texts[tree.nodes[optimizer[at]].name]];
    if (optimizer[at] == at) steps.calls += node.calls;
    if (node.work.ns <= 0) continue;
    steps.kernels += node.work.kernels;
    add_saturating(steps.ns, node.work.ns);
    const std::string_view name = tree.texts[node.name];
    if (node.inputs == 0 || node.work.kernels == 0) continue;
    const double bytes = first_tensor(trace, node.inputs);
    if (bytes <= 0) continue;
    add_saturating(steps.single_ns, node.work.ns);
    steps.bytes[name] += bytes * static_cast<double>(node.calls);
  }
  std::vector<Costly> lines;
  for (const auto& [name, steps] : all) {
    if (steps.calls == 0 || steps.kernels < kStepKernels * steps.calls ||
        100 * static_cast<double>(steps.single_ns) < kSinglePart * static_cast<double>(steps.ns))
      continue;
    double bytes = 0;
    for (const auto& [each, sum] : steps.bytes) bytes = std::max(bytes, sum);
    const double fused = kFusedElements * bytes / (bandwidth * kFusedRate / 100) * 1e9;
    add_saturating(share.ns, steps.ns);
    share.saved += std::max<int64_t>(steps.ns - std::llround(fused), 0);
    lines.push_back(
        {std::string(name),
         fmt::format("{}: {} in {}, {} kernels each; a fused AdamW step over as many elements takes {} in all", name,
                     report::format_duration(static_cast<double>(steps.ns)),
                     steps.calls == 1 ? std::string("1 step") : fmt::format("{} steps", steps.calls),
                     steps.kernels / steps.calls, report::format_duration(fused)),
         steps.ns});
  }
  finish(lines, share);
}

}  // namespace tacho::efficiency
