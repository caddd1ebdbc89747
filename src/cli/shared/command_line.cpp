// Reads command lines and the values in them (command_line.h).
#include "cli/shared/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/files/output_file.h"
#include "cli/command.h"
#include "cli/shared/suggest.h"
#include "report/output.h"
#include "report/text.h"

namespace tacho::cli {

Result<std::vector<std::string>> target_command(const CommandOptions& app) {
  std::vector<std::string> words = app.remaining();
  if (!words.empty() && words.front() == "--") {
    words.erase(words.begin());
  } else if (!words.empty() && words.front().starts_with("-")) {
    return fail("there is no option {}{}; see {} --help", words.front(), suggestion(app.option_names(), words.front()),
                app.name());
  }
  if (words.empty()) return fail("no command to run; write it after --, as in: {} -- ./app", app.name());
  return words;
}

std::optional<int> parse_options(CommandOptions& app, int argc, char** argv, int mistake) {
  const CommandOptions::Parsed parsed = app.parse(argc, argv);
  if (parsed.help) {
    print_help(app);
    return kOk;
  }
  if (parsed.mistake) return complain(mistake, *parsed.mistake);
  return std::nullopt;
}

void print_help(const CommandOptions& app, const std::string& more) {
  print_help_text(app.help(more), STDOUT_FILENO);
}

std::string wrapped_help(std::string_view text, size_t width) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t first = line.find_first_not_of(' ');
    if (report::display_width(line) <= width || first == std::string_view::npos) {
      out.append(line).append(1, '\n');
      continue;
    }
    // The description begins after the first two blanks that follow the option's name.
    constexpr size_t kDescription = 20;  // a line that begins this far to the right is a description
    size_t column = first == 0 || first >= kDescription ? first : first + 2;
    if (const size_t gap = line.find("  ", first); gap != std::string_view::npos)
      if (const size_t text_at = line.find_first_not_of(' ', gap);
          text_at != std::string_view::npos && text_at < width * 2 / 3)
        column = text_at;
    const size_t start = column > first + 2 ? column : first;
    out.append(line.substr(0, start));
    out += report::wrapped(line.substr(start), width - column, column);
    out += '\n';
  }
  return out;
}

void print_help_text(std::string_view text, int descriptor) {
  const report::Screen screen = report::screen_of(descriptor);
  const std::string shown = screen.terminal ? wrapped_help(text, screen.width) : std::string(text);
  report::put(shown, descriptor == STDERR_FILENO ? report::Stream::kError : report::Stream::kOut);
}

std::string check_seconds(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value >= 0) return {};
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

report::Stream message_stream(std::span<const std::string> outputs) {
  return std::any_of(outputs.begin(), outputs.end(), is_standard_output) ? report::Stream::kError
                                                                         : report::Stream::kOut;
}

void print_outputs(std::span<const std::string> outputs) {
  for (const std::string& path : outputs)
    if (!is_standard_output(path)) report::print(message_stream(outputs), "{}\n", path);
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
