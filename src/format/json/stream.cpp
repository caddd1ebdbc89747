// Reads tokens from the moving window (stream.h).
#include "format/json/stream.h"

namespace tacho::format::json {

Result<JsonStream> JsonStream::open(const std::string& path) {
  JsonStream stream;
  TACHO_ASSIGN(stream.input_, InputWindow::open(path));
  return stream;
}

bool JsonStream::bad(std::string_view what) {
  if (!ok()) return false;
  if (!input_->status()) {
    status_ = input_->status();
  } else {
    status_ = fail("{}: at byte {}: {}", input_->path(), input_->offset(), what);
  }
  return false;
}

// Reads one token; reads it again with more text if the window ended inside it.
template <typename Read>
bool JsonStream::retry(Read read) {
  while (ok()) {
    JsonTokens json(input_->begin(), input_->end());
    switch (read(json)) {
      case JsonOutcome::kOk:
        input_->consume(json.at());
        return true;
      case JsonOutcome::kBad:
        return bad(json.what());
      case JsonOutcome::kMore:
        if (!input_->more())
          return bad(input_->at_end() ? "the file ends here, in the middle of its text"
                                      : "one value is longer than 64 MiB");
    }
  }
  return false;
}

char JsonStream::peek() {
  while (ok()) {
    JsonTokens json(input_->begin(), input_->end());
    const char c = json.peek();
    input_->consume(json.at());
    if (json.at() < input_->end()) return c;
    if (!input_->more()) {
      if (!input_->status()) bad("");
      return 0;
    }
  }
  return 0;
}

bool JsonStream::expect(char c) {
  const char next = peek();
  if (!ok()) return false;
  if (next == 0) return bad("the file ends here, in the middle of its text");
  if (next != c) return bad(fmt::format("'{}' was expected", c));
  input_->consume(input_->begin() + 1);
  return true;
}

bool JsonStream::string(std::string& text) {
  return retry([&](JsonTokens& json) {
    std::string_view view;
    bool escaped = false;
    const JsonOutcome outcome = json.raw_string(view, escaped);
    if (outcome == JsonOutcome::kOk) {
      if (escaped)
        JsonTokens::unescape(view, text);
      else
        text.assign(view);
    }
    return outcome;
  });
}

bool JsonStream::word(std::string& text) {
  return retry([&](JsonTokens& json) {
    std::string_view view;
    const JsonOutcome outcome = json.word(view);
    if (outcome == JsonOutcome::kOk) text.assign(view);
    return outcome;
  });
}

int64_t JsonStream::integer() {
  std::string text;
  int64_t value = 0;
  if (!word(text) || text == "null") return 0;
  if (text == "true") return 1;
  if (text == "false") return 0;
  if (!json::integer(text, value)) bad(fmt::format("'{}' is not a whole number", text.substr(0, 40)));
  return value;
}

double JsonStream::real() {
  std::string text;
  double value = 0;
  if (!word(text) || text == "null") return 0;
  if (!json::real(text, value)) bad(fmt::format("'{}' is not a number", text.substr(0, 40)));
  return value;
}

int64_t JsonStream::handle() {
  if (peek() != '{') return integer();
  int64_t value = 0;
  object([&](std::string_view key) {
    if (key == "handle")
      value = integer();
    else
      skip();
  });
  return value;
}

bool JsonStream::skip() {
  return skip_nested(0);
}

bool JsonStream::skip_nested(int depth) {
  if (depth > kDeepest) return bad("nested too deeply");
  std::string ignored;
  switch (peek()) {
    case '{':
      return object([&](std::string_view) { skip_nested(depth + 1); });
    case '[':
      return array([&] { skip_nested(depth + 1); });
    case '"':
      return string(ignored);
    default:
      return word(ignored);
  }
}

}  // namespace tacho::format::json
