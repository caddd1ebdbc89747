// Reads rules.yaml and judges a rule on given intervals.
#include "metric/catalog/rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "metric/catalog/string_store.h"
#include "metric/catalog/yaml/yaml_reader.h"

namespace tacho::metric {
namespace {

std::optional<double> to_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool is_slug_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

class RuleReader : YamlReader {
 public:
  RuleReader(std::string_view file, const Catalog* catalog, bool traces, RuleBook& book)
      : YamlReader(file), catalog_(catalog), traces_(traces), book_(book) {}

  Status read(const YAML::Node& root) {
    if (root.IsNull()) return {};
    if (!root.IsMap()) return fail_at(root, "a catalog file must be a mapping of keys to values");
    RuleScreen screen;
    // Quantities first, wherever they stand: everything else may name them.
    for (const char* wanted : {"quantities", "input-error", "rules", "checks", "bars", "weight"})
      for (const auto& entry : root) {
        if (!entry.first.IsScalar() || entry.first.Scalar() != wanted) continue;
        const std::string_view key = wanted;
        const YAML::Node& value = entry.second;
        if (key == "input-error") {
          TACHO_ASSIGN(error_, percent(value, key));
        } else if (key == "weight") {
          TACHO_TRY(read_weight(value, screen));
        } else if (!value.IsSequence()) {
          return fail_at(value, "{} must be a list", key);
        } else {
          for (const auto& item : value) {
            if (key == "quantities") TACHO_TRY(read_quantity(item));
            if (key == "rules") TACHO_TRY(read_rule(item));
            if (key == "checks") TACHO_TRY(read_check(item));
            if (key == "bars") {
              TACHO_ASSIGN(screen.bars.emplace_back(), read_expression(item, "bars"));
            }
          }
        }
      }
    if (!screen.bars.empty() || !screen.weight.steps.empty()) book_.screens.push_back(std::move(screen));
    return {};
  }

 private:
  Result<std::string> text(const YAML::Node& node, std::string_view what) const {
    TACHO_ASSIGN(std::string line, YamlReader::text(node, what));
    if (line.empty()) return fail_at(node, "{} is empty", what);
    return line;
  }

  /// The items of a list; a single value is a list of one.
  Result<std::vector<YAML::Node>> items(const YAML::Node& node, std::string_view what) const {
    if (!node.IsScalar() && !node.IsSequence()) return fail_at(node, "{} must be a list", what);
    return YamlReader::items(node);
  }

  Result<double> percent(const YAML::Node& node, std::string_view what) const {
    TACHO_ASSIGN(const std::string word, text(node, what));
    const std::optional<double> value = to_number(word);
    if (!value || *value < 0 || *value > 100)
      return fail_at(node, "{} is a number of percent from 0 to 100, not \"{}\"", what, word);
    return *value;
  }

  Result<std::string> slug(const YAML::Node& node, std::string_view what) const {
    TACHO_ASSIGN(const std::string line, text(node, what));
    if (!std::all_of(line.begin(), line.end(), is_slug_char))
      return fail_at(node, "a {}'s name must be lower-case letters, digits and \"-\"", what);
    return line;
  }

  Status read_quantity(const YAML::Node& node) {
    TACHO_ASSIGN(const Fields all, fields(node, "a quantity", {"quantity", "name", "unit", "value"}));
    for (const char* key : {"quantity", "name", "value"})
      if (find(all, key) == nullptr) return fail_at(node, "a quantity needs a \"{}\"", key);
    TACHO_ASSIGN(const std::string slug, this->slug(*find(all, "quantity"), "quantity"));
    if (quantities_.contains(slug) || (catalog_ != nullptr && catalog_->metric(slug) != nullptr))
      return fail_at(node, "there is a quantity or metric \"{}\" already", slug);
    TACHO_ASSIGN(RuleExpression value, read_expression(*find(all, "value"), "value"));
    TACHO_ASSIGN(const std::string name, text(*find(all, "name"), "name"));
    value.name = store(name);
    if (const YAML::Node* unit = find(all, "unit"); unit != nullptr) {
      TACHO_ASSIGN(const std::string word, text(*unit, "unit"));
      value.unit = store(word);
    }
    quantities_.emplace(slug, std::move(value));
    return {};
  }

  Status read_weight(const YAML::Node& node, RuleScreen& screen) {
    TACHO_ASSIGN(const Fields all, fields(node, "weight", {"value", "words"}));
    for (const char* key : {"value", "words"})
      if (find(all, key) == nullptr) return fail_at(node, "weight needs a \"{}\"", key);
    TACHO_ASSIGN(screen.weight, read_expression(*find(all, "value"), "value"));
    TACHO_ASSIGN(const std::string words, text(*find(all, "words"), "words"));
    screen.weight_words = store(words);
    return {};
  }

