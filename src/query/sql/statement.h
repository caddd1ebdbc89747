// Splits a statement into tokens once and answers the questions that decide which engine runs it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "query/sql/tokens.h"

namespace tacho::query {

class Statement {
 public:
  explicit Statement(std::string text) : text_(std::move(text)), tokens_(tokens_of(text_)) {}
  Statement(const Statement&) = delete;  // the tokens point into the text
  Statement& operator=(const Statement&) = delete;

  const std::string& text() const { return text_; }
  std::span<const Token> tokens() const { return tokens_; }

  /// True if a name is qualified with `schema` ("rpd" in rpd.top).
  bool names_schema(std::string_view schema) const;
  /// The text without the qualifier `schema`: "rpd.top" becomes "top".
  std::string without_schema(std::string_view schema) const;

  /// True if `name` occurs anywhere outside strings, as a word or a quoted name.
  bool mentions(std::string_view name) const;
  /// True if the statement has JOIN, or a comma between tables.
  bool joins() const;
  /// The names after FROM, JOIN, IN and the commas between tables, in the statement's order, repeats included. Leaves
  /// out names that WITH defines.
  std::vector<std::string> tables() const;
  /// The same with the schema that qualifies each name, "" where none does.
  struct TableName {
    std::string schema, name;
  };
  std::vector<TableName> qualified_tables() const;

 private:
  bool is_name(size_t token) const;
  bool qualifies(size_t token, std::string_view schema) const;
  struct Source {
    size_t token;  // of the name, after its schema
    bool joined;
  };
  std::vector<Source> sources() const;

  std::string text_;
  std::vector<Token> tokens_;
};

}  // namespace tacho::query
