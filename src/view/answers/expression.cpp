// Expressions by the C library (expression.h).
#include "view/answers/expression.h"

#include <algorithm>
#include <cctype>

namespace tacho::view {

namespace {

constexpr size_t kLongestExpression = 1000;
constexpr size_t kLongestText = 4096;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// "{3000}" of "{3000}" would take gigabytes to compile: no number in braces may have more than two digits, and braces
// do not nest in groups that are repeated themselves.
bool repeats_too_much(std::string_view text) {
  size_t braces = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') continue;
    size_t digits = 0;
    for (size_t at = i + 1; at < text.size() && text[at] != '}'; ++at) {
      digits = text[at] >= '0' && text[at] <= '9' ? digits + 1 : 0;
      if (digits > 2) return true;
    }
    if (++braces > 2) return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Expression>> Expression::compile(const std::string& text, bool match_case) {
  if (text.size() > kLongestExpression)
    return fail("the expression is longer than {} characters: search for a part of the name", kLongestExpression);
  auto made = std::unique_ptr<Expression>(new Expression);
  made->match_case_ = match_case;
  if (text.find_first_of("\\^$.|?*+()[]{}") == std::string::npos) {
    made->plain_ = text;
    if (!match_case) std::transform(text.begin(), text.end(), made->plain_.begin(), lower);
    return made;
  }
  if (repeats_too_much(text)) return fail("the expression repeats too much: {{n}} goes to 99, twice at most");
  // People know \d from other dialects.
  std::string posix;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      const char next = text[++i];
      if (next == 'd')
        posix += "[0-9]";
      else if (next == 'D')
        posix += "[^0-9]";
      else if (next >= '1' && next <= '9')
        return fail("the expression refers to a group with \\{}: that is not supported here", next);
      else
        posix.append({'\\', next});
    } else {
      posix += text[i];
    }
  }
  if (const int error = regcomp(&made->regex_, posix.c_str(), REG_EXTENDED | REG_NOSUB | (match_case ? 0 : REG_ICASE));
      error != 0) {
    char message[200];
    regerror(error, &made->regex_, message, sizeof message);
    return fail("{}: is not a regular expression: {}", text, message);
  }
  made->compiled_ = true;
  return made;
}

Expression::~Expression() {
  if (compiled_) regfree(&regex_);
}

bool Expression::matches(std::string_view text) const {
  text = text.substr(0, kLongestText);
  if (compiled_) return regexec(&regex_, std::string(text).c_str(), 0, nullptr, 0) == 0;
  if (match_case_) return text.find(plain_) != std::string_view::npos;
  return std::search(text.begin(), text.end(), plain_.begin(), plain_.end(),
                     [](char a, char b) { return lower(a) == b; }) != text.end();
}

}  // namespace tacho::view
