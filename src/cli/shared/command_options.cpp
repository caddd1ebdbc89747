// Options by CLI11 (command_options.h).
#include "cli/shared/command_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

#include "cli/shared/suggest.h"

namespace tacho::cli {
namespace {

// Usage names the command as users type it; groups of options become headings.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string more) : more_(std::move(more)) {}
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = "Usage: " + (name.empty() ? app->get_name() : name);
    for (const CLI::Option* option : app->get_options())
      if (option->get_positional() && option->get_required()) usage += " " + placeholder(option);
    for (const CLI::Option* option : app->get_options())
      if (option->get_positional() && !option->get_required()) usage += " [" + placeholder(option) + "]";
    usage += " [options]";
    if (app->get_prefix_command()) usage += " -- program [arguments]";
    return usage + (more_.empty() ? "" : " ") + more_ + "\n";
  }
  std::string make_expanded(const CLI::App* group) const override {
    std::string out;
    for (const CLI::Option* option : group->get_options())
      if (option != group->get_help_ptr()) out += make_option(option, false);
    return "\n" + group->get_group() + ":\n" + out;
  }
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    // CLI11 says of a flag such as --no-lines what it assigns.
    if (const size_t at = name.find("{false}"); at != std::string::npos) name.erase(at, 7);
    return name;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    // A missing pair of brackets in the usage line says the same.
    if (const size_t at = text.find(" REQUIRED"); at != std::string::npos) text.erase(at, 9);
    if (const size_t at = text.find(" Excludes:"); at != std::string::npos) text.erase(at);
    return text;
  }

 private:
  static std::string placeholder(const CLI::Option* option) {
    std::string name = option->get_name(true, false);
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return option->get_expected_max() > 1 ? name + "..." : name;
  }
  std::string more_;
};

void collect_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) collect_names(*group, names);
}

std::string sentence(const CommandOptions& options, const CLI::ParseError& error) {
  std::string message = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    // CLI11 lists them in reverse.
    const std::vector<std::string> words = options.remaining();
    message = words.size() > 1 ? "these arguments were not expected:" : "this argument was not expected:";
    for (const std::string& word : words) message += " " + word;
  }
  if (!message.empty() && message.back() == '\n') message.pop_back();
  if (const size_t at = message.find("--");
      at != std::string::npos && message.find("not expected") != std::string::npos) {
    const std::string word = message.substr(at, message.find_first_of(" =", at) - at);
    message += suggestion(options.option_names(), word);
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
  option_->check(CLI::IsMember(words));
  return *this;
}

CommandOption& CommandOption::one_of_numbers(const std::vector<int>& numbers) {
  option_->check(CLI::IsMember(numbers));
  return *this;
}

CommandOption& CommandOption::one_of_ignoring_case(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words, CLI::ignore_case));
  return *this;
}

CommandOption& CommandOption::between(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

CommandOption& CommandOption::between(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

CommandOption& CommandOption::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
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
    : app_(std::make_unique<CLI::App>(description, name)), section_(app_.get()) {}

CommandOptions::~CommandOptions() = default;

template <typename Value>
CommandOption CommandOptions::add_option(const std::string& names, Value& value, const std::string& help) {
  return CommandOption(section_->add_option(names, value, help));
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
    parsed.mistake = sentence(*this, error);
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
  app_->formatter(std::make_shared<HelpFormatter>(more));
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
