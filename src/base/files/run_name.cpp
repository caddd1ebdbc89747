// Derives the name of a run from its command line (run_name.h).
#include "base/files/run_name.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho {
namespace {

std::string_view base_of(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path.substr(path.rfind('/') + 1);  // npos + 1 = 0
}

bool is_python(std::string_view name) {
  for (const std::string_view known : {"python", "pypy"})
    if (name.starts_with(known)) return name.find_first_not_of("0123456789.t", known.size()) == std::string_view::npos;
  return false;
}

bool is_shell(std::string_view name) {
  for (const std::string_view known : {"sh", "bash", "dash", "zsh", "ksh", "fish"})
    if (name == known) return true;
  return false;
}

// A script's name without its folders and without its language's extension.
std::string script_name(std::string_view path) {
  std::string_view name = base_of(path);
  if (name == "__main__.py" && path.size() > name.size()) {
    const std::string_view folder = base_of(path.substr(0, path.size() - name.size()));
    if (!folder.empty() && folder != "/" && folder != ".") name = folder;
  }
  for (const std::string_view ending : {".py", ".pyw", ".sh", ".bash"})
    if (name.size() > ending.size() && name.ends_with(ending)) name.remove_suffix(ending.size());
  return std::string(name);
}

// Programs that run another one: their options that take a word, and the number of words before the program.
struct Wrapper {
  std::string_view name, options;
  size_t words;
};
constexpr Wrapper kWrappers[] = {{"env", " -u -C -S --unset --chdir ", 0},
                                 {"nohup", "", 0},
                                 {"setsid", "", 0},
                                 {"exec", "", 0},
                                 {"time", " -f -o ", 0},
                                 {"nice", " -n ", 0},
                                 {"ionice", " -c -n ", 0},
                                 {"stdbuf", " -i -o -e ", 0},
                                 {"timeout", " -k -s ", 1},
                                 {"taskset", "", 1},
                                 {"numactl", " -N -m -C -i -p -l ", 0},
                                 {"catchsegv", "", 0}};
// Programs that start Python scripts and have options of their own.
constexpr std::string_view kStarters[] = {"torchrun", "accelerate", "deepspeed", "horovodrun", "ipython",
                                          "ipython3", "uv",         "poetry",    "pipenv",     "conda"};
constexpr std::string_view kLauncherModules[] = {"torch.distributed.run",
                                                 "torch.distributed.launch",
                                                 "accelerate.commands.launch",
                                                 "cProfile",
                                                 "profile",
                                                 "pdb",
                                                 "coverage",
                                                 "trace",
                                                 "debugpy"};
constexpr std::string_view kJobLaunchers[] = {"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "srun", "flux"};

using Words = std::span<const std::string>;

// The first script among the words, or the module after -m.
std::string first_script(Words words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].ends_with(".py")) return script_name(words[i]);
    if ((words[i] == "-m" || words[i] == "--module") && i + 1 < words.size() && !words[i + 1].starts_with("-"))
      return words[i + 1];
  }
  return {};
}

// The script of `python3 [options] script ...`; empty if python3 runs no file (-c, standard input).
std::string of_python(Words words) {
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-m" || word.starts_with("-m")) {
      const std::string module = word.size() > 2 ? word.substr(2) : i + 1 < words.size() ? words[i + 1] : "";
      if (std::find(std::begin(kLauncherModules), std::end(kLauncherModules), module) != std::end(kLauncherModules))
        if (std::string script = first_script(words.subspan(std::min(i + 2, words.size()))); !script.empty())
          return script;
      return std::string(base_of(module));
    }
    if (word == "-" || word == "-c" || word.starts_with("-c")) return {};
    if (word == "-W" || word == "-X" || word == "--check-hash-based-pycs") {
      ++i;
      continue;
    }
    if (word.starts_with("-")) {
      // "-um pkg": letters in one word; the last may be m or c
      if (!word.starts_with("--") && word.ends_with("m") && i + 1 < words.size()) return words[i + 1];
      if (!word.starts_with("--") && word.ends_with("c")) return {};
      continue;
    }
    return script_name(word);
  }
  return {};
}

std::string script_of(Words words);

// The program's own words, without env, timeout and other wrappers before them.
Words unwrapped(Words words) {
  while (!words.empty()) {
    const std::string_view name = base_of(words[0]);
    const auto wrapper = std::find_if(std::begin(kWrappers), std::end(kWrappers),
                                      [&](const Wrapper& known) { return known.name == name; });
    if (wrapper == std::end(kWrappers)) return words;
    size_t at = 1, before = wrapper->words;
    for (; at < words.size(); ++at) {
      const std::string& word = words[at];
      if (word == "--") continue;
      if (word.starts_with("-")) {
        if (wrapper->options.find(" " + word + " ") != std::string_view::npos) ++at;
        continue;
      }
      if (name == "env" && word.find('=') != std::string::npos) continue;
      if (before == 0) break;
      --before;
    }
    if (at >= words.size()) return words;
    words = words.subspan(at);
  }
  return words;
}

