// The options of a command of tacho: declared, parsed (options/word_reader.h) and shown in --help.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacho::cli {

struct DeclaredOption;

/// One declared option. A copy is the same option.
class CommandOption {
 public:
  CommandOption& required();
  /// The word for its value in --help.
  CommandOption& type_name(const std::string& name);
  /// --help names the default: what the variable holds now, or `text`.
  CommandOption& capture_default_str();
  CommandOption& default_str(const std::string& text);
  /// How many values it takes; `most` -1: any number.
  CommandOption& expected(int least, int most);
  /// It may be given several times, each time with one value more.
  CommandOption& repeatable();
  /// The values that it takes: these words or numbers, a range with both ends, numbers above 0.
  CommandOption& one_of(const std::vector<std::string>& words);
  CommandOption& one_of_numbers(const std::vector<int>& numbers);
  CommandOption& one_of_ignoring_case(const std::vector<std::string>& words);
  CommandOption& between(int least, int most);
  CommandOption& between(double least, double most);
  CommandOption& positive();
  /// `wrong` returns "" or what is wrong with the text.
  CommandOption& check(const std::function<std::string(const std::string& text)>& wrong);
  /// Leaves it out of --help: one that the command knows only to refuse it.
  CommandOption& hide();
  /// Not together with `other`.
  CommandOption& excludes(const CommandOption& other);

  /// How often it was given.
  size_t count() const;

 private:
  friend class CommandOptions;
  explicit CommandOption(DeclaredOption* option) : option_(option) {}
  DeclaredOption* option_;
};

class CommandOptions {
 public:
  /// `name` as users type it, as in "tacho trim".
  CommandOptions(const std::string& description, const std::string& name);
  ~CommandOptions();
  CommandOptions(const CommandOptions&) = delete;
  CommandOptions& operator=(const CommandOptions&) = delete;

  /// `names` as in "-o,--output"; without dashes: a positional argument. The value goes to `value`, whose type is one
  /// of those at the end of command_options.cpp.
  template <typename Value>
  CommandOption add_option(const std::string& names, Value& value, const std::string& help = {});
  CommandOption add_flag(const std::string& names, bool& value, const std::string& help = {});
  /// The values go to a function, once for all of them.
  CommandOption add_option_function(const std::string& names, const std::function<void(const std::string&)>& take,
                                    const std::string& help);
  CommandOption add_list_function(const std::string& names,
                                  const std::function<void(const std::vector<std::string>&)>& take,
                                  const std::string& help);
  /// Options that are declared from here on stand below this heading in --help; empty: below none.
  void open_group(const std::string& heading);
  /// Command lines below the usage line of --help, each with two blanks before it.
  void examples(const std::string& lines);
  /// The text at the end of --help; "Examples:" and the indented lines after it, at its beginning, are examples().
  void footer(const std::string& text);
  /// A program and its arguments follow the options: remaining(). `instead`: what the usage line says may stand
  /// there in its place.
  void prefix_command(const std::string& instead = "");

  struct Parsed {
    bool help = false;                   ///< --help was asked for; nothing else is known
    std::optional<std::string> mistake;  ///< in one sentence; for an unknown option it adds the nearest option's name
  };
  Parsed parse(int argc, char** argv);

  std::string name() const;
  std::vector<std::string> remaining() const;
  /// The long names of all options, with their dashes.
  std::vector<std::string> option_names() const;
  /// The text of --help. `more` ends the usage line.
  std::string help(const std::string& more) const;

 private:
  class Reading;  // of one command line

  DeclaredOption& declare(const std::string& names, const std::string& help);
  Status read(int argc, char** argv);
  Status assign_all();
  Status check_remaining() const;
  static std::string option_line(const DeclaredOption& option, bool as_argument);
  std::string usage(const std::string& more) const;

  std::string description_, name_, examples_, footer_;
  bool prefix_command_ = false;
  std::string instead_;                // of the program
  std::vector<std::string> headings_;  // of the groups
  size_t group_ = 0;                   // that takes the next option: 0 = below no heading of its own
  std::vector<std::unique_ptr<DeclaredOption>> options_;
  std::vector<std::string> remaining_, behind_separator_;  // words that nothing takes; of those behind "--"
};

}  // namespace tacho::cli