  Status read_check(const YAML::Node& node) {
    TACHO_ASSIGN(const Fields all, fields(node, "a check", {"check", "when", "says", "suspects"}));
    for (const char* key : {"check", "when", "says", "suspects"})
      if (find(all, key) == nullptr) return fail_at(node, "a check needs a \"{}\"", key);
    RuleCheck check;
    TACHO_ASSIGN(const std::string slug, this->slug(*find(all, "check"), "check"));
    check.slug = store(slug);
    TACHO_ASSIGN(check.when, read_condition(*find(all, "when")));
    TACHO_ASSIGN(const std::string says, text(*find(all, "says"), "says"));
    check.says = store(says);
    TACHO_ASSIGN(const auto suspects, words(*find(all, "suspects"), "suspects"));
    for (const std::string& suspect : suspects) check.suspects.push_back(store(suspect));
    book_.checks.push_back(std::move(check));
    return {};
  }

  Status read_rule(const YAML::Node& node) {
    if (!node.IsMap()) return fail_at(node, "a rule must be a mapping of keys to values");
    Rule rule;
    rule.error = error_;
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return fail_at(entry.first, "a key of a rule must be a word");
      const std::string& key = entry.first.Scalar();
      const YAML::Node& value = entry.second;
      if (!seen.insert(key).second) return fail_at(entry.first, "a rule has the key \"{}\" twice", key);
      if (key == "rule") {
        TACHO_ASSIGN(const std::string line, slug(value, "rule"));
        rule.slug = store(line);
      } else if (key == "title" || key == "meaning" || key == "model" || key == "only-possible" ||
                 (traces() && (key == "refuted-by" || key == "spans"))) {
        TACHO_ASSIGN(const std::string line, text(value, key));
        (key == "title"        ? rule.title
         : key == "meaning"    ? rule.meaning
         : key == "model"      ? rule.model
         : key == "refuted-by" ? rule.refuted_by
         : key == "spans"      ? rule.spans
                               : rule.only_possible) = store(line);
      } else if (traces() && key == "sentence") {
        TACHO_TRY(read_sentence(value, rule));
      } else if (key == "when" || key == "any" || key == "unless") {
        TACHO_ASSIGN(const auto list, items(value, key));
        for (const YAML::Node& item : list) {
          TACHO_ASSIGN(const RuleCondition condition, read_condition(item));
          (key == "when" ? rule.when : key == "any" ? rule.any : rule.unless).push_back(condition);
        }
      } else if (key == "saves") {
        TACHO_TRY(read_range(value, "saves", "in percent of the kernel's time", rule.saves_low, rule.saves_high));
      } else if (traces() && key == "frees") {
        TACHO_TRY(read_range(value, "frees", "in bytes", rule.frees_low, rule.frees_high));
      } else if (key == "of") {
        TACHO_ASSIGN(rule.of, read_expression(value, key));
      } else if (key == "error") {
        TACHO_ASSIGN(rule.error, percent(value, key));
      } else if (key == "evidence") {
        TACHO_ASSIGN(const auto list, items(value, key));
        for (const YAML::Node& item : list) {
          TACHO_ASSIGN(rule.evidence.emplace_back(), read_expression(item, key));
        }
      } else if (key == "try") {
        TACHO_ASSIGN(const auto list, items(value, key));
        for (const YAML::Node& item : list) {
          TACHO_ASSIGN(const std::string line, text(item, key));
          rule.advice.push_back(store(line));
        }
      } else if (key == "severity" || key == "weight") {
        return fail_at(entry.first,
                       "a rule says what could be saved, \"saves: low .. high\" in "
                       "percent of the kernel's time, instead of a {}",
                       key);
      } else {
        return fail_at(entry.first,
                       "a rule has no key \"{}\"; known are rule, title, when, any, unless, saves, of, model, error, "
                       "only-possible, evidence, meaning, try",
                       key);
      }
    }
    for (const char* key : {"rule", "title", "when", "saves", "model", "try"})
      if (!seen.contains(key)) return fail_at(node, "a rule needs a \"{}\"", key);
    if (!traces() && !seen.contains("meaning")) return fail_at(node, "a rule needs a \"meaning\"");
    for (const char* key : {"sentence", "refuted-by"})
      if (traces() && !seen.contains(key)) return fail_at(node, "a rule of traces needs a \"{}\"", key);
    if (rule.when.empty() || rule.advice.empty())
      return fail_at(node, "a rule needs at least one condition and one thing to try");
    for (const Rule& other : book_.rules)
      if (other.slug == rule.slug) return fail_at(node, "the rule \"{}\" stands here for the second time", rule.slug);
    book_.rules.push_back(std::move(rule));
    return {};
  }

