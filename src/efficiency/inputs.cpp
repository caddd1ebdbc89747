// Reads the lists of a framework's operator (inputs.h).
#include "efficiency/inputs.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace tacho::efficiency {

namespace {

constexpr size_t kMostValues = 1 << 16;
constexpr int kDeepest = 6;

constexpr std::pair<std::string_view, Precision> kPrecisions[] = {
    {"f64", Precision::kF64}, {"f32", Precision::kF32},   {"tf32", Precision::kTF32},
    {"f16", Precision::kF16}, {"bf16", Precision::kBF16}, {"f8", Precision::kF8},
    {"f4", Precision::kF4},   {"i8", Precision::kI8},     {"other", Precision::kOther},
};

// A value of the texts: a number, a text or a list.
struct Value {
  enum class Kind : uint8_t { kNothing, kNumber, kText, kList } kind = Kind::kNothing;
  double number = 0;
  std::string text;
  std::vector<Value> items;
  bool list() const { return kind == Kind::kList; }
};

// JSON without objects, and Python's words for truth: "[[8, 3], []]", "[\"float\", \"\"]", "[True, False]".
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  std::optional<Value> whole() {
    auto value = read(0);
    skip();
    return value && at_ == text_.size() ? std::move(value) : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::optional<Value> read(int depth) {
    if (depth > kDeepest || ++count_ > kMostValues) return std::nullopt;
    skip();
    Value value;
    if (accept("[")) {
      value.kind = Value::Kind::kList;
      skip();
      if (accept("]")) return value;
      do {
        auto item = read(depth + 1);
        if (!item) return std::nullopt;
        value.items.push_back(std::move(*item));
        skip();
      } while (accept(","));
      return accept("]") ? std::optional(std::move(value)) : std::nullopt;
    }
    if (accept("\"")) {
      value.kind = Value::Kind::kText;
      while (at_ < text_.size() && text_[at_] != '"') {
        if (text_[at_] == '\\' && ++at_ == text_.size()) return std::nullopt;
        value.text += text_[at_++];
      }
      return accept("\"") ? std::optional(std::move(value)) : std::nullopt;
    }
    for (const auto& [word, number] :
         {std::pair("true", 1.0), std::pair("True", 1.0), std::pair("false", 0.0), std::pair("False", 0.0)})
      if (accept(word)) {
        value.kind = Value::Kind::kNumber;
        value.number = number;
        return value;
      }
    if (accept("null") || accept("None")) return value;
    const char* const from = text_.data() + at_;
    const auto [end, error] = std::from_chars(from, text_.data() + text_.size(), value.number);
    if (error != std::errc{} || !std::isfinite(value.number)) return std::nullopt;
    at_ += static_cast<size_t>(end - from);
    value.kind = Value::Kind::kNumber;
    return value;
  }

  std::string_view text_;
  size_t at_ = 0, count_ = 0;
};

std::optional<std::vector<int64_t>> whole_numbers(const Value& list) {
  std::vector<int64_t> numbers;
  for (const Value& item : list.items) {
    if (item.kind != Value::Kind::kNumber || std::abs(item.number) > 9e15 || item.number != std::floor(item.number))
      return std::nullopt;
    numbers.push_back(static_cast<int64_t>(item.number));
  }
  return numbers;
}

bool of_lists(const Value& list) {
  return !list.items.empty() && list.items[0].list();
}

// What is written for one input: its entry in each of the four lists; nothing where a list is too short.
struct Written {
  const Value* dims = nullptr;
  const Value* types = nullptr;
  const Value* strides = nullptr;
  const Value* concrete = nullptr;
};

std::optional<Tensor> tensor_of(const Value& dims, const Value* strides, std::string_view type) {
  Tensor tensor;
  const auto sizes = whole_numbers(dims);
  if (!sizes) return std::nullopt;
  for (const int64_t size : *sizes)
    if (size < 0) return std::nullopt;
  tensor.dims = *sizes;
  if (strides != nullptr && strides->list() && !of_lists(*strides)) {
    const auto steps = whole_numbers(*strides);
    if (!steps) return std::nullopt;
    if (steps->size() == sizes->size())
      tensor.strides = *steps;
    else if (!steps->empty())
      return std::nullopt;
  }
  tensor.type = element_type(type);
  return tensor;
}

bool names_scalar(std::string_view type) {
  return type == "Scalar" || type == "ScalarList" || type == "GenericList" || type == "Device" || type == "String";
}

Status add_tensors(const Written& of, OperatorArgument& input) {
  const Value* const types = of.types;
  const std::string_view type =
      types != nullptr && types->kind == Value::Kind::kText ? types->text : std::string_view();
  if (of.dims == nullptr || !of.dims->list()) return {};
  if (!of_lists(*of.dims)) {
    // A tensor without dimensions has a type; a value has none, or the name of its kind.
    if (of.dims->items.empty() && (type.empty() || names_scalar(type) || type == "TensorList")) {
      input.list = type == "TensorList";
      return {};
    }
    auto tensor = tensor_of(*of.dims, of.strides, type);
    if (!tensor) return fail("an input's dimensions and strides contradict each other");
    input.tensors.push_back(std::move(*tensor));
    return {};
  }
  input.list = true;
  for (size_t i = 0; i < of.dims->items.size(); ++i) {
    const Value* const strides =
        of.strides != nullptr && of.strides->list() && i < of.strides->items.size() ? &of.strides->items[i] : nullptr;
    const bool own = types != nullptr && types->list() && i < types->items.size();
    const std::string_view each = own ? types->items[i].text : std::string_view();
    if (!of.dims->items[i].list()) return fail("a list of tensors has an entry that is no shape");
    auto tensor = tensor_of(of.dims->items[i], strides, each);
    if (!tensor) return fail("the dimensions and strides of a list's tensor contradict each other");
    input.tensors.push_back(std::move(*tensor));
  }
  return {};
}

// "[1, 1]", "True", "0.5": a text in the list of values.
void add_values(const Value& concrete, OperatorArgument& input) {
  Value value = concrete;
  if (concrete.kind == Value::Kind::kText) {
    auto read = Reader(concrete.text).whole();
    if (!read) return;  // a name, a device
    value = std::move(*read);
  }
  if (value.kind == Value::Kind::kNumber) input.values.push_back(value.number);
  for (const Value& item : value.items)
    if (item.kind == Value::Kind::kNumber) input.values.push_back(item.number);
}

}  // namespace

