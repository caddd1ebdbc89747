// Inputs of PyTorch's operators: any four texts are inputs or refused with a sentence, and a model of work gives
// numbers of them that are finite and not negative, or nothing. A line each: the operator, dimensions, types, strides,
// values.
#include <stddef.h>
#include <stdint.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "efficiency/models.h"
#include "fuzz/text_mutator.h"

namespace {

constexpr std::string_view kDocuments[] = {
    R"(aten::mm
[[8, 4096], [4096, 1024]]
["c10::BFloat16", "c10::BFloat16"]
[[4096, 1], [1024, 1]]
["", ""])",
    R"(aten::convolution_backward
[[8, 64, 28, 28], [8, 32, 28, 28], [64, 32, 3, 3], [], [], [], [], [], [], [], []]
["float", "float", "float", "", "", "", "", "", "", "", ""]
[[50176, 784, 28, 1], [25088, 784, 28, 1], [288, 9, 3, 1], [], [], [], [], [], [], [], []]
["", "", "", "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, False]"])",
    R"(aten::_foreach_add_
[[[1024], [64, 64]], [[1024], [64, 64]], []]
[["float", "float"], ["float", "float"], "Scalar"]
[[[1], [64, 1]], [[1], [64, 1]], []]
["", "", "1"])"};

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const std::string_view document = kDocuments[seed % std::size(kDocuments)];
  return tacho::fuzz::put(tacho::fuzz::mutated_text(
                              {reinterpret_cast<const char*>(data), size}, document,
                              {"aten::addmm", "aten::bmm", "aten::cat", "aten::sum", "aten::embedding",
                               "aten::_flash_attention_forward", "aten::cudnn_convolution", "aten::linear",
                               "TensorList", "Scalar", "double", "c10::Float8_e4m3fn", "s0", "[[[]]]", "None", "True"},
                              max_size, seed),
                          data);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacho::efficiency;
  static const Models models = [] {
    auto read = Models::load();
    if (!read) std::abort();
    return std::move(*read);
  }();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::array<std::string_view, 5> lines;
  for (std::string_view& line : lines) {
    const size_t end = rest.find('\n');
    line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  const auto inputs = read_inputs(lines[1], lines[2], lines[3], lines[4]);
  if (!inputs) {
    if (inputs.error().message.empty()) std::abort();
    return 0;
  }
  for (const OperatorArgument& input : *inputs)
    for (const Tensor& tensor : input.tensors)
      for (const int64_t dim : tensor.dims)
        if (dim < 0 || (!tensor.strides.empty() && tensor.strides.size() != tensor.dims.size())) std::abort();
  const auto work = models.work(lines[0], *inputs);
  if (!work) return 0;
  for (const double value : {work->flops, work->bytes, work->bytes_most})
    if (!std::isfinite(value) || value < 0) std::abort();
  for (const double value : work->output)
    if (!std::isfinite(value)) std::abort();
  return 0;
}
