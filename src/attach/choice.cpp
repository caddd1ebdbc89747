// Looks for processes in /proc (choice.h).
#include "attach/choice.h"

#include <dirent.h>
#include <fnmatch.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include "attach/target.h"

namespace tacho::attach {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

std::vector<pid_t> all_processes() {
  std::vector<pid_t> found;
  DIR* const folder = opendir("/proc");
  if (folder == nullptr) return found;
  while (const dirent* const entry = readdir(folder)) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size() && pid > 0) found.push_back(pid);
  }
  closedir(folder);
  return found;
}

std::string first_line(pid_t pid, std::string_view name) {
  std::ifstream file(fmt::format("/proc/{}/{}", pid, name));
  std::string line;
  std::getline(file, line);
  return line;
}

std::string_view without_folder(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool fits_name(std::string_view name, const std::string& wanted) {
  if (name.empty()) return false;
  if (fnmatch(wanted.c_str(), std::string(name).c_str(), 0) == 0) return true;
  return name.starts_with(wanted) && name.find_first_not_of("0123456789.", wanted.size()) == std::string_view::npos;
}

// The program's name, the kernel's name for it, the first word of its command, and the script: the first argument that
// is no option.
bool has_name(const TargetFacts& facts, const std::vector<std::string>& names) {
  const std::vector<std::string> words = command_of(facts.pid);
  const std::string comm = first_line(facts.pid, "comm");
  std::string_view first, script;
  if (!words.empty()) first = without_folder(words.front());
  for (size_t i = 1; i < words.size() && script.empty(); ++i)
    if (!words.at(i).starts_with('-')) script = without_folder(words.at(i));
  return std::any_of(names.begin(), names.end(), [&](const std::string& wanted) {
    return fits_name(facts.name, wanted) || fits_name(comm, wanted) || fits_name(first, wanted) ||
           fits_name(script, wanted);
  });
}

// The paths of the process's cgroups: one in version 2, one for each hierarchy in version 1.
std::vector<std::string> cgroups_of(pid_t pid) {
  std::vector<std::string> paths;
  std::ifstream file(fmt::format("/proc/{}/cgroup", pid));
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second != std::string::npos) paths.push_back(line.substr(second + 1));
  }
  return paths;
}

// As /proc shows it: without the folder where cgroups are mounted and, in version 1, without the hierarchy's.
std::string cgroup_path(std::string text) {
  constexpr std::string_view kMount = "/sys/fs/cgroup";
  if (text == kMount || text.starts_with(std::string(kMount) + "/")) text.erase(0, kMount.size());
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  if (!text.starts_with('/')) text.insert(0, "/");
  return text;
}

bool in_cgroup(pid_t pid, const std::vector<std::string>& wanted) {
  const std::vector<std::string> paths = cgroups_of(pid);
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& text) {
    const std::string group = cgroup_path(text);
    return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
      return group == "/" || path == group || path.starts_with(group + "/");
    });
  });
}

bool in_container(pid_t pid, const std::vector<std::string>& wanted) {
  const std::vector<std::string> paths = cgroups_of(pid);
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
    return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& id) { return names_container(path, id); });
  });
}

// This process and those that started it.
std::set<pid_t> own_line() {
  std::set<pid_t> line = {getpid()};
  for (pid_t pid = getppid(); pid > 1 && line.insert(pid).second;) {
    const auto facts = look_at(pid);
    if (!facts) break;
    pid = facts->parent;
  }
  return line;
}

std::string wanted_text(const ProcessChoice& choice) {
  std::string text = "no process that this tacho sees";
  const auto add = [&](const char* what, const std::vector<std::string>& values) {
    for (size_t i = 0; i < values.size(); ++i) text += (i == 0 ? what : " or ") + values.at(i);
  };
  add(" runs a program named ", choice.names);
  add(choice.names.empty() ? " is in the cgroup " : " in the cgroup ", choice.cgroups);
  add(choice.names.empty() && choice.cgroups.empty() ? " is in the container " : " in the container ",
      choice.containers);
  return text;
}

Result<int64_t> period_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},   {"s", 1},    {"ms", 1e-3},
                                                                   {"m", 60}, {"min", 60}, {"h", 3600}};
  const auto* const known =
      std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& each) { return each.first == unit; });
  const double seconds = known == std::end(kUnits) ? 0 : number * known->second;
  if (error != std::errc() || !(seconds >= 0.1 && seconds <= 86400))
    return fail("--at /{}: after the slash stands a time of 0.1 s to 24 h, as in /10s or /1m", text);
  return std::llround(seconds * 1e9);
}

