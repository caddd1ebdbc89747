// Recursive-descent parser of formulas: Python's expression grammar as far as metrics use it.
#include "metric/expression/expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace tacho::metric {

namespace {

constexpr size_t kMaxLength = size_t{1} << 20;
constexpr int kMaxDepth = 200;

struct Function {
  std::string_view name;
  FormulaOp op;
  int least, most;     // arguments
  int of_metrics = 0;  // the least number of arguments where names are metrics; 0: there is no such function
};

constexpr std::array kFunctions = {
    Function{"AVG", FormulaOp::kAvg, 1, 1},           Function{"MIN", FormulaOp::kMin, 1, 16, 2},
    Function{"MAX", FormulaOp::kMax, 1, 16, 2},       Function{"SUM", FormulaOp::kSum, 1, 1},
    Function{"MEDIAN", FormulaOp::kMedian, 1, 1},     Function{"STD", FormulaOp::kStd, 1, 1},
    Function{"QUANTILE", FormulaOp::kQuantile, 2, 2}, Function{"TO_INT", FormulaOp::kToInt, 1, 1, 1},
    Function{"ROUND", FormulaOp::kRound, 2, 2, 2},    Function{"MOD", FormulaOp::kMod, 2, 2, 2},
    Function{"CONCAT", FormulaOp::kConcat, 2, 2},     Function{"COALESCE", FormulaOp::kCoalesce, 2, 16, 2},
};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_slug(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-'; });
}

class Parser {
 public:
  Parser(std::string_view text, FormulaNames names) : text_(text), metrics_(names == FormulaNames::kMetrics) {}

  Result<Formula> formula() {
    TACHO_TRY(check_length());
    TACHO_TRY(conditional());
    TACHO_TRY(end("an operator or the end of the formula"));
    return std::move(formula_);
  }

  Result<FormulaCondition> condition() {
    TACHO_TRY(check_length());
    FormulaCondition out;
    TACHO_TRY(sum());
    out.left = std::exchange(formula_, {});
    out.left_text = trimmed(text_.substr(0, at_));
    const size_t sign = at_;
    const std::optional<FormulaOp> relation = comparison_sign();
    if (!relation || *relation == FormulaOp::kEqual || *relation == FormulaOp::kNotEqual) {
      at_ = sign;
      return wrong("'<', '<=', '>' or '>=' and a number");
    }
    out.relation = *relation;
    const bool negative = accept("-");
    skip_space();
    if (at_ >= text_.size() || !(is_digit(text_[at_]) || text_[at_] == '.')) return wrong("a number");
    TACHO_TRY(number());
    out.right = negative ? -formula_.steps.back().number : formula_.steps.back().number;
    TACHO_TRY(end("the end of the condition behind its number"));
    return out;
  }

  Result<FormulaRange> range() {
    TACHO_TRY(check_length());
    FormulaRange out;
    TACHO_TRY(conditional());
    out.low = std::exchange(formula_, {});
    out.low_text = trimmed(text_.substr(0, at_));
    if (!accept("..")) return wrong("'..' between the low and the high end");
    const size_t begin = at_;
    TACHO_TRY(conditional());
    out.high = std::exchange(formula_, {});
    out.high_text = trimmed(text_.substr(begin, at_ - begin));
    TACHO_TRY(end("an operator or the end of the formula"));
    return out;
  }

 private:
  Status check_length() const {
    if (text_.size() > kMaxLength) return fail("the formula is longer than {} characters", kMaxLength);
    return {};
  }
  Status end(std::string_view expected) {
    skip_space();
    if (at_ < text_.size()) return wrong(expected);
    return {};
  }
  static std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
  }
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  tl::unexpected<Error> wrong(std::string_view expected) {
    skip_space();
    if (at_ >= text_.size()) return fail("column {}: expected {}, but the formula ends", at_ + 1, expected);
    std::string found(text_.substr(at_, is_letter(text_[at_]) ? word_length() : 1));
    for (char& c : found)
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
    return fail("column {}: expected {}, found '{}'", at_ + 1, expected, found.substr(0, 40));
  }
  tl::unexpected<Error> no_operand() {
    return wrong(metrics_ ? "a metric, a number or '('" : "a counter, a number or '('");
  }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  size_t word_length() const { return word_length(metrics_); }
  size_t word_length(bool with_hyphens) const {
    size_t length = 0;
    // A dot belongs to a name when a letter follows: NVIDIA's "dram__bytes.sum.per_second".
    const auto belongs = [&](size_t at) {
      if (text_[at] == '.') return at > at_ && at + 1 < text_.size() && is_letter(text_[at + 1]);
      if (text_[at] == '-' && with_hyphens)
        return at > at_ && at + 1 < text_.size() && (is_letter(text_[at + 1]) || is_digit(text_[at + 1]));
      return is_letter(text_[at]) || is_digit(text_[at]);
    };
    while (at_ + length < text_.size() && belongs(at_ + length)) ++length;
    return length;
  }
  bool accept(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    if (is_letter(token[0]) && word_length() != token.size()) return false;
    at_ += token.size();
    return true;
  }

