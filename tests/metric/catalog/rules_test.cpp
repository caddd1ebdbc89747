// The diagnosis rules: enough of them, all complete; their arithmetic; verdicts on intervals; errors in files.
#include "metric/catalog/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "metric/catalog/add_rules.h"
#include "metric/catalog/builtin/builtin.h"
#include "metric/catalog/string_store.h"

namespace tacho::metric {
namespace {

using State = RuleValue::State;

TEST(Rules, ThereAreEnoughAndTheyAreComplete) {
  size_t all = 0;
  for (const std::string_view newest : {"gfx950", "sm_90", "virtual"}) {
    const Catalog catalog = *load_catalog(newest);
    const auto book = load_rules(catalog);
    ASSERT_TRUE(book.has_value()) << book.error().message;
    all += book->rules.size();
    EXPECT_GE(book->rules.size(), 14U) << newest;
    EXPECT_FALSE(book->screen().bars.empty()) << newest;
    std::set<std::string_view> slugs;
    for (const Rule& rule : book->rules) {
      EXPECT_TRUE(slugs.insert(rule.slug).second) << rule.slug;
      EXPECT_FALSE(rule.title.empty()) << rule.slug;
      EXPECT_FALSE(rule.model.empty()) << rule.slug;
      EXPECT_FALSE(rule.model.ends_with('.')) << rule.slug;
      EXPECT_TRUE(rule.meaning.ends_with('.')) << rule.slug;
      EXPECT_FALSE(rule.advice.empty()) << rule.slug;
      for (const std::string_view advice : rule.advice) EXPECT_TRUE(advice.ends_with('.')) << rule.slug;
    }
  }
  EXPECT_GE(all, 60U);
}

// Tables and findings call a metric by one name, which a quantity may lengthen: "LDS Utilization" for "Utilization".
TEST(Rules, AQuantityThatIsAMetricHasItsName) {
  size_t named = 0;
  for (const std::string_view newest : {"gfx950", "sm_90", "virtual", "cpu"}) {
    const Catalog catalog = *load_catalog(newest);
    const auto book = load_rules(catalog);
    ASSERT_TRUE(book.has_value()) << book.error().message;
    const auto check = [&](const RuleExpression& quantity) {
      const FormulaStep* const step = quantity.metric();
      if (step == nullptr || quantity.name.empty()) return;
      const Metric* const metric = catalog.metric(step->text);
      ASSERT_NE(metric, nullptr) << step->text;
      EXPECT_NE(quantity.name.find(metric->name), std::string_view::npos) << quantity.name << ", " << metric->name;
      ++named;
    };
    for (const RuleExpression& bar : book->screen().bars) check(bar);
    for (const Rule& rule : book->rules) {
      for (const auto* list : {&rule.when, &rule.any, &rule.unless})
        for (const RuleCondition& condition : *list) check(condition.quantity);
      for (const RuleExpression& evidence : rule.evidence) check(evidence);
    }
  }
  EXPECT_GE(named, 4U);
}

TEST(Rules, MostApplyOnEveryArchitecture) {
  for (const std::string_view architecture : architectures()) {
    const auto book = load_rules(*load_catalog(architecture));
    ASSERT_TRUE(book.has_value());
    EXPECT_GE(book->rules.size(), 25U) << architecture;
  }
}

// Quantities

Result<RuleExpression> parsed(std::string_view text) {
  static StringStore strings;
  static std::map<std::string, RuleExpression, std::less<>> quantities;
  if (quantities.empty()) quantities.emplace("twice", *parse_rule_expression("2 * lds-bytes", {}, strings));
  return parse_rule_expression(text, quantities, strings);
}

RuleValue value_of(std::string_view text, std::vector<const FormulaStep*>* used = nullptr) {
  const auto lookup = [](const FormulaStep& leaf) -> RuleValue {
    if (leaf.op == FormulaOp::kValue)
      return leaf.text == "roof" ? RuleValue{State::kNumber, 500} : RuleValue{State::kMissing};
    if (leaf.text == "missing") return {State::kMissing};
    if (leaf.text == "undefined") return {State::kUndefined};
    if (leaf.text == "absent") return {State::kAbsent};
    return {State::kNumber, leaf.column == "peak" ? 1000.0 : 8.0};
  };
  const auto expression = parsed(text);
  EXPECT_TRUE(expression.has_value()) << text;
  return expression ? evaluate(*expression, lookup, used) : RuleValue{};
}

TEST(RuleExpressions, Arithmetic) {
  EXPECT_EQ(value_of("1 + 2 * 3").number, 7);
  EXPECT_EQ(value_of("(1 + 2) * 3 - 4 / 8").number, 8.5);
  EXPECT_EQ(value_of("100 * (lds-bytes + lds-bytes) / lds-bytes.peak").number, 1.6) << "- in a name is no minus";
  EXPECT_EQ(value_of("MAX(0, lds-bytes - 50) + MIN(3, lds-bytes, 2)").number, 2);
  EXPECT_EQ(value_of("-3 * twice").number, -48);
  EXPECT_EQ(value_of("2 + twice - lds-bytes / twice + twice").number, 33.5) << "a quantity is in brackets by itself";
  EXPECT_EQ(value_of("COALESCE($roof, lds-bytes.peak)").number, 500);
  EXPECT_EQ(value_of("COALESCE($none, lds-bytes.peak)").number, 1000);
}

TEST(RuleExpressions, HaveTheWholeLanguageOfFormulas) {
  EXPECT_EQ(value_of("7 % 4 + 7 // 2 + 2 ** 3 + MOD(-1, 3)").number, 3 + 3 + 8 + 2);
  EXPECT_EQ(value_of("ROUND(lds-bytes / 3, 1) + TO_INT(2.9)").number, 2.7 + 2);
  EXPECT_EQ(value_of("1 if lds-bytes > 4 and not lds-bytes >= 9 else 2").number, 1);
  EXPECT_EQ(value_of("(lds-bytes == 8) + (lds-bytes != 8) + (lds-bytes <= 7) + (1 < 2 or 0)").number, 2);
  EXPECT_EQ(value_of("None").state, State::kUndefined);
  EXPECT_EQ(value_of("COALESCE(None, absent, 3)").number, 3);
}

TEST(RuleExpressions, WhatCannotBeComputed) {
  EXPECT_EQ(value_of("1 / (lds-bytes - 8)").state, State::kUndefined);
  EXPECT_EQ(value_of("undefined + 1").state, State::kUndefined);
  EXPECT_EQ(value_of("MIN(undefined, 1)").state, State::kUndefined);
  EXPECT_EQ(value_of("missing + undefined").state, State::kMissing) << "what can be collected comes first";
  EXPECT_EQ(value_of("missing + absent").state, State::kAbsent) << "nobody can collect that";
  EXPECT_EQ(value_of("1 if missing else 2").state, State::kMissing);
  EXPECT_EQ(value_of("COALESCE(absent, missing)").state, State::kMissing);
  EXPECT_EQ(value_of("COALESCE(absent, undefined)").state, State::kAbsent);
  EXPECT_EQ(value_of("COALESCE(missing, lds-bytes)").number, 8);
  EXPECT_EQ(value_of("COALESCE(undefined, lds-bytes)").number, 8);
}

TEST(RuleExpressions, RestOnTheSideOfACoalesceThatIsTaken) {
  std::vector<const FormulaStep*> used;
  value_of("COALESCE($roof, lds-bytes.peak)", &used);
  ASSERT_EQ(used.size(), 1U);
  used.clear();
  value_of("2 * COALESCE($none, lds-bytes.peak) + lds-bytes", &used);
  ASSERT_EQ(used.size(), 2U);
  EXPECT_EQ(used[0]->column, "peak");
  EXPECT_EQ(used[1]->column, "");
}

TEST(RuleExpressions, Errors) {
  const auto error = [](std::string_view text) {
    const auto result = parsed(text);
    return result ? std::string("none") : result.error().message;
  };
  EXPECT_EQ(error("ipc ipc"), "column 5: expected an operator or the end of the formula, found 'ipc'");
  EXPECT_EQ(error("2 +"), "column 4: expected a metric, a number or '(', but the formula ends");
  EXPECT_EQ(error("(2 + ipc"), "column 9: expected ')', but the formula ends");
  EXPECT_EQ(error("COALESCE(ipc)"), "column 13: COALESCE takes 2 arguments or more");
  EXPECT_EQ(error("MAX(ipc)"), "column 8: MAX takes 2 arguments or more") << "a metric is one number";
  EXPECT_EQ(error("AVG(ipc)"), "column 1: expected a function (MIN, MAX, TO_INT, ROUND, MOD, COALESCE), found 'AVG'");
  EXPECT_EQ(error("min(ipc, 2)"),
            "column 1: expected a function (MIN, MAX, TO_INT, ROUND, MOD, COALESCE), found 'min'");
  EXPECT_EQ(error("Ipc"), "column 1: expected a metric's slug (lower-case letters, digits and '-'), found 'Ipc'");
  EXPECT_EQ(error("$"), "column 2: expected the name of a value after '$', but the formula ends");
  EXPECT_EQ(error("&"), "column 1: expected a metric, a number or '(', found '&'");
  EXPECT_EQ(error("3x"), "column 2: expected an operator after the number, found 'x'");
  EXPECT_EQ(error("ipc[3]"), "column 4: expected an operator or the end of the formula, found '['");
  EXPECT_EQ(error(std::string(500, '(') + "1"), "column 201: nested more than 200 deep");
}

TEST(RuleExpressions, QuantitiesOfQuantitiesDoNotGrowWithoutBound) {
  StringStore strings;
  RuleQuantities quantities;
  quantities.emplace("q0", *parse_rule_expression("ipc + ipc", quantities, strings));
  std::string error;
  for (int i = 1; i < 60 && error.empty(); ++i) {
    const auto next = parse_rule_expression(fmt::format("q{0} + q{0}", i - 1), quantities, strings);
    if (next)
      quantities.emplace(fmt::format("q{}", i), *next);
    else
      error = next.error().message;
  }
  EXPECT_EQ(error, "with all the quantities that it names, it is longer than 10000 steps");
}

// Verdicts

Rule rule_of(std::string_view yaml) {
  static std::vector<RuleBook> books;  // own the texts
  auto book = parse_rules(yaml, "r.yaml", nullptr);
  EXPECT_TRUE(book.has_value()) << (book ? "" : book.error().message);
  books.push_back(std::move(*book));
  return books.back().rules.front();
}

std::string rule_with(std::string_view more) {
  return fmt::format(
      "rules:\n  - rule: mine\n    title: T\n    saves: 10 .. cost\n    model: m\n    meaning: M.\n    try: A.\n{}",
      more);
}

struct Named {
  double low, high;
  State state = State::kNumber;
};
Judgement judged(const Rule& rule, const std::map<std::string_view, Named>& values) {
  return judge(rule, [&](const RuleExpression& quantity) -> RuleInterval {
    if (quantity.text == "10") return {State::kNumber, 10, 10, 10};
    const auto found = values.find(quantity.text);
    if (found == values.end()) return {State::kMissing};
    const Named& named = found->second;
    return {named.state, (named.low + named.high) / 2, named.low, named.high};
  });
}

TEST(Verdicts, TheWholeIntervalTheHalfOfItAndNone) {
  const Rule rule = rule_of(rule_with("    when: busy > 60\n"));
  const Named cost{40, 40};
  EXPECT_EQ(judged(rule, {{"busy", {61, 70}}, {"cost", cost}}).verdict, Verdict::kFound);
  EXPECT_EQ(judged(rule, {{"busy", {59, 70}}, {"cost", cost}}).verdict, Verdict::kPossible);
  EXPECT_EQ(judged(rule, {{"busy", {50, 61}}, {"cost", cost}}).verdict, Verdict::kPossible);
  EXPECT_EQ(judged(rule, {{"busy", {50, 60}}, {"cost", cost}}).verdict, Verdict::kSilent);
  const Judgement found = judged(rule, {{"busy", {61, 70}}, {"cost", cost}});
  EXPECT_EQ(found.low, 10);
  EXPECT_EQ(found.high, 40);
  EXPECT_EQ(judged(rule, {{"busy", {59, 70}}, {"cost", cost}}).low, 0) << "what is only possible promises nothing";
  EXPECT_EQ(judged(rule, {{"busy", {61, 70}}, {"cost", {300, 300}}}).high, 100);
  EXPECT_EQ(judged(rule, {{"busy", {61, 70}}, {"cost", {-5, -5}}}).verdict, Verdict::kSilent);
}

TEST(Verdicts, WhatIsMissingIsNotJudgedAndWhatIsUndefinedDoesNotHold) {
  const Rule rule = rule_of(rule_with("    when: [busy > 60, other < 5]\n"));
  const Named cost{40, 40};
  EXPECT_EQ(judged(rule, {{"other", {1, 1}}, {"cost", cost}}).verdict, Verdict::kNotJudged);
  EXPECT_EQ(judged(rule, {{"other", {9, 9}}, {"cost", cost}}).verdict, Verdict::kSilent)
      << "one condition that fails is enough";
  EXPECT_EQ(judged(rule, {{"busy", {61, 70}}, {"other", {1, 1}}}).verdict, Verdict::kNotJudged) << "cost is missing";
  EXPECT_EQ(judged(rule, {{"busy", {0, 0, State::kUndefined}}, {"other", {1, 1}}, {"cost", cost}}).verdict,
            Verdict::kSilent);
}

TEST(Verdicts, OneOfAnyIsEnough) {
  const Rule rule = rule_of(rule_with("    when: busy > 60\n    any: [left > 5, right > 5]\n"));
  const Named yes{61, 70}, cost{40, 40};
  EXPECT_EQ(judged(rule, {{"busy", yes}, {"left", {6, 7}}, {"cost", cost}}).verdict, Verdict::kFound);
  EXPECT_EQ(judged(rule, {{"busy", yes}, {"left", {1, 2}}, {"cost", cost}}).verdict, Verdict::kNotJudged);
  EXPECT_EQ(judged(rule, {{"busy", yes}, {"left", {1, 2}}, {"right", {1, 2}}, {"cost", cost}}).verdict,
            Verdict::kSilent);
  EXPECT_EQ(judged(rule, {{"busy", yes}, {"left", {4, 6}}, {"right", {1, 2}}, {"cost", cost}}).verdict,
            Verdict::kPossible);
}

TEST(Verdicts, WhatRefutesARuleSilencesItAndWhatMightMakesItPossible) {
  const Rule rule = rule_of(rule_with("    when: busy > 60\n    unless: memory > 60\n"));
  const Named yes{61, 70}, cost{40, 40};
  EXPECT_EQ(judged(rule, {{"busy", yes}, {"memory", {10, 20}}, {"cost", cost}}).verdict, Verdict::kFound);
  EXPECT_EQ(judged(rule, {{"busy", yes}, {"memory", {61, 70}}, {"cost", cost}}).verdict, Verdict::kRefuted);
  EXPECT_EQ(judged(rule, {{"busy", yes}, {"memory", {50, 70}}, {"cost", cost}}).verdict, Verdict::kPossible);
  EXPECT_EQ(judged(rule, {{"busy", yes}, {"cost", cost}}).verdict, Verdict::kPossible);
  EXPECT_EQ(judged(rule, {{"busy", yes}, {"memory", {0, 0, State::kAbsent}}, {"cost", cost}}).verdict, Verdict::kFound);
  const Rule unsure = rule_of(rule_with("    when: busy > 60\n    only-possible: Nobody knows\n"));
  EXPECT_EQ(judged(unsure, {{"busy", yes}, {"cost", cost}}).verdict, Verdict::kPossible);
}

// Files

std::string error_of(std::string_view yaml) {
  const Catalog catalog = *load_catalog("gfx950");
  const auto book = parse_rules(yaml, "r.yaml", &catalog);
  return book.has_value() ? "no error" : book.error().message;
}

std::string file_with(std::string_view when, std::string_view saves, std::string_view more = "") {
  return fmt::format("rules:\n  - rule: mine\n    title: T\n    when: {}\n    saves: "
                     "{}\n    model: m\n    meaning: M.\n    try: A.\n{}",
                     when, saves, more);
}

TEST(Rules, ErrorsNameFileLineAndColumn) {
  EXPECT_EQ(error_of(file_with("ipc > 1", "0 .. ipc")), "no error");
  EXPECT_EQ(error_of(file_with("ipc > x", "0 .. ipc")), "r.yaml:4:11: column 7: expected a number, found 'x'");
  EXPECT_EQ(error_of(file_with("ipc > 1 2", "0 .. ipc")),
            "r.yaml:4:11: column 9: expected the end of the condition behind its number, found '2'");
  EXPECT_EQ(error_of(file_with("ipc = 1", "0 .. ipc")),
            "r.yaml:4:11: column 5: expected '<', '<=', '>' or '>=' and a number, found '='");
  EXPECT_EQ(error_of(file_with("ipc", "0 .. ipc")),
            "r.yaml:4:11: column 4: expected '<', '<=', '>' or '>=' and a number, but the formula ends");
  EXPECT_EQ(error_of(file_with("icp > 1", "0 .. ipc")), "r.yaml:4:11: there is no metric \"icp\" on gfx950");
  EXPECT_EQ(error_of(file_with("ipc.peak > 1", "0 .. ipc")), "r.yaml:4:11: the metric \"ipc\" has no column \"peak\"");
  EXPECT_EQ(error_of(file_with("ipc ipc > 1", "0 .. ipc")),
            "r.yaml:4:11: column 5: expected '<', '<=', '>' or '>=' and a number, found 'ipc'");
  EXPECT_EQ(error_of(file_with("ipc > 1", "ipc")),
            "r.yaml:5:12: column 4: expected '..' between the low and the high end, but the formula ends (saves is "
            "\"low .. high\", in percent of the kernel's time)");
  EXPECT_EQ(error_of(file_with("ipc > 1", "0 .. ipc", "    severity: ipc 1..2\n")),
            "r.yaml:9:5: a rule says what could be saved, \"saves: low .. high\" in "
            "percent of the kernel's time, instead of a severity");
  EXPECT_EQ(error_of(file_with("ipc > 1", "0 .. ipc", "    error: 200\n")),
            "r.yaml:9:12: error is a number of percent from 0 to 100, not \"200\"");
  EXPECT_EQ(error_of("rules: [{rule: a}]"), "r.yaml:1:9: a rule needs a \"title\"");
  EXPECT_EQ(error_of("rules: 5"), "r.yaml:1:8: rules must be a list");
  EXPECT_EQ(error_of("rules: [{rule: a, wehn: b}]").substr(0, 40), "r.yaml:1:19: a rule has no key \"wehn\"; k");
  EXPECT_EQ(error_of("quantities: [{quantity: ipc, name: I, value: 1}]"),
            "r.yaml:1:14: there is a quantity or metric \"ipc\" already");
  EXPECT_EQ(error_of("checks: [{check: a, when: ipc > 1, says: b}]"), "r.yaml:1:10: a check needs a \"suspects\"");
  EXPECT_EQ(error_of("weight: {value: ipc}"), "r.yaml:1:9: weight needs a \"words\"");
  EXPECT_NE(error_of(std::string(50000, '[')), "no error");
}

TEST(Rules, QuantitiesStandForTheirArithmeticWhereverTheyAreWritten) {
  const Catalog catalog = *load_catalog("gfx950");
  const auto book = parse_rules(file_with("share > 5", "0 .. share") +
                                    "quantities:\n  - {quantity: share, name: Share, unit: '%', value: 2 * ipc}\n",
                                "r.yaml", &catalog);
  ASSERT_TRUE(book.has_value()) << book.error().message;
  const RuleExpression& quantity = book->rules.front().when.front().quantity;
  EXPECT_EQ(quantity.name, "Share");
  EXPECT_EQ(quantity.unit, "%");
  EXPECT_EQ(evaluate(quantity, [](const FormulaStep&) { return RuleValue{State::kNumber, 3}; }).number, 6);
}

TEST(Rules, ARuleWithAKnownNameReplacesIt) {
  const Catalog catalog = *load_catalog("gfx950");
  auto book = *load_rules(catalog);
  const size_t before = book.rules.size();
  auto more = parse_rules(
      "rules:\n  - {rule: divergence, title: New, when: ipc > 1, saves: 0 .. ipc, model: m, meaning: M., try: [A.]}",
      "r.yaml", &catalog);
  ASSERT_TRUE(more.has_value()) << more.error().message;
  add_rules(book, *more);
  more = fail("gone");  // the book must not depend on it
  EXPECT_EQ(book.rules.size(), before);
  const auto changed =
      std::find_if(book.rules.begin(), book.rules.end(), [](const Rule& rule) { return rule.slug == "divergence"; });
  ASSERT_NE(changed, book.rules.end());
  EXPECT_EQ(changed->title, "New");
  EXPECT_EQ(changed->when.front().quantity.text, "ipc");
}

TEST(Rules, SentencesOfTracesHaveTwoForms) {
  const auto says = [](std::string_view sentence) {
    const auto book = parse_trace_rules(fmt::format("rules: [{{rule: a, sentence: '{}'}}]", sentence), "r.yaml");
    return book ? std::string("no error") : book.error().message;
  };
  constexpr std::string_view kBracket = "a bracket in the sentence has two forms, as in [gaps|gap]";
  for (const std::string_view bad : {"[gaps", "gaps]", "[gaps]", "[gaps|gap", "[a|b|c]", "[a[b|c]]", "[a|b] [c"})
    EXPECT_NE(says(bad).find(kBracket), std::string::npos) << bad << ": " << says(bad);
  for (const std::string_view good : {"[gaps|gap]", "a | b", "[|s] [a|]", "none"})
    EXPECT_EQ(says(good), "r.yaml:1:9: a rule needs a \"title\"") << good;
}

}  // namespace
}  // namespace tacho::metric
