// Definitions and formulas of catalog files (formula_reader.h).
#include "metric/catalog/yaml/formula_reader.h"

#include <algorithm>

namespace tacho::metric {
namespace {

/// Expanded formulas are short; definitions that refer to each other many times could grow without bound.
constexpr size_t kLongestFormula = 16384;

/// "SQ_WAVES", "$cu_per_gpu", "TCC_HIT[0..15]", "4096": formulas that need no parentheses.
bool is_atom(std::string_view formula) {
  if (formula.starts_with('$')) formula.remove_prefix(1);
  if (formula.ends_with(']') && formula.find('[') == formula.rfind('[')) formula = formula.substr(0, formula.find('['));
  return std::all_of(formula.begin(), formula.end(), is_identifier_char);
}

}  // namespace

const ArchitectureGroup* FormulaReader::group(std::string_view name) const {
  for (const ArchitectureGroup& candidate : catalog_.groups)
    if (candidate.name == name) return &candidate;
  return nullptr;
}

Status FormulaReader::read_run_values(const Document& document) {
  TACHO_ASSIGN(const Fields entries, section(document, "run_values"));
  for (const auto& [name, meaning] : entries) {
    TACHO_ASSIGN(const std::string sentence, text(meaning, "the meaning of a value"));
    std::erase_if(catalog_.run_values, [&word = name](const RunValue& known) { return known.name == word; });
    catalog_.run_values.push_back({store(name), store(sentence)});
  }
  return {};
}

Status FormulaReader::collect_definitions(const Document& document) {
  TACHO_ASSIGN(const Fields entries, section(document, "definitions"));
  for (const auto& [name, value] : entries) {
    if (name.empty() || !is_identifier_start(name.front()) ||
        !std::all_of(name.begin(), name.end(), is_identifier_char))
      return fail_at(value, "a definition's name must be letters, digits and _, not \"{}\"", name);
    YAML::Node chosen = value;
    if (value.IsMap()) {
      TACHO_ASSIGN(const Fields keys, fields(value, "a definition", {"value", "arch"}));
      const YAML::Node* general = find(keys, "value");
      if (general == nullptr) return fail_at(value, "definition \"{}\" has no value", name);
      chosen.reset(*general);
      if (const YAML::Node* overrides = find(keys, "arch"); overrides != nullptr) {
        TACHO_ASSIGN(const std::optional<YAML::Node> ours, definition_override(*overrides, *general));
        if (ours.has_value()) chosen.reset(*ours);
      }
    }
    if (!chosen.IsScalar()) return fail_at(value, "definition \"{}\" must be a formula", name);
    if (!pending_.try_emplace(name, Pending{file_, chosen, false, false, {}}).second)
      return fail_at(value, "definition \"{}\" stands here for the second time", name);
  }
  return {};
}

Result<std::optional<YAML::Node>> FormulaReader::definition_override(const YAML::Node& overrides,
                                                                     const YAML::Node& general) {
  TACHO_ASSIGN(const Fields entries, fields(overrides, "arch", {}));
  std::optional<YAML::Node> best;
  int rank = 0;
  for (const auto& [name, node] : entries) {
    const ArchitectureGroup* found = group(name);
    if (found == nullptr) return fail_at(node, "there is no architecture or family \"{}\"", name);
    TACHO_ASSIGN(const std::string formula, text(node, "an override"));
    if (formula == one_line(general.Scalar())) return fail_at(node, "the override for {} equals the default", name);
    if (found->rank == 0) continue;
    if (found->rank == ArchitectureGroup::kFamily && rank == ArchitectureGroup::kFamily)
      return fail_at(node, "two families that override this contain {}", catalog_.architecture);
    if (found->rank < rank) continue;
    rank = found->rank;
    best.emplace(node);
  }
  return best;
}

Status FormulaReader::expand_definitions() {
  for (auto& [name, pending] : pending_) TACHO_TRY(expand_definition(pending));
  for (auto& [name, pending] : pending_) {
    Definition* known = nullptr;
    for (Definition& definition : catalog_.definitions)
      if (definition.name == name) known = &definition;
    if (known == nullptr) known = &catalog_.definitions.emplace_back(Definition{store(name), {}});
    known->formula = store(pending.formula);
  }
  return {};
}

Status FormulaReader::expand_definition(Pending& pending) {
  if (pending.done) return {};
  const std::string_view outer = file_;
  file_ = pending.file;
  if (pending.expanding) return fail_at(pending.node, "this definition refers to itself");
  pending.expanding = true;
  TACHO_ASSIGN(pending.formula, formula(pending.node));
  if (pending.formula.empty()) return fail_at(pending.node, "a definition must have a formula");
  pending.done = true;
  file_ = outer;
  return {};
}

Result<std::optional<std::string>> FormulaReader::definition(const std::string& name, const YAML::Node& where) {
  if (name.empty()) return fail_at(where, "a name must follow the $");
  if (const auto found = pending_.find(name); found != pending_.end()) {
    TACHO_TRY(expand_definition(found->second));
    return found->second.formula;
  }
  for (const Definition& known : catalog_.definitions)
    if (known.name == name) return std::string(known.formula);
  // The instance number of a repeated table.
  if (name == "channel") return std::nullopt;
  for (const RunValue& value : catalog_.run_values)
    if (value.name == name) return std::nullopt;
  if (catalog_.run_values.empty()) return std::nullopt;
  return fail_at(where, "there is no definition or value \"${}\"", name);
}

Result<std::string> FormulaReader::formula(const YAML::Node& node) {
  TACHO_ASSIGN(const std::string source, text(node, "a formula"));
  if (source.empty()) return fail_at(node, "an empty formula; write None where there is no value");
  if (source == "None") return std::string();
  std::string out;
  int depth = 0;
  for (size_t i = 0; i < source.size();) {
    const char c = source[i];
    if (c == '$' || is_identifier_start(c)) {
      size_t end = i + 1;
      while (end < source.size() && is_identifier_char(source[end])) ++end;
      const std::string_view word = std::string_view(source).substr(i, end - i);
      if (c == '$') {
        TACHO_ASSIGN(const std::optional<std::string> inner, definition(std::string(word.substr(1)), node));
        if (!inner.has_value()) {
          out += word;
        } else {
          const bool atom = is_atom(*inner);
          const bool alone = word.size() == source.size();
          out += atom || alone ? *inner : fmt::format("({})", *inner);
        }
      } else {
        out += renamed(word);
      }
      i = end;
    } else {
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
      if (depth < 0) return fail_at(node, "a closing \"{}\" without its opening one", c);
      out += c;
      ++i;
    }
    if (out.size() > kLongestFormula) return fail_at(node, "the formula is longer than {} characters", kLongestFormula);
  }
  if (depth != 0) return fail_at(node, "a \"(\" or \"[\" is not closed");
  if (check_) {
    if (const Status checked = check_(out); !checked.has_value()) return fail_at(node, "{}", checked.error().message);
  }
  return out;
}

std::string FormulaReader::renamed(std::string_view word) const {
  for (const Rename& rename : catalog_.facts.renames)
    if (word.starts_with(rename.from)) return fmt::format("{}{}", rename.to, word.substr(rename.from.size()));
  return std::string(word);
}

}  // namespace tacho::metric
