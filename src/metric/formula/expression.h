// The formula language of the metric catalog: text to a flat list of operations (docs/metrics.md describes it).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::metric {

/// The operation of one step of a formula. Binary and ternary steps take the results of earlier steps.
enum class FormulaOp : uint8_t {
  kNumber,   ///< number
  kNone,     ///< "no value": skipped by every reduction
  kCounter,  ///< text: a column of the run, "SQ_WAVES"; with first >= 0 one instance, "TCC_HIT[3]"
  kChannel,  ///< text: the instance of the row the formula is evaluated for, "TCC_HIT[$channel]"
  kSumOf,    ///< text: the sum of the instances first..last; last = kAll: all of them, "TCC_HIT[*]"
  kValue,    ///< text: a built-in or specification value without the $
  kNegate,
  kNot,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kFloorDivide,
  kPower,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kAnd,
  kOr,
  kSelect,  ///< a where c is true, b elsewhere: "a if c else b"
  // Functions. Reductions over the dispatches come first.
  kAvg,
  kSum,
  kMedian,
  kStd,
  kMin,
  kMax,
  kQuantile,
  kToInt,
  kRound,
  kMod,
  kConcat,
};

struct Step {
  FormulaOp op = FormulaOp::kNone;
  uint32_t arguments[3] = {0, 0, 0};  ///< indices of earlier steps; Min and Max with n arguments are nested
  uint8_t argument_count = 0;
  int32_t first = -1, last = -1;
  double number = 0;
  std::string_view text;  ///< points into the text that was parsed
};

/// A parsed formula; the last step is its value. Lives no longer than the text it was parsed from.
struct Formula {
  static constexpr int32_t kAll = -2;
  std::vector<Step> steps;
};

/// Parses one formula. Errors name the column (from 1) and the expected token. Never throws; bounded in depth and size.
Result<Formula> parse_formula(std::string_view text);

/// The same without the result, to check users' files (FormulaCheck).
Status check_syntax(std::string_view text);

/// Names of the functions, for messages and completion.
std::string_view function_name(FormulaOp op);
bool is_reduction(FormulaOp op);

}  // namespace tacho::metric
