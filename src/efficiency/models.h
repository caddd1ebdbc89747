// How much an operator has to compute and to move at least: the models of catalog/operators/models.yaml on an
// operator's inputs. Formulas are those of the metrics (metric/expression/expression.h) over names of dimensions and
// values.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "efficiency/inputs.h"
#include "metric/expression/expression.h"

namespace tacho::efficiency {

/// The work of one call.
struct CallWork {
  double flops = 0;       ///< floating-point operations; a fused multiply-add is two
  double bytes = 0;       ///< least traffic with memory
  double bytes_most = 0;  ///< more than `bytes` where the inputs leave it open
  bool matrix = false;    ///< tensor cores or matrix cores can do it
  bool strided = false;   ///< an input's elements do not lie one behind the other
  Precision precision = Precision::kUnknown;
  /// Of a product: rows and columns of the result, how many results, and the length of the sums; 0 = unknown.
  std::array<double, 4> output{};
};

/// A formula and the text that it points into.
class ModelFormula {
 public:
  static Result<ModelFormula> parse(std::string text);
  const metric::Formula& formula() const { return formula_; }

 private:
  std::unique_ptr<std::string> text_;  // its characters stay where they are
  metric::Formula formula_;
};

/// The inputs of a convolution by their numbers; -1 = it has no such input.
struct ConvolutionInputs {
  int input = -1, weight = -1, padding = -1, stride = -1, dilation = -1, transposed = -1, output_padding = -1;
  bool always_transposed = false;
};

struct Model {
  std::vector<std::string> operators;
  bool matrix = false;
  bool same_type = false;  ///< all tensors have the type of that input
  bool lists = false;      ///< that input is a list of tensors, whose types its kernels tell
  size_t type = 0;         ///< the input whose elements say which precision computes
  std::optional<ConvolutionInputs> window;
  std::vector<std::pair<std::string, ModelFormula>> names;  ///< "let"
  std::optional<ModelFormula> fits;                         ///< of inputs that do not contradict each other
  std::optional<ModelFormula> flops, bytes, bytes_most;
  std::vector<ModelFormula> output;
  std::string source;
};

class Models {
 public:
  /// The built-in models, with those of the folders' operators.yaml before them. Errors name file, line and column.
  static Result<Models> load(std::span<const std::string> config_dirs = {});
  /// Of one document.
  static Result<Models> parse(std::string_view yaml, std::string_view file);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Whether tensor cores or matrix cores can do what the operator computes; false without a model.
  bool matrix(std::string_view name) const;
  /// Where the operator's formulas come from; "" without a model.
  std::string_view source(std::string_view name) const;
  /// Whether the operator's tensors all have one type, so that shapes and a type are enough.
  bool same_type(std::string_view name) const;
  /// Whether the operator works on lists of tensors: PyTorch tells neither their types nor the sizes of long ones.
  bool of_lists(std::string_view name) const;
  /// Whether it does, and the sizes of its list are not told.
  bool lacks_sizes(std::string_view name, std::span<const OperatorArgument> inputs) const;
  /// The work of a call; nullopt without a model, or if the inputs do not tell all that it needs.
  std::optional<CallWork> work(std::string_view name, std::span<const OperatorArgument> inputs) const;
  size_t size() const { return models_.size(); }

 private:
  const Model* find(std::string_view name) const;
  void add(std::vector<Model> models);

  std::vector<std::shared_ptr<const Model>> models_;
  std::map<std::string, const Model*, std::less<>> of_operator_;
};

}  // namespace tacho::efficiency
