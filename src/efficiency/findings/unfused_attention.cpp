// Finds attention by the dimensions of its scores (unfused_attention.h).
#include "efficiency/findings/unfused_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/saturating.h"
#include "efficiency/findings/causes.h"
#include "efficiency/findings/costly.h"
#include "efficiency/inputs.h"
#include "report/text.h"
#include "trace/read/rows.h"

namespace tacho::efficiency {

namespace {

namespace column = event::column;
using analysis::OperatorLevel;
using analysis::OperatorNode;
using analysis::OperatorPhase;
using analysis::OperatorTree;
using event::Table;

constexpr std::string_view kPlainAttention = "aten::_scaled_dot_product_attention_math";

// A matrix, or many of the same size: how many, rows, columns.
using Form = std::array<int64_t, 3>;

Form transposed(const Form& form) {
  return {form[0], form[2], form[1]};
}

// Any layer multiplies single matrices: attention of one head is known by scores for as many keys as queries.
bool square(const Form& form) {
  return form[1] == form[2];
}

// The last two dimensions are a matrix's.
std::optional<Form> form_of(const Tensor& tensor) {
  const std::vector<int64_t>& dims = tensor.dims;
  if (dims.size() < 2) return std::nullopt;
  Form form = {1, dims[dims.size() - 2], dims.back()};
  for (size_t i = 0; i + 2 < dims.size(); ++i) form[0] = saturating_multiply(form[0], dims[i]);
  return form;
}

// A product's matrices.
struct Factors {
  Form left, right, result;
  const OperatorWork* work = nullptr;
};

// Attention of one size, in all layers.
struct Attention {
  int64_t ns = 0, calls = 0;
  double best = 0;  // ns at the whole roof
};

// What softmax and products tell of scores of one size.
struct Scores {
  int64_t calls = 0, writing = 0, reading = 0, both = 0;  // forward: of softmax; of products
  bool heads_alike = false;    // queries have as many elements a head as there are keys: they look like scores
  std::set<Form> forms;        // as softmax and the products see them
  std::string shapes, module;  // of softmax
  Attention sum;

  /// One product writes them for each softmax, and one reads them. Products that do both are not enough: a softmax of
  /// features (linear attention) has one such product a call.
  bool attention() const {
    return calls > 0 && writing > 0 && reading > 0 && 2 * (writing + reading - both) >= 3 * calls;
  }
};

class Finder {
 public:
  Finder(const trace::Trace& trace, const OperatorTree& tree, const Efficiency& efficiency)
      : trace_(trace), tree_(tree) {
    for (const OperatorWork& row : efficiency.rows) rows_.try_emplace({row.name, row.shapes, row.phase}, &row);
    within_math_.resize(tree.nodes.size());
    module_.resize(tree.nodes.size());
    for (uint32_t at = 1; at < tree.nodes.size(); ++at) {
      const OperatorNode& node = tree.nodes[at];
      within_math_[at] = name(at) == kPlainAttention ? at : within_math_[node.parent];
      module_[at] = node.level == OperatorLevel::kModule ? node.name : module_[node.parent];
    }
  }

  std::vector<Costly> find() {
    std::vector<Costly> all;
    of_pytorch(all);
    by_hand(all);
    return all;
  }
  int64_t ns() const { return ns_; }
  double saved_most() const { return saved_most_; }
  double saved_least() const { return saved_least_; }

 private:
  std::string_view name(uint32_t at) const { return tree_.texts[tree_.nodes[at].name]; }

  // The node's work against its roof; nullptr where it is not known.
  const OperatorWork* row_of(uint32_t at) const {
    const OperatorNode& node = tree_.nodes[at];
    const auto found = rows_.find({name(at), tree_.texts[node.shapes], node.phase});
    return found == rows_.end() ? nullptr : found->second;
  }

  void of_pytorch(std::vector<Costly>& all) {
    std::map<std::string, Attention> sums;
    for (uint32_t at = 1; at < tree_.nodes.size(); ++at) {
      const uint32_t math = within_math_[at];
      if (math == 0) continue;
      const OperatorNode& node = tree_.nodes[at];
      Attention& sum = sums[operator_text("aten::scaled_dot_product_attention", tree_.texts[tree_.nodes[math].shapes])];
      if (at == math) sum.calls += node.calls;
      add_saturating(sum.ns, node.work.ns);
      const OperatorWork* const work = row_of(at);
      if (node.work.ns > 0 && work != nullptr && work->matrix && work->peak > 0) sum.best += compute_ns(*work, node);
    }
    for (const auto& [text, sum] : sums)
      if (sum.best > 0) add(all, text, sum);
  }

