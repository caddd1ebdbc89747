// The program to run and tacho's own library (installation.h).
#include "launch/installation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/files/run_name.h"
#include "base/format.h"

namespace tacho::launch {
namespace {

tl::unexpected<LaunchError> not_runnable(int code, std::string message) {
  return tl::unexpected<LaunchError>(LaunchError(code, std::move(message)));
}

// What else the words before the first argument may be meant as: variables that a shell would set, or a whole command
// line in quotes. Begins with "; ", empty for others.
std::string meant_instead(const std::string& command) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const size_t equals = command.find('='), blank = command.find_first_of(" \t\n");
  if (equals != std::string::npos && blank == std::string::npos && letter(command[0]) &&
      std::all_of(command.begin(), command.begin() + static_cast<ptrdiff_t>(equals),
                  [&](char c) { return letter(c) || (c >= '0' && c <= '9'); }))
    return fmt::format("; variables go before tacho's own name, or through env: env {} PROGRAM", command);
  if (blank == std::string::npos) return {};
  const std::string first = command.substr(0, blank);
  if (!first.empty() && first.find('=') == std::string::npos && !find_executable(first)) return {};
  // Quotes, variables, pipes: only a shell reads them.
  const bool plain = command.find_first_of("'\"$`\\|&;<>()*?[]{}~#\n=") == std::string::npos;
  std::string quoted = "'";
  for (const char c : command) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  quoted += '\'';
  return plain ? fmt::format("; it is one word with blanks in it: leave the quotes out: {}", command)
               : fmt::format("; it is one word with blanks in it: let a shell read it: sh -c {}", quoted);
}

}  // namespace

tl::expected<std::string, LaunchError> find_executable(const std::string& command) {
  // The command to suggest for a script, which its interpreter must run. Empty for other files.
  const auto script = [](const std::string& path) -> std::string {
    const std::string interpreter = interpreter_of(path);
    return interpreter.empty() ? interpreter : fmt::format("it is a script, write: {} {}", interpreter, path);
  };
  const auto check = [&](const std::string& path) -> int {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) return errno == EACCES ? 126 : 127;
    if (S_ISDIR(status.st_mode) || access(path.c_str(), X_OK) != 0) return 126;
    return 0;
  };
  if (command.empty()) return not_runnable(127, "the command is empty");
  if (command.find('/') != std::string::npos) {
    const int code = check(command);
    // The system would give a file without "#!" to the shell, whatever it holds.
    if (code == 0 && command.ends_with(".py") && !starts_by_itself(command))
      return not_runnable(126, fmt::format("{}: not a program; {}", command, script(command)));
    if (code == 0) return command;
    struct stat status {};
    const bool folder = stat(command.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    return not_runnable(code, code == 127 ? fmt::format("{}: no such file{}", command, meant_instead(command))
                              : folder    ? fmt::format("{}: is a folder, not a program", command)
                              : !script(command).empty()
                                  ? fmt::format("{}: not executable; {}", command, script(command))
                                  : fmt::format("{}: not executable (chmod +x?)", command));
  }
  const char* path = getenv("PATH");
  std::string folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  int worst = 127;
  std::string blocked;
  for (size_t begin = 0; begin <= folders.size();) {
    size_t end = folders.find(':', begin);
    if (end == std::string::npos) end = folders.size();
    const std::string folder = folders.substr(begin, end - begin);
    const std::string candidate = folder.empty() ? "./" + command : folder + "/" + command;
    const int code = check(candidate);
    if (code == 0) return candidate;
    struct stat status {};
    if (code == 126 && stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      worst = 126;
      blocked = candidate;
    }
    begin = end + 1;
  }
  if (worst == 126) return not_runnable(126, fmt::format("{}: not executable (chmod +x?)", blocked));
  if (const std::string hint = meant_instead(command); !hint.empty())
    return not_runnable(127, fmt::format("{}: command not found in PATH{}", command, hint));
  struct stat status {};
  if (stat(command.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(command.c_str(), X_OK) != 0 &&
      !script(command).empty())
    return not_runnable(127, fmt::format("{}: command not found in PATH; {}", command, script(command)));
  return not_runnable(127, fmt::format("{}: command not found in PATH{}", command,
                                       access(command.c_str(), X_OK) == 0 ? "; did you mean ./" + command + " ?" : ""));
}

Result<std::string> find_library() {
  if (const char* path = getenv("TACHO_LIBRARY"); path != nullptr && *path != '\0') {
    if (access(path, R_OK) == 0) return std::string(path);
    return fail("TACHO_LIBRARY={}: {}", path, strerror(errno));
  }
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  if (size <= 0)
    return fail("cannot tell where tacho is installed (/proc not mounted?): set TACHO_LIBRARY to libtacho.so");
  std::string folder(self, static_cast<size_t>(size));
  folder.resize(folder.rfind('/'));
  for (const char* relative : {"/../lib/libtacho.so", "/libtacho.so", "/../lib64/libtacho.so"}) {
    const std::string candidate = folder + relative;
    if (access(candidate.c_str(), R_OK) == 0) {
      char* const real = realpath(candidate.c_str(), nullptr);
      const std::string path = real != nullptr ? real : candidate;
      free(real);
      return path;
    }
  }
  return fail("libtacho.so is not beside {} (looked in ../lib): reinstall, or set TACHO_LIBRARY to its path", folder);
}

}  // namespace tacho::launch
