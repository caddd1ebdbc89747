// Evaluates models on inputs (models.h).
#include "efficiency/models.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "metric/expression/arithmetic.h"

namespace tacho::efficiency {

namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

double product(std::span<const int64_t> dims, size_t from = 0) {
  double result = 1;
  for (size_t i = from; i < dims.size(); ++i) result *= static_cast<double>(dims[i]);
  return result;
}

double unique_elements(const Tensor& tensor) {
  double result = 1;
  for (size_t i = 0; i < tensor.dims.size(); ++i)
    if (tensor.strides.empty() || tensor.strides[i] != 0 || tensor.dims[i] == 0)
      result *= static_cast<double>(tensor.dims[i]);
  return result;
}

double bytes_of(const OperatorArgument& input) {
  double result = 0;
  for (const Tensor& tensor : input.tensors) {
    if (tensor.type.bytes == 0) return kNothing;
    result += unique_elements(tensor) * tensor.type.bytes;
  }
  return result;
}

double number_of_elements(const OperatorArgument& input) {
  double result = 0;
  for (const Tensor& tensor : input.tensors) result += product(tensor.dims);
  return result;
}

// Elements after all tensors are broadcast; nothing if their shapes do not fit together.
double broadcast(std::span<const OperatorArgument> inputs) {
  std::vector<int64_t> dims;  // the last first
  for (const OperatorArgument& input : inputs) {
    if (input.tensors.size() != 1 || input.list) continue;
    const auto& own = input.tensors[0].dims;
    if (own.size() > dims.size()) dims.resize(own.size(), 1);
    for (size_t i = 0; i < own.size(); ++i) {
      const int64_t size = own[own.size() - 1 - i];
      if (size == 1 || size == dims[i]) continue;
      if (dims[i] != 1) return kNothing;
      dims[i] = size;
    }
  }
  return product(dims);
}

class Evaluation {
 public:
  Evaluation(const Model& model, std::span<const OperatorArgument> inputs) : model_(model), inputs_(inputs) {}

  // Gives the model's own names their values, each of which may use those before it.
  void name_values() {
    for (const auto& [name, formula] : model_.names) names_.emplace_back(name, value(formula));
  }
  double value(const ModelFormula& of) {
    const auto& steps = of.formula().steps;
    values_.clear();
    for (const metric::FormulaStep& step : steps) values_.push_back(value(step));
    return values_.empty() ? kNothing : values_.back();
  }

 private:
  double value(const metric::FormulaStep& step) const {
    using Op = metric::FormulaOp;
    const auto argument = [&](size_t number) { return values_[step.arguments[number]]; };
    switch (step.op) {
      case Op::kNumber:
        return step.number;
      case Op::kCounter:
        return named(step.text, step.first);
      case Op::kNegate:
        return -argument(0);
      case Op::kNot:
        return truth(argument(0), [](bool is) { return !is; });
      case Op::kAnd:
        return both(argument(0), argument(1), [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; });
      case Op::kOr:
        return both(argument(0), argument(1), [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; });
      case Op::kSelect:
        return std::isnan(argument(2)) ? kNothing : argument(argument(2) != 0 ? 0 : 1);
      default:
        return step.argument_count == 2 ? arithmetic(step.op, argument(0), argument(1)) : kNothing;
    }
  }
  template <typename F>
  static double truth(double value, F&& f) {
    return std::isnan(value) ? kNothing : f(value != 0) ? 1.0 : 0.0;
  }
  template <typename F>
  static double both(double a, double b, F&& f) {
    return std::isnan(a) || std::isnan(b) ? kNothing : f(a, b);
  }
  static double arithmetic(metric::FormulaOp op, double a, double b) {
    const double result = std::isnan(a) || std::isnan(b) ? kNothing : metric::binary(op, a, b);
    return std::isfinite(result) ? result : kNothing;
  }

  double named(std::string_view name, int32_t index) const {
    for (const auto& [own, number] : names_)
      if (own == name) return number;
    if (name == "out") return window_output();
    if (name == "all") return broadcast(inputs_);
    if (name == "kept") return kept();
    if (name == "tensors") {
      double sum = 0;
      for (const OperatorArgument& input : inputs_) sum += bytes_of(input);
      return sum;
    }
    size_t number = 0;
    const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    if (error != std::errc{} || end != name.data() + name.size()) return kNothing;
    static const OperatorArgument kMissing;
    const OperatorArgument& input = number < inputs_.size() ? inputs_[number] : kMissing;
    return of_input(name[0], input, index);
  }

