// The diagnosis rules: the conditions and refutations of a finding, the error of its inputs, and how much time its
// model says could be saved. Facts only, read from catalog/<vendor>/rules.yaml; metric/analysis/diagnose.h applies them
// to a run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metric/catalog/catalog.h"
#include "metric/catalog/rule_expression.h"

namespace tacho::metric {

struct Rule {
  std::string_view slug;              ///< "lds-bank-conflicts"
  std::string_view vendor;            ///< the catalog that has it: it applies only to that vendor's devices; "" = all
  std::string_view title;             ///< the finding in a few words
  std::vector<RuleCondition> when;    ///< all must hold
  std::vector<RuleCondition> any;     ///< and one of these, if there are any
  std::vector<RuleCondition> unless;  ///< each of these refutes it
  /// The share of the kernel's time (of the run's, for rules of traces), or of the count `of`, that could be saved, in
  /// percent: the model's range. Empty: the cost is unknown ("saves: none", rules of traces only).
  RuleExpression saves_low, saves_high;
  RuleExpression of;                     ///< empty: time; else the count that shrinks
  std::string_view model;                ///< in one sentence, where the range comes from
  double error = 0;                      ///< percent: how far a quantity of a single dispatch may be off
  std::string_view only_possible;        ///< why the inputs cannot prove it, and what would; "" if they can
  std::vector<RuleExpression> evidence;  ///< shown besides the quantities of the conditions
  std::string_view meaning;              ///< one or two sentences
  std::vector<std::string_view> advice;  ///< what to try, best first

  // For the rules of traces (catalog/trace/rules.yaml), which analysis/findings/findings.h applies:
  /// The finding in one sentence with its numbers; each "{}" is replaced by the next of `in_sentence`.
  std::string_view sentence;
  std::vector<RuleExpression> in_sentence;
  /// Bytes of memory that could be freed; empty: the finding is not about memory.
  RuleExpression frees_low, frees_high;
  std::string_view refuted_by;  ///< in words: evidence against it that the trace does not show
  std::string_view spans;       ///< which stretches of time are its evidence; "" = none
};

/// The catalog folder with the rules of traces, which name quantities of traces instead of metrics.
inline constexpr std::string_view kTraceRules = "trace";

/// A check for implausible inputs: when the condition holds, findings that use a suspect are withheld.
struct RuleCheck {
  std::string_view slug, vendor;
  RuleCondition when;
  std::string_view says;  ///< one sentence; "{}" in it is the quantity's value
  /// Counters ("GRBM_GUI_ACTIVE"), values of the machine ("$max_mclk") or metrics that may be wrong then.
  std::vector<std::string_view> suspects;
};

/// The first screen of a vendor's runs.
struct RuleScreen {
  std::string_view vendor;
  std::vector<RuleExpression> bars;  ///< percent of a peak
  /// Ranks the kernels if their times are not those of the device; empty: by time.
  RuleExpression weight;
  std::string_view weight_words;  ///< "instructions issued"
};

struct RuleBook {
  std::vector<Rule> rules;
  std::vector<RuleCheck> checks;
  std::vector<RuleScreen> screens;  ///< one a vendor
  std::shared_ptr<StringStore> strings;

  /// The book's screen; an empty one if there is none.
  const RuleScreen& screen() const;
};

/// The rules of one YAML document; every metric and column in it must exist in `catalog`, if that is given.
Result<RuleBook> parse_rules(std::string_view yaml, std::string_view file, const Catalog* catalog);

/// The rules of catalog/trace: they name quantities of traces (analysis/findings/findings.h), which are not checked
/// here, and
/// have the keys sentence, frees, refuted-by and spans besides.
Result<RuleBook> parse_trace_rules(std::string_view yaml, std::string_view file);

/// Whether all metrics that the rule needs (conditions and savings) exist on the catalog's architecture.
bool can_evaluate(const Rule& rule, const Catalog& catalog);

/// A quantity with its 95 % interval.
struct RuleInterval {
  RuleValue::State state = RuleValue::State::kAbsent;
  double value = 0, low = 0, high = 0;
};
using IntervalLookup = std::function<RuleInterval(const RuleExpression&)>;

enum class Truth : uint8_t { kNo, kUnknown, kMaybe, kYes };
/// Yes if the whole interval fulfils the condition, maybe if a part of it does. Unknown if the run lacks an input. An
/// undefined or uncountable quantity fulfils nothing.
Truth holds(const RuleCondition& condition, const RuleInterval& interval);

enum class Verdict : uint8_t {
  kSilent,     ///< a condition does not hold
  kRefuted,    ///< all hold, and so does what refutes it
  kNotJudged,  ///< nothing speaks against it, and an input is missing
  kPossible,   ///< an interval straddles a threshold, or what would refute it was not collected
  kFound,      ///< every interval is past its threshold as a whole
};

/// A rule on one kernel. `low` and `high` are the percent that could be saved, 0 to 100; of a possible finding `low` is
/// 0.
struct Judgement {
  Verdict verdict = Verdict::kSilent;
  double low = 0, high = 0;
};
Judgement judge(const Rule& rule, const IntervalLookup& lookup);

/// Calls f(const RuleExpression&) for every quantity of the rule that decides: conditions, refutations, savings.
template <typename F>
void for_each_deciding(const Rule& rule, F&& f) {
  for (const std::vector<RuleCondition>* list : {&rule.when, &rule.any, &rule.unless})
    for (const RuleCondition& condition : *list) f(condition.quantity);
  f(rule.saves_low);
  f(rule.saves_high);
}

/// Calls f(const FormulaStep&) for every metric and value that rules, checks and bars of the book name.
template <typename F>
void for_each_leaf(const RuleBook& book, F&& f) {
  const auto leaves = [&](const RuleExpression& expression) {
    for (const FormulaStep& step : expression.steps)
      if (step.op == FormulaOp::kMetric || step.op == FormulaOp::kValue) f(step);
  };
  for (const Rule& rule : book.rules) {
    for_each_deciding(rule, leaves);
    for (const RuleExpression& each : rule.evidence) leaves(each);
    leaves(rule.of);
    leaves(rule.frees_low);
    leaves(rule.frees_high);
  }
  for (const RuleCheck& check : book.checks) leaves(check.when.quantity);
  for (const RuleScreen& screen : book.screens) {
    for (const RuleExpression& each : screen.bars) leaves(each);
    leaves(screen.weight);
  }
}

/// The column a quantity without one means: the first Value column of the metric's table.
std::string_view first_value_column(const MetricTable& table);

}  // namespace tacho::metric
