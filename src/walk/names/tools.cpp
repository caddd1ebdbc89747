// The list of tools (tools.h).
#include "walk/names/tools.h"

#include <algorithm>
#include <iterator>

namespace tacho::walk {

namespace {

// With build systems and version managers.
constexpr std::string_view kTools[] = {
    "sh",    "bash",    "dash",  "zsh",        "ld",      "ld.bfd",   "ld.lld",   "lld",      "collect2", "as",
    "cc1",   "cc1plus", "gcc",   "g++",        "cc",      "c++",      "clang",    "clang++",  "ptxas",    "nvcc",
    "cicc",  "env",     "pyenv", "pyenv-exec", "rbenv",   "uname",    "which",    "grep",     "sed",      "cut",
    "head",  "tr",      "cat",   "basename",   "dirname", "readlink", "realpath", "ldconfig", "hostname", "git",
    "lscpu", "ls",      "rm",    "mkdir",      "awk",     "mawk",     "gawk",     "sort",     "expr",     "id"};

}  // namespace

bool is_helping_tool(std::string_view name) {
  return std::any_of(std::begin(kTools), std::end(kTools), [&](std::string_view known) {
    return name == known ||
           (name.size() > known.size() && name.ends_with(known) && name[name.size() - known.size() - 1] == '-');
  });
}

}  // namespace tacho::walk
