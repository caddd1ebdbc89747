// Options as data, for the command lines of other tools. One table serves the command line, input files, --help and the
// files that record a run's options (rocprofv3, rocprof-sys).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::cli::options {

enum class OptionKind {
  kFlag,   ///< takes an optional y/yes/t/true/on/1 or n/no/f/false/off/0
  kValue,  ///< one word
  kList,   ///< one or more words
};

struct Option {
  std::string_view name;        ///< long, without --
  std::string_view short_name;  ///< with the -, or empty
  OptionKind kind;
  std::string_view group;  ///< heading in --help; empty = not shown there
  std::string_view help;
  std::string_view choices = {};  ///< allowed words separated by spaces; empty = any
  std::string_view sets = {};     ///< in a table for settings: the setting that gets the value; empty = handled by name
};

/// The words of Option::choices.
std::vector<std::string> choices_of(std::string_view words);
/// True if `word` is one of the option's choices, in whatever case.
bool is_choice(const Option& option, std::string_view word);
/// True for y, yes, t, true, on, 1; false for their opposites; nullopt for any other word. Ignores case.
std::optional<bool> truth(std::string_view word);
/// Finds an option by long name, with - or _ ("kernel-trace", "kernel_trace"); nullptr if there is none.
const Option* find(std::span<const Option> table, std::string_view name);
/// Finds an option by short name ("-o"); nullptr if there is none.
const Option* find_short(std::span<const Option> table, std::string_view name);
/// ", did you mean --kernel-trace" if a name in the table is close to `name`, else "".
std::string suggestion(std::span<const Option> table, std::string_view name);
/// One line of --help: short and long name in a column of `width` characters, then the option's meaning and choices.
std::string help_line(const Option& option, size_t width);

/// The options that were given: name (with -) -> words. A flag has one word, "1" or "0".
class Given {
 public:
  bool has(std::string_view name) const { return words_.contains(name); }
  /// True if the flag was given and not negated.
  bool on(std::string_view name) const;
  /// nullopt = not given.
  std::optional<bool> flag(std::string_view name) const;
  std::string value(std::string_view name, std::string_view otherwise = "") const;
  const std::vector<std::string>& list(std::string_view name) const;
  /// Checks choices and a flag's spelling. An error begins with `where` ("--stats", "line 3: stats").
  Status set(const Option& option, std::vector<std::string> words, std::string_view where);
  void set_flag(std::string_view name, bool on) { words_[std::string(name)] = {on ? "1" : "0"}; }
  void remove(std::string_view name) { words_.erase(std::string(name)); }
  /// Adds the options of `other`. Fails if both sides give an option different values; names `where`.
  Status merge(const Given& other, std::string_view where);
  const std::map<std::string, std::vector<std::string>, std::less<>>& all() const { return words_; }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> words_;
};

}  // namespace tacho::cli::options
