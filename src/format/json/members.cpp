// Finds members of JSON objects (members.h).
#include "format/json/members.h"

#include <algorithm>

#include "event/schema.h"
#include "format/json/tokens.h"

namespace tacho::format::json {
namespace {

// Calls take(json, name) at the value of each member, which it moves behind or stops at by returning false.
void each_member(std::string_view object, auto take) {
  std::string text(object);
  text.append(64, '\0');
  JsonTokens json(text.data(), text.data() + object.size());
  if (json.expect('{') != JsonOutcome::kOk) return;
  while (json.peek() == '"') {
    std::string_view name;
    bool escaped = false;
    if (json.raw_string(name, escaped) != JsonOutcome::kOk || json.expect(':') != JsonOutcome::kOk) return;
    if (!take(json, name)) return;
    if (json.peek() == ',') json.step();
  }
}

}  // namespace

bool text_member(std::string_view object, std::string_view key, std::string& value) {
  bool found = false;
  if (object.find(key) == std::string_view::npos) return false;
  each_member(object, [&](JsonTokens& json, std::string_view name) {
    if (name != key) return json.skip() == JsonOutcome::kOk;
    std::string_view text;
    std::string buffer;
    found = json.peek() == '"' && json.string(text, buffer) == JsonOutcome::kOk;
    if (found) value = text;
    return false;
  });
  return found;
}

void number_members(std::string_view object, std::span<const std::string_view> keys, std::span<int64_t> values) {
  std::fill(values.begin(), values.end(), event::kUnknown);
  each_member(object, [&](JsonTokens& json, std::string_view name) {
    const auto key = std::find(keys.begin(), keys.end(), name);
    const char first = json.peek();
    if (key == keys.end() || first == '"' || first == '{' || first == '[') return json.skip() == JsonOutcome::kOk;
    std::string_view word;
    if (json.word(word) != JsonOutcome::kOk) return false;
    int64_t& value = values[static_cast<size_t>(key - keys.begin())];
    if (value == event::kUnknown && !integer(word, value)) value = event::kUnknown;
    return true;
  });
}

std::string json_member(std::string_view object, std::string_view key) {
  std::string found;
  each_member(object, [&](JsonTokens& json, std::string_view name) {
    json.skip_space();
    const char* const start = json.at();
    if (json.skip() != JsonOutcome::kOk) return false;
    if (name != key) return true;
    found.assign(start, static_cast<size_t>(json.at() - start));
    return false;
  });
  return found;
}

int64_t number_member(std::string_view object, std::string_view key) {
  int64_t value = event::kUnknown;
  if (object.find(key) != std::string_view::npos) number_members(object, {&key, 1}, {&value, 1});
  return value;
}

}  // namespace tacho::format::json
