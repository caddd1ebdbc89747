// Which running processes are meant: by number, name, cgroup or container, with or without their children.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::attach {

/// A process is chosen by its number, or if it has one of the names, lies in one of the cgroups and in one of the
/// containers, as far as any are given.
struct ProcessChoice {
  std::vector<pid_t> numbers = {};
  /// Of the program or of the script that it runs; "*" and "?" stand for letters, and a name also means the same with
  /// a version: python3.11 for python.
  std::vector<std::string> names = {};
  std::vector<std::string> cgroups = {};     ///< "/a/b" or "/sys/fs/cgroup/a/b", with the groups inside
  std::vector<std::string> containers = {};  ///< an id's beginning of 4 letters or more
  bool children = false;                     ///< their descendants, too
};

struct ChosenProcesses {
  std::vector<pid_t> numbers;         ///< without repetition, in the order of their start
  std::vector<std::string> left_out;  ///< one sentence for each process that is meant and cannot be
};

/// An error where nothing fits, which says what was looked for.
Result<ChosenProcesses> choose(const ProcessChoice& choice);

/// Whether the path of a cgroup is that of the container: `id` is the beginning of 32 or more hexadecimal digits in it.
bool names_container(std::string_view path, std::string_view id);

/// The moment that the text means, ns of CLOCK_REALTIME, for a clock that shows `now`: "/10s" is the next full ten
/// seconds that are at least a second away, so that hosts agree on it; "14:30" and "14:30:05.5" are of today, else of
/// tomorrow, in local time.
Result<int64_t> moment_of(const std::string& text, int64_t now);

}  // namespace tacho::attach