std::string_view to_string(Precision precision) {
  for (const auto& [name, value] : kPrecisions)
    if (value == precision) return name;
  return "unknown";
}

Precision precision_named(std::string_view name) {
  for (const auto& [known, value] : kPrecisions)
    if (known == name) return value;
  return Precision::kUnknown;
}

ElementType element_type(std::string_view name) {
  static constexpr std::pair<std::string_view, ElementType> kTypes[] = {
      {"float", {Precision::kF32, 4}},
      {"double", {Precision::kF64, 8}},
      {"c10::Half", {Precision::kF16, 2}},
      {"c10::BFloat16", {Precision::kBF16, 2}},
      {"signed char", {Precision::kI8, 1}},
      {"char", {Precision::kI8, 1}},
      {"unsigned char", {Precision::kI8, 1}},
      {"bool", {Precision::kOther, 1}},
      {"short", {Precision::kOther, 2}},
      {"short int", {Precision::kOther, 2}},
      {"unsigned short", {Precision::kOther, 2}},
      {"int", {Precision::kOther, 4}},
      {"unsigned int", {Precision::kOther, 4}},
      {"long", {Precision::kOther, 8}},
      {"long int", {Precision::kOther, 8}},
      {"long long", {Precision::kOther, 8}},
      {"unsigned long", {Precision::kOther, 8}},
      {"c10::complex<float>", {Precision::kOther, 8}},
      {"c10::complex<double>", {Precision::kOther, 16}},
      {"c10::complex<c10::Half>", {Precision::kOther, 4}},
  };
  for (const auto& [known, type] : kTypes)
    if (known == name) return type;
  if (name.starts_with("c10::Float8_")) return {Precision::kF8, 1};
  if (name.starts_with("c10::Float4_")) return {Precision::kF4, 1};  // two elements in a byte count as one
  return {};
}

Result<std::vector<OperatorArgument>> read_inputs(std::string_view dims, std::string_view types,
                                                  std::string_view strides, std::string_view concrete) {
  std::array<Value, 4> lists;
  const std::string_view texts[] = {dims, types, strides, concrete};
  for (size_t i = 0; i < lists.size(); ++i) {
    if (texts[i].empty()) continue;
    auto value = Reader(texts[i]).whole();
    if (!value || !value->list()) return fail("the inputs of an operator are no lists");
    lists[i] = std::move(*value);
  }
  std::vector<OperatorArgument> inputs(lists[0].items.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto entry = [&](size_t list) { return i < lists[list].items.size() ? &lists[list].items[i] : nullptr; };
    TACHO_TRY(add_tensors({entry(0), entry(1), entry(2), entry(3)}, inputs[i]));
    if (const Value* const value = entry(3); value != nullptr && inputs[i].tensors.empty())
      add_values(*value, inputs[i]);
  }
  return inputs;
}

}  // namespace tacho::efficiency
