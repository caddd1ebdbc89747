// A strict walk through a JSON value (json_check.h).
#include "base/text/json_check.h"

#include <algorithm>

#include "base/text/utf8.h"

namespace tacho {
namespace {

class JsonWalk {
 public:
  explicit JsonWalk(std::string_view text) : rest_(text) {}

  bool whole() { return value(0) && peek() == '\0' && rest_.empty(); }

 private:
  static constexpr int kDeepest = 64;

  // The next character that is not white space; '\0' at the end.
  char peek() {
    const size_t at = rest_.find_first_not_of(" \n\r\t");
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at);
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool digits() {
    const size_t count = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    rest_.remove_prefix(count);
    return count > 0;
  }

  bool value(int depth) {
    switch (peek()) {
      case '"':
        return string();
      case '[':
        return list(']', depth, false);
      case '{':
        return list('}', depth, true);
      case 't':
        return take("true");
      case 'f':
        return take("false");
      case 'n':
        return take("null");
      default:
        return number();
    }
  }

  bool number() {
    take("-");
    if (!take("0") && !digits()) return false;
    if (take(".") && !digits()) return false;
    if (!take("e") && !take("E")) return true;
    if (!take("+")) take("-");
    return digits();
  }

  bool string() {
    rest_.remove_prefix(1);
    while (!rest_.empty()) {
      if (take("\"")) return true;
      if (take("\\")) {
        if (!escape()) return false;
        continue;
      }
      const CodePoint next = next_code_point(rest_);
      if (!next.valid || next.value < 0x20) return false;
      rest_.remove_prefix(next.length);
    }
    return false;
  }

  bool escape() {
    const size_t length = rest_.starts_with('u') ? 5 : 1;
    if (rest_.size() < length) return false;
    const std::string_view code = rest_.substr(0, length);
    rest_.remove_prefix(length);
    if (length == 1) return std::string_view("\"\\/bfnrt").find(code.front()) != std::string_view::npos;
    return code.substr(1).find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  }

  bool list(char close, int depth, bool members) {
    if (depth == kDeepest) return false;
    rest_.remove_prefix(1);
    if (peek() == close) return take({&close, 1});
    while (true) {
      if (members) {
        if (peek() != '"' || !string() || peek() != ':') return false;
        rest_.remove_prefix(1);
      }
      if (!value(depth + 1)) return false;
      if (peek() == close) return take({&close, 1});
      if (!take(",")) return false;
    }
  }

  std::string_view rest_;
};

}  // namespace

bool is_json(std::string_view text) {
  return JsonWalk(text).whole();
}

}  // namespace tacho
