// Splits SQL into tokens (tokens.h).
#include "query/sql/tokens.h"

#include <cctype>

namespace tacho::query {

std::vector<Token> tokens_of(std::string_view sql) {
  std::vector<Token> tokens;
  size_t i = 0;
  const auto letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || static_cast<signed char>(c) < 0;
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
        ++end;  // doubled: part of the token
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
    if (std::tolower(static_cast<unsigned char>(a[i])) != std::tolower(static_cast<unsigned char>(b[i]))) return false;
  return true;
}

}  // namespace tacho::query
