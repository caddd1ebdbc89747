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

class Value {
 public:
  using Member = std::pair<std::string_view, Value>;

  Value() = default;  ///< null
  Value(bool boolean) : value_(boolean) {}
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) Value(Number number) : value_(static_cast<int64_t>(number)) {}
  Value(double number) : value_(number) {}  ///< NaN is null, infinities are the words "inf" and "-inf"
  Value(std::string text) : value_(std::move(text)) {}
  Value(std::string_view text) : value_(std::string(text)) {}
  Value(const char* text) : value_(std::string(text)) {}
  /// A table: {"id", "title", "columns": [...], "rows": [[...], ...]}, a row on each line.
  static Value table(Answer answer);
  static Value of(const Cell& cell);
  static Value object(std::initializer_list<Member> members);
  static Value list(std::initializer_list<Value> elements = {});
  /// A list with each element on a line of its own.
  static Value lines();
  template <typename Range>
  static Value list_of(const Range& range) {
    Value list = Value::list();
    for (const auto& each : range) list.add(Value(each));
    return list;
  }

  /// Appends to a list.
  void add(Value element);
  /// Appends to an object; names stay in this order.
  void set(std::string_view name, Value value);

  /// Appends the document, without a newline at its end.
  void write(JsonWriter& json) const;
  std::string text() const;

 private:
  struct List {
    std::vector<Value> elements;
    bool lines = false;
  };
  using Object = std::vector<std::pair<std::string, Value>>;
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Object> value_;
};

/// An object whose lists may be long: what was added goes out in pieces of about a megabyte.
class ValueStream {
 public:
  using Put = std::function<void(std::string_view)>;
  explicit ValueStream(Put put);
  ValueStream(const ValueStream&) = delete;
  ValueStream& operator=(const ValueStream&) = delete;

  void set(std::string_view name, const Value& value);
  /// A member that is a list with each element on a line of its own: then add() each, then end_lines().
  void begin_lines(std::string_view name);
  void add(const Value& element);
  void end_lines();
  /// Ends the object and the line, and puts out the rest.
  void end();

 private:
  Put put_;
  std::string text_;
  JsonWriter json_;
};

}  // namespace tacho::report
