// Reading command lines and the values in them (command_line.h).
#include "cli/shared/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/output_file.h"
#include "cli/shared/suggest.h"

namespace tacho::cli {

Result<std::vector<std::string>> target_command(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  if (!words.empty() && words.front() == "--") {
    words.erase(words.begin());
  } else if (!words.empty() && words.front().starts_with("-")) {
    return fail("there is no option {}{}; see {} --help", words.front(), suggestion(app, words.front()),
                app.get_name());
  }
  if (words.empty()) return fail("no command to run; write it after --, as in: {} -- ./app", app.get_name());
  return words;
}

std::string option_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    // CLI11 lists them last first.
    const std::vector<std::string> words = app.remaining();
    message = words.size() > 1 ? "these arguments were not expected:" : "this argument was not expected:";
    for (const std::string& word : words) message += " " + word;
  }
  if (!message.empty() && message.back() == '\n') message.pop_back();
  if (const size_t at = message.find("--");
      at != std::string::npos && message.find("not expected") != std::string::npos) {
    const std::string word = message.substr(at, message.find_first_of(" =", at) - at);
    message += suggestion(app, word);
  }
  return message + "; see " + app.get_name() + " --help";
}

std::string check_seconds(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value >= 0)
    return {};
  return fmt::format("'{}': expected seconds, a number from 0 on", text);
}

Result<uint64_t> parse_size(const std::string& text) {
  size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used > 0 && std::isfinite(value) && value > 0) {
    std::string unit = text.substr(used);
    if (unit.size() > 1 && (unit.back() == 'B' || unit.back() == 'b')) unit.pop_back();
    if (unit.size() > 1 && unit.back() == 'i') unit.pop_back();
    static constexpr const char* kUnits = "kmgt";
    double factor = 1;
    bool known = unit.empty() || unit == "B";
    for (int i = 0; i < 4 && unit.size() == 1; ++i)
      if (std::tolower(static_cast<unsigned char>(unit[0])) == kUnits[i]) {
        factor = std::pow(1024.0, i + 1);
        known = true;
      }
    if (known && value * factor < 9e18) return static_cast<uint64_t>(value * factor);
  }
  return fail("'{}' is not a size; write bytes or a number with k, M, G or T, as in 64M", text);
}

std::FILE* message_stream(std::span<const std::string> outputs) {
  return std::any_of(outputs.begin(), outputs.end(), is_standard_output) ? stderr : stdout;
}

void print_outputs(std::span<const std::string> outputs) {
  for (const std::string& path : outputs)
    if (!is_standard_output(path)) fmt::print(message_stream(outputs), "{}\n", path);
}

std::string free_name(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(name, ignored)) return name;
  const fs::path path(name);
  for (int i = 1;; ++i) {
    fs::path candidate =
        path.parent_path() / fmt::format("{}.{}{}", path.stem().string(), i, path.extension().string());
    if (!fs::exists(candidate, ignored)) return candidate.string();
  }
}

}  // namespace tacho::cli
