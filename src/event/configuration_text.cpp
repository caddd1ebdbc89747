// Writing a configuration, and its list of keys as data (configuration_text.h).
#include "event/configuration_text.h"

#include "base/format.h"

namespace tacho::event {
namespace {

void line(std::string& out, std::string_view key, bool value, bool otherwise) {
  if (value != otherwise) out += fmt::format("{}={}\n", key, value ? 1 : 0);
}
void line(std::string& out, std::string_view key, uint32_t value, uint32_t otherwise) {
  if (value != otherwise) out += fmt::format("{}={}\n", key, value);
}
template <typename Choice>
void choice_line(std::string& out, std::string_view key, Choice value, Choice otherwise) {
  if (value != otherwise) out += fmt::format("{}={}\n", key, kChoiceNames<Choice>[static_cast<uint8_t>(value)]);
}

template <typename Choice>
std::string name_of(Choice value) {
  return std::string(kChoiceNames<Choice>[static_cast<uint8_t>(value)]);
}

template <typename Choice>
std::string names_of() {
  std::string out;
  for (const std::string_view name : kChoiceNames<Choice>) out += fmt::format("{}`{}`", out.empty() ? "" : ", ", name);
  return out;
}

}  // namespace

Result<std::string> to_text(const Configuration& configuration) {
  const Configuration otherwise;
  std::string out;
  const auto text_line = [&](std::string_view key, const std::string& text) -> Status {
    if (text.find_first_of(std::string_view("\n\0", 2)) != std::string::npos)
      return fail("{}: a line break cannot be in it", key);
    if (!text.empty()) out += fmt::format("{}={}\n", key, text);
    return {};
  };
#define TACHO_FLAG(key, meaning) line(out, #key, configuration.key, otherwise.key);
#define TACHO_NUMBER(key, fallback, least, most, meaning) line(out, #key, configuration.key, otherwise.key);
#define TACHO_CHOICE(key, type, fallback, meaning) choice_line(out, #key, configuration.key, otherwise.key);
#define TACHO_TEXT(key, meaning) TACHO_TRY(text_line(#key, configuration.key));
  TACHO_CONFIGURATION_KEYS(TACHO_FLAG, TACHO_NUMBER, TACHO_CHOICE, TACHO_TEXT)
#undef TACHO_FLAG
#undef TACHO_NUMBER
#undef TACHO_CHOICE
#undef TACHO_TEXT
  return out;
}

std::vector<ConfigurationKey> configuration_keys() {
  return {
#define TACHO_FLAG(key, meaning) {#key, "flag", "0", meaning},
#define TACHO_NUMBER(key, otherwise, least, most, meaning) \
  {#key, fmt::format("number, {} to {}", least, most), fmt::format("{}", otherwise), meaning},
#define TACHO_CHOICE(key, type, otherwise, meaning) {#key, names_of<type>(), name_of(type::otherwise), meaning},
#define TACHO_TEXT(key, meaning) {#key, "text", "", meaning},
      TACHO_CONFIGURATION_KEYS(TACHO_FLAG, TACHO_NUMBER, TACHO_CHOICE, TACHO_TEXT)
#undef TACHO_FLAG
#undef TACHO_NUMBER
#undef TACHO_CHOICE
#undef TACHO_TEXT
  };
}

}  // namespace tacho::event