  Result<RuleExpression> read_expression(const YAML::Node& node, std::string_view what) {
    TACHO_ASSIGN(const std::string line, text(node, what));
    return parse_expression(node, line);
  }

  Result<RuleExpression> parse_expression(const YAML::Node& node, std::string_view line) {
    Result<RuleExpression> parsed = parse_rule_expression(trimmed(line), quantities_, *book_.strings);
    if (!parsed) return fail_at(node, "{}", parsed.error().message);
    TACHO_TRY(check_metrics(node, *parsed));
    return parsed;
  }

  // Every metric and column must be one of the catalog's.
  Status check_metrics(const YAML::Node& node, const RuleExpression& expression) const {
    if (catalog_ == nullptr) return {};
    for (const FormulaStep& step : expression.steps) {
      if (step.op != FormulaOp::kMetric) continue;
      const Metric* metric = catalog_->metric(step.text);
      if (metric == nullptr) return fail_at(node, "there is no metric \"{}\" on {}", step.text, catalog_->architecture);
      if (!step.column.empty() && !catalog_->table_of(*metric).column(step.column).has_value())
        return fail_at(node, "the metric \"{}\" has no column \"{}\"", step.text, step.column);
    }
    return {};
  }

  Result<RuleCondition> read_condition(const YAML::Node& node) {
    TACHO_ASSIGN(const std::string line, text(node, "a condition"));
    Result<RuleCondition> parsed = parse_rule_condition(line, quantities_, *book_.strings);
    if (!parsed) return fail_at(node, "{}", parsed.error().message);
    TACHO_TRY(check_metrics(node, parsed->quantity));
    return parsed;
  }

  // "low .. high"; nothing for "none".
  Status read_range(const YAML::Node& node, std::string_view key, std::string_view unit, RuleExpression& low,
                    RuleExpression& high) {
    TACHO_ASSIGN(const std::string line, text(node, key));
    if (traces() && line == "none") return {};
    auto parsed = parse_rule_range(line, quantities_, *book_.strings);
    if (!parsed) return fail_at(node, "{} ({} is \"low .. high\", {})", parsed.error().message, key, unit);
    for (const RuleExpression* each : {&parsed->first, &parsed->second}) TACHO_TRY(check_metrics(node, *each));
    low = std::move(parsed->first);
    high = std::move(parsed->second);
    return {};
  }

  // "The GPU idled {idle-time} ({idle-share})": quantities in braces.
  Status read_sentence(const YAML::Node& node, Rule& rule) {
    TACHO_ASSIGN(const std::string line, text(node, "sentence"));
    std::string out;
    for (size_t at = 0; at < line.size();) {
      const size_t open = line.find('{', at);
      out.append(line, at, open == std::string::npos ? open : open - at);
      if (open == std::string::npos) break;
      const size_t end = line.find('}', open);
      if (end == std::string::npos) return fail_at(node, "a brace in the sentence is not closed");
      TACHO_ASSIGN(rule.in_sentence.emplace_back(),
                   parse_expression(node, std::string_view(line).substr(open + 1, end - open - 1)));
      out += "{}";
      at = end + 1;
    }
    for (size_t at = out.find_first_of("[]"); at != std::string::npos; at = out.find_first_of("[]", at)) {
      const size_t bar = out.find_first_of("[|]", at + 1),
                   end = bar == std::string::npos ? bar : out.find_first_of("[|]", bar + 1);
      if (out[at] != '[' || end == std::string::npos || out[bar] != '|' || out[end] != ']')
        return fail_at(node, "a bracket in the sentence has two forms, as in [gaps|gap]");
      at = end + 1;
    }
    rule.sentence = store(out);
    return {};
  }

  bool traces() const { return catalog_ == nullptr && traces_; }
  std::string_view store(std::string_view text) { return book_.strings->intern(text); }

  const Catalog* catalog_;
  bool traces_;
  RuleBook& book_;
  double error_ = 0;
  RuleQuantities quantities_;
};

// The value in a run with every counter: says which metrics the catalog has at all.
RuleValue exists(const FormulaStep& leaf, const Catalog& catalog) {
  if (leaf.op == FormulaOp::kMetric && catalog.metric(leaf.text) == nullptr) return {};
  return {RuleValue::State::kNumber, 1};
}

}  // namespace

