// A regular expression as one types it into a search box: POSIX extended, or plain text if it has no special
// character.
#pragma once

#include <regex.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho::view {

class Expression {
 public:
  /// The error is one sentence that says what is wrong with the expression.
  static Result<std::unique_ptr<Expression>> compile(const std::string& text, bool match_case);
  ~Expression();
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  /// Of very long texts only the first 4 KiB are looked at.
  bool matches(std::string_view text) const;

 private:
  Expression() = default;
  std::string plain_;
  bool match_case_ = false, compiled_ = false;
  regex_t regex_{};
};

}  // namespace tacho::view
