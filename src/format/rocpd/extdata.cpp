// Finds members of JSON objects (extdata.h).
#include "format/rocpd/extdata.h"

#include "event/schema.h"
#include "format/json/tokens.h"

namespace tacho::format::rocpd {
namespace {

using json::JsonOutcome;
using json::JsonTokens;

// Calls found(json) at the value of the member `key`; false if the object has no such member or is damaged before it.
bool at_member(std::string_view object, std::string_view key, auto found) {
  if (object.find(key) == std::string_view::npos) return false;
  std::string text(object);
  text.append(64, '\0');
  JsonTokens json(text.data(), text.data() + object.size());
  if (json.expect('{') != JsonOutcome::kOk) return false;
  while (json.peek() == '"') {
    std::string_view name;
    bool escaped = false;
    if (json.raw_string(name, escaped) != JsonOutcome::kOk || json.expect(':') != JsonOutcome::kOk) return false;
    if (name == key) return found(json);
    if (json.skip() != JsonOutcome::kOk) return false;
    if (json.peek() == ',') json.step();
  }
  return false;
}

}  // namespace

bool text_member(std::string_view object, std::string_view key, std::string& value) {
  return at_member(object, key, [&](JsonTokens& json) {
    std::string_view found;
    std::string buffer;
    if (json.peek() != '"' || json.string(found, buffer) != JsonOutcome::kOk) return false;
    value = found;
    return true;
  });
}

int64_t number_member(std::string_view object, std::string_view key) {
  int64_t value = event::kUnknown;
  at_member(object, key, [&](JsonTokens& json) {
    std::string_view word;
    return json.peek() != '"' && json.word(word) == JsonOutcome::kOk && json::integer(word, value);
  });
  return value;
}

}  // namespace tacho::format::rocpd
