// Reads rules.yaml and answers whether a rule fires on given values.
#include "metric/catalog/rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "metric/catalog/string_store.h"
#include "metric/catalog/yaml_reader.h"

namespace tacho::metric {
namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    const size_t end = std::min(text.find(' '), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::optional<double> to_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool is_slug_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

class RuleReader : YamlReader {
 public:
  RuleReader(std::string_view file, const Catalog* catalog, RuleBook& book)
      : YamlReader(file), catalog_(catalog), book_(book) {}

  Status read(const YAML::Node& root) {
    if (root.IsNull()) return {};
    if (!root.IsMap()) return fail_at(root, "a catalog file must be a mapping of keys to values");
    for (const auto& entry : root) {
      if (!entry.first.IsScalar() || entry.first.Scalar() != "rules") continue;
      if (!entry.second.IsSequence()) return fail_at(entry.second, "rules must be a list");
      for (const auto& rule : entry.second) TACHO_TRY(read_rule(rule));
    }
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

  Status read_rule(const YAML::Node& node) {
    if (!node.IsMap()) return fail_at(node, "a rule must be a mapping of keys to values");
    Rule rule;
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return fail_at(entry.first, "a key of a rule must be a word");
      const std::string& key = entry.first.Scalar();
      const YAML::Node& value = entry.second;
      if (!seen.insert(key).second) return fail_at(entry.first, "a rule has the key \"{}\" twice", key);
      if (key == "rule" || key == "title" || key == "meaning") {
        TACHO_ASSIGN(const std::string line, text(value, key));
        if (key == "rule" && !std::all_of(line.begin(), line.end(), is_slug_char))
          return fail_at(value, "a rule's name must be lower-case letters, digits and \"-\"");
        (key == "rule" ? rule.slug : key == "title" ? rule.title : rule.meaning) = store(line);
      } else if (key == "when" || key == "any") {
        TACHO_ASSIGN(const auto list, items(value, key));
        for (const YAML::Node& item : list) {
          TACHO_ASSIGN(const RuleCondition condition, read_condition(item));
          (key == "when" ? rule.when : rule.any).push_back(condition);
        }
      } else if (key == "severity") {
        TACHO_ASSIGN(const auto list, items(value, key));
        for (const YAML::Node& item : list) {
          TACHO_ASSIGN(rule.severity.emplace_back(), read_ramp(item));
        }
      } else if (key == "evidence") {
        TACHO_ASSIGN(const auto list, items(value, key));
        for (const YAML::Node& item : list) {
          TACHO_ASSIGN(const std::string line, text(item, key));
          TACHO_ASSIGN(rule.evidence.emplace_back(), read_term(item, split(line)));
        }
      } else if (key == "weight") {
        TACHO_ASSIGN(const std::string word, text(value, key));
        const std::optional<double> weight = to_number(word);
        if (!weight.has_value() || *weight <= 0 || *weight > 1)
          return fail_at(value, "weight must be above 0 and at most 1, not \"{}\"", word);
        rule.weight = *weight;
      } else if (key == "try") {
        TACHO_ASSIGN(const auto list, items(value, key));
        for (const YAML::Node& item : list) {
          TACHO_ASSIGN(const std::string line, text(item, key));
          rule.advice.push_back(store(line));
        }
      } else {
        return fail_at(
            entry.first,
            "a rule has no key \"{}\"; known are rule, title, when, any, severity, weight, evidence, "
            "meaning, try",
            key);
      }
    }
    for (const char* key : {"rule", "title", "when", "severity", "meaning", "try"})
      if (!seen.contains(key)) return fail_at(node, "a rule needs a \"{}\"", key);
    if (rule.when.empty() || rule.severity.empty() || rule.advice.empty())
      return fail_at(node, "a rule needs at least one condition, one severity and one thing to try");
    for (const Rule& other : book_.rules)
      if (other.slug == rule.slug)
        return fail_at(node, "the rule \"{}\" stands here for the second time", rule.slug);
    book_.rules.push_back(std::move(rule));
    return {};
  }

  /// "slug[.column] [/ slug[.column]]"
  Result<RuleTerm> read_term(const YAML::Node& node, std::span<const std::string_view> parts) {
    RuleTerm term;
    if (parts.size() == 1) {
      TACHO_TRY(read_metric(node, parts[0], term.slug, term.column));
    } else if (parts.size() == 3 && parts[1] == "/") {
      TACHO_TRY(read_metric(node, parts[0], term.slug, term.column));
      TACHO_TRY(read_metric(node, parts[2], term.over_slug, term.over_column));
    } else {
      return fail_at(node, "\"metric\" or \"metric / metric\" is expected here, with blanks around the /");
    }
    return term;
  }

  Status read_metric(const YAML::Node& node, std::string_view word, std::string_view& slug,
                     std::string_view& column) {
    const size_t dot = word.find('.');
    const std::string_view name = word.substr(0, dot);
    const std::string_view key = dot == std::string_view::npos ? std::string_view() : word.substr(dot + 1);
    const auto legal = [](std::string_view text) {
      return !text.empty() && std::all_of(text.begin(), text.end(), is_slug_char);
    };
    if (!legal(name) || (dot != std::string_view::npos && !legal(key)))
      return fail_at(node, "\"{}\" is not a metric's slug", word);
    if (catalog_ != nullptr) {
      const Metric* metric = catalog_->metric(name);
      if (metric == nullptr)
        return fail_at(node, "there is no metric \"{}\" on {}", name, catalog_->architecture);
      if (!key.empty() && !catalog_->table_of(*metric).column(key).has_value())
        return fail_at(node, "the metric \"{}\" has no column \"{}\"", name, key);
    }
    slug = store(name);
    column = store(key);
    return {};
  }

  Result<RuleCondition> read_condition(const YAML::Node& node) {
    TACHO_ASSIGN(const std::string line, text(node, "a condition"));
    const std::vector<std::string_view> parts = split(line);
    if (parts.size() < 3) return fail_at(node, "a condition is \"metric > number\", not \"{}\"", line);
    RuleCondition condition;
    TACHO_ASSIGN(condition.term, read_term(node, std::span(parts).first(parts.size() - 2)));
    const std::string_view sign = parts[parts.size() - 2];
    if (sign == ">") {
      condition.relation = Relation::kAbove;
    } else if (sign == ">=") {
      condition.relation = Relation::kAtLeast;
    } else if (sign == "<") {
      condition.relation = Relation::kBelow;
    } else if (sign == "<=") {
      condition.relation = Relation::kAtMost;
    } else {
      return fail_at(node, "a condition compares with >, >=, < or <=, not \"{}\"", sign);
    }
    const std::optional<double> threshold = to_number(parts.back());
    if (!threshold.has_value()) return fail_at(node, "\"{}\" is not a number", parts.back());
    condition.threshold = *threshold;
    return condition;
  }

  Result<RuleRamp> read_ramp(const YAML::Node& node) {
    TACHO_ASSIGN(const std::string line, text(node, "severity"));
    const std::vector<std::string_view> parts = split(line);
    const size_t dots = parts.empty() ? std::string_view::npos : parts.back().find("..");
    if (parts.size() < 2 || dots == std::string_view::npos)
      return fail_at(node, "severity is \"metric from..to\", not \"{}\"", line);
    RuleRamp ramp;
    TACHO_ASSIGN(ramp.term, read_term(node, std::span(parts).first(parts.size() - 1)));
    const std::optional<double> from = to_number(parts.back().substr(0, dots));
    const std::optional<double> to = to_number(parts.back().substr(dots + 2));
    if (!from.has_value() || !to.has_value() || *from == *to)
      return fail_at(node, "\"{}\" is not a range of two different numbers", parts.back());
    ramp.from = *from;
    ramp.to = *to;
    return ramp;
  }

  std::string_view store(std::string_view text) { return book_.strings->intern(text); }

  const Catalog* catalog_;
  RuleBook& book_;
};

bool known(const RuleTerm& term, const Catalog& catalog) {
  return catalog.metric(term.slug) != nullptr &&
         (term.over_slug.empty() || catalog.metric(term.over_slug) != nullptr);
}

}  // namespace

std::string to_string(const RuleTerm& term) {
  const auto one = [](std::string_view slug, std::string_view column) {
    return column.empty() ? std::string(slug) : fmt::format("{}.{}", slug, column);
  };
  if (term.over_slug.empty()) return one(term.slug, term.column);
  return fmt::format("{} / {}", one(term.slug, term.column), one(term.over_slug, term.over_column));
}

std::string_view to_string(Relation relation) {
  switch (relation) {
    case Relation::kAbove:
      return ">";
    case Relation::kAtLeast:
      return ">=";
    case Relation::kBelow:
      return "<";
    case Relation::kAtMost:
      return "<=";
  }
  return "?";
}

Result<RuleBook> parse_rules(std::string_view yaml, std::string_view file, const Catalog* catalog) {
  RuleBook book;
  book.strings = std::make_shared<StringStore>();
  TACHO_TRY(guarded(file, [&]() -> Status {
    TACHO_ASSIGN(const YAML::Node root, load_document(yaml, file));
    return RuleReader(file, catalog, book).read(root);
  }));
  return book;
}

Status add_rules(RuleBook& book, const RuleBook& more) {
  const auto stored = [&](std::string_view text) { return book.strings->intern(text); };
  const auto stored_term = [&](const RuleTerm& term) {
    return RuleTerm{stored(term.slug), stored(term.column), stored(term.over_slug), stored(term.over_column)};
  };
  for (Rule rule : more.rules) {
    rule.slug = stored(rule.slug);
    rule.vendor = stored(rule.vendor);
    rule.title = stored(rule.title);
    rule.meaning = stored(rule.meaning);
    for (std::vector<RuleCondition>* list : {&rule.when, &rule.any})
      for (RuleCondition& condition : *list) condition.term = stored_term(condition.term);
    for (RuleRamp& ramp : rule.severity) ramp.term = stored_term(ramp.term);
    for (RuleTerm& term : rule.evidence) term = stored_term(term);
    for (std::string_view& advice : rule.advice) advice = stored(advice);
    const auto same = std::find_if(book.rules.begin(), book.rules.end(), [&](const Rule& other) {
      return other.slug == rule.slug && (other.vendor == rule.vendor || rule.vendor.empty());
    });
    if (same != book.rules.end()) {
      *same = std::move(rule);
    } else {
      book.rules.push_back(std::move(rule));
    }
  }
  return {};
}

bool can_evaluate(const Rule& rule, const Catalog& catalog) {
  const auto all = [&](const std::vector<RuleCondition>& conditions) {
    return std::all_of(conditions.begin(), conditions.end(),
                       [&](const RuleCondition& condition) { return known(condition.term, catalog); });
  };
  const bool any =
      rule.any.empty() || std::any_of(rule.any.begin(), rule.any.end(),
                                      [&](const RuleCondition& one) { return known(one.term, catalog); });
  return all(rule.when) && any &&
         std::any_of(rule.severity.begin(), rule.severity.end(),
                     [&](const RuleRamp& ramp) { return known(ramp.term, catalog); });
}

std::optional<double> term_value(const RuleTerm& term, const MetricLookup& lookup) {
  const std::optional<double> value = lookup(term.slug, term.column);
  if (!value.has_value() || !std::isfinite(*value)) return std::nullopt;
  if (term.over_slug.empty()) return value;
  const std::optional<double> over = lookup(term.over_slug, term.over_column);
  if (!over.has_value() || !std::isfinite(*over) || *over == 0) return std::nullopt;
  return *value / *over;
}

bool holds(const RuleCondition& condition, double value) {
  switch (condition.relation) {
    case Relation::kAbove:
      return value > condition.threshold;
    case Relation::kAtLeast:
      return value >= condition.threshold;
    case Relation::kBelow:
      return value < condition.threshold;
    case Relation::kAtMost:
      return value <= condition.threshold;
  }
  return false;
}

std::optional<double> rule_severity(const Rule& rule, const MetricLookup& lookup) {
  const auto fires = [&](const RuleCondition& condition) {
    const std::optional<double> value = term_value(condition.term, lookup);
    return value.has_value() && holds(condition, *value);
  };
  if (!std::all_of(rule.when.begin(), rule.when.end(), fires)) return std::nullopt;
  if (!rule.any.empty() && std::none_of(rule.any.begin(), rule.any.end(), fires)) return std::nullopt;
  std::optional<double> severity;
  for (const RuleRamp& ramp : rule.severity) {
    const std::optional<double> value = term_value(ramp.term, lookup);
    if (!value.has_value()) continue;
    const double share = std::clamp((*value - ramp.from) / (ramp.to - ramp.from), 0.0, 1.0);
    severity = std::max(severity.value_or(0.0), share * rule.weight);
  }
  return severity;
}

std::string_view first_value_column(const Table& table) {
  for (const Column& column : table.columns)
    if (column.role == ColumnRole::kValue) return column.key;
  return {};
}

}  // namespace tacho::metric
