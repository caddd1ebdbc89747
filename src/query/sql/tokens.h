// Splits SQL into tokens: enough of its grammar to find names and simple statements, without parsing expressions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tacho::query {

enum class TokenKind : unsigned char { kWord, kQuoted, kString, kNumber, kSymbol };

struct Token {
  TokenKind kind;
  std::string_view text;  // as written; quoted names and strings keep their quotes
  size_t at;              // byte offset in the statement
};

/// Words, names, strings, numbers and symbols, without comments and white space. An unclosed string ends with the text.
/// The tokens point into `sql`.
std::vector<Token> tokens_of(std::string_view sql);

/// The name that a word or quoted token stands for.
std::string name_of(const Token& token);
/// True if equal apart from case (ASCII): how SQL compares names.
bool same_word(std::string_view a, std::string_view b);

}  // namespace tacho::query
