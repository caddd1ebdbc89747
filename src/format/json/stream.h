// Reads JSON token by token from a file of any size, plain or gzip, for callers that know its structure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/json/input.h"
#include "format/json/tokens.h"

namespace tacho::format::json {

/// After an error every function returns false (or 0). status() keeps the first error with its place in the file.
class JsonStream {
 public:
  static Result<JsonStream> open(const std::string& path);

  bool ok() const { return status_.has_value(); }
  /// At the end: source::SourceStream::foreign_bytes().
  std::string foreign_bytes() const { return input_->foreign_bytes(); }
  const Status& status() const { return status_; }

  /// Calls member(key) for each member of the object that comes next; `member` must consume the value.
  template <typename Member>
  bool object(Member member) {
    if (!expect('{')) return false;
    if (peek() == '}') return expect('}');
    while (ok()) {
      std::string key;  // a copy, since reading the value moves the window
      if (!string(key) || !expect(':')) return false;
      member(std::string_view(key));
      if (!ok()) return false;
      if (peek() == '}') return expect('}');
      if (!expect(',')) return false;
    }
    return false;
  }
  /// Calls element() for each element of the array that comes next; it must consume the element.
  template <typename Element>
  bool array(Element element) {
    if (!expect('[')) return false;
    if (peek() == ']') return expect(']');
    while (ok()) {
      element();
      if (!ok()) return false;
      if (peek() == ']') return expect(']');
      if (!expect(',')) return false;
    }
    return false;
  }
  bool string(std::string& text);
  /// A whole number; unsigned 64-bit ones keep their bits. null and false count as 0, true as 1.
  int64_t integer();
  double real();
  /// The number in {"handle": N}, or a plain number.
  int64_t handle();
  /// Skips a value of any size.
  bool skip();
  /// The next character that is not white space; 0 at the end.
  char peek();
  bool expect(char c);
  bool bad(std::string_view what);
  uint64_t offset() const { return input_->offset(); }

 private:
  static constexpr int kDeepest = 512;
  bool word(std::string& text);
  bool skip_nested(int depth);
  template <typename Read>
  bool retry(Read read);

  std::unique_ptr<InputWindow> input_;
  Status status_;
};

}  // namespace tacho::format::json
