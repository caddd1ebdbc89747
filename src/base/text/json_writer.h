// Writes JSON step by step and adds commas, quotes and escapes. It writes into a string, an OutputFile or space that
// the caller has reserved. Each step is cheap enough for exporters that write tens of millions of events.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/output_file.h"
#include "base/text/decimal.h"

namespace tacho {

/// `text` as a JSON string, quotes included. Escapes control characters and DEL, replaces every byte that is not valid
/// UTF-8 by U+FFFD and keeps the rest.
std::string json_quoted(std::string_view text);
/// The same, appended to `out`.
void append_json_quoted(std::string& out, std::string_view text);

/// The choices that JSON leaves to the writer.
struct JsonStyle {
  bool spaced = true;      ///< "name": value, else "name":value
  bool infinities = true;  ///< infinities become the strings "inf" and "-inf", else null like NaN
};
inline constexpr JsonStyle kCompactJson{false, false};

/// Text from the source code that needs no escaping; the compiler checks that.
class JsonLiteral {
 public:
  template <size_t N>
  consteval JsonLiteral(const char (&text)[N]) : text_(text, N - 1) {
    for (const char c : text_)
      if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) throw "a JsonLiteral is plain ASCII";
  }
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

namespace json_internal {

inline constexpr size_t kMostNumber = 32;  // characters in a number, doubles included
char* write_double(char* at, double value, JsonStyle style);

inline char* copy(char* at, std::string_view text) {
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

// The three destinations. put() takes any text. write() passes `fill` a place with room for `most` characters; `fill`
// writes there and returns the place after its last character.
struct StringSink {
  StringSink(std::string& text) : out(&text) {}
  std::string* out;
  void put(std::string_view text) { out->append(text); }
  template <typename Fill>
  void write(size_t most, Fill fill) {
    const size_t size = out->size();
    out->resize(size + most);
    char* const begin = out->data() + size;
    out->resize(size + static_cast<size_t>(fill(begin) - begin));
  }
};
struct FileSink {
  FileSink(OutputFile& file) : out(&file) {}
  static constexpr size_t kMostAtOnce = 24 * 1024;
  OutputFile* out;
  void put(std::string_view text) {
    if (text.size() > kMostAtOnce) return out->write(text);
    copy(out->reserve(text.size()), text);
    out->advance(text.size());
  }
  template <typename Fill>
  void write(size_t most, Fill fill) {
    char* const begin = out->reserve(most);
    out->advance(static_cast<size_t>(fill(begin) - begin));
  }
};
struct RoomSink {
  char* at;
  void put(std::string_view text) { at = copy(at, text); }
  template <typename Fill>
  void write(size_t, Fill fill) {
    at = fill(at);
  }
};

}  // namespace json_internal

/// The caller ends objects and arrays, in order. Numbers are exact: a double becomes the shortest text that reads back
/// as the same double; NaN becomes null.
template <typename Sink>
class BasicJsonWriter {
 public:
  explicit BasicJsonWriter(Sink sink, JsonStyle style = {}) : sink_(sink), style_(style) {}

  BasicJsonWriter& begin_object() { return open('{'); }
  BasicJsonWriter& end_object() { return close('}'); }
  BasicJsonWriter& begin_array() { return open('['); }
  BasicJsonWriter& end_array() { return close(']'); }

  /// The name of a member; its value comes next.
  BasicJsonWriter& key(std::string_view name) {
    separate();
    append_quoted(name);
    return after_name();
  }
  /// The same for a name that needs no escaping.
  BasicJsonWriter& name(JsonLiteral name) {
    sink_.write(name.text().size() + 6, [&](char* at) { return put_name(at, name.text()); });
    first_ = false;
    after_key_ = true;
    return *this;
  }

  BasicJsonWriter& value(std::string_view text) {
    separate();
    append_quoted(text);
    return *this;
  }
  BasicJsonWriter& value(const char* text) { return value(std::string_view(text)); }
  BasicJsonWriter& value(bool boolean) { return ready(boolean ? "true" : "false"); }
  BasicJsonWriter& value(double number) {
    separate();
    sink_.write(json_internal::kMostNumber, [&](char* at) { return json_internal::write_double(at, number, style_); });
    return *this;
  }
  template <std::integral Number>
  BasicJsonWriter& value(Number number) {
    separate();
    sink_.write(kMostDigits, [&](char* at) { return put_number(at, number); });
    return *this;
  }
  BasicJsonWriter& null() { return ready("null"); }
  /// A string value that needs no escaping.
  BasicJsonWriter& text(JsonLiteral text) {
    separate();
    sink_.write(text.text().size() + 2, [&](char* at) {
      *at++ = '"';
      at = json_internal::copy(at, text.text());
      *at++ = '"';
      return at;
    });
    return *this;
  }
  /// Nanoseconds as a number of microseconds with three decimals.
  BasicJsonWriter& microseconds(int64_t nanoseconds) {
    separate();
    sink_.write(kMostDigits + 2, [&](char* at) { return write_microseconds(at, nanoseconds); });
    return *this;
  }

