// Options by CLI11 (command_options.h).
#include "cli/shared/command_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/format.h"
#include "cli/shared/suggest.h"

namespace tacho::cli {
namespace {

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

// CLI11 tells of a value in its own words, such as UINT or TEXT: one for people instead. The words
// that a command gave (type_name) stay.
std::string value_word(const CLI::Option* option) {
  const std::string word = option->get_type_name();
  if (word == "INT" || word == "UINT" || word == "FLOAT") return "N";
  if (word != "TEXT" && !word.empty()) return word;
  if (option->get_lnames().empty()) return "TEXT";
  const std::string& name = option->get_lnames().front();
  if (name.size() <= 2) return "WHAT";
  if (name == "output" || name == "base" || name == "script") return "FILE";
  const size_t dash = name.rfind('-');
  return upper(dash == std::string::npos ? name : name.substr(dash + 1));
}

// The name of a positional argument as the usage line has it: FILE, INPUTS...
std::string placeholder(const CLI::Option* option) {
  const std::string name = upper(option->get_name(true, false));
  return option->get_expected_max() > 1 ? name + "..." : name;
}

// "--output" of an option, FILE of an argument: how messages call it.
std::string called(const CLI::Option* option) {
  return option->get_positional() ? upper(option->get_name(true, false)) : option->get_name();
}

bool is_flag(const CLI::Option* option) {
  return option->get_items_expected_max() == 0;
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

// Usage names the command as users type it, examples follow it, groups of options become headings.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter(std::string more, std::string examples) : more_(std::move(more)), examples_(std::move(examples)) {
    label("Positionals", "Arguments");
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = "Usage: " + (name.empty() ? app->get_name() : name);
    for (const CLI::Option* option : app->get_options())
      if (option->get_positional() && option->get_required()) usage += " " + placeholder(option);
    for (const CLI::Option* option : app->get_options())
      if (option->get_positional() && !option->get_required()) usage += " [" + placeholder(option) + "]";
    usage += " [options]";
    if (app->get_prefix_command()) usage += " -- program [arguments]";
    usage += (more_.empty() ? "" : " ") + more_ + "\n";
    const std::string examples = examples_.empty() ? split_examples(app->get_footer()).first : examples_;
    return examples.empty() ? usage : usage + "\n" + examples + "\n";
  }
  std::string make_footer(const CLI::App* app) const override {
    const std::string rest = split_examples(app->get_footer()).second;
    return rest.empty() ? rest : rest.substr(rest.find_first_not_of('\n')) + "\n";
  }
  std::string make_expanded(const CLI::App* group) const override {
    std::string out;
    for (const CLI::Option* option : group->get_options())
      if (option != group->get_help_ptr()) out += make_option(option, false);
    return "\n" + group->get_group() + ":\n" + out;
  }
  std::string make_option(const CLI::Option* option, bool positional) const override {
    positional_ = positional;
    return CLI::Formatter::make_option(option, positional);
  }
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    if (positional) return placeholder(option);
    std::string name = CLI::Formatter::make_option_name(option, false);
    // CLI11 says of a flag such as --no-lines what it assigns.
    if (const size_t at = name.find("{false}"); at != std::string::npos) name.erase(at, 7);
    for (size_t at = name.find(','); at != std::string::npos; at = name.find(',', at + 2)) name.insert(at + 1, " ");
    return name;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (is_flag(option) || positional_) return {};
    const bool many = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    const std::string word = value_word(option) + (many ? "..." : "");
    return option->get_items_expected_min() == 0 ? " [" + word + "]" : " " + word;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    const std::string& otherwise = option->get_default_str();
    if (!is_flag(option) && !otherwise.empty() && !tells_default(text))
      text += (text.empty() ? "(default: " : " (default: ") + otherwise + ")";
    return text;
  }

 private:
  std::string more_, examples_;
  mutable bool positional_ = false;  // of the option that is being written: an argument, whose name is its value's
};

// "" if `text` is one of `words`, else what to choose.
std::string none_of(const std::vector<std::string>& words, const std::string& text) {
  if (std::find(words.begin(), words.end(), text) != words.end()) return {};
  const std::string best = words.size() > 4 ? nearest(text, words) : std::string();
  return fmt::format("choose {}, not '{}'{}", alternatives(words), text,
                     best.empty() ? "" : "; did you mean " + best + "?");
}

// Adds the words that `option` takes to its help, unless that names them.
void tell(CLI::Option& option, const std::vector<std::string>& words) {
  const std::string& text = option.get_description();
  const auto named = [&](const std::string& word) { return text.find(word) != std::string::npos; };
  if (std::all_of(words.begin(), words.end(), named)) return;
  option.description(fmt::format("{}{}({})", text, text.empty() ? "" : " ", alternatives(words)));
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  if (!CLI::detail::lexical_cast(text, value)) return {};
  return value;
}

void collect_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) collect_names(*group, names);
}

// The option that a message of CLI11 begins with or names; nullptr if there is none.
const CLI::Option* option_of(const CLI::App& app, std::string_view message) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (name.empty() || !message.starts_with(name)) continue;
    if (const char after = message.size() > name.size() ? message[name.size()] : ' '; after == ':' || after == ' ')
      return option;
  }
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; }))
    if (const CLI::Option* const found = option_of(*group, message)) return found;
  return nullptr;
}

