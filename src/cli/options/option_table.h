// Options as data, for command lines that are not CLI11's: one table serves the command line, input files,
// --help and the files that record the options of a run (rocprofv3, rocprof-sys).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::cli::options {

enum class Kind {
  kFlag,   ///< with an optional y/yes/t/true/on/1 or n/no/f/false/off/0
  kValue,  ///< one word
  kList,   ///< one or more words
};

/// The effect of a second occurrence: the last one wins, or its words are added.
enum class Repeats : uint8_t { kReplace, kAdd };

struct Option {
  std::string_view name;        ///< long, without --
  std::string_view short_name;  ///< with -, or empty
  Kind kind;
  std::string_view group;  ///< heading in --help; empty = not shown there
  std::string_view help;
  std::string_view choices = {};  ///< allowed words separated by spaces; empty = any
  Repeats repeats = Repeats::kReplace;
  std::string_view sets =
      {};  ///< in front of a table of settings: the one that gets the value; empty = handled by name
};

/// The words of Option::choices.
std::vector<std::string> choices_of(std::string_view words);
/// True for y, yes, t, true, on, 1; false for their opposites; nullopt for any other word. Case does not
/// matter.
std::optional<bool> truth(std::string_view word);
/// By long name with - or _ ("kernel-trace", "kernel_trace"); nullptr when there is none.
const Option* find(std::span<const Option> table, std::string_view name);
/// By short name ("-o"); nullptr when there is none.
const Option* find_short(std::span<const Option> table, std::string_view name);
/// ", did you mean --kernel-trace" for a name that is close to one of the table's, else "".
std::string suggestion(std::span<const Option> table, std::string_view name);
/// One line of --help: short and long name in a column of `width`, then what the option means and its
/// choices.
std::string help_line(const Option& option, size_t width);

/// Options that were given: name (with -) -> words. A flag has one word, "1" or "0".
class Given {
 public:
  bool has(std::string_view name) const { return words_.contains(name); }
  /// True if the flag was given and not negated.
  bool on(std::string_view name) const;
  /// nullopt: not given.
  std::optional<bool> flag(std::string_view name) const;
  std::string value(std::string_view name, std::string_view otherwise = "") const;
  const std::vector<std::string>& list(std::string_view name) const;
  /// Checks choices and the spelling of a flag; `where` begins the sentence ("--stats", "line 3: stats").
  Status set(const Option& option, std::vector<std::string> words, std::string_view where);
  void set_flag(std::string_view name, bool on) { words_[std::string(name)] = {on ? "1" : "0"}; }
  /// Takes over what `other` has; the same option with another value on both sides is an error.
  Status merge(const Given& other, std::string_view where);
  const std::map<std::string, std::vector<std::string>, std::less<>>& all() const { return words_; }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> words_;
};

}  // namespace tacho::cli::options
