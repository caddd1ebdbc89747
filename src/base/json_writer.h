// Writes JSON step by step and adds commas, quotes and escapes. It writes into a string, into an OutputFile,
// or into space that the caller has reserved. Its steps are cheap enough for exporters of tens of millions of
// events.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/decimal.h"
#include "base/output_file.h"

namespace tacho {

/// `text` as a JSON string with its quotes. Control characters and DEL are escaped; every byte that is not
/// valid UTF-8 becomes U+FFFD; the rest stays as it is.
std::string json_quoted(std::string_view text);
/// The same, appended to `out`.
void append_json_quoted(std::string& out, std::string_view text);

/// What JSON leaves to the writer.
struct JsonStyle {
  bool spaced = true;      ///< "name": value, else "name":value
  bool infinities = true;  ///< infinities are the strings "inf" and "-inf", else null as NaN is
};
inline constexpr JsonStyle kCompactJson{false, false};

/// Text that stands in the source and needs no escaping, which the compiler checks.
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

inline constexpr size_t kMostNumber = 32;  // characters of a number, a double's included
char* write_double(char* at, double value, JsonStyle style);

inline char* copy(char* at, std::string_view text) {
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

// The three places to write to. put(): any text; write(): what `fill`, given a place, writes there, `most`
// characters at most; it returns the place after it.
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

/// Objects and arrays have to be ended by the caller, in order. Numbers are exact: doubles are the shortest
/// text that reads back as the same double, NaN is null.
template <typename Sink>
class BasicJsonWriter {
 public:
  explicit BasicJsonWriter(Sink sink, JsonStyle style = {}) : sink_(sink), style_(style) {}

  BasicJsonWriter& begin_object() { return open('{'); }
  BasicJsonWriter& end_object() { return close('}'); }
  BasicJsonWriter& begin_array() { return open('['); }
  BasicJsonWriter& end_array() { return close(']'); }

  /// The name of the member whose value comes next.
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
    sink_.write(json_internal::kMostNumber,
                [&](char* at) { return json_internal::write_double(at, number, style_); });
    return *this;
  }
  template <std::integral Number>
  BasicJsonWriter& value(Number number) {
    separate();
    sink_.write(kMostDigits, [&](char* at) { return put_number(at, number); });
    return *this;
  }
  BasicJsonWriter& null() { return ready("null"); }
  /// A string that needs no escaping.
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

  /// One value that is JSON already.
  BasicJsonWriter& ready(std::string_view json) {
    separate();
    sink_.put(json);
    return *this;
  }
  /// Members or elements that are JSON already, with the commas between them; none where it is empty. The
  /// last may be an object or array that has been begun and nothing more: what comes next goes into it.
  BasicJsonWriter& splice(std::string_view json) {
    if (json.empty()) return *this;
    separate();
    sink_.put(json);
    first_ = json.back() == '{' || json.back() == '[';
    return *this;
  }

  /// A line break before the next member or element, after the comma that it needs.
  BasicJsonWriter& newline() {
    sink_.put(first_ || after_key_ ? "\n" : ",\n");
    if (!after_key_) first_ = true;
    return *this;
  }
  /// The same, but none before the first.
  BasicJsonWriter& newline_between() { return first_ ? *this : newline(); }
  /// A line break where no comma may come: before an end, or after all.
  BasicJsonWriter& end_line() {
    sink_.put("\n");
    return *this;
  }

  /// For hot loops over an OutputFile: `steps` gets a writer in this one's place that writes, without looking
  /// for room at each step, at most `most` characters (64 KiB at most).
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

/// Appends to a string.
using JsonWriter = BasicJsonWriter<json_internal::StringSink>;
/// Writes into an OutputFile.
using JsonFileWriter = BasicJsonWriter<json_internal::FileSink>;

}  // namespace tacho
