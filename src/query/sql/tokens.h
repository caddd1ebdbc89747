// Splits SQL into words: enough of its grammar to find names and simple statements, without parsing
// expressions.
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

/// Words, names, strings, numbers and symbols, without comments and space. An unclosed string ends with the
/// text.
std::vector<Token> tokens_of(std::string_view sql);

/// The name that a word or quoted token spells.
std::string name_of(const Token& token);
/// Equal without case (ASCII), as SQL compares names.
bool same_word(std::string_view a, std::string_view b);

}  // namespace tacho::query