  void by_hand(std::vector<Costly>& all) {
    std::map<Size, Scores> found;
    for (uint32_t at = 1; at < tree_.nodes.size(); ++at) softmax(at, found);
    if (found.empty()) return;
    for (uint32_t at = 1; at < tree_.nodes.size(); ++at)
      if (tree_.nodes[at].phase == OperatorPhase::kForward) forward_product(at, found);
    std::map<Form, Scores*> of_form;
    for (auto& [size, scores] : found)
      if (scores.attention())
        for (const Form& form : scores.forms) of_form[form] = &scores;
    if (of_form.empty()) return;
    for (uint32_t at = 1; at < tree_.nodes.size(); ++at) count(at, of_form);
    for (auto& [size, scores] : found) {
      if (scores.sum.best <= 0) continue;
      scores.sum.calls = scores.calls;
      std::string text = "the attention around " + operator_text("aten::_softmax", scores.shapes);
      if (!scores.module.empty()) text += " in " + analysis::module_class(scores.module);
      add(all, text, scores.sum);
    }
  }

  // All heads' scores have as many rows and columns, however many products they are made in: heads that share keys
  // are rows of one.
  using Size = std::pair<int64_t, int64_t>;
  static Size size_of(const Form& form) { return {saturating_multiply(form[0], form[1]), form[2]}; }

  // Whether the node did work on the device, in a forward or backward pass and not within PyTorch's own attention.
  bool counts(uint32_t at) const {
    const OperatorNode& node = tree_.nodes[at];
    return node.work.ns > 0 && within_math_[at] == 0 &&
           (node.phase == OperatorPhase::kForward || node.phase == OperatorPhase::kBackward);
  }

  // A forward softmax over the last dimension.
  void softmax(uint32_t at, std::map<Size, Scores>& found) {
    const OperatorNode& node = tree_.nodes[at];
    if (name(at) != "aten::_softmax" || !counts(at) || node.phase != OperatorPhase::kForward) return;
    const auto* const inputs = inputs_of(at);
    if (inputs == nullptr || (*inputs)[0].tensors.size() != 1) return;
    const Tensor& tensor = (*inputs)[0].tensors[0];
    const auto form = form_of(tensor);
    if (!form || (*form)[2] < 2) return;
    if (tensor.dims.size() == 2 && !square(*form)) return;
    if (inputs->size() > 1 && (*inputs)[1].values.size() == 1) {
      const auto dim = std::llround((*inputs)[1].values[0]);
      if (dim != -1 && dim + 1 != static_cast<int64_t>(tensor.dims.size())) return;
    }
    Scores& scores = found[size_of(*form)];
    scores.calls += node.calls;
    scores.forms.insert(*form);
    if (scores.shapes.empty()) {
      scores.shapes = tree_.texts[node.shapes];
      scores.module = tree_.texts[module_[at]];
    } else if (scores.module != tree_.texts[module_[at]]) {
      scores.module.clear();
    }
  }

  void forward_product(uint32_t at, std::map<Size, Scores>& found) {
    if (!counts(at)) return;
    const auto factors = factors_of(at);
    if (!factors) return;
    const int64_t calls = tree_.nodes[at].calls;
    const Form right = transposed(factors->right);
    const Scores* written = nullptr;
    if (const auto scores = found.find(size_of(factors->result)); scores != found.end()) {
      written = &scores->second;
      scores->second.writing += calls;
      scores->second.forms.insert(factors->result);
      scores->second.heads_alike |= factors->left == factors->result;
    }
    // The scores are the left factor, or the right one on its side.
    for (const Form& form : {factors->left, right}) {
      const auto scores = found.find(size_of(form));
      if (scores == found.end()) continue;
      scores->second.reading += calls;
      if (written == &scores->second) scores->second.both += calls;
      scores->second.forms.insert(form);
      break;
    }
  }

  // Adds the node to the attention that it is a part of.
  void count(uint32_t at, const std::map<Form, Scores*>& of_form) {
    if (!counts(at)) return;
    const auto of = [&](const Form& form) {
      const auto found = of_form.find(form);
      return found == of_form.end() ? nullptr : found->second;
    };
    const auto either = [&](const Form& form) {
      Scores* const scores = of(form);
      return scores != nullptr ? scores : of(transposed(form));
    };
    const OperatorNode& node = tree_.nodes[at];
    Scores* scores = nullptr;
    if (const auto factors = factors_of(at)) {
      double others = 0;  // elements of the matrices that are no scores
      for (const Form& form : {factors->left, factors->right, factors->result}) {
        Scores* const one = either(form);
        if (one == nullptr)
          others += static_cast<double>(form[0]) * static_cast<double>(form[1]) * static_cast<double>(form[2]);
        else
          scores = one;
      }
      const OperatorWork& work = *factors->work;
      if (scores != nullptr && work.peak > 0 && work.bandwidth > 0)
        scores->sum.best += std::max(compute_ns(work, node), static_cast<double>(node.calls) * others *
                                                                 width(work.precision) / work.bandwidth * 1e9);
    } else if (const auto* const inputs = inputs_of(at)) {
      const bool softmax = name(at) == "aten::_softmax" || name(at) == "aten::_softmax_backward_data";
      for (const OperatorArgument& input : *inputs) {
        if (scores != nullptr || input.list || input.tensors.size() != 1) continue;
        const auto form = form_of(input.tensors[0]);
        Scores* const one = form ? of(*form) : nullptr;
        if (one != nullptr && (softmax || !one->heads_alike)) scores = one;
      }
    }
    if (scores != nullptr) add_saturating(scores->sum.ns, node.work.ns);
  }

