// JSON documents that are more than one table: values, lists and objects as commands build them.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "report/answer.h"

namespace tacho::report {

class JsonValue {
 public:
  using Member = std::pair<std::string_view, JsonValue>;

  JsonValue() = default;  ///< null
  JsonValue(const JsonValue&);
  JsonValue(JsonValue&&) noexcept;
  JsonValue& operator=(const JsonValue&);
  JsonValue& operator=(JsonValue&&) noexcept;
  ~JsonValue();
  JsonValue(bool boolean) : value_(boolean) {}
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) JsonValue(Number number) : value_(static_cast<int64_t>(number)) {}
  JsonValue(double number) : value_(number) {}  ///< NaN is null, infinities are the words "inf" and "-inf"
  JsonValue(std::string text) : value_(std::move(text)) {}
  JsonValue(std::string_view text) : value_(std::string(text)) {}
  JsonValue(const char* text) : value_(std::string(text)) {}
  /// A table: {"id", "title", "columns": [...], "rows": [[...], ...]}, a row on each line.
  static JsonValue table(Answer answer);
  static JsonValue table(const PrintedTable& exact);
  static JsonValue of(const Cell& cell);
  static JsonValue object(std::initializer_list<Member> members);
  static JsonValue list(std::initializer_list<JsonValue> elements = {});
  /// A list with each element on a line of its own, and an object with each member on one.
  static JsonValue lines();
  static JsonValue member_lines();
  template <typename Range>
  static JsonValue list_of(const Range& range) {
    JsonValue list = JsonValue::list();
    for (const auto& each : range) list.add(JsonValue(each));
    return list;
  }

  /// Appends to a list.
  void add(JsonValue element);
  /// Appends to an object; names stay in this order.
  void set(std::string_view name, JsonValue value);

  /// Appends the document, without a newline at its end.
  void write(JsonWriter& json) const;
  /// Appends the members of an object to one that the caller has begun.
  void write_members(JsonWriter& json) const;
  std::string text() const;

 private:
  struct List {
    std::vector<JsonValue> elements;
    bool lines = false;
  };
  struct Object {
    std::vector<std::pair<std::string, JsonValue>> members;
    bool lines = false;
  };
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Object> value_;
};

/// An object whose lists may be long: what was added goes out in pieces of about a megabyte.
class DocumentStream {
 public:
  using Put = std::function<void(std::string_view)>;
  explicit DocumentStream(Put put);
  DocumentStream(const DocumentStream&) = delete;
  DocumentStream& operator=(const DocumentStream&) = delete;

  void set(std::string_view name, const JsonValue& value);
  /// A member that is a list with each element on a line of its own: then add() each, then end_lines().
  void begin_lines(std::string_view name);
  void add(const JsonValue& element);
  void end_lines();
  /// Ends the object and the line, and puts out the rest.
  void end();

 private:
  Put put_;
  std::string text_;
  JsonWriter json_;
};

}  // namespace tacho::report
