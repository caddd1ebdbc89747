// Regular expressions as ECMAScript has them, for the commands that promise these. std::regex takes seconds to compile:
// it is behind regular_expression.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho::cli {

class RegularExpression {
 public:
  /// Fails with what is wrong with `text`.
  static Result<RegularExpression> make(const std::string& text, bool ignore_case = false);
  /// Whether it matches the whole text, or a part of it.
  bool matches(std::string_view text) const;
  bool occurs_in(std::string_view text) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace tacho::cli
