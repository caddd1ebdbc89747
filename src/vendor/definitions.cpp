// The tables that vendors.def makes (definitions.h).
#include "vendor/definitions.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "vendor/call_roles.h"

namespace tacho::vendor {
namespace {

using event::Domain;

constexpr size_t kDomains = static_cast<size_t>(Domain::kEnd);

constexpr ApiDefinition kApis[] = {
#define TACHO_API(domain, family, kind, failure) {Domain::domain, family, kind, FailureRule::failure},
#include "vendor/vendors.def"
};

// The place of each domain in kApis; -1 where it has none.
constexpr auto kPlaces = [] {
  std::array<int8_t, kDomains> places{};
  places.fill(-1);
  for (size_t i = 0; i < std::size(kApis); ++i) places[static_cast<size_t>(kApis[i].domain)] = static_cast<int8_t>(i);
  return places;
}();

constexpr struct {
  std::string_view family;
  int64_t result;
} kNoFailures[] = {
#define TACHO_NO_FAILURE(family, result) {family, result},
#include "vendor/vendors.def"
};

constexpr struct {
  std::string_view family;
  int64_t result;
} kOutOfMemory[] = {
#define TACHO_OUT_OF_MEMORY(family, result) {family, result},
#include "vendor/vendors.def"
};

constexpr struct {
  Domain domain;
  std::string_view text;
  bool capital_follows;
} kPrefixes[] = {
#define TACHO_PREFIX(domain, text) {Domain::domain, text, false},
#define TACHO_PREFIX_CAPITAL(domain, text) {Domain::domain, text, true},
#include "vendor/vendors.def"
};

constexpr struct {
  event::CallRole role;
  std::string_view name;
} kRoles[] = {
#define TACHO_CALL_ROLE(role, name) {event::CallRole::role, name},
#include "vendor/vendors.def"
};

constexpr struct {
  Domain domain;
  std::string_view text;
} kWords[] = {
#define TACHO_WORD(domain, text) {Domain::domain, text},
#include "vendor/vendors.def"
};

constexpr std::string_view kMarkerLibraries[] = {
#define TACHO_MARKERS(library) library,
#include "vendor/vendors.def"
};
constexpr std::string_view kSourceEndings[] = {
#define TACHO_SOURCE_ENDING(ending) ending,
#include "vendor/vendors.def"
};
constexpr std::string_view kSoftware[] = {
#define TACHO_SOFTWARE(folder) folder,
#include "vendor/vendors.def"
};
constexpr std::string_view kSoftwareBelow[] = {
#define TACHO_SOFTWARE_BELOW(folder) folder,
#include "vendor/vendors.def"
};
constexpr const char* kDeviceFiles[] = {
#define TACHO_DEVICE_FILE(path) path,
#include "vendor/vendors.def"
};
constexpr const char* kVersionFiles[] = {
#define TACHO_VERSION_FILE(path) path,
#include "vendor/vendors.def"
};
constexpr std::string_view kVariables[] = {
#define TACHO_VARIABLE(prefix) prefix,
#include "vendor/vendors.def"
};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool contains_letters(std::string_view text, std::string_view lowercase) {
  return std::search(text.begin(), text.end(), lowercase.begin(), lowercase.end(),
                     [](char a, char b) { return lower(a) == b; }) != text.end();
}

}  // namespace

const ApiDefinition* api_definition(Domain domain) {
  const auto at = static_cast<size_t>(domain);
  return at < kDomains && kPlaces[at] >= 0 ? &kApis[kPlaces[at]] : nullptr;
}

std::string_view api_family(Domain domain) {
  const ApiDefinition* const api = api_definition(domain);
  return api != nullptr ? api->family : std::string_view();
}

bool call_failed(Domain domain, int64_t result) {
  const ApiDefinition* const api = api_definition(domain);
  if (api == nullptr || result == 0 || result == event::kUnknown) return false;
  if (api->failure == FailureRule::kNegative && result > 0) return false;
  if (api->failure == FailureRule::kPositive && result < 0) return false;
  return std::none_of(std::begin(kNoFailures), std::end(kNoFailures),
                      [&](const auto& known) { return known.result == result && known.family == api->family; });
}

bool out_of_memory(Domain domain, int64_t result) {
  const std::string_view family = api_family(domain);
  return std::any_of(std::begin(kOutOfMemory), std::end(kOutOfMemory),
                     [&](const auto& known) { return known.result == result && known.family == family; });
}

Domain domain_by_prefix(std::string_view function) {
  for (const auto& known : kPrefixes) {
    if (!function.starts_with(known.text)) continue;
    if (!known.capital_follows) return known.domain;
    if (const size_t next = known.text.size(); next < function.size() && function[next] >= 'A' && function[next] <= 'Z')
      return known.domain;
  }
  return Domain::kUnknown;
}

Domain domain_by_word(std::string_view word) {
  for (const auto& known : kWords)
    if (contains_letters(word, known.text)) return known.domain;
  return Domain::kUnknown;
}

event::CallRole call_role(std::string_view function) {
  const std::string_view plain = function.substr(0, function.find('_'));
  for (const auto& each : kRoles)
    if (plain == each.name) return each.role;
  return event::CallRole::kPlain;
}

bool is_marker_library(std::string_view domain) {
  return std::find(std::begin(kMarkerLibraries), std::end(kMarkerLibraries), domain) != std::end(kMarkerLibraries);
}

bool is_vendor_software(std::string_view path) {
  return std::any_of(std::begin(kSoftware), std::end(kSoftware),
                     [&](std::string_view folder) { return path.starts_with(folder); }) ||
         std::any_of(std::begin(kSoftwareBelow), std::end(kSoftwareBelow),
                     [&](std::string_view folder) { return path.find(folder) != std::string_view::npos; });
}

bool is_vendor_source(std::string_view path) {
  return std::any_of(std::begin(kSourceEndings), std::end(kSourceEndings),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

std::span<const char* const> device_files() {
  return kDeviceFiles;
}
std::span<const char* const> version_files() {
  return kVersionFiles;
}
std::span<const std::string_view> variable_prefixes() {
  return kVariables;
}

}  // namespace tacho::vendor