  static double of_input(char what, const OperatorArgument& input, int32_t index) {
    if (what == 'x') return input.tensors.empty() ? 0 : 1;
    if (what == 'c') {
      if (input.values.empty()) return kNothing;
      if (index < 0 || input.values.size() == 1) return input.values[0];
      return static_cast<size_t>(index) < input.values.size() ? input.values[static_cast<size_t>(index)] : kNothing;
    }
    if (input.tensors.empty()) return kNothing;
    if (what == 't') return bytes_of(input);
    if (what == 'n') return number_of_elements(input);
    if (input.tensors.size() != 1 || input.list) return kNothing;
    const Tensor& tensor = input.tensors[0];
    const auto& dims = tensor.dims;
    const auto at = [&](size_t i) { return i < dims.size() ? static_cast<double>(dims[i]) : kNothing; };
    switch (what) {
      case 'd':
        return index < 0 ? kNothing : at(static_cast<size_t>(index));
      case 'r':
        return static_cast<double>(dims.size());
      case 'u':
        return unique_elements(tensor);
      case 'e':
        return tensor.type.bytes == 0 ? kNothing : tensor.type.bytes;
      case 'l':
        return dims.empty() ? kNothing : at(dims.size() - 1);
      case 'm':
        return dims.size() < 2 ? kNothing : at(dims.size() - 2);
      case 'b':
        return dims.size() < 2 ? kNothing : product(std::span(dims).first(dims.size() - 2));
      case 'q':
        return dims.empty() ? kNothing : product(dims, 1);
      case 'p':
        return dims.size() < 2 ? kNothing : product(dims, 2);
      default:
        return kNothing;
    }
  }

  const OperatorArgument* input(int number) const {
    return number >= 0 && static_cast<size_t>(number) < inputs_.size() ? &inputs_[static_cast<size_t>(number)]
                                                                       : nullptr;
  }
  // The product of the output's dimensions from 2 on.
  double window_output() const {
    if (!model_.window) return kNothing;
    const ConvolutionInputs& window = *model_.window;
    const OperatorArgument *const from = input(window.input), *const weight = input(window.weight);
    if (from == nullptr || weight == nullptr || from->tensors.size() != 1 || weight->tensors.size() != 1)
      return kNothing;
    const auto &in = from->tensors[0].dims, &kernel = weight->tensors[0].dims;
    if (in.size() < 3 || kernel.size() != in.size()) return kNothing;
    const auto of = [&](int number, size_t i, double otherwise) {
      const OperatorArgument* const list = input(number);
      if (number < 0) return otherwise;
      return list == nullptr ? kNothing : of_input('c', *list, static_cast<int32_t>(i));
    };
    double transposed = of(window.transposed, 0, window.always_transposed ? 1 : 0), out = 1;
    if (std::isnan(transposed)) return kNothing;
    for (size_t i = 2; i < in.size(); ++i) {
      const auto size = static_cast<double>(in[i]), width = static_cast<double>(kernel[i]);
      const double padding = of(window.padding, i - 2, 0), stride = of(window.stride, i - 2, 1),
                   dilation = of(window.dilation, i - 2, 1), more = of(window.output_padding, i - 2, 0);
      // PyTorch's documentation of Conv2d and ConvTranspose2d, "Shape".
      const double pixels = transposed != 0
                                ? (size - 1) * stride - 2 * padding + dilation * (width - 1) + more + 1
                                : std::floor((size + 2 * padding - dilation * (width - 1) - 1) / stride) + 1;
      if (!(pixels > 0) || !std::isfinite(pixels)) return kNothing;
      out *= pixels;
    }
    return out;
  }
  // Elements of tensor 0 after the dimensions that value 1 lists are reduced; all of them without a list.
  double kept() const {
    const OperatorArgument* const tensor = input(0);
    if (tensor == nullptr || tensor->tensors.size() != 1) return kNothing;
    const auto& dims = tensor->tensors[0].dims;
    const OperatorArgument* const list = input(1);
    if (list == nullptr || list->values.empty()) return 1;
    std::vector<bool> gone(dims.size());
    for (const double value : list->values) {
      const double at = value < 0 ? value + static_cast<double>(dims.size()) : value;
      if (at < 0 || at >= static_cast<double>(dims.size())) return kNothing;
      gone[static_cast<size_t>(at)] = true;
    }
    double left = 1;
    for (size_t i = 0; i < dims.size(); ++i)
      if (!gone[i]) left *= static_cast<double>(dims[i]);
    return left;
  }

