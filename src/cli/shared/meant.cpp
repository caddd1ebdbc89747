// Guesses what users meant (meant.h).
#include "cli/shared/meant.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/files/run_name.h"
#include "base/format.h"
#include "cli/shared/suggest.h"
#include "format/source/names.h"
#include "launch/launcher.h"
#include "ranks/read/load.h"
#include "vendor/definitions.h"
#include "workload/workload.h"

namespace tacho::cli {
namespace {

namespace fs = std::filesystem;

std::string joined(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

bool is_source(const std::string& path) {
  for (const char* ending : {".c", ".cc", ".cpp", ".cxx", ".f90", ".rs", ".go", ".h", ".hpp"})
    if (path.ends_with(ending)) return true;
  return vendor::is_vendor_source(path);
}

bool is_recording(const std::string& path) {
  if (format::named_like_a_trace(path) || path.ends_with(".proto")) return true;
  std::ifstream file(path, std::ios::binary);
  char head[7] = {};
  file.read(head, 6);
  return std::string_view(head) == "\x89TACHO" || std::string_view(head) == "SQLite";
}

bool holds_counters(const std::string& folder, int levels) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return false;
  if (workload::is_workload(folder) || fs::exists(fs::path(folder) / "sysinfo.csv", ignored)) return true;
  if (levels == 0) return false;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored) && holds_counters(entry.path().string(), levels - 1))
      return true;
  return false;
}

// "holds 4 traces: ...", the command that reads several at once; "" for a folder without a trace.
std::string traces_in(const std::string& folder) {
  std::vector<std::string> files, notes;
  if (!ranks::list_traces({folder}, files, notes) || files.empty() || files[0] == folder) return {};
  const std::string word = shell_word(folder);
  if (files.size() == 1) return fmt::format("{}: holds one trace; give its name: {}", folder, shell_word(files[0]));
  return fmt::format(
      "{}: holds {} traces, and this command reads one; did you mean: tacho ranks {} (who made whom wait), tacho view "
      "{}, or tacho merge {} -o all.tacho (one trace of all)",
      folder, files.size(), word, word, word);
}

}  // namespace

bool is_profile(const std::string& folder) {
  constexpr int kLevels = 4;
  return holds_counters(folder, kLevels);
}

std::string not_a_trace(const std::string& path) {
  std::error_code ignored;
  if (!holds_counters(path, 0))
    if (const std::string traces = fs::is_directory(path, ignored) ? traces_in(path) : std::string(); !traces.empty())
      return traces;
  if (is_profile(path))
    return fmt::format("{}: is a profile folder (counters), not a trace; did you mean: tacho analyze -p {}", path,
                       shell_word(path));
  if (!fs::is_regular_file(path, ignored)) return {};
  if (const std::string folder = fs::path(path).parent_path().string();
      path.ends_with(".csv") && !folder.empty() && workload::is_workload(folder))
    return fmt::format("{}: belongs to a profile folder (counters), not to a trace; did you mean: tacho analyze -p {}",
                       path, shell_word(folder));
  const std::string meant = meant_command({&path, 1});
  if (!meant.starts_with("tacho trace")) return {};
  return fmt::format("{}: is a program, not a trace; did you mean: {}", path, meant);
}

std::string none_is_a_trace(std::span<const std::string> paths, const std::string& why) {
  std::error_code ignored;
  for (const std::string& path : paths)
    if (is_profile(path) || !fs::is_directory(path, ignored))
      if (const std::string sentence = not_a_trace(path); !sentence.empty()) return sentence;
  return why;
}

std::string not_a_profile(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (is_profile(path) || traces_in(path).empty()) return {};
    return fmt::format("{}: holds traces, not counters; did you mean: tacho view {}", path, shell_word(path));
  }
  if (!fs::is_regular_file(path, ignored)) return {};
  if (const std::string folder = fs::path(path).parent_path().string();
      path.ends_with(".csv") && !folder.empty() && workload::is_workload(folder))
    return fmt::format("{}: is a file of a profile folder; did you mean: tacho analyze -p {}", path,
                       shell_word(folder));
  if (is_recording(path))
    return fmt::format("{}: is a trace, not a profile folder; did you mean: tacho stats {}", path, shell_word(path));
  const std::string meant = meant_command({&path, 1});
  if (!meant.starts_with("tacho trace")) return {};
  return fmt::format("{}: is a program, not a profile folder; did you mean: tacho profile{}", path,
                     meant.substr(std::string_view("tacho trace").size()));
}

std::string shell_word(const std::string& word) {
  static constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string meant_command(std::span<const std::string> words) {
  if (words.empty()) return {};
  const std::string& word = words[0];
  std::error_code ignored;
  if (fs::is_directory(word, ignored)) return is_profile(word) ? "tacho analyze -p " + shell_word(word) : std::string();
  if (!fs::is_regular_file(word, ignored)) return {};
  const bool executable = access(word.c_str(), X_OK) == 0;
  const bool here = word.find('/') == std::string::npos;
  if (executable && starts_by_itself(word)) return "tacho trace -- " + joined(words).insert(0, here ? "./" : "");
  if (const std::string interpreter = interpreter_of(word); !interpreter.empty())
    return fmt::format("tacho trace -- {} {}", interpreter, joined(words));
  if (is_recording(word)) return "tacho info " + shell_word(word);
  return {};
}

bool is_program(std::span<const std::string> words, std::span<const std::string> commands) {
  const std::string& word = words[0];
  if (word == "--") return true;
  if (word.starts_with("-")) return false;
  const auto path = launch::find_executable(word);
  if (!path || !starts_by_itself(*path)) return false;
  return word.find('/') != std::string::npos || nearest(word, commands).empty();
}

bool is_missing_program(const std::string& word) {
  std::error_code ignored;
  return word.find('/') != std::string::npos && !word.starts_with('-') && !fs::exists(word, ignored) &&
         !format::named_like_a_trace(word);
}

std::string not_a_command(std::span<const std::string> words, std::span<const std::string> commands) {
  const std::string& word = words[0];
  std::error_code ignored;
  const std::string meant = meant_command(words);
  const std::string guess = meant.empty() ? std::string() : "; did you mean: " + meant;
  if (word.starts_with("-"))
    return fmt::format(
        "{} stands before a command; write the command first, as in: tacho trace {} (tacho --help lists them)", word,
        joined(words));
  if (fs::is_directory(word, ignored))
    return fmt::format("{}: is a folder, neither a command nor a program{}", word,
                       guess.empty() ? "; tacho --help lists the commands" : guess);
  if (fs::exists(word, ignored)) {
    if (!guess.empty()) return fmt::format("{}: is no command of tacho{}", word, guess);
    if (is_source(word))
      return fmt::format("{}: is source code; compile it and trace the program, as in: tacho trace -- ./{}", word,
                         fs::path(word).stem().string());
    return fmt::format("{}: is neither a command nor a program that can be started{}", word,
                       starts_by_itself(word) ? fmt::format("; make it executable: chmod +x {}", shell_word(word))
                                              : "; tacho --help lists the commands");
  }
  if (const std::string best = nearest(word, commands); !best.empty())
    return fmt::format("there is no command '{}'; did you mean: tacho {}{}{}", word, best, words.size() > 1 ? " " : "",
                       joined(words.subspan(1)));
  if (word.find('/') != std::string::npos || !interpreter_of(word).empty() || is_source(word) ||
      word.ends_with(".tacho"))
    return fmt::format("{}: no such file", word);
  return fmt::format("there is no command or program '{}'; tacho --help lists the commands", word);
}

}  // namespace tacho::cli
