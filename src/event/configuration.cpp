// Reading a configuration in a target: no allocation, nothing of the C++ run time (configuration.h).
#include "event/configuration.h"

#include <algorithm>

namespace tacho::event {
namespace {

bool read(std::string_view text, bool& out) {
  out = text == "1";
  return text == "1" || text == "0";
}

bool read_number(std::string_view text, uint32_t least, uint32_t most, uint32_t& out) {
  if (text.empty() || text.size() > 9) return false;
  uint32_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<uint32_t>(c - '0');
  }
  if (value < least || value > most) return false;
  out = value;
  return true;
}

template <typename Choice>
bool read_choice(std::string_view text, Choice& out) {
  uint8_t number = 0;
  for (const std::string_view name : kChoiceNames<Choice>) {
    if (text == name) {
      out = static_cast<Choice>(number);
      return true;
    }
    ++number;
  }
  return false;
}

bool read_line(std::string_view key, std::string_view value, ConfigurationView& out) {
#define TACHO_FLAG(name, meaning) \
  if (key == #name) return read(value, out.name);
#define TACHO_NUMBER(name, otherwise, least, most, meaning) \
  if (key == #name) return read_number(value, least, most, out.name);
#define TACHO_CHOICE(name, type, otherwise, meaning) \
  if (key == #name) return read_choice(value, out.name);
#define TACHO_TEXT(name, meaning) \
  if (key == #name) {             \
    out.name = value;             \
    return true;                  \
  }
  TACHO_CONFIGURATION_KEYS(TACHO_FLAG, TACHO_NUMBER, TACHO_CHOICE, TACHO_TEXT)
#undef TACHO_FLAG
#undef TACHO_NUMBER
#undef TACHO_CHOICE
#undef TACHO_TEXT
  return false;
}

}  // namespace

// string_view::substr would bring the C++ run time's exceptions into libtacho.so.
std::string_view parse(std::string_view lines, ConfigurationView& out) {
  std::string_view wrong;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line(lines.data(), end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    const bool known = equals != std::string_view::npos &&
                       read_line({line.data(), equals}, {line.data() + equals + 1, line.size() - equals - 1}, out);
    if (!known && wrong.empty()) wrong = line;
  }
  return wrong;
}

}  // namespace tacho::event