  uint32_t push(FormulaStep step) {
    formula_.steps.push_back(step);
    return static_cast<uint32_t>(formula_.steps.size() - 1);
  }
  uint32_t last() const { return static_cast<uint32_t>(formula_.steps.size() - 1); }
  uint32_t push(FormulaOp op, std::initializer_list<uint32_t> arguments) {
    FormulaStep step;
    step.op = op;
    for (const uint32_t argument : arguments) step.arguments[step.argument_count++] = argument;
    return push(step);
  }

  // Every rule leaves its value as the last step.
  Status conditional() {
    if (++depth_ > kMaxDepth) return fail("column {}: nested more than {} deep", at_ + 1, kMaxDepth);
    TACHO_TRY(disjunction());
    const uint32_t value = last();
    if (accept("if")) {
      TACHO_TRY(disjunction());
      const uint32_t condition = last();
      if (!accept("else")) return wrong("'else'");
      TACHO_TRY(conditional());
      const uint32_t otherwise = last();
      push(FormulaOp::kSelect, {value, otherwise, condition});
    }
    --depth_;
    return {};
  }

  Status disjunction() {
    TACHO_TRY(conjunction());
    while (accept("or")) {
      const uint32_t left = last();
      TACHO_TRY(conjunction());
      push(FormulaOp::kOr, {left, last()});
    }
    return {};
  }

  Status conjunction() {
    TACHO_TRY(negation());
    while (accept("and")) {
      const uint32_t left = last();
      TACHO_TRY(negation());
      push(FormulaOp::kAnd, {left, last()});
    }
    return {};
  }

  Status negation() {
    int count = 0;
    while (accept("not")) ++count;
    TACHO_TRY(comparison());
    for (; count > 0; --count) push(FormulaOp::kNot, {last()});
    return {};
  }

  Status comparison() {
    TACHO_TRY(sum());
    if (const std::optional<FormulaOp> op = comparison_sign()) {
      const uint32_t left = last();
      TACHO_TRY(sum());
      push(*op, {left, last()});
    }
    return {};
  }

  std::optional<FormulaOp> comparison_sign() {
    static constexpr std::array<std::pair<std::string_view, FormulaOp>, 6> kOperators = {
        {{"==", FormulaOp::kEqual},
         {"!=", FormulaOp::kNotEqual},
         {"<=", FormulaOp::kLessEqual},
         {">=", FormulaOp::kGreaterEqual},
         {"<", FormulaOp::kLess},
         {">", FormulaOp::kGreater}}};
    for (const auto& [token, op] : kOperators)
      if (accept(token)) return op;
    return std::nullopt;
  }

  Status sum() {
    TACHO_TRY(product());
    for (;;) {
      const uint32_t left = last();
      const bool plus = accept("+");
      if (!plus && !accept("-")) return {};
      TACHO_TRY(product());
      push(plus ? FormulaOp::kAdd : FormulaOp::kSubtract, {left, last()});
    }
  }

  Status product() {
    TACHO_TRY(unary());
    for (;;) {
      const uint32_t left = last();
      FormulaOp op = FormulaOp::kMultiply;
      skip_space();
      if (text_.substr(at_, 2) == "**") return {};
      if (accept("//")) {
        op = FormulaOp::kFloorDivide;
      } else if (accept("/")) {
        op = FormulaOp::kDivide;
      } else if (accept("%")) {
        op = FormulaOp::kModulo;
      } else if (!accept("*")) {
        return {};
      }
      TACHO_TRY(unary());
      push(op, {left, last()});
    }
  }

  Status unary() {
    bool negative = false;
    for (;;) {
      if (accept("-")) {
        negative = !negative;
      } else if (!accept("+")) {
        break;
      }
    }
    TACHO_TRY(atom());
    if (accept("**")) {
      const uint32_t base = last();
      if (++depth_ > kMaxDepth) return fail("column {}: nested more than {} deep", at_ + 1, kMaxDepth);
      TACHO_TRY(unary());
      --depth_;
      push(FormulaOp::kPower, {base, last()});
    }
    if (negative) push(FormulaOp::kNegate, {last()});
    return {};
  }

  Status atom() {
    skip_space();
    if (at_ >= text_.size()) return no_operand();
    const char c = text_[at_];
    if (c == '(') {
      ++at_;
      TACHO_TRY(conditional());
      if (!accept(")")) return wrong("')'");
      return {};
    }
    if (is_digit(c) || c == '.') return number();
    if (c == '$') {
      ++at_;
      const size_t length = word_length(false);
      if (length == 0) return wrong("the name of a value after '$'");
      FormulaStep step;
      step.op = FormulaOp::kValue;
      step.text = text_.substr(at_, length);
      at_ += length;
      push(step);
      return {};
    }
    if (is_letter(c)) return word();
    return no_operand();
  }

