// The settings of system profiling: rocprof-sys's names (ROCPROFSYS_*), read from config files, the
// environment and options, in that order. One table explains each setting and says whether tacho supports it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tacho::cli::sys {

enum class SettingKind : uint8_t { kBool, kInteger, kReal, kText };
enum class SettingUse : uint8_t {
  kUsed,         // changes a file, a track or a column
  kUnsupported,  // listed; setting it to anything but its default warns
};

struct Setting {
  std::string_view name;  // without ROCPROFSYS_
  SettingKind kind;
  std::string_view fallback;
  std::string_view categories;  // words separated by spaces
  SettingUse use;
  bool advanced;
  std::string_view text;
};
std::span<const Setting> settings();
/// By name, with or without ROCPROFSYS_, in any case, with - or _; nullptr when there is none.
const Setting* find_setting(std::string_view name);
inline constexpr std::string_view kPrefix = "ROCPROFSYS_";

/// "0,1,5-8" -> {0, 1, 5, 6, 7, 8}. The sentence begins with `what`.
Result<std::set<int>> parse_ranges(std::string_view list, std::string_view what);

/// Where a value came from; later ones win.
enum class Origin : uint8_t { kDefault, kFile, kTool, kEnvironment, kOption };

class Settings {
 public:
  /// Checks the kind. `where` begins the sentence of an error.
  Status set(const Setting& setting, std::string_view value, Origin origin, std::string_view where);
  /// For values of this program's own; the setting must exist.
  void preset(std::string_view name, std::string_view value, Origin origin = Origin::kTool);

  std::string text(std::string_view name) const;
  bool on(std::string_view name) const;
  double number(std::string_view name) const;
  Origin origin(std::string_view name) const;
  bool given(std::string_view name) const { return origin(name) != Origin::kDefault; }

  /// "KEY = value" lines; '#' begins a comment, $env:X in a value is the variable's text, "$env:KEY = v" sets
  /// a variable for the program. Unknown keys are errors unless STRICT_CONFIG is off. Sentences name file and
  /// line.
  Status read_file(const std::string& path);
  /// ROCPROFSYS_* of the environment.
  Status read_environment();
  const std::vector<std::pair<std::string, std::string>>& program_environment() const {
    return program_environment_;
  }
  /// One sentence for each setting that was set to something that tacho does not do.
  std::vector<std::string> unsupported() const;
  /// Sentences about unknown keys (STRICT_CONFIG off) and unknown variables.
  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  struct Value {
    std::string text;
    Origin origin = Origin::kDefault;
  };
  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::pair<std::string, std::string>> program_environment_;
  std::vector<std::string> remarks_;
};

/// The values of all settings as a config file with comments; without `advanced` the frequently used ones.
std::string default_config(const Settings& values, bool advanced);

}  // namespace tacho::cli::sys
