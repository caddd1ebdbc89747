// What the operators and functions of formulas do to numbers, for columns (formula/program.h) and single values
// (catalog/rule_expression.h) alike.
#pragma once

#include <cmath>
#include <limits>

#include "metric/expression/expression.h"

namespace tacho::metric {

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// The result of an operation on two numbers; NaN is "no value". Comparisons and logic give 1 or 0.
template <FormulaOp kOp>
struct Arithmetic {
  double operator()(double x, double y) const {
    if constexpr (kOp == FormulaOp::kAdd) return x + y;
    if constexpr (kOp == FormulaOp::kSubtract) return x - y;
    if constexpr (kOp == FormulaOp::kMultiply) return x * y;
    if constexpr (kOp == FormulaOp::kDivide) return x / y;
    if constexpr (kOp == FormulaOp::kFloorDivide) return std::floor(x / y);
    if constexpr (kOp == FormulaOp::kPower) return std::pow(x, y);
    if constexpr (kOp == FormulaOp::kLess) return x < y ? 1.0 : 0.0;
    if constexpr (kOp == FormulaOp::kLessEqual) return x <= y ? 1.0 : 0.0;
    if constexpr (kOp == FormulaOp::kGreater) return x > y ? 1.0 : 0.0;
    if constexpr (kOp == FormulaOp::kGreaterEqual) return x >= y ? 1.0 : 0.0;
    if constexpr (kOp == FormulaOp::kEqual) return x == y ? 1.0 : 0.0;
    if constexpr (kOp == FormulaOp::kNotEqual) return x != y ? 1.0 : 0.0;
    if constexpr (kOp == FormulaOp::kAnd) return x != 0 && y != 0 ? 1.0 : 0.0;
    if constexpr (kOp == FormulaOp::kOr) return x != 0 || y != 0 ? 1.0 : 0.0;
    if constexpr (kOp == FormulaOp::kMin) return std::isnan(x) || std::isnan(y) ? kNoNumber : (y < x ? y : x);
    if constexpr (kOp == FormulaOp::kMax) return std::isnan(x) || std::isnan(y) ? kNoNumber : (y > x ? y : x);
    if constexpr (kOp == FormulaOp::kModulo) return modulo(x, y);
    if constexpr (kOp == FormulaOp::kRound) return rounded(x, y);
  }

 private:
  // The sign of the divisor, as in Python.
  static double modulo(double x, double y) {
    if (y == 0) return kNoNumber;
    const double rest = std::fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  }
  static double rounded(double x, double digits) {
    if (!std::isfinite(x)) return x;
    if (digits == 0) return std::nearbyint(x);
    const double scale = std::pow(10.0, digits);
    const double scaled = x * scale;
    return std::isfinite(scaled) ? std::nearbyint(scaled) / scale : x;
  }
};

/// The same of one number.
template <FormulaOp kOp>
struct UnaryArithmetic {
  double operator()(double x) const {
    if constexpr (kOp == FormulaOp::kNegate) return -x;
    if constexpr (kOp == FormulaOp::kNot) return x == 0 ? 1.0 : 0.0;
    if constexpr (kOp == FormulaOp::kToInt) return std::isfinite(x) ? std::trunc(x) : kNoNumber;
  }
};

/// The result of an operation that is known only at run time; kNoNumber for one that does not take two numbers.
inline double binary(FormulaOp op, double x, double y) {
  switch (op) {
    case FormulaOp::kAdd:
      return Arithmetic<FormulaOp::kAdd>()(x, y);
    case FormulaOp::kSubtract:
      return Arithmetic<FormulaOp::kSubtract>()(x, y);
    case FormulaOp::kMultiply:
      return Arithmetic<FormulaOp::kMultiply>()(x, y);
    case FormulaOp::kDivide:
      return Arithmetic<FormulaOp::kDivide>()(x, y);
    case FormulaOp::kModulo:
    case FormulaOp::kMod:
      return Arithmetic<FormulaOp::kModulo>()(x, y);
    case FormulaOp::kFloorDivide:
      return Arithmetic<FormulaOp::kFloorDivide>()(x, y);
    case FormulaOp::kPower:
      return Arithmetic<FormulaOp::kPower>()(x, y);
    case FormulaOp::kLess:
      return Arithmetic<FormulaOp::kLess>()(x, y);
    case FormulaOp::kLessEqual:
      return Arithmetic<FormulaOp::kLessEqual>()(x, y);
    case FormulaOp::kGreater:
      return Arithmetic<FormulaOp::kGreater>()(x, y);
    case FormulaOp::kGreaterEqual:
      return Arithmetic<FormulaOp::kGreaterEqual>()(x, y);
    case FormulaOp::kEqual:
      return Arithmetic<FormulaOp::kEqual>()(x, y);
    case FormulaOp::kNotEqual:
      return Arithmetic<FormulaOp::kNotEqual>()(x, y);
    case FormulaOp::kAnd:
      return Arithmetic<FormulaOp::kAnd>()(x, y);
    case FormulaOp::kOr:
      return Arithmetic<FormulaOp::kOr>()(x, y);
    case FormulaOp::kMin:
      return Arithmetic<FormulaOp::kMin>()(x, y);
    case FormulaOp::kMax:
      return Arithmetic<FormulaOp::kMax>()(x, y);
    case FormulaOp::kRound:
      return Arithmetic<FormulaOp::kRound>()(x, y);
    default:
      return kNoNumber;
  }
}

}  // namespace tacho::metric
