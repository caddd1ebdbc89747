// rocprofv3's options as data: one table serves its command line, its input files, --help and
// --output-config.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::cli::rocprofv3 {

enum class Kind {
  kFlag,   // with an optional y/yes/t/true/on/1 or n/no/f/false/off/0
  kValue,  // one word
  kList,   // one or more words
};

struct Option {
  std::string_view name;        // long, without --
  std::string_view short_name;  // with -, or empty
  Kind kind;
  std::string_view group;  // heading in --help; empty = not shown there
  std::string_view help;
  std::string_view choices;  // allowed words separated by spaces; empty = any
};
std::span<const Option> options();
/// By name with - or _ ("kernel-trace", "kernel_trace"); nullptr when there is none.
const Option* find_option(std::string_view name);

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

struct CommandLine {
  Given given;
  std::vector<std::string> command;
  bool help = false, version = false;
};
/// Options up to `--` or the first word that is no option; the rest is the command.
Result<CommandLine> parse_command_line(int argc, char** argv);

/// One run of the program: the options of a job of an input file, and where its results go.
struct Job {
  Given given;
  std::string folder;  // "pass_2", "pmc_1"; empty = the output folder itself
  std::vector<std::vector<std::string>> counter_groups;  // pmc_groups
};
/// A .txt ("pmc: A B" a line), .yaml, .yml or .json ("jobs": [...]) file. Errors name the file and line.
Result<std::vector<Job>> read_input_file(const std::string& path);
/// The same of a file's content; `path` tells the kind and is in the errors.
Result<std::vector<Job>> parse_input(const std::string& path, std::string content);

std::string help_text();

}  // namespace tacho::cli::rocprofv3