Result<int64_t> time_of_day(const std::string& text, int64_t now) {
  const auto wrong = [&] {
    return fail("--at {}: give a time of the day (14:30 or 14:30:05), or /10s for the next full ten seconds", text);
  };
  int hour = 0, minute = 0, length = 0;
  double second = 0;
  if (sscanf(text.c_str(), "%2d:%2d%n", &hour, &minute, &length) != 2 || length < 4) return wrong();
  if (std::string_view rest = std::string_view(text).substr(static_cast<size_t>(length)); !rest.empty()) {
    if (rest.front() != ':' || rest.size() < 2 || rest.find_first_not_of("0123456789.", 1) != std::string_view::npos)
      return wrong();
    rest.remove_prefix(1);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), second);
    if (error != std::errc() || end != rest.data() + rest.size()) return wrong();
  }
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second >= 60) return wrong();
  const time_t today = now / kSecond;
  tm parts{};
  localtime_r(&today, &parts);
  for (int day = 0; day < 2; ++day) {
    tm wanted = parts;
    wanted.tm_mday += day;
    wanted.tm_hour = hour;
    wanted.tm_min = minute;
    wanted.tm_sec = 0;
    wanted.tm_isdst = -1;
    const int64_t moment = mktime(&wanted) * kSecond + std::llround(second * 1e9);
    if (moment > now) return moment;
  }
  return wrong();
}

}  // namespace

Result<ChosenProcesses> choose(const ProcessChoice& choice) {
  for (const std::string& id : choice.containers)
    if (id.size() < 4 || id.find_first_not_of("0123456789abcdef") != std::string::npos)
      return fail("--container {}: give the id's first 4 digits or more, as docker ps or crictl ps print it; names are "
                  "known only to the container's engine",
                  id);
  ChosenProcesses chosen;
  std::map<pid_t, TargetFacts> meant;
  for (const pid_t pid : choice.numbers) {
    TACHO_ASSIGN(TargetFacts facts, look_at(pid));
    meant.emplace(pid, std::move(facts));
  }
  const bool searches = !choice.names.empty() || !choice.cgroups.empty() || !choice.containers.empty();
  std::map<pid_t, TargetFacts> all;
  if (searches || choice.children)
    for (const pid_t pid : all_processes())
      if (auto facts = look_at(pid)) all.emplace(pid, std::move(*facts));
  const std::set<pid_t> own = own_line();
  const auto runs = [](const TargetFacts& facts) {
    return !facts.kernel_thread && facts.state != 'Z' && facts.state != 'X';
  };
  if (searches)
    for (const auto& [pid, facts] : all) {
      if (!runs(facts) || pid == getpid() || meant.contains(pid)) continue;
      if (!choice.names.empty() && !has_name(facts, choice.names)) continue;
      if (!choice.cgroups.empty() && !in_cgroup(pid, choice.cgroups)) continue;
      if (!choice.containers.empty() && !in_container(pid, choice.containers)) continue;
      if (own.contains(pid) || facts.name == "tacho") {
        chosen.left_out.push_back(fmt::format("process {} ({}) {} and is left out", pid, facts.name,
                                              own.contains(pid) ? "has started this tacho" : "is a tacho"));
        continue;
      }
      meant.emplace(pid, facts);
    }
  if (searches && meant.empty()) return fail("{}", wanted_text(choice));
  for (bool grown = choice.children; grown;) {
    grown = false;
    for (const auto& [pid, facts] : all)
      if (runs(facts) && meant.contains(facts.parent) && !own.contains(pid) && facts.name != "tacho" &&
          meant.emplace(pid, facts).second)
        grown = true;
  }
  std::vector<const TargetFacts*> sorted;
  for (const auto& [pid, facts] : meant) sorted.push_back(&facts);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const TargetFacts* a, const TargetFacts* b) { return a->started < b->started; });
  for (const TargetFacts* facts : sorted) chosen.numbers.push_back(facts->pid);
  return chosen;
}

bool names_container(std::string_view path, std::string_view id) {
  constexpr size_t kShortest = 32;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find_first_not_of("0123456789abcdef", at), path.size());
    if (end - at >= kShortest && path.substr(at, end - at).starts_with(id)) return true;
    at = end + 1;
  }
  return false;
}

Result<int64_t> moment_of(const std::string& text, int64_t now) {
  if (!text.starts_with('/')) return time_of_day(text, now);
  TACHO_ASSIGN(const int64_t period, period_of(std::string_view(text).substr(1)));
  return ((now + kSecond) / period + 1) * period;
}

}  // namespace tacho::attach
