// Answers questions about a statement's tokens (statement.h).
#include "query/sql/statement.h"

#include <algorithm>
#include <array>

namespace tacho::query {

bool Statement::is_name(size_t token) const {
  return token < tokens_.size() &&
         (tokens_[token].kind == TokenKind::kWord || tokens_[token].kind == TokenKind::kQuoted);
}

// True if this token and the next are "schema ." before a name.
bool Statement::qualifies(size_t token, std::string_view schema) const {
  if (!is_name(token) || !is_name(token + 2) || tokens_[token + 1].text != ".") return false;
  if (token > 0 && tokens_[token - 1].text == ".") return false;
  return same_word(name_of(tokens_[token]), schema);
}

bool Statement::names_schema(std::string_view schema) const {
  for (size_t i = 0; i < tokens_.size(); ++i)
    if (qualifies(i, schema)) return true;
  return false;
}

std::string Statement::without_schema(std::string_view schema) const {
  std::string result;
  size_t from = 0;
  for (size_t i = 0; i < tokens_.size(); ++i)
    if (qualifies(i, schema)) {
      result.append(text_, from, tokens_[i].at - from);
      from = tokens_[i + 2].at;
    }
  result.append(text_, from, std::string::npos);
  return result;
}

bool Statement::mentions(std::string_view name) const {
  for (size_t i = 0; i < tokens_.size(); ++i)
    if (is_name(i) && same_word(name_of(tokens_[i]), name)) return true;
  return false;
}

std::vector<Statement::Source> Statement::sources() const {
  // Words that end a list of tables. Brackets may contain a list of their own.
  static constexpr std::string_view kEnds[] = {"where",  "group",  "having",    "order", "limit",
                                               "window", "select", "intersect", "union", "except"};
  std::vector<Source> found;
  std::vector<bool> in_list = {false};  // one for each open bracket
  bool expected = false, joined = false;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const Token& token = tokens_[i];
    const auto is = [&](std::string_view word) {
      return token.kind == TokenKind::kWord && same_word(token.text, word);
    };
    if (token.text == "(") {
      in_list.push_back(expected);  // FROM (a JOIN b)
      continue;
    }
    if (token.text == ")") {
      if (in_list.size() > 1) in_list.pop_back();
      expected = false;
      continue;
    }
    if (is("from") || is("join") || is("in")) {
      expected = !is("in") || (i + 1 < tokens_.size() && tokens_[i + 1].text != "(");
      joined = is("join");
      if (is("from")) in_list.back() = true;
      continue;
    }
    if (token.text == "," && in_list.back()) {
      expected = joined = true;
      continue;
    }
    if (std::any_of(std::begin(kEnds), std::end(kEnds), [&](std::string_view word) { return is(word); }))
      in_list.back() = expected = false;
    if (!expected || !is_name(i)) continue;
    expected = false;
    if (i + 2 < tokens_.size() && tokens_[i + 1].text == "." && is_name(i + 2)) i += 2;
    found.push_back({i, joined});
    joined = false;
  }
  return found;
}

bool Statement::joins() const {
  const std::vector<Source> all = sources();
  return mentions("join") || std::any_of(all.begin(), all.end(), [](const Source& one) { return one.joined; });
}

std::vector<std::string> Statement::tables() const {
  std::vector<std::string> names;
  for (TableName& one : qualified_tables()) names.push_back(std::move(one.name));
  return names;
}

std::vector<Statement::TableName> Statement::qualified_tables() const {
  // WITH name AS (SELECT ...), WITH name(columns) AS (...): the name comes before AS and a bracket.
  std::vector<std::string> defined;
  for (size_t i = 1; i + 2 < tokens_.size(); ++i) {
    if (tokens_[i].kind != TokenKind::kWord || !same_word(tokens_[i].text, "as")) continue;
    if (tokens_[i + 1].text != "(" && !same_word(tokens_[i + 1].text, "materialized") &&
        !same_word(tokens_[i + 1].text, "not"))
      continue;
    size_t name = i - 1;
    if (tokens_[name].text == ")")
      while (name > 0 && tokens_[name].text != "(") --name;
    if (tokens_[name].text == "(" && name > 0) --name;
    if (is_name(name)) defined.push_back(name_of(tokens_[name]));
  }
  std::vector<TableName> result;
  for (const Source& one : sources()) {
    const bool qualified = one.token >= 2 && tokens_[one.token - 1].text == ".";
    TableName table{qualified ? name_of(tokens_[one.token - 2]) : "", name_of(tokens_[one.token])};
    if (std::none_of(defined.begin(), defined.end(),
                     [&](const std::string& other) { return same_word(table.name, other); }))
      result.push_back(std::move(table));
  }
  return result;
}

}  // namespace tacho::query
