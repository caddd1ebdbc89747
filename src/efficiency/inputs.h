// The inputs of a framework's operator as a trace keeps them (table operator_input), as numbers.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::efficiency {

/// Which arithmetic an element type asks for. TF32 is never a type of elements: kernels tell of it.
enum class Precision : uint8_t { kUnknown, kF64, kF32, kTF32, kF16, kBF16, kF8, kF4, kI8, kOther };
std::string_view to_string(Precision precision);  ///< "bf16"
/// The precision with this name; kUnknown for others.
Precision precision_named(std::string_view name);

struct ElementType {
  Precision precision = Precision::kUnknown;
  int bytes = 0;  ///< of an element; 0 = unknown
  auto operator<=>(const ElementType&) const = default;
};
/// "c10::BFloat16", "float", "long int" as PyTorch names them.
ElementType element_type(std::string_view name);

struct Tensor {
  std::vector<int64_t> dims;     ///< none of them negative
  std::vector<int64_t> strides;  ///< as many as dims, or none where they are unknown
  ElementType type;
};

/// One input of an operator: a tensor, a list of tensors, or a value.
struct OperatorArgument {
  std::vector<Tensor> tensors;  ///< none: not a tensor
  bool list = false;            ///< of tensors
  std::vector<double> values;   ///< of a number or a list of numbers; True is 1
};

/// An operator's inputs. Fails where the texts are no JSON lists, contradict each other (a negative dimension, more
/// strides than dimensions) or are too large to be believed.
Result<std::vector<OperatorArgument>> read_inputs(std::string_view dims, std::string_view types,
                                                  std::string_view strides, std::string_view concrete);

}  // namespace tacho::efficiency
