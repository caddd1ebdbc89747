// Options of tacho's commands: declaration, --help and messages (command_options.h).
#include "cli/shared/command_options.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/format.h"
#include "cli/options/option_table.h"
#include "cli/options/word_reader.h"
#include "cli/shared/suggest.h"

namespace tacho::cli {

/// An option or argument of a command, and what a command line gave for it.
struct DeclaredOption {
  enum class Kind : uint8_t { kFlag, kText, kWhole, kNumber };

  std::vector<std::string> short_names, long_names;  // with their dashes
  std::string argument;                              // the name without dashes, if it has one
  std::string help, value_name, default_text;
  Kind kind = Kind::kText;
  size_t least = 1, most = 1;  // values; of a flag 0
  bool repeats = false;        // given several times it takes as many values
  bool required = false;
  bool hidden = false;       // from --help
  bool means_false = false;  // a flag that makes its variable false
  size_t group = 0;
  std::vector<std::function<std::string(const std::string&)>> checks;
  std::vector<std::string> words;  // the values that it takes; empty: others too
  std::vector<const DeclaredOption*> excluded;
  std::function<bool(const std::vector<std::string>&)> assign;  // false: a value is no number
  std::function<std::string()> current;                         // what the variable holds
  std::vector<std::string> given;

  bool has_dashes() const { return !short_names.empty() || !long_names.empty(); }
  bool is_named(const std::string& name) const {
    const auto in = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    return in(short_names) || in(long_names);
  }
  /// "--output", or the argument's name.
  const std::string& name() const {
    return !long_names.empty() ? long_names.front() : !short_names.empty() ? short_names.front() : argument;
  }
};

namespace {

using options::Spelling;
using options::Takes;
using Kind = DeclaredOption::Kind;

std::string upper(std::string text) {
  for (char& c : text) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// "text, json or csv".
std::string alternatives(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return out;
}

// The word for a value in --help: what the command says (type_name), else by the kind or the option's name.
std::string value_word(const DeclaredOption& option) {
  if (!option.value_name.empty()) return option.value_name;
  if (option.kind == Kind::kWhole || option.kind == Kind::kNumber) return "N";
  if (option.long_names.empty()) return "TEXT";
  const std::string name = option.long_names.front().substr(2);
  if (name.size() <= 2) return "WHAT";
  if (name == "output" || name == "base" || name == "script") return "FILE";
  const size_t dash = name.rfind('-');
  return upper(dash == std::string::npos ? name : name.substr(dash + 1));
}

// The name of an argument as the usage line has it: FILE, INPUTS...
std::string placeholder(const DeclaredOption& option) {
  return upper(option.argument) + (option.most > 1 ? "..." : "");
}

// "--output" of an option, FILE of an argument: how messages call it.
std::string called(const DeclaredOption& option) {
  return option.argument.empty() ? option.name() : upper(option.argument);
}

// Whether a help text tells of the default itself.
bool tells_default(const std::string& text) {
  return text.find("default") != std::string::npos;
}

// The first lines of a footer that begins with "Examples:"; they stand below the usage line.
std::pair<std::string, std::string> split_examples(const std::string& footer) {
  if (!footer.starts_with("Example")) return {"", footer};
  size_t end = std::min(footer.find('\n'), footer.size());
  while (end < footer.size() && footer.compare(end + 1, 2, "  ") == 0)
    end = std::min(footer.find('\n', end + 1), footer.size());
  return {footer.substr(0, end), footer.substr(std::min(end + 1, footer.size()))};
}

// "" if `text` is one of `words`, else what to choose.
std::string none_of(const std::vector<std::string>& words, const std::string& text) {
  if (std::find(words.begin(), words.end(), text) != words.end()) return {};
  const std::string best = words.size() > 4 ? nearest(text, words) : std::string();
  return fmt::format("choose {}, not '{}'{}", alternatives(words), text,
                     best.empty() ? "" : "; did you mean " + best + "?");
}

// Adds the words that `option` takes to its help, unless that names them.
void tell(DeclaredOption& option, const std::vector<std::string>& words) {
  const std::string& text = option.help;
  const auto named = [&](const std::string& word) { return text.find(word) != std::string::npos; };
  if (std::all_of(words.begin(), words.end(), named)) return;
  option.help = fmt::format("{}{}({})", text, text.empty() ? "" : " ", alternatives(words));
}

// Numbers as C writes them: 10, 0x10, 1e3 where `value` may have a fraction.
template <typename Number>
bool read_number(const std::string& text, Number& value) {
  if (text.empty()) return false;
  char* end = nullptr;
  errno = 0;
  bool fits = true;
  if constexpr (std::is_floating_point_v<Number>) {
    value = static_cast<Number>(std::strtod(text.c_str(), &end));
  } else if constexpr (std::is_unsigned_v<Number>) {
    const unsigned long long whole = std::strtoull(text.c_str(), &end, 0);
    fits = errno == 0 && whole <= std::numeric_limits<Number>::max();
    value = static_cast<Number>(whole);
  } else {
    const long long whole = std::strtoll(text.c_str(), &end, 0);
    fits = errno == 0 && whole >= std::numeric_limits<Number>::min() && whole <= std::numeric_limits<Number>::max();
    value = static_cast<Number>(whole);
  }
  return fits && end == text.c_str() + text.size();
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  if (!read_number(text, value)) return {};
  return value;
}

bool read_value(const std::string& text, std::string& value) {
  value = text;
  return true;
}
template <typename Number>
requires std::is_arithmetic_v<Number>
bool read_value(const std::string& text, Number& value) {
  return read_number(text, value);
}
template <typename Inner>
bool read_value(const std::string& text, std::optional<Inner>& value) {
  return read_value(text, value.emplace());
}

template <typename Value>
bool assign_values(const std::vector<std::string>& texts, Value& value) {
  if constexpr (requires {
                  value.push_back({});
                  value.clear();
                } &&
                !std::is_same_v<Value, std::string>) {
    value.clear();
    return std::all_of(texts.begin(), texts.end(),
                       [&](const std::string& text) { return read_value(text, value.emplace_back()); });
  } else {
    return read_value(texts.back(), value);
  }
}

template <typename Value>
std::string text_of(const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>)
    return value;
  else if constexpr (std::is_integral_v<Value>)
    return fmt::format("{}", value);
  else if constexpr (std::is_floating_point_v<Value>)
    return fmt::format("{:g}", value);
  else if constexpr (requires { value.value(); })
    return value ? text_of(*value) : std::string();
  else
    return value.empty() ? std::string() : fmt::format("[{}]", fmt::join(value, ","));
}

template <typename Value>
struct ItemOf {
  using Type = Value;
};
template <typename Value>
requires requires {
  typename Value::value_type;
} &&(!std::is_same_v<Value, std::string>)struct ItemOf<Value> {
  using Type = typename Value::value_type;
};

}  // namespace

// What is read of one command line: the rules of tacho's own options.
class CommandOptions::Reading : public options::Syntax {
 public:
  Reading(CommandOptions& all, options::WordReader& words) : all_(all), words_(words) {}

