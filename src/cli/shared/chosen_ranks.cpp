// Ranks that are recorded, launchers that are not (chosen_ranks.h).
#include "cli/shared/chosen_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/job_rank.h"
#include "cli/command.h"
#include "launch/launcher.h"

namespace tacho::cli {
namespace {

bool whole_number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

bool is_launcher(const std::string& word) {
  std::string name = std::filesystem::path(word).filename().string();
  name = name.substr(0, name.find('.'));
  return name == "mpirun" || name == "mpiexec" || name == "srun" || name == "orterun";
}

bool is_shell(const std::string& word) {
  const std::string name = std::filesystem::path(word).filename().string();
  return name == "sh" || name == "bash" || name == "dash" || name == "zsh" || name == "ksh";
}

// A shell's line as words, as far as quotes go; what the shell would compute stays as it is written.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      any = true;
    } else if (c == '\\' && i + 1 < line.size()) {
      word += line[++i];
      any = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (any) words.push_back(std::move(word));
      word.clear();
      any = false;
      continue;
    } else if (c == ';' || c == '&' || c == '|') {
      if (any) words.push_back(std::move(word));
      word.clear();
      any = false;
      words.emplace_back(1, c);
      continue;
    } else {
      word += c;
    }
    any = true;
  }
  if (any) words.push_back(std::move(word));
  return words;
}

}  // namespace

Result<bool> is_chosen_rank(std::string_view list, std::string& warning) {
  const JobRank job = job_rank();
  bool chosen = false;
  std::string_view rest = list;
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    const size_t dash = word.find('-');
    int64_t first = 0, last = 0;
    if (!whole_number(word.substr(0, dash), first) ||
        (dash != std::string_view::npos && !whole_number(word.substr(dash + 1), last)))
      return fail("--ranks {}: '{}' is no rank; write them like 0,2-3", list, word);
    if (dash == std::string_view::npos) last = first;
    if (last < first) return fail("--ranks {}: {} ends before it begins", list, word);
    chosen = chosen || (job.rank >= first && job.rank <= last);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (!job.known() || job.rank < 0) {
    warning = fmt::format("--ranks {} is ignored: no launcher told this process its rank", list);
    return true;
  }
  return chosen;
}

bool is_first_rank(std::string_view list) {
  const JobRank job = job_rank();
  if (!job.known() || job.rank < 0 || job.size == 1) return true;
  int64_t lowest = list.empty() ? 0 : INT64_MAX;
  while (!list.empty()) {
    const std::string_view word = list.substr(0, list.find(','));
    int64_t first = 0;
    if (whole_number(word.substr(0, word.find('-')), first)) lowest = std::min(lowest, first);
    list.remove_prefix(std::min(list.size(), word.size() + 1));
  }
  return job.rank <= lowest;
}

int run_as_it_is(const std::vector<std::string>& command) {
  const auto path = launch::find_executable(command[0]);
  if (!path) return complain(path.error().exit_code, path.error().message);
  std::vector<std::string> copies = command;
  std::vector<char*> words;
  for (std::string& word : copies) words.push_back(word.data());
  words.push_back(nullptr);
  execv(path->c_str(), words.data());
  return complain(kNotExecutable, fmt::format("{}: {}", *path, strerror(errno)));
}

std::optional<FoundLauncher> find_launcher(std::span<const std::string> command) {
  FoundLauncher found;
  for (size_t at = 0; at < command.size(); ++at) {
    const std::string& word = command[at];
    if (is_launcher(word)) {
      found.words.assign(command.begin() + static_cast<int64_t>(at), command.end());
      return found;
    }
    const std::string name = std::filesystem::path(word).filename().string();
    if (is_shell(word)) {
      for (size_t option = at + 1; option + 1 < command.size() && command[option].starts_with("-"); ++option) {
        if (command[option].find('c') == std::string::npos || command[option].starts_with("--")) continue;
        // Any command of the line may be the launcher.
        const std::vector<std::string> words = words_of(command[option + 1]);
        size_t from = 0;
        for (size_t i = 0; i <= words.size(); ++i) {
          if (i < words.size() && words[i] != ";" && words[i] != "&" && words[i] != "|") continue;
          if (auto inside = find_launcher(std::span(words).subspan(from, i - from))) return inside;
          from = i + 1;
        }
        return std::nullopt;
      }
      return std::nullopt;
    }
    const bool passes_on = name == "env" || name == "nohup" || name == "nice" || name == "exec" || name == "time" ||
                           name == "stdbuf" || name == "setsid";
    const bool assignment = word.find('=') != std::string::npos && word.find('=') > 0;
    const bool option = word.starts_with("-");
    int64_t ignored = 0;
    const bool value = at > 0 && command[at - 1].starts_with("-") && whole_number(word, ignored);
    if (!passes_on && !assignment && !option && !value) return std::nullopt;
    found.before.push_back(word);
  }
  return std::nullopt;
}

}  // namespace tacho::cli
