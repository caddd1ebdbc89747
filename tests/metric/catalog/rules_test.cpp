// The diagnosis rules: enough of them, all usable, each firing on values that fulfil it and on no others.
#include "metric/catalog/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "metric/catalog/builtin/builtin.h"

namespace tacho::metric {
namespace {

using Values = std::map<std::string, double, std::less<>>;

std::string key_of(std::string_view slug, std::string_view column) {
  return fmt::format("{}.{}", slug, column);
}

MetricLookup lookup_in(const Values& values) {
  return [&values](std::string_view slug, std::string_view column) -> std::optional<double> {
    const auto found = values.find(key_of(slug, column));
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

/// Gives the term the value, whatever its parts are: a divisor that is free becomes 1000.
void set_term(Values& values, const RuleTerm& term, double value) {
  if (!term.over_slug.empty()) {
    const double over = values.try_emplace(key_of(term.over_slug, term.over_column), 1000).first->second;
    values[key_of(term.slug, term.column)] = value * over;
  } else {
    values[key_of(term.slug, term.column)] = value;
  }
}

double beyond(const RuleCondition& condition, bool fulfilled) {
  const bool larger = condition.relation == Relation::kAbove || condition.relation == Relation::kAtLeast;
  const double step = std::max(1e-3, std::fabs(condition.threshold) * 0.02);
  return condition.threshold + (larger == fulfilled ? step : -step);
}

/// Values on which the rule must fire.
Values firing(const Rule& rule) {
  Values values;
  // Divisors first, so that a metric that is also compared by itself keeps its own value.
  for (const std::vector<RuleCondition>* list : {&rule.when, &rule.any})
    for (const RuleCondition& condition : *list)
      if (condition.term.over_slug.empty()) set_term(values, condition.term, beyond(condition, true));
  for (const std::vector<RuleCondition>* list : {&rule.when, &rule.any})
    for (const RuleCondition& condition : *list)
      if (!condition.term.over_slug.empty()) set_term(values, condition.term, beyond(condition, true));
  for (const RuleRamp& ramp : rule.severity)
    if (!term_value(ramp.term, lookup_in(values)).has_value())
      set_term(values, ramp.term, (ramp.from + ramp.to) / 2);
  return values;
}

TEST(Rules, there_are_enough_and_they_are_complete) {
  const Catalog catalog = *load_catalog("gfx950");
  const auto book = load_rules(catalog);
  ASSERT_TRUE(book.has_value()) << book.error().message;
  EXPECT_GE(book->rules.size(), 25u);
  std::set<std::string_view> slugs;
  for (const Rule& rule : book->rules) {
    EXPECT_TRUE(slugs.insert(rule.slug).second) << rule.slug;
    EXPECT_FALSE(rule.title.empty()) << rule.slug;
    EXPECT_TRUE(rule.meaning.ends_with('.')) << rule.slug;
    EXPECT_FALSE(rule.advice.empty()) << rule.slug;
    for (const std::string_view advice : rule.advice) EXPECT_TRUE(advice.ends_with('.')) << rule.slug;
    for (const RuleTerm& term : rule.evidence) EXPECT_NE(catalog.metric(term.slug), nullptr) << term.slug;
  }
}

TEST(Rules, most_apply_on_every_architecture) {
  for (const std::string_view architecture : architectures()) {
    const auto book = load_rules(*load_catalog(architecture));
    ASSERT_TRUE(book.has_value());
    EXPECT_GE(book->rules.size(), 25u) << architecture;
  }
}

TEST(Rules, each_fires_when_its_conditions_hold_and_only_then) {
  const auto book = load_rules(*load_catalog("gfx950"));
  ASSERT_TRUE(book.has_value());
  for (const Rule& rule : book->rules) {
    const Values good = firing(rule);
    const auto severity = rule_severity(rule, lookup_in(good));
    ASSERT_TRUE(severity.has_value()) << rule.slug;
    EXPECT_GT(*severity, 0.0) << rule.slug << ": a finding that fires has some weight";
    EXPECT_LE(*severity, rule.weight) << rule.slug;
    for (const RuleCondition& condition : rule.when) {
      Values bad = good;
      set_term(bad, condition.term, beyond(condition, false));
      EXPECT_FALSE(rule_severity(rule, lookup_in(bad)).has_value())
          << rule.slug << " " << to_string(condition.term);
      bad.erase(key_of(condition.term.slug, condition.term.column));
      EXPECT_FALSE(rule_severity(rule, lookup_in(bad)).has_value())
          << rule.slug << ": evidence is not computable";
      bad[key_of(condition.term.slug, condition.term.column)] = std::nan("");
      EXPECT_FALSE(rule_severity(rule, lookup_in(bad)).has_value())
          << rule.slug << ": evidence is not a number";
    }
    if (!rule.any.empty()) {
      Values bad = good;
      for (const RuleCondition& condition : rule.any) set_term(bad, condition.term, beyond(condition, false));
      EXPECT_FALSE(rule_severity(rule, lookup_in(bad)).has_value()) << rule.slug;
    }
    EXPECT_FALSE(rule_severity(rule, lookup_in({})).has_value()) << rule.slug;
  }
}

TEST(Rules, severity_grows_with_the_evidence) {
  const auto book = load_rules(*load_catalog("gfx950"));
  size_t compared = 0;
  for (const Rule& rule : book->rules) {
    for (const RuleRamp& ramp : rule.severity) {
      Values values = firing(rule);
      set_term(values, ramp.term, ramp.to);
      const auto worst = rule_severity(rule, lookup_in(values));
      if (worst.has_value()) {
        EXPECT_DOUBLE_EQ(*worst, rule.weight) << rule.slug;
        ++compared;
      }
    }
  }
  // A ramp may begin where the rule does not fire yet, yet it must end where it does.
  EXPECT_GE(compared, book->rules.size());
}

std::string error_of(std::string_view yaml) {
  const Catalog catalog = *load_catalog("gfx950");
  const auto book = parse_rules(yaml, "r.yaml", &catalog);
  return book.has_value() ? "no error" : book.error().message;
}

std::string rule_with(std::string_view when, std::string_view severity) {
  return fmt::format(
      "rules:\n  - rule: mine\n    title: T\n    when: {}\n    severity: {}\n    meaning: M.\n    try: A.\n",
      when, severity);
}

TEST(Rules, errors_name_file_line_and_column) {
  EXPECT_EQ(error_of(rule_with("ipc > 1", "ipc 1..2")), "no error");
  EXPECT_EQ(error_of(rule_with("ipc > x", "ipc 1..2")), "r.yaml:4:11: \"x\" is not a number");
  EXPECT_EQ(error_of(rule_with("ipc = 1", "ipc 1..2")),
            "r.yaml:4:11: a condition compares with >, >=, < or <=, not \"=\"");
  EXPECT_EQ(error_of(rule_with("icp > 1", "ipc 1..2")), "r.yaml:4:11: there is no metric \"icp\" on gfx950");
  EXPECT_EQ(error_of(rule_with("ipc.peak > 1", "ipc 1..2")),
            "r.yaml:4:11: the metric \"ipc\" has no column \"peak\"");
  EXPECT_EQ(error_of(rule_with("ipc ipc > 1", "ipc 1..2")),
            "r.yaml:4:11: \"metric\" or \"metric / metric\" is expected here, with blanks around the /");
  EXPECT_EQ(error_of(rule_with("ipc > 1", "ipc 1")),
            "r.yaml:5:15: severity is \"metric from..to\", not \"ipc 1\"");
  EXPECT_EQ(error_of(rule_with("ipc > 1", "ipc 1..1")),
            "r.yaml:5:15: \"1..1\" is not a range of two different numbers");
  EXPECT_EQ(error_of(rule_with("ipc > 1", "ipc nan..1")),
            "r.yaml:5:15: \"nan..1\" is not a range of two different numbers");
  EXPECT_EQ(error_of("rules: [{rule: a}]"), "r.yaml:1:9: a rule needs a \"title\"");
  EXPECT_EQ(error_of("rules: 5"), "r.yaml:1:8: rules must be a list");
  EXPECT_EQ(error_of("rules: [{rule: a, wehn: b}]").substr(0, 40),
            "r.yaml:1:19: a rule has no key \"wehn\"; k");
  EXPECT_NE(error_of(std::string(50000, '[')), "no error");
}

TEST(Rules, a_rule_with_a_known_name_replaces_it) {
  const Catalog catalog = *load_catalog("gfx950");
  auto book = *load_rules(catalog);
  const size_t before = book.rules.size();
  auto more = parse_rules(
      "rules:\n  - {rule: divergence, title: New, when: ipc > 1, severity: ipc 1..2, meaning: M., try: [A.]}",
      "r.yaml", &catalog);
  ASSERT_TRUE(more.has_value());
  ASSERT_TRUE(add_rules(book, *more).has_value());
  more = fail("gone");  // the book must not depend on it
  EXPECT_EQ(book.rules.size(), before);
  const auto changed = std::find_if(book.rules.begin(), book.rules.end(),
                                    [](const Rule& rule) { return rule.slug == "divergence"; });
  ASSERT_NE(changed, book.rules.end());
  EXPECT_EQ(changed->title, "New");
}

}  // namespace
}  // namespace tacho::metric
