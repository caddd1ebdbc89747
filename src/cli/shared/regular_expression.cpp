// Regular expressions by std::regex (regular_expression.h).
#include "cli/shared/regular_expression.h"

#include <regex>

namespace tacho::cli {

struct RegularExpression::Compiled {
  std::regex expression;
};

Result<RegularExpression> RegularExpression::make(const std::string& text, bool ignore_case) {
  auto flags = std::regex::ECMAScript;
  if (ignore_case) flags |= std::regex::icase;
  RegularExpression pattern;
  try {
    pattern.compiled_ = std::make_shared<const Compiled>(Compiled{std::regex(text, flags)});
  } catch (const std::regex_error& error) {
    return fail("{}", error.what());
  }
  return pattern;
}

bool RegularExpression::matches(std::string_view text) const {
  return std::regex_match(text.begin(), text.end(), compiled_->expression);
}

bool RegularExpression::occurs_in(std::string_view text) const {
  return std::regex_search(text.begin(), text.end(), compiled_->expression);
}

}  // namespace tacho::cli