  bool is_option(const std::string& word) const override {
    const auto begins = [](char c) { return c != '-' && c != '!' && c != ' ' && c != '\n'; };
    if (word.size() > 2 && word.starts_with("--")) return begins(word[2]);
    if (word.size() < 2 || word[0] != '-' || !begins(word[1])) return false;
    const bool digit = word[1] >= '0' && word[1] <= '9';
    return !digit || find(word.substr(0, 2)) != nullptr;
  }

  Result<Takes> look_up(const Spelling& given) override {
    DeclaredOption* const option = find(given.name);
    if (option == nullptr) return Takes{0, given.joined ? size_t{1} : size_t{0}, nullptr};
    const auto known = [option](const std::string& word) {
      return std::find(option->words.begin(), option->words.end(), word) != option->words.end();
    };
    // A value that may be missing is one of its words: another word is what the command wants next.
    if (option->least == 0 && option->most == 1 && !option->words.empty()) return Takes{0, 1, known};
    if (option->most == 1) return Takes{option->least, 1, nullptr};
    // What an argument that must be there needs stays for it.
    return Takes{option->least, option->most,
                 [this](const std::string& word) { return !is_option(word) && words_.count() > arguments_missing(); }};
  }

  Status take(const Spelling& given, std::vector<std::string> values) override {
    DeclaredOption* const option = find(given.name);
    if (option == nullptr) {
      all_.remaining_.push_back(given.word);
      return {};
    }
    if (option->kind == Kind::kFlag) {
      const std::optional<bool> yes = values.empty() ? std::optional(true) : options::truth(values.front());
      if (!yes) return fail("{}={}: a flag takes no value but yes or no", given.name, values.front());
      option->given.emplace_back(*yes != option->means_false ? "1" : "0");
      return {};
    }
    const bool number = option->kind == Kind::kWhole || option->kind == Kind::kNumber;
    if (values.size() < option->least || (number && !values.empty() && values.front().empty()))
      return fail("{} {}: the value is missing", called(*option), value_word(*option));
    if (values.empty()) values.emplace_back();
    option->given.insert(option->given.end(), values.begin(), values.end());
    return {};
  }