  /// name() and value() in one step.
  template <std::integral Number>
  BasicJsonWriter& member(JsonLiteral name, Number number) {
    sink_.write(name.text().size() + 6 + kMostDigits,
                [&](char* at) { return put_number(put_name(at, name.text()), number); });
    first_ = false;
    return *this;
  }
  template <typename Value>
  requires(!std::integral<Value>) BasicJsonWriter& member(JsonLiteral name, const Value& value) {
    return this->name(name).value(value);
  }
  BasicJsonWriter& member(JsonLiteral name, bool boolean) { return this->name(name).value(boolean); }

  /// A value that is JSON already.
  BasicJsonWriter& ready(std::string_view json) {
    separate();
    sink_.put(json);
    return *this;
  }
  /// Members or elements that are JSON already, with the commas between them; an empty text adds nothing. The text may
  /// end with the '{' or '[' of an object or array, into which the caller writes next.
  BasicJsonWriter& splice(std::string_view json) {
    if (json.empty()) return *this;
    separate();
    sink_.put(json);
    first_ = json.back() == '{' || json.back() == '[';
    return *this;
  }

  /// Breaks the line before the next member or element, after the comma if it needs one.
  BasicJsonWriter& newline() {
    sink_.put(first_ || after_key_ ? "\n" : ",\n");
    if (!after_key_) first_ = true;
    return *this;
  }
  /// The same, except before the first member or element.
  BasicJsonWriter& newline_between() { return first_ ? *this : newline(); }
  /// Breaks the line where no comma may follow: before the end of an object or array, or at the very end.
  BasicJsonWriter& end_line() {
    sink_.put("\n");
    return *this;
  }

  /// For hot loops over an OutputFile: calls `steps` with a writer that continues this one and does not check for room
  /// at each step. `steps` may write at most `most` characters (64 KiB or less).
  template <typename Steps>
  BasicJsonWriter& burst(size_t most, Steps steps) {
    sink_.write(most, [&](char* at) {
      BasicJsonWriter<json_internal::RoomSink> room(json_internal::RoomSink{at}, style_);
      room.first_ = first_;
      room.after_key_ = after_key_;
      steps(room);
      first_ = room.first_;
      after_key_ = room.after_key_;
      return room.sink_.at;
    });
    return *this;
  }

 private:
  template <typename>
  friend class BasicJsonWriter;

  void separate() {
    if (!first_ && !after_key_) sink_.put(",");
    first_ = false;
    after_key_ = false;
  }
  BasicJsonWriter& open(char bracket) {
    separate();
    sink_.put({&bracket, 1});
    first_ = true;
    return *this;
  }
  BasicJsonWriter& close(char bracket) {
    sink_.put({&bracket, 1});
    first_ = false;
    return *this;
  }
  BasicJsonWriter& after_name() {
    sink_.put(style_.spaced ? ": " : ":");
    after_key_ = true;
    return *this;
  }
  char* put_name(char* at, std::string_view name) {
    if (!first_) *at++ = ',';
    *at++ = '"';
    at = json_internal::copy(at, name);
    *at++ = '"';
    *at++ = ':';
    if (style_.spaced) *at++ = ' ';
    return at;
  }
  template <std::integral Number>
  static char* put_number(char* at, Number number) {
    if constexpr (std::unsigned_integral<Number>)
      return write_unsigned(at, number);
    else
      return write_signed(at, number);
  }
  void append_quoted(std::string_view text) {
    if constexpr (std::same_as<Sink, json_internal::StringSink>)
      append_json_quoted(*sink_.out, text);
    else
      sink_.put(json_quoted(text));
  }

  Sink sink_;
  JsonStyle style_;
  bool first_ = true;
  bool after_key_ = false;
};

/// Appends to a string, which must outlive the writer.
using JsonWriter = BasicJsonWriter<json_internal::StringSink>;
/// Writes into an OutputFile, which must outlive the writer.
using JsonFileWriter = BasicJsonWriter<json_internal::FileSink>;

}  // namespace tacho