  const Model& model_;
  std::span<const OperatorArgument> inputs_;
  std::vector<std::pair<std::string_view, double>> names_;
  std::vector<double> values_;  // of the formula's steps
};

// Whether neighbours of the last dimension, and rows behind them, lie elsewhere. Broadcast dimensions do not count.
bool is_strided(const Tensor& tensor) {
  double step = 1;
  for (size_t i = tensor.strides.size(); i-- > 0;) {
    if (tensor.dims[i] == 1 || tensor.strides[i] == 0) continue;
    if (static_cast<double>(tensor.strides[i]) != step) return true;
    step *= static_cast<double>(tensor.dims[i]);
  }
  return false;
}

// What a model may compute: more is a mistake of the inputs.
constexpr double kMost = 1e24;

bool believable(double value) {
  return value >= 0 && value < kMost;
}

}  // namespace

Result<ModelFormula> ModelFormula::parse(std::string text) {
  ModelFormula out;
  out.text_ = std::make_unique<std::string>(std::move(text));
  TACHO_ASSIGN(out.formula_, metric::parse_formula(*out.text_));
  return out;
}

void Models::add(std::vector<Model> models) {
  for (Model& model : models) {
    models_.push_back(std::make_shared<const Model>(std::move(model)));
    for (const std::string& name : models_.back()->operators) of_operator_.try_emplace(name, models_.back().get());
  }
}

const Model* Models::find(std::string_view name) const {
  const auto found = of_operator_.find(name);
  return found == of_operator_.end() ? nullptr : found->second;
}

std::string_view Models::source(std::string_view name) const {
  const Model* const model = find(name);
  return model == nullptr ? std::string_view() : model->source;
}

bool Models::matrix(std::string_view name) const {
  const Model* const model = find(name);
  return model != nullptr && model->matrix;
}

bool Models::same_type(std::string_view name) const {
  const Model* const model = find(name);
  return model != nullptr && model->same_type;
}

bool Models::of_lists(std::string_view name) const {
  const Model* const model = find(name);
  return model != nullptr && model->lists;
}

bool Models::lacks_sizes(std::string_view name, std::span<const OperatorArgument> inputs) const {
  const Model* const model = find(name);
  return model != nullptr && model->lists && model->type < inputs.size() && inputs[model->type].tensors.empty();
}

std::optional<CallWork> Models::work(std::string_view name, std::span<const OperatorArgument> inputs) const {
  const Model* const model = find(name);
  if (model == nullptr || model->type >= inputs.size() || inputs[model->type].tensors.empty()) return std::nullopt;
  Evaluation evaluation(*model, inputs);
  evaluation.name_values();
  if (model->fits && evaluation.value(*model->fits) != 1) return std::nullopt;
  CallWork work;
  work.matrix = model->matrix;
  work.precision = inputs[model->type].tensors[0].type.precision;
  for (const OperatorArgument& input : inputs)
    work.strided = work.strided || std::any_of(input.tensors.begin(), input.tensors.end(), is_strided);
  work.flops = evaluation.value(*model->flops);
  work.bytes = evaluation.value(*model->bytes);
  work.bytes_most = model->bytes_most ? evaluation.value(*model->bytes_most) : work.bytes;
  if (!believable(work.flops) || !believable(work.bytes) || !believable(work.bytes_most) ||
      work.bytes_most < work.bytes)
    return std::nullopt;
  for (size_t i = 0; i < model->output.size(); ++i) {
    const double value = evaluation.value(model->output[i]);
    work.output[i] = believable(value) ? value : 0;
  }
  return work;
}

}  // namespace tacho::efficiency