  Result<bool> operand(options::WordReader& words) override {
    if (argument(words.peek())) {
      words.take();
      return true;
    }
    if (all_.prefix_command_) return false;
    all_.remaining_.push_back(words.take());
    return true;
  }

  // Gives the word to the first argument that lacks one.
  bool argument(const std::string& word) {
    for (const auto& option : all_.options_)
      if (!option->argument.empty() && (option->given.empty() || option->most > 1)) {
        option->given.push_back(word);
        return true;
      }
    return false;
  }

 private:
  DeclaredOption* find(const std::string& name) const {
    for (const auto& option : all_.options_)
      if (option->is_named(name)) return option.get();
    return nullptr;
  }
  size_t arguments_missing() const {
    return static_cast<size_t>(std::count_if(all_.options_.begin(), all_.options_.end(), [](const auto& option) {
      return !option->argument.empty() && option->required && option->given.empty();
    }));
  }

  CommandOptions& all_;
  options::WordReader& words_;
};

CommandOption& CommandOption::hide() {
  option_->hidden = true;
  return *this;
}
CommandOption& CommandOption::required() {
  option_->required = true;
  return *this;
}

CommandOption& CommandOption::type_name(const std::string& name) {
  option_->value_name = name;
  return *this;
}

CommandOption& CommandOption::capture_default_str() {
  if (option_->current) option_->default_text = option_->current();
  return *this;
}

CommandOption& CommandOption::default_str(const std::string& text) {
  option_->default_text = text;
  return *this;
}

CommandOption& CommandOption::expected(int least, int most) {
  option_->least = static_cast<size_t>(least);
  option_->most = most < 0 ? Takes::kAny : static_cast<size_t>(most);
  return *this;
}

CommandOption& CommandOption::repeatable() {
  option_->least = option_->most = 1;
  option_->repeats = true;
  return *this;
}

CommandOption& CommandOption::one_of(const std::vector<std::string>& words) {
  tell(*option_, words);
  option_->words = words;
  return check([words, option = option_](const std::string& text) {
    return text.empty() && option->least == 0 ? std::string() : none_of(words, text);
  });
}

CommandOption& CommandOption::one_of_numbers(const std::vector<int>& numbers) {
  std::vector<std::string> words;
  for (const int number : numbers) words.push_back(std::to_string(number));
  return one_of(words);
}

CommandOption& CommandOption::one_of_ignoring_case(const std::vector<std::string>& words) {
  tell(*option_, words);
  return check([words](const std::string& text) {
    for (const std::string& word : words)
      if (upper(word) == upper(text)) return std::string();
    return none_of(words, text);
  });
}

CommandOption& CommandOption::between(int least, int most) {
  return between(static_cast<double>(least), static_cast<double>(most));
}

CommandOption& CommandOption::between(double least, double most) {
  if (most < 1e8) option_->help = fmt::format("{} ({} to {})", option_->help, least, most);
  return check([least, most](const std::string& text) {
    const auto number = number_in(text);
    // Text that is no number is refused, by its type, when it is converted.
    if (!number || (*number >= least && *number <= most)) return std::string();
    return fmt::format("choose a number from {} to {}, not {}", least, most, text);
  });
}

CommandOption& CommandOption::positive() {
  return check([](const std::string& text) {
    const auto number = number_in(text);
    if (!number || *number > 0) return std::string();
    return fmt::format("choose a number above 0, not {}", text);
  });
}

CommandOption& CommandOption::check(const std::function<std::string(const std::string& text)>& wrong) {
  option_->checks.push_back(wrong);
  return *this;
}

CommandOption& CommandOption::excludes(const CommandOption& other) {
  option_->excluded.push_back(other.option_);
  other.option_->excluded.push_back(option_);
  return *this;
}

size_t CommandOption::count() const {
  return option_->given.size();
}

CommandOptions::CommandOptions(const std::string& description, const std::string& name)
    : description_(description), name_(name) {
  declare("-h,--help", "this text").kind = Kind::kFlag;
  options_.front()->least = options_.front()->most = 0;
}

CommandOptions::~CommandOptions() = default;

DeclaredOption& CommandOptions::declare(const std::string& names, const std::string& help) {
  DeclaredOption& option = *options_.emplace_back(std::make_unique<DeclaredOption>());
  option.help = help;
  option.group = group_;
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find(',', at), names.size());
    std::string name = names.substr(at, end - at);
    at = end + 1;
    if (name.starts_with('!')) {
      option.means_false = true;
      name.erase(0, 1);
    }
    (name.starts_with("--")  ? option.long_names.emplace_back()
     : name.starts_with('-') ? option.short_names.emplace_back()
                             : option.argument) = name;
  }
  return option;
}

