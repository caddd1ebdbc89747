// Documents of values (value.h).
#include "report/value.h"

namespace tacho::report {

// Out of line: GCC 12 warns of members of a variant that it does not hold where moves are inlined.
JsonValue::JsonValue(const JsonValue&) = default;
JsonValue::JsonValue(JsonValue&&) noexcept = default;
JsonValue& JsonValue::operator=(const JsonValue&) = default;
JsonValue& JsonValue::operator=(JsonValue&&) noexcept = default;
JsonValue::~JsonValue() = default;

JsonValue JsonValue::table(Answer answer) {
  return table(exact_table(std::move(answer)));
}

JsonValue JsonValue::table(const PrintedTable& exact) {
  JsonValue columns = list(), rows = lines();
  for (const PrintedColumn& column : exact.columns) columns.add(column.title);
  for (const auto& row : exact.rows) {
    JsonValue cells = list();
    for (size_t c = 0; c < exact.columns.size(); ++c) cells.add(c < row.size() ? of(row[c]) : JsonValue());
    rows.add(std::move(cells));
  }
  return object({{"id", exact.id}, {"title", exact.title}, {"columns", std::move(columns)}, {"rows", std::move(rows)}});
}

JsonValue JsonValue::of(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> JsonValue {
        if constexpr (std::same_as<std::decay_t<decltype(value)>, std::monostate>)
          return {};
        else
          return JsonValue(value);
      },
      cell);
}

JsonValue JsonValue::object(std::initializer_list<Member> members) {
  JsonValue value;
  Object& object = value.value_.emplace<Object>();
  for (const Member& member : members) object.members.emplace_back(member.first, member.second);
  return value;
}

JsonValue JsonValue::list(std::initializer_list<JsonValue> elements) {
  JsonValue value;
  value.value_.emplace<List>().elements = elements;
  return value;
}

JsonValue JsonValue::lines() {
  JsonValue value = list();
  std::get<List>(value.value_).lines = true;
  return value;
}

JsonValue JsonValue::member_lines() {
  JsonValue value;
  value.value_.emplace<Object>().lines = true;
  return value;
}

void JsonValue::add(JsonValue element) {
  std::get<List>(value_).elements.push_back(std::move(element));
}

void JsonValue::set(std::string_view name, JsonValue value) {
  std::get<Object>(value_).members.emplace_back(name, std::move(value));
}

void JsonValue::write(JsonWriter& json) const {
  if (const auto* const list = std::get_if<List>(&value_)) {
    json.begin_array();
    for (const JsonValue& element : list->elements) {
      if (list->lines) json.newline();
      element.write(json);
    }
    json.end_array();
  } else if (std::holds_alternative<Object>(value_)) {
    json.begin_object();
    write_members(json);
    json.end_object();
  } else if (const auto* const text = std::get_if<std::string>(&value_)) {
    json.value(*text);
  } else if (const auto* const whole = std::get_if<int64_t>(&value_)) {
    json.value(*whole);
  } else if (const auto* const number = std::get_if<double>(&value_)) {
    json.value(*number);
  } else if (const auto* const boolean = std::get_if<bool>(&value_)) {
    json.value(*boolean);
  } else {
    json.null();
  }
}

void JsonValue::write_members(JsonWriter& json) const {
  const Object& object = std::get<Object>(value_);
  for (const auto& [name, value] : object.members) value.write((object.lines ? json.newline() : json).key(name));
}

std::string JsonValue::text() const {
  std::string out;
  JsonWriter json(out);
  write(json);
  return out;
}

DocumentStream::DocumentStream(Put put) : put_(std::move(put)), json_(text_) {
  json_.begin_object();
}

void DocumentStream::set(std::string_view name, const JsonValue& value) {
  value.write(json_.key(name));
}

void DocumentStream::begin_lines(std::string_view name) {
  json_.key(name).begin_array();
}

void DocumentStream::add(const JsonValue& element) {
  constexpr size_t kPiece = 1 << 20;
  if (text_.size() >= kPiece) {
    put_(text_);
    text_.clear();
  }
  element.write(json_.newline());
}

void DocumentStream::end_lines() {
  json_.end_array();
}

void DocumentStream::end() {
  json_.end_object().end_line();
  put_(text_);
  text_.clear();
}

}  // namespace tacho::report
