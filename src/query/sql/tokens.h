// SQL as words: enough of its grammar to find qualifiers and simple statements, without parsing expressions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tacho::query {

enum class TokenKind : unsigned char { kWord, kQuoted, kString, kNumber, kSymbol };

struct Token {
  TokenKind kind;
  std::string_view text;  // as written; of quoted names and strings with their quotes
  size_t at;              // place in the statement
};

/// Words, names, strings, numbers and symbols; comments and space left out. An unclosed string ends with the text.
std::vector<Token> tokens_of(std::string_view sql);

/// The name a word or quoted token stands for.
std::string name_of(const Token& token);
/// Equal without case (ASCII), as SQL compares names.
bool same_word(std::string_view a, std::string_view b);

/// `sql` without the qualifier `schema` before names: "rpd.top" becomes "top".
std::string without_qualifier(const std::string& sql, std::string_view schema);
/// Whether a name in `sql` is qualified with `schema`.
bool mentions_schema(std::string_view sql, std::string_view schema);

}  // namespace tacho::query
