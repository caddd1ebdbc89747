// Where Python's part of --torch-trace lies, and for which programs it is any use (torch_hooks.h).
#include "launch/torch_hooks.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/files/run_name.h"
#include "launch/installation.h"

namespace tacho::launch {
namespace {

constexpr const char* kInject = "/tacho/inject";

Result<std::string> find_inject_folder() {
  std::vector<std::string> tried;
  if (const char* given = getenv("TACHO_PYTHON"); given != nullptr && *given != '\0') tried.emplace_back(given);
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  if (size > 0) {
    std::string folder(self, static_cast<size_t>(size));
    folder.resize(folder.rfind('/'));
    for (const char* relative : {"/../share/tacho/python", "/../lib/python3/dist-packages"})
      tried.push_back(folder + relative);
  }
  for (const std::string& each : tried)
    if (access((each + kInject + "/sitecustomize.py").c_str(), R_OK) == 0) {
      char* const real = realpath((each + kInject).c_str(), nullptr);
      std::string path = real != nullptr ? real : each + kInject;
      free(real);
      if (path.find(':') != std::string::npos)
        return fail("--torch-trace: {} has a colon in its path, which PYTHONPATH cannot hold: install tacho elsewhere",
                    path);
      return path;
    }
  return fail(
      "--torch-trace: the Python files of tacho are not beside the program (share/tacho/python): reinstall, or set "
      "TACHO_PYTHON to the folder that holds tacho/inject");
}

}  // namespace

Result<std::pair<std::string, std::string>> torch_hooks(std::span<const std::string> command) {
  if (!may_run_python(command))
    return fail("--torch-trace needs a Python program, which {} is not; leave the option out",
                command.empty() ? "the command" : command.front());
  TACHO_ASSIGN(std::string folder, find_inject_folder());
  if (const char* theirs = getenv("PYTHONPATH"); theirs != nullptr && *theirs != '\0')
    folder += std::string(":") + theirs;
  return std::pair(std::string("PYTHONPATH"), std::move(folder));
}

}  // namespace tacho::launch