std::string_view to_string(RuleRelation relation) {
  switch (relation) {
    case RuleRelation::kAbove:
      return ">";
    case RuleRelation::kAtLeast:
      return ">=";
    case RuleRelation::kBelow:
      return "<";
    case RuleRelation::kAtMost:
      return "<=";
  }
  return "?";
}

const RuleScreen& RuleBook::screen() const {
  static const RuleScreen kNone;
  return screens.empty() ? kNone : screens.front();
}

namespace {
Result<RuleBook> parse_book(std::string_view yaml, std::string_view file, const Catalog* catalog, bool traces) {
  RuleBook book;
  book.strings = std::make_shared<StringStore>();
  TACHO_TRY(guarded(file, [&]() -> Status {
    TACHO_ASSIGN(const YAML::Node root, load_document(yaml, file));
    return RuleReader(file, catalog, traces, book).read(root);
  }));
  return book;
}
}  // namespace

Result<RuleBook> parse_rules(std::string_view yaml, std::string_view file, const Catalog* catalog) {
  return parse_book(yaml, file, catalog, false);
}

Result<RuleBook> parse_trace_rules(std::string_view yaml, std::string_view file) {
  return parse_book(yaml, file, nullptr, true);
}

bool can_evaluate(const Rule& rule, const Catalog& catalog) {
  const auto known = [&](const RuleExpression& expression) {
    return evaluate(expression, [&](const FormulaStep& leaf) { return exists(leaf, catalog); }).state !=
           RuleValue::State::kAbsent;
  };
  const auto holds = [&](const RuleCondition& condition) { return known(condition.quantity); };
  return std::all_of(rule.when.begin(), rule.when.end(), holds) &&
         (rule.any.empty() || std::any_of(rule.any.begin(), rule.any.end(), holds)) && known(rule.saves_low) &&
         known(rule.saves_high);
}

Truth holds(const RuleCondition& condition, const RuleInterval& interval) {
  if (interval.state == RuleValue::State::kMissing) return Truth::kUnknown;
  if (interval.state != RuleValue::State::kNumber) return Truth::kNo;
  const auto at = [&](double value) {
    switch (condition.relation) {
      case RuleRelation::kAbove:
        return value > condition.threshold;
      case RuleRelation::kAtLeast:
        return value >= condition.threshold;
      case RuleRelation::kBelow:
        return value < condition.threshold;
      case RuleRelation::kAtMost:
        return value <= condition.threshold;
    }
    return false;
  };
  const bool low = at(interval.low), high = at(interval.high);
  return low && high ? Truth::kYes : low || high ? Truth::kMaybe : Truth::kNo;
}

Judgement judge(const Rule& rule, const IntervalLookup& lookup) {
  const auto truth = [&](const RuleCondition& condition) { return holds(condition, lookup(condition.quantity)); };
  Truth all = Truth::kYes;
  for (const RuleCondition& condition : rule.when) all = std::min(all, truth(condition));
  if (!rule.any.empty()) {
    Truth one = Truth::kNo;
    for (const RuleCondition& condition : rule.any) one = std::max(one, truth(condition));
    all = std::min(all, one);
  }
  if (all == Truth::kNo) return {Verdict::kSilent};
  Truth refuted = Truth::kNo;
  for (const RuleCondition& condition : rule.unless) refuted = std::max(refuted, truth(condition));
  if (refuted == Truth::kYes) return {Verdict::kRefuted};
  if (rule.saves_high.steps.empty()) {
    if (all == Truth::kUnknown) return {Verdict::kNotJudged};
    return {all == Truth::kYes && refuted == Truth::kNo && rule.only_possible.empty() ? Verdict::kFound
                                                                                      : Verdict::kPossible};
  }
  const RuleInterval low = lookup(rule.saves_low), high = lookup(rule.saves_high);
  if (all == Truth::kUnknown || low.state == RuleValue::State::kMissing || high.state == RuleValue::State::kMissing)
    return {Verdict::kNotJudged};
  if (high.state != RuleValue::State::kNumber) return {Verdict::kSilent};
  Judgement judgement;
  judgement.high = std::clamp(high.value, 0.0, 100.0);
  if (!(judgement.high > 0)) return {Verdict::kSilent};
  judgement.verdict =
      all == Truth::kYes && refuted == Truth::kNo && rule.only_possible.empty() ? Verdict::kFound : Verdict::kPossible;
  if (judgement.verdict == Verdict::kFound && low.state == RuleValue::State::kNumber)
    judgement.low = std::clamp(low.value, 0.0, judgement.high);
  return judgement;
}

std::string_view first_value_column(const MetricTable& table) {
  for (const MetricColumn& column : table.columns)
    if (column.role == ColumnRole::kValue) return column.key;
  return {};
}

}  // namespace tacho::metric