bool takes_whole_numbers(const CLI::Option* option) {
  const std::string type = option->get_type_name();
  return type.starts_with("INT") || type.starts_with("UINT");
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

// What CLI11's `message` says, in plain words.
std::string plain_words(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  if (!message.empty() && message.back() == '\n') message.pop_back();
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    constexpr std::string_view kHead = "Could not convert: ";
    const std::string_view rest = std::string_view(message).substr(message.starts_with(kHead) ? kHead.size() : 0);
    if (const CLI::Option* const option = option_of(app, rest))
      return fmt::format("{} {}: write a {}number", called(option), joined(option->results()),
                         takes_whole_numbers(option) ? "whole " : "");
    return message;
  }
  const CLI::Option* const option = option_of(app, message);
  if (option == nullptr) return message;
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    return option->get_positional() ? fmt::format("{} is missing: {}{}", called(option), app.get_name(),
                                                  [&] {
                                                    std::string all;
                                                    for (const CLI::Option* each : app.get_options())
                                                      if (each->get_positional() && each->get_required())
                                                        all += " " + placeholder(each);
                                                    return all;
                                                  }())
                                    : fmt::format("{} {} is missing", called(option), value_word(option));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    if (option->get_type_size() == 0) return fmt::format("{} takes no value", called(option));
    return option->count() > 1 ? fmt::format("{} {} is given {} times, and takes one value", called(option),
                                             value_word(option), option->count())
                               : fmt::format("{} {}: the value is missing", called(option), value_word(option));
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr)
    if (const size_t at = message.find(" excludes "); at != std::string::npos)
      return fmt::format("{} and {} do not go together", called(option), message.substr(at + 10));
  return message;
}

std::string sentence(const CommandOptions& options, const CLI::App& app, const CLI::ParseError& error) {
  std::string message;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    // CLI11 lists them in reverse.
    const std::vector<std::string> words = options.remaining();
    message = words.size() > 1 ? "these arguments were not expected:" : "this argument was not expected:";
    for (const std::string& word : words) message += " " + word;
    const auto dashed =
        std::find_if(words.begin(), words.end(), [](const std::string& w) { return w.starts_with('-'); });
    if (dashed != words.end()) {
      const std::vector<std::string> names = options.option_names();
      message += suggestion(names, *dashed == "-f" ? "--output-format" : *dashed == "-o" ? "--output" : *dashed);
    }
  } else {
    message = plain_words(app, error);
  }
  return message + "; see " + options.name() + " --help";
}

}  // namespace

CommandOption& CommandOption::required() {
  option_->required();
  return *this;
}

CommandOption& CommandOption::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

CommandOption& CommandOption::capture_default_str() {
  option_->capture_default_str();
  return *this;
}

CommandOption& CommandOption::default_str(const std::string& text) {
  option_->default_str(text);
  return *this;
}

CommandOption& CommandOption::expected(int least, int most) {
  option_->expected(least, most);
  return *this;
}

CommandOption& CommandOption::one_of(const std::vector<std::string>& words) {
  tell(*option_, words);
  return check([words](const std::string& text) { return none_of(words, text); });
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
  if (most < 1e8) option_->description(fmt::format("{} ({} to {})", option_->get_description(), least, most));
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
  option_->check(wrong);
  return *this;
}

CommandOption& CommandOption::excludes(const CommandOption& other) {
  option_->excludes(other.option_);
  return *this;
}

size_t CommandOption::count() const {
  return option_->count();
}

CommandOptions::CommandOptions(const std::string& description, const std::string& name)
    : app_(std::make_unique<CLI::App>(description, name)), section_(app_.get()) {
  app_->set_help_flag("-h,--help", "this text");
}

CommandOptions::~CommandOptions() = default;

template <typename Value>
CommandOption CommandOptions::add_option(const std::string& names, Value& value, const std::string& help) {
  CommandOption option(section_->add_option(names, value, help));
  if constexpr (std::is_unsigned_v<Value> || std::is_same_v<Value, std::optional<size_t>> ||
                std::is_same_v<Value, std::optional<uint16_t>>)
    option.check([](const std::string& text) {
      // CLI11 would take -1 for the largest number.
      return text.starts_with('-') ? "choose a whole number from 0 on, not " + text : std::string();
    });
  return option;
}

CommandOption CommandOptions::add_flag(const std::string& names, bool& value, const std::string& help) {
  return CommandOption(section_->add_flag(names, value, help));
}

CommandOption CommandOptions::add_option_function(const std::string& names,
                                                  const std::function<void(const std::string&)>& take,
                                                  const std::string& help) {
  return CommandOption(section_->add_option_function<std::string>(names, take, help));
}

CommandOption CommandOptions::add_list_function(const std::string& names,
                                                const std::function<void(const std::vector<std::string>&)>& take,
                                                const std::string& help) {
  return CommandOption(section_->add_option_function<std::vector<std::string>>(names, take, help));
}

void CommandOptions::open_group(const std::string& heading) {
  section_ = heading.empty() ? app_.get() : app_->add_option_group(heading);
}

void CommandOptions::examples(const std::string& lines) {
  examples_ = "Examples:\n" + lines;
}

void CommandOptions::footer(const std::string& text) {
  app_->footer(text);
}

void CommandOptions::prefix_command() {
  app_->prefix_command();
}

CommandOptions::Parsed CommandOptions::parse(int argc, char** argv) {
  Parsed parsed;
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    parsed.help = true;
  } catch (const CLI::ParseError& error) {
    parsed.mistake = sentence(*this, *app_, error);
  }
  return parsed;
}

std::string CommandOptions::name() const {
  return app_->get_name();
}

std::vector<std::string> CommandOptions::remaining() const {
  return app_->remaining();
}

std::vector<std::string> CommandOptions::option_names() const {
  std::vector<std::string> names;
  collect_names(*app_, names);
  return names;
}

std::string CommandOptions::help(const std::string& more) const {
  app_->formatter(std::make_shared<HelpFormatter>(more, examples_));
  return app_->help();
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