template <typename Value>
CommandOption CommandOptions::add_option(const std::string& names, Value& value, const std::string& help) {
  using Item = typename ItemOf<Value>::Type;
  DeclaredOption& option = declare(names, help);
  option.kind = std::is_same_v<Item, std::string> ? Kind::kText
                : std::is_integral_v<Item>        ? Kind::kWhole
                                                  : Kind::kNumber;
  if constexpr (std::is_same_v<Value, std::vector<Item>>) option.most = Takes::kAny;
  option.assign = [&value](const std::vector<std::string>& texts) { return assign_values(texts, value); };
  option.current = [&value] { return text_of(value); };
  if constexpr (std::is_unsigned_v<Item>)
    option.checks.emplace_back([](const std::string& text) {
      return text.starts_with('-') ? "choose a whole number from 0 on, not " + text : std::string();
    });
  return CommandOption(&option);
}

CommandOption CommandOptions::add_flag(const std::string& names, bool& value, const std::string& help) {
  DeclaredOption& option = declare(names, help);
  option.kind = Kind::kFlag;
  option.least = option.most = 0;
  option.assign = [&value](const std::vector<std::string>& texts) {
    value = texts.back() == "1";
    return true;
  };
  return CommandOption(&option);
}

CommandOption CommandOptions::add_option_function(const std::string& names,
                                                  const std::function<void(const std::string&)>& take,
                                                  const std::string& help) {
  DeclaredOption& option = declare(names, help);
  option.assign = [take](const std::vector<std::string>& texts) {
    take(texts.back());
    return true;
  };
  return CommandOption(&option);
}

CommandOption CommandOptions::add_list_function(const std::string& names,
                                                const std::function<void(const std::vector<std::string>&)>& take,
                                                const std::string& help) {
  DeclaredOption& option = declare(names, help);
  option.most = Takes::kAny;
  option.assign = [take](const std::vector<std::string>& texts) {
    take(texts);
    return true;
  };
  return CommandOption(&option);
}

