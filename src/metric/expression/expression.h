// The language of the catalog's formulas, conditions and quantities: text to a flat list of operations (docs/metrics.md
// describes it). Metrics are formulas over counters, rules are formulas over metrics.
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
  kMetric,   ///< text: a metric's slug, "lds-latency"; column: the key of its column
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
  kCoalesce,  ///< a where it has a value, b elsewhere
};

struct FormulaStep {
  FormulaOp op = FormulaOp::kNone;
  uint32_t arguments[3] = {0, 0, 0};  ///< indices of earlier steps; calls with more arguments are nested
  uint32_t argument_count = 0;
  int32_t first = -1, last = -1;
  double number = 0;
  std::string_view text, column;  ///< point into the text that was parsed

  bool operator==(const FormulaStep&) const = default;
};

/// A parsed formula; the last step is its value. Lives no longer than the text it was parsed from.
struct Formula {
  static constexpr int32_t kAll = -2;
  std::vector<FormulaStep> steps;
};

/// What the names in a formula mean, and so how they are written.
enum class FormulaNames : uint8_t {
  kCounters,  ///< columns of a run: "SQ_WAVES", "TCC_HIT[3]", "dram__bytes.sum"
  /// Metrics, each one number: "lds-latency", "lds-latency.peak". A minus between two letters or digits belongs to a
  /// name, one beside a blank subtracts. There are no dispatches, so no functions over them, and no text.
  kMetrics,
};

/// Parses one formula. Errors name the column (from 1) and the expected token. Never throws; bounded in depth and size.
Result<Formula> parse_formula(std::string_view text, FormulaNames names = FormulaNames::kCounters);

/// "lds-latency > 100": a formula, one of kLess, kLessEqual, kGreater and kGreaterEqual, and a number.
struct FormulaCondition {
  Formula left;
  std::string_view left_text;  ///< without blanks around it
  FormulaOp relation = FormulaOp::kGreater;
  double right = 0;
};
/// Parses a condition. A comparison within the formula stands in brackets. Errors as of parse_formula().
Result<FormulaCondition> parse_condition(std::string_view text, FormulaNames names);

/// "low .. high".
struct FormulaRange {
  Formula low, high;
  std::string_view low_text, high_text;  ///< without blanks around them
};
/// Parses a range. Errors as of parse_formula().
Result<FormulaRange> parse_range(std::string_view text, FormulaNames names);

/// The same without the result, to check users' files (FormulaCheck).
Status check_syntax(std::string_view text);

/// Names of the functions, for messages and completion.
std::string_view function_name(FormulaOp op);
bool is_reduction(FormulaOp op);

}  // namespace tacho::metric
