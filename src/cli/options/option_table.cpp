// Tables of options and the options given (option_table.h).
#include "cli/options/option_table.h"

#include <algorithm>

#include "cli/shared/suggest.h"

namespace tacho::cli::options {

std::vector<std::string> choices_of(std::string_view words) {
  std::vector<std::string> out;
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (end > at) out.emplace_back(words.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool is_choice(const Option& option, std::string_view word) {
  std::string lower(word);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::vector<std::string> choices = choices_of(option.choices);
  return std::find(choices.begin(), choices.end(), lower) != choices.end();
}

std::optional<bool> truth(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const char* yes : {"y", "yes", "t", "true", "on", "1"})
    if (lower == yes) return true;
  for (const char* no : {"n", "no", "f", "false", "off", "0"})
    if (lower == no) return false;
  return {};
}

const Option* find(std::span<const Option> table, std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  for (const Option& option : table)
    if (option.name == dashed) return &option;
  return nullptr;
}

const Option* find_short(std::span<const Option> table, std::string_view name) {
  for (const Option& option : table)
    if (!option.short_name.empty() && option.short_name == name) return &option;
  return nullptr;
}

std::string suggestion(std::span<const Option> table, std::string_view name) {
  std::vector<std::string> names;
  for (const Option& known : table) names.push_back("--" + std::string(known.name));
  const std::string best = nearest(name, names);
  return best.empty() ? "" : ", did you mean " + best;
}

std::string help_line(const Option& option, size_t width) {
  std::string names = option.short_name.empty() ? "    " : fmt::format("{}, ", option.short_name);
  names += fmt::format("--{}", option.name);
  if (option.kind == OptionKind::kValue) names += option.choices.empty() ? " X" : "";
  if (option.kind == OptionKind::kList) names += " X...";
  std::string text(option.help);
  if (!option.choices.empty()) {
    std::string choices(option.choices);
    std::replace(choices.begin(), choices.end(), ' ', '|');
    text += text.empty() ? choices : fmt::format(" ({})", choices);
  }
  return fmt::format("  {:<{}} {}\n", names, width, text);
}

std::optional<bool> Given::flag(std::string_view name) const {
  const auto found = words_.find(name);
  if (found == words_.end()) return {};
  return found->second.front() == "1";
}
bool Given::on(std::string_view name) const {
  return flag(name).value_or(false);
}

std::string Given::value(std::string_view name, std::string_view otherwise) const {
  const auto found = words_.find(name);
  return found == words_.end() || found->second.empty() ? std::string(otherwise) : found->second.front();
}

const std::vector<std::string>& Given::list(std::string_view name) const {
  static const std::vector<std::string> kNone;
  const auto found = words_.find(name);
  return found == words_.end() ? kNone : found->second;
}

Status Given::set(const Option& option, std::vector<std::string> words, std::string_view where) {
  if (option.kind == OptionKind::kFlag) {
    const auto yes = words.empty() ? std::optional(true) : words.size() == 1 ? truth(words[0]) : std::nullopt;
    if (!yes) return fail("{}: '{}' is neither yes nor no", where, words[0]);
    words = {*yes ? "1" : "0"};
  } else if (words.empty()) {
    return fail("{}: a value is missing", where);
  } else if (option.kind == OptionKind::kValue && words.size() > 1) {
    return fail("{}: takes one value, not {}", where, words.size());
  }
  if (!option.choices.empty()) {
    const std::vector<std::string> choices = choices_of(option.choices);
    for (std::string& word : words)
      for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    for (const std::string& word : words)
      if (std::find(choices.begin(), choices.end(), word) == choices.end()) {
        const std::string best = nearest(word, choices);
        std::string all;
        for (const std::string& choice : choices) all += (all.empty() ? "" : ", ") + choice;
        return fail("{}: '{}' is not one of {}{}", where, word, all,
                    best.empty() ? "" : "; did you mean " + best + "?");
      }
  }
  words_[std::string(option.name)] = std::move(words);
  return {};
}

Status Given::merge(const Given& other, std::string_view where) {
  for (const auto& [name, words] : other.words_) {
    const auto [at, fresh] = words_.try_emplace(name, words);
    if (!fresh && at->second != words)
      return fail("--{} is given on the command line and, differently, in {}: remove one", name, where);
  }
  return {};
}

}  // namespace tacho::cli::options
