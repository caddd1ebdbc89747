// Opens folders of processes that see other files (own_folders.h).
#include "attach/own_folders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace tacho::attach {
namespace {

// Part by part, and none of them a link. -1 where there is no such folder.
int open_folder(pid_t pid, const std::string& path) {
  int file = open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (size_t at = 1; file >= 0 && at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const int next = openat(file, path.substr(at, end - at).c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close(file);
    file = next;
    at = end + 1;
  }
  return file;
}

std::string path_of(int descriptor) {
  return fmt::format("/proc/self/fd/{}", descriptor);
}

}  // namespace

OwnFolders::OwnFolders(pid_t pid) {
  for (const char* const folder : {"/dev/shm", "/tmp", "/var/tmp", "/run"})
    if (const int file = open_folder(pid, folder); file >= 0) open_.emplace_back(file, folder);
}
OwnFolders::~OwnFolders() {
  for (const auto& [file, folder] : open_) close(file);
}

std::vector<std::string> OwnFolders::ours() const {
  std::vector<std::string> paths;
  for (const auto& [file, folder] : open_) paths.push_back(path_of(file));
  return paths;
}

std::optional<std::string> OwnFolders::theirs(const std::string& path) const {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return std::nullopt;
  for (const auto& [file, folder] : open_)
    if (path.substr(0, slash) == path_of(file)) return folder + path.substr(slash);
  return std::nullopt;
}

}  // namespace tacho::attach