void CommandOptions::open_group(const std::string& heading) {
  if (!heading.empty()) headings_.push_back(heading);
  group_ = heading.empty() ? 0 : headings_.size();
}

void CommandOptions::examples(const std::string& lines) {
  examples_ = "Examples:\n" + lines;
}

void CommandOptions::footer(const std::string& text) {
  footer_ = text;
}

void CommandOptions::prefix_command(const std::string& instead) {
  prefix_command_ = true;
  instead_ = instead;
}

Status CommandOptions::read(int argc, char** argv) {
  options::WordReader words(argc, argv);
  Reading reading(*this, words);
  TACHO_TRY(options::read_options(words, reading));
  const bool separated = words.left() && words.peek() == "--";
  std::vector<std::string> rest = words.rest();
  if (prefix_command_) {
    if (separated) remaining_.emplace_back("--");
    remaining_.insert(remaining_.end(), rest.begin(), rest.end());
    return {};
  }
  for (const std::string& word : rest)
    if (!reading.argument(word)) behind_separator_.push_back(word);
  return {};
}

Status CommandOptions::assign_all() {
  for (const auto& option : options_) {
    if (option->given.empty() || !option->assign) continue;
    for (const std::string& text : option->given)
      for (const auto& check : option->checks)
        if (const std::string wrong = check(text); !wrong.empty()) return fail("{}: {}", option->name(), wrong);
    if (option->most == 1 && !option->repeats && option->given.size() > 1)
      return fail("{} {} is given {} times, and takes one value", called(*option), value_word(*option),
                  option->given.size());
    if (!option->assign(option->given))
      return fail("{} {}: write a {}number", called(*option), fmt::join(option->given, " "),
                  option->kind == Kind::kWhole ? "whole " : "");
  }
  for (const auto& option : options_) {
    if (option->required && option->given.empty()) {
      if (option->argument.empty()) return fail("{} {} is missing", called(*option), value_word(*option));
      std::string all;
      for (const auto& each : options_)
        if (!each->argument.empty() && each->required) all += " " + placeholder(*each);
      return fail("{} is missing: {}{}", called(*option), name_, all);
    }
    for (const DeclaredOption* other : option->excluded)
      if (!option->given.empty() && !other->given.empty())
        return fail("{} and {} do not go together", called(*option), other->name());
  }
  return {};
}

// What is left over where nothing may be.
Status CommandOptions::check_remaining() const {
  std::vector<std::string> words = remaining_;
  words.insert(words.end(), behind_separator_.begin(), behind_separator_.end());
  if (prefix_command_ || words.empty()) return {};
  std::string message = words.size() > 1 ? "these arguments were not expected:" : "this argument was not expected:";
  for (const std::string& word : words) message += " " + word;
  const auto dashed =
      std::find_if(remaining_.begin(), remaining_.end(), [](const std::string& w) { return w.starts_with('-'); });
  if (dashed != remaining_.end()) {
    const std::vector<std::string> names = option_names();
    message += suggestion(names, *dashed == "-f" ? "--output-format" : *dashed == "-o" ? "--output" : *dashed);
  }
  return fail("{}", message);
}

CommandOptions::Parsed CommandOptions::parse(int argc, char** argv) {
  const auto wrong = [this](const Status& status) {
    return Parsed{false, status.error().message + "; see " + name() + " --help"};
  };
  if (const Status done = read(argc, argv); !done) return wrong(done);
  if (!options_.front()->given.empty()) return {true, std::nullopt};
  if (const Status done = assign_all(); !done) return wrong(done);
  if (const Status done = check_remaining(); !done) return wrong(done);
  return {};
}

std::string CommandOptions::name() const {
  return name_;
}

std::vector<std::string> CommandOptions::remaining() const {
  return remaining_;
}

