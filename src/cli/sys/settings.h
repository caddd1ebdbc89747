// The settings of system profiling: rocprof-sys's names (ROCPROFSYS_*), read from config files, the environment and
// options, in that order. One table explains each setting and says whether tacho supports it.
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
  kUsed,         // affects a file, a track or a column
  kUnsupported,  // listed only; a value other than the default causes a warning
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
/// Finds a setting with or without ROCPROFSYS_, in any case, with - or _; nullptr if there is none.
const Setting* find_setting(std::string_view name);
inline constexpr std::string_view kPrefix = "ROCPROFSYS_";

/// "0,1,5-8" -> {0, 1, 5, 6, 7, 8}. An error begins with `what`.
Result<std::set<int>> parse_ranges(std::string_view list, std::string_view what);

/// The origin of a value, in ascending precedence.
enum class Origin : uint8_t { kDefault, kFile, kTool, kEnvironment, kOption };

class Settings {
 public:
  /// Checks the value's kind; keeps a value of higher origin. An error begins with `where`.
  Status set(const Setting& setting, std::string_view value, Origin origin, std::string_view where);
  /// For values that tacho itself chooses; ignores a name that is no setting.
  void preset(std::string_view name, std::string_view value, Origin origin = Origin::kTool);
  /// The defaults of tacho under its own name, where rocprof-sys has others.
  void preset_own();

  std::string text(std::string_view name) const;
  bool on(std::string_view name) const;
  double number(std::string_view name) const;
  Origin origin(std::string_view name) const;
  bool given(std::string_view name) const { return origin(name) != Origin::kDefault; }

  /// Reads "KEY = value" lines. '#' begins a comment, $env:X in a value is a variable's text, "$env:KEY = v" sets a
  /// variable for the program. Unknown keys are errors unless STRICT_CONFIG is off. Errors and remarks name file and
  /// line.
  Status read_file(const std::string& path);
  /// Reads the variables ROCPROFSYS_*.
  Status read_environment();
  const std::vector<std::pair<std::string, std::string>>& program_environment() const { return program_environment_; }
  /// One sentence for each setting whose value asks for something that tacho does not do.
  std::vector<std::string> unsupported() const;
  /// Sentences about unknown keys (if STRICT_CONFIG is off) and unknown variables.
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

/// The settings that tacho supports, as a config file with comments; the advanced ones only if `advanced`.
std::string default_config(const Settings& values, bool advanced);

}  // namespace tacho::cli::sys