  Status number() {
    double value = 0;
    const char* const from = text_.data() + at_;
    const auto [end, error] = std::from_chars(from, text_.data() + text_.size(), value);
    if (error != std::errc{} || end == from) return wrong("a number");
    at_ += static_cast<size_t>(end - from);
    if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.'))
      return wrong("an operator after the number");
    FormulaStep step;
    step.op = FormulaOp::kNumber;
    step.number = value;
    push(step);
    return {};
  }

  Status word() {
    const size_t length = word_length();
    const std::string_view name = text_.substr(at_, length);
    if (name == "if" || name == "else" || name == "and" || name == "or" || name == "not") return no_operand();
    const size_t begin = at_;
    at_ += length;
    if (name == "None") {
      push(FormulaOp::kNone, {});
      return {};
    }
    skip_space();
    if (at_ < text_.size() && text_[at_] == '(') return call(name, begin);
    if (metrics_) return metric(name, begin);
    FormulaStep step;
    step.op = FormulaOp::kCounter;
    step.text = name;
    if (at_ < text_.size() && text_[at_] == '[') {
      ++at_;
      TACHO_TRY(instance(step));
      if (!accept("]")) return wrong("']'");
    }
    push(step);
    return {};
  }

  Status metric(std::string_view name, size_t begin) {
    const size_t dot = name.find('.');
    FormulaStep step;
    step.op = FormulaOp::kMetric;
    step.text = name.substr(0, dot);
    if (dot != std::string_view::npos) step.column = name.substr(dot + 1);
    if (!is_slug(step.text) || (dot != std::string_view::npos && !is_slug(step.column))) {
      at_ = begin;
      return wrong("a metric's slug (lower-case letters, digits and '-')");
    }
    push(step);
    return {};
  }

  std::optional<int32_t> index() {
    skip_space();
    int32_t value = 0;
    const char* const from = text_.data() + at_;
    const auto [end, error] = std::from_chars(from, text_.data() + text_.size(), value);
    if (error != std::errc{} || end == from || value < 0 || value > 4095) return std::nullopt;
    at_ += static_cast<size_t>(end - from);
    return value;
  }

  Status instance(FormulaStep& step) {
    if (accept("*")) {
      step.op = FormulaOp::kSumOf;
      step.first = 0;
      step.last = Formula::kAll;
      return {};
    }
    if (accept("$channel")) {
      step.op = FormulaOp::kChannel;
      return {};
    }
    const auto first = index();
    if (!first) return wrong("an instance number up to 4095, '*' or '$channel'");
    step.first = *first;
    if (!accept("..")) return {};
    const auto end = index();
    if (!end || *end < *first) return wrong("an instance number that is not below the first");
    step.op = FormulaOp::kSumOf;
    step.last = *end;
    return {};
  }

  Status call(std::string_view name, size_t begin) {
    const Function* function = nullptr;
    for (const Function& known : kFunctions)
      if (known.name == name && (!metrics_ || known.of_metrics > 0)) function = &known;
    if (function == nullptr) {
      at_ = begin;
      std::string all;
      for (const Function& known : kFunctions)
        if (!metrics_ || known.of_metrics > 0) all += (all.empty() ? "" : ", ") + std::string(known.name);
      return wrong(fmt::format("a function ({})", all));
    }
    const int least = metrics_ ? function->of_metrics : function->least;
    ++at_;  // '('
    int count = 0;
    uint32_t folded = 0;
    std::array<uint32_t, 2> arguments{};
    do {
      TACHO_TRY(conditional());
      if (count >= function->most) return fail("column {}: {} takes {} argument(s)", at_ + 1, name, function->most);
      if (count < 2) arguments[static_cast<size_t>(count)] = last();
      if (count == 1) folded = push(function->op, {arguments[0], arguments[1]});
      if (count > 1) folded = push(function->op, {folded, last()});
      ++count;
    } while (accept(","));
    if (count < least)
      return fail("column {}: {} takes {} arguments{}", at_ + 1, name, least, function->most > least ? " or more" : "");
    if (!accept(")")) return wrong("')' or ','");
    if (count == 1) push(function->op, {arguments[0]});
    return {};
  }

  std::string_view text_;
  bool metrics_;
  size_t at_ = 0;
  int depth_ = 0;
  Formula formula_;
};

}  // namespace

Result<Formula> parse_formula(std::string_view text, FormulaNames names) {
  return Parser(text, names).formula();
}

Result<FormulaCondition> parse_condition(std::string_view text, FormulaNames names) {
  return Parser(text, names).condition();
}

Result<FormulaRange> parse_range(std::string_view text, FormulaNames names) {
  return Parser(text, names).range();
}

Status check_syntax(std::string_view text) {
  TACHO_TRY(parse_formula(text));
  return {};
}

std::string_view function_name(FormulaOp op) {
  for (const Function& function : kFunctions)
    if (function.op == op) return function.name;
  return {};
}

bool is_reduction(FormulaOp op) {
  return op >= FormulaOp::kAvg && op <= FormulaOp::kQuantile;
}

}  // namespace tacho::metric