  std::optional<Factors> factors_of(uint32_t at) {
    const std::string_view operator_name = name(at);
    size_t first = 0;
    if (operator_name == "aten::baddbmm" || operator_name == "aten::baddbmm_")
      first = 1;
    else if (operator_name != "aten::bmm" && operator_name != "aten::mm")
      return std::nullopt;
    const auto* const inputs = inputs_of(at);
    if (inputs == nullptr || inputs->size() < first + 2) return std::nullopt;
    const OperatorWork* const work = row_of(at);
    if (work == nullptr || (*inputs)[first].tensors.size() != 1 || (*inputs)[first + 1].tensors.size() != 1)
      return std::nullopt;
    const auto left = form_of((*inputs)[first].tensors[0]), right = form_of((*inputs)[first + 1].tensors[0]);
    if (!left || !right) return std::nullopt;
    const Factors out = {*left, *right, {(*left)[0], (*left)[1], (*right)[2]}, work};
    if (operator_name == "aten::mm" && square(out.left) + square(out.right) + square(out.result) != 1)
      return std::nullopt;
    return out;
  }

  static double width(Precision precision) {
    if (precision == Precision::kF64) return 8;
    if (precision == Precision::kF32 || precision == Precision::kTF32) return 4;
    return precision == Precision::kF8 ? 1 : 2;
  }

  // A fused backward pass computes five products, where four are stored: the scores are computed again.
  static double compute_ns(const OperatorWork& work, const OperatorNode& node) {
    const double ns = static_cast<double>(node.calls) * work.call.flops / work.peak * 1e9;
    return node.phase == OperatorPhase::kBackward ? 1.25 * ns : ns;
  }

  const std::vector<OperatorArgument>* inputs_of(uint32_t at) {
    const int64_t row = tree_.nodes[at].inputs;
    if (row == 0) return nullptr;
    auto [known, fresh] = inputs_.try_emplace(row);
    if (fresh) {
      using I = column::OperatorInput;
      const auto text = [&](int number) { return trace_.text(Table::kOperatorInput, row, number); };
      if (auto read = read_inputs(text(I::dims), text(I::types), text(I::strides), text(I::concrete)))
        known->second = std::move(*read);
    }
    return known->second.empty() ? nullptr : &known->second;
  }

  void add(std::vector<Costly>& all, const std::string& text, const Attention& sum) {
    const double most = 100 * sum.best / kFusedLeast, least = 100 * sum.best / kFusedMost,
                 whole = static_cast<double>(sum.ns);
    add_saturating(ns_, sum.ns);
    saved_most_ += std::max(whole - least, 0.0);
    saved_least_ += std::max(whole - most, 0.0);
    all.push_back({text,
                   fmt::format("{}: {} in {}; a fused kernel at {:.0f} to {:.0f} % of its roof takes {} to {}", text,
                               report::format_duration(whole),
                               sum.calls == 1 ? std::string("1 call") : fmt::format("{} calls", sum.calls), kFusedLeast,
                               kFusedMost, report::format_duration(least), report::format_duration(most)),
                   sum.ns});
  }

  const trace::Trace& trace_;
  const OperatorTree& tree_;
  std::map<std::tuple<std::string_view, std::string_view, OperatorPhase>, const OperatorWork*> rows_;
  std::vector<uint32_t> within_math_;  // by node: the node of PyTorch's own attention that it is or lies in; 0 = none
  std::vector<uint32_t> module_;       // by node: the innermost module's name, index into texts
  std::map<int64_t, std::vector<OperatorArgument>> inputs_;
  int64_t ns_ = 0;
  double saved_most_ = 0, saved_least_ = 0;
};

}  // namespace

void unfused_attention(const trace::Trace& trace, const OperatorTree& tree, const Efficiency& efficiency,
                       analysis::OperatorShare& share) {
  Finder finder(trace, tree, efficiency);
  std::vector<Costly> all = finder.find();
  share.ns = finder.ns();
  share.saved = std::llround(finder.saved_most());
  share.saved_least = std::llround(finder.saved_least());
  finish(all, share);
}

}  // namespace tacho::efficiency