std::vector<std::string> CommandOptions::option_names() const {
  std::vector<std::string> names;
  for (const auto& option : options_) names.insert(names.end(), option->long_names.begin(), option->long_names.end());
  return names;
}

// A line of --help, or two where the names are long.
std::string CommandOptions::option_line(const DeclaredOption& option, bool as_argument) {
  constexpr size_t kColumn = 30;
  std::string names = as_argument ? placeholder(option) : std::string();
  if (!as_argument) {
    for (const auto* list : {&option.short_names, &option.long_names})
      for (const std::string& name : *list) names += (names.empty() ? "" : ", ") + name;
    if (option.kind != Kind::kFlag) {
      const std::string word = value_word(option) + (option.most == Takes::kAny ? "..." : "");
      names += option.least == 0 ? " [" + word + "]" : " " + word;
    }
  }
  std::string text = option.help;
  if (option.kind != Kind::kFlag && !option.default_text.empty() && !tells_default(text))
    text += (text.empty() ? "(default: " : " (default: ") + option.default_text + ")";
  std::string line = fmt::format("  {:<{}}", names, kColumn - 2);
  if (text.empty()) return line + "\n";
  if (names.size() + 2 >= kColumn) line += "\n" + std::string(kColumn, ' ');
  for (const char c : text) {
    line += c;
    if (c == '\n') line += std::string(kColumn, ' ');
  }
  return line + "\n";
}

std::string CommandOptions::usage(const std::string& more) const {
  std::string usage = "Usage: " + name_;
  for (const bool required : {true, false})
    for (const auto& option : options_)
      if (!option->argument.empty() && option->required == required)
        usage += required ? " " + placeholder(*option) : " [" + placeholder(*option) + "]";
  usage += " [options]";
  if (prefix_command_)
    usage += instead_.empty() ? " -- program [arguments]" : " {-- program [arguments] | " + instead_ + "}";
  usage += (more.empty() ? "" : " ") + more + "\n";
  const std::string examples = examples_.empty() ? split_examples(footer_).first : examples_;
  return examples.empty() ? usage : usage + "\n" + examples + "\n";
}

std::string CommandOptions::help(const std::string& more) const {
  std::string out = description_.empty() ? std::string() : description_ + "\n";
  out += usage(more);
  std::string arguments;
  for (const auto& option : options_)
    if (!option->argument.empty()) arguments += option_line(*option, true);
  if (!arguments.empty()) out += "\nArguments:\n" + arguments;
  for (size_t group = 0; group <= headings_.size(); ++group) {
    std::string lines;
    for (const auto& option : options_)
      if (option->group == group && option->has_dashes() && !option->hidden) lines += option_line(*option, false);
    if (!lines.empty()) out += (group == 0 ? "\nOptions:\n" : "\n" + headings_[group - 1] + ":\n") + lines;
  }
  const std::string rest = split_examples(footer_).second;
  out += '\n';
  return rest.empty() ? out : out + rest.substr(rest.find_first_not_of('\n')) + "\n";
}

// The types of values.
template CommandOption CommandOptions::add_option(const std::string&, std::string&, const std::string&);
template CommandOption CommandOptions::add_option(const std::string&, int&, const std::string&);
template CommandOption CommandOptions::add_option(const std::string&, int64_t&, const std::string&);
template CommandOption CommandOptions::add_option(const std::string&, uint32_t&, const std::string&);
template CommandOption CommandOptions::add_option(const std::string&, size_t&, const std::string&);
template CommandOption CommandOptions::add_option(const std::string&, double&, const std::string&);
template CommandOption CommandOptions::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template CommandOption CommandOptions::add_option(const std::string&, std::vector<int>&, const std::string&);
template CommandOption CommandOptions::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template CommandOption CommandOptions::add_option(const std::string&, std::optional<uint16_t>&, const std::string&);
template CommandOption CommandOptions::add_option(const std::string&, std::optional<size_t>&, const std::string&);
template CommandOption CommandOptions::add_option(const std::string&, std::optional<double>&, const std::string&);

}  // namespace tacho::cli
