// Operand elements of the matrix benchmarks: random data, values, and the check of a product.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace tacho::roofline {

/// E4m3Fnuz is the FP8 of gfx942: a bias of 8, no infinities, no minus zero.
enum class Element { kHalf, kBfloat, kTf32, kE4m3, kInt8, kDouble, kFloat, kE4m3Fnuz };

/// "F16", "BF16", "TF32", "F8", "I8", "F64", "F32", as in the columns of roofline.csv.
std::string_view name_of(Element element);
/// Bytes of an element.
uint32_t size_of(Element element);
double value_of(Element element, const unsigned char* at);

/// Word `i` of random data: 32 bits of elements (64 for a double) with a magnitude of at most 2 (integers: any).
uint64_t random_word(Element element, uint64_t i);

/// Compares an element of a product, added up `times` times, with the device's result at `at` (an int32, a double, else
/// a float). Integers must be equal modulo 2^32, floats within the loss of truncating
/// accumulators. `magnitude` is the sum of |a b|. The error names the element.
Status compare_product(Element element, std::string_view name, double product, double magnitude, double times,
                       const void* at, uint32_t row, uint32_t column);

}  // namespace tacho::roofline
