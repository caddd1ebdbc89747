// Splitting of SQL into words (sql_text.h).
#include "query/sql/tokens.h"

#include <cctype>

namespace tacho::query {

std::vector<Token> tokens_of(std::string_view sql) {
  std::vector<Token> tokens;
  size_t i = 0;
  const auto letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' ||
           static_cast<signed char>(c) < 0;
  };
  while (i < sql.size()) {
    const char c = sql[i];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i;
      continue;
    }
    if (sql.substr(i).starts_with("--")) {
      const size_t end = sql.find('\n', i);
      i = end == std::string_view::npos ? sql.size() : end;
      continue;
    }
    if (sql.substr(i).starts_with("/*")) {
      const size_t end = sql.find("*/", i + 2);
      i = end == std::string_view::npos ? sql.size() : end + 2;
      continue;
    }
    size_t end = i + 1;
    TokenKind kind = TokenKind::kSymbol;
    if (c == '\'' || c == '"' || c == '`' || c == '[') {
      const char close = c == '[' ? ']' : c;
      kind = c == '\'' ? TokenKind::kString : TokenKind::kQuoted;
      while (end < sql.size()) {
        if (sql[end] != close) {
          ++end;
          continue;
        }
        ++end;
        if (close == ']' || end >= sql.size() || sql[end] != close) break;
        ++end;  // doubled: part of the text
      }
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      kind = TokenKind::kNumber;
      while (end < sql.size() && (letter(sql[end]) || sql[end] == '.')) ++end;
    } else if (letter(c)) {
      kind = TokenKind::kWord;
      while (end < sql.size() && letter(sql[end])) ++end;
    }
    tokens.push_back({kind, sql.substr(i, end - i), i});
    i = end;
  }
  return tokens;
}

std::string name_of(const Token& token) {
  if (token.kind != TokenKind::kQuoted) return std::string(token.text);
  std::string name;
  const char close = token.text.front() == '[' ? ']' : token.text.front();
  for (size_t i = 1; i < token.text.size(); ++i) {
    if (token.text[i] == close) {
      if (close == ']' || i + 1 >= token.text.size() || token.text[i + 1] != close) break;
      ++i;
    }
    name += token.text[i];
  }
  return name;
}

bool same_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(a[i])) != std::tolower(static_cast<unsigned char>(b[i])))
      return false;
  return true;
}

namespace {

// Whether tokens[i] and tokens[i + 1] are "schema ." before a name.
bool qualifies(const std::vector<Token>& tokens, size_t i, std::string_view schema) {
  if (i + 2 >= tokens.size() || (tokens[i].kind != TokenKind::kWord && tokens[i].kind != TokenKind::kQuoted))
    return false;
  if (i > 0 && tokens[i - 1].text == ".") return false;
  return tokens[i + 1].text == "." &&
         (tokens[i + 2].kind == TokenKind::kWord || tokens[i + 2].kind == TokenKind::kQuoted) &&
         same_word(name_of(tokens[i]), schema);
}

}  // namespace

std::string without_qualifier(const std::string& sql, std::string_view schema) {
  const std::vector<Token> tokens = tokens_of(sql);
  std::string result;
  size_t from = 0;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (qualifies(tokens, i, schema)) {
      result.append(sql, from, tokens[i].at - from);
      from = tokens[i + 2].at;
    }
  result.append(sql, from, std::string::npos);
  return result;
}

bool mentions_schema(std::string_view sql, std::string_view schema) {
  const std::vector<Token> tokens = tokens_of(sql);
  for (size_t i = 0; i < tokens.size(); ++i)
    if (qualifies(tokens, i, schema)) return true;
  return false;
}

}  // namespace tacho::query
