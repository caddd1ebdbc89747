// Values of YAML nodes (yaml_reader.h).
#include "metric/catalog/yaml/yaml_reader.h"

#include <algorithm>
#include <charconv>

namespace tacho::metric {

std::string one_line(std::string_view text) {
  std::string out;
  bool blank = false;
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      blank = !out.empty();
      continue;
    }
    if (blank) out += ' ';
    blank = false;
    out += c;
  }
  return out;
}

bool is_identifier_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_identifier_char(char c) {
  return is_identifier_start(c) || (c >= '0' && c <= '9');
}

bool is_slug(std::string_view text) {
  if (text.empty() || text.size() > 80 || text.front() == '-' || text.back() == '-') return false;
  bool letter = false;
  for (const char c : text) {
    const bool lower = c >= 'a' && c <= 'z';
    letter = letter || lower;
    if (!lower && !(c >= '0' && c <= '9') && c != '-') return false;
  }
  return letter;
}

std::string YamlReader::place_of(const YAML::Node& node) const {
  const YAML::Mark mark = node.Mark();
  if (mark.is_null()) return std::string(file_);
  return fmt::format("{}:{}:{}", file_, mark.line + 1, mark.column + 1);
}

Result<YamlReader::Fields> YamlReader::fields(const YAML::Node& node, std::string_view what, const Words& known) const {
  if (!node.IsMap()) return fail_at(node, "{} must be a mapping of keys to values", what);
  Fields out;
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) return fail_at(entry.first, "a key of {} must be a word", what);
    const std::string& key = entry.first.Scalar();
    if (!seen.insert(key).second) return fail_at(entry.first, "{} has the key \"{}\" twice", what, key);
    if (!known.empty() && !known.contains(key)) {
      std::string list;
      for (const std::string& name : known) list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
      return fail_at(entry.first, "{} has no key \"{}\"; known are {}", what, key, list);
    }
    out.emplace_back(key, entry.second);
  }
  return out;
}

const YAML::Node* YamlReader::find(const Fields& fields, std::string_view key) {
  for (const auto& [name, node] : fields)
    if (name == key) return &node;
  return nullptr;
}

Result<std::string> YamlReader::text(const YAML::Node& node, std::string_view what) const {
  if (!node.IsScalar()) return fail_at(node, "{} must be a single value", what);
  return one_line(node.Scalar());
}

Result<int> YamlReader::number(const YAML::Node& node, std::string_view what) const {
  TACHO_ASSIGN(const std::string word, text(node, what));
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 0 || value > 9999)
    return fail_at(node, "{} must be a number from 0 to 9999, not \"{}\"", what, word);
  return value;
}

Result<bool> YamlReader::truth(const YAML::Node& node, std::string_view what) const {
  TACHO_ASSIGN(const std::string word, text(node, what));
  if (word == "true") return true;
  if (word == "false") return false;
  return fail_at(node, "{} must be true or false, not \"{}\"", what, word);
}

Result<std::vector<std::string>> YamlReader::words(const YAML::Node& node, std::string_view what) const {
  std::vector<std::string> out;
  if (node.IsScalar()) {
    out.push_back(one_line(node.Scalar()));
    return out;
  }
  if (!node.IsSequence()) return fail_at(node, "{} must be a list of words", what);
  for (const auto& item : node) {
    TACHO_ASSIGN(out.emplace_back(), text(item, what));
  }
  return out;
}

std::vector<YAML::Node> YamlReader::items(const YAML::Node& node) {
  std::vector<YAML::Node> out;
  if (!node.IsSequence()) {
    out.push_back(node);
    return out;
  }
  for (const auto& item : node) out.push_back(item);
  return out;
}

}  // namespace tacho::metric