// Job launchers' options differ, so the program is the first word that can be one.
Words behind_job_launcher(Words words) {
  const std::string_view name = words.empty() ? std::string_view() : base_of(words[0]);
  if (std::find(std::begin(kJobLaunchers), std::end(kJobLaunchers), name) == std::end(kJobLaunchers)) return words;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with("-")) continue;
    const std::string_view base = base_of(word);
    if (is_python(base) || is_shell(base) ||
        std::find(std::begin(kStarters), std::end(kStarters), base) != std::end(kStarters) || word.ends_with(".py") ||
        (word.find('/') != std::string::npos && access(word.c_str(), X_OK) == 0))
      return unwrapped(words.subspan(i));
  }
  return words;
}

std::string script_of(Words given) {
  const Words words = behind_job_launcher(unwrapped(given));
  if (words.empty()) return {};
  const std::string_view name = base_of(words[0]);
  if (is_python(name)) return of_python(words);
  if (is_shell(name)) {
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "-c" || (words[i].starts_with("-") && words[i].ends_with("c"))) return {};
      if (!words[i].starts_with("-")) return script_name(words[i]);
    }
    return {};
  }
  if (std::find(std::begin(kStarters), std::end(kStarters), name) != std::end(kStarters))
    return first_script(words.subspan(1));
  if (name.ends_with(".py") || name.ends_with(".sh")) return script_name(words[0]);
  return {};
}

std::string first_line(const std::string& path) {
  // Opening a pipe would wait for its writer.
  if (std::error_code error; !std::filesystem::is_regular_file(path, error)) return {};
  std::ifstream file(path, std::ios::binary);
  std::string line(256, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return line.substr(0, line.find('\n'));
}

}  // namespace

bool runs_script(std::span<const std::string> words) {
  return !script_of(words).empty();
}

bool may_run_python(std::span<const std::string> given) {
  const Words words = behind_job_launcher(unwrapped(given));
  if (words.empty()) return false;
  const std::string_view name = base_of(words[0]);
  if (is_python(name) || is_shell(name) || name.ends_with(".py") ||
      std::find(std::begin(kStarters), std::end(kStarters), name) != std::end(kStarters))
    return true;
  std::string path = words[0];
  if (path.find('/') == std::string::npos) {
    const char* const folders = std::getenv("PATH");
    std::string_view rest = folders != nullptr ? folders : "/usr/local/bin:/usr/bin:/bin";
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(':'), rest.size());
      const std::string candidate = std::string(rest.substr(0, end)) + "/" + words[0];
      if (access(candidate.c_str(), X_OK) == 0) {
        path = candidate;
        break;
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (first_line(path).starts_with("#!")) return true;
  // A link to an interpreter; virtual environments have such links under any name.
  if (char* const real = realpath(path.c_str(), nullptr); real != nullptr) {
    const bool python = is_python(base_of(real));
    free(real);
    if (python) return true;
  }
  // A program that runs another one: an interpreter or a script follows its own options.
  return std::any_of(words.begin() + 1, words.end(),
                     [](const std::string& word) { return is_python(base_of(word)) || word.ends_with(".py"); });
}

std::string run_name(std::span<const std::string> words) {
  if (std::string script = script_of(words); !script.empty()) return script;
  const Words program = behind_job_launcher(unwrapped(words));
  const std::string name(program.empty() ? std::string_view() : base_of(program[0]));
  return name.empty() || name == "/" || name == "." || name == ".." ? "trace" : name;
}

bool starts_by_itself(const std::string& path) {
  const std::string line = first_line(path);
  return line.starts_with("#!") || line.starts_with("\x7f"
                                                    "ELF");
}

std::string interpreter_of(const std::string& path) {
  const std::string line = first_line(path);
  if (line.starts_with("\x7f"
                       "ELF"))
    return {};
  if (line.starts_with("#!")) {
    // "#!/usr/bin/env -S python3 -u", "#! /bin/bash"
    std::vector<std::string> words;
    for (size_t begin = 2; begin < line.size();) {
      const size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
      if (end > begin) words.push_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
    for (const std::string& word : words)
      if (base_of(word) != "env" && !word.starts_with("-")) return std::string(base_of(word));
  }
  static constexpr std::pair<std::string_view, std::string_view> kEndings[] = {
      {".py", "python3"}, {".sh", "bash"}, {".bash", "bash"}, {".pl", "perl"},  {".rb", "ruby"},
      {".jl", "julia"},   {".js", "node"}, {".lua", "lua"},   {".R", "Rscript"}};
  for (const auto& [ending, interpreter] : kEndings)
    if (path.ends_with(ending)) return std::string(interpreter);
  return {};
}

}  // namespace tacho
