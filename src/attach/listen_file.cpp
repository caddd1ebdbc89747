// Finds and maps the files of processes that listen (listen_file.h).
#include "attach/listen_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace tacho::attach {

using tape::ListenBlock;

std::optional<ListenFile> ListenFile::open(pid_t pid, int descriptor) {
  ListenFile file;
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  file.file_ = ::open(fmt::format("/proc/{}/fd/{}", pid, descriptor).c_str(), kFlags);
  struct stat status {};
  // Sealed: a file that shrinks while it is mapped would end this tacho, and one with a name, which has no such seal,
  // may be another's. -1: a file that has no seals.
  const int seals = file.file_ < 0 ? -1 : fcntl(file.file_, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(file.file_, &status) != 0 ||
      status.st_size < static_cast<off_t>(sizeof(ListenBlock)))
    return std::nullopt;
  void* const at = mmap(nullptr, sizeof(ListenBlock), PROT_READ | PROT_WRITE, MAP_SHARED, file.file_, 0);
  if (at == MAP_FAILED) return std::nullopt;
  file.block_ = static_cast<ListenBlock*>(at);
  return file;
}
ListenFile::ListenFile(ListenFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), block_(std::exchange(other.block_, nullptr)) {}
ListenFile::~ListenFile() {
  if (block_ != nullptr) munmap(static_cast<void*>(block_), sizeof *block_);
  if (file_ >= 0) close(file_);
}

bool ListenFile::lock() const {
  return flock(file_, LOCK_EX | LOCK_NB) == 0;
}

std::optional<int> listener_of(pid_t pid, pid_t inner_pid) {
  const std::string folder = fmt::format("/proc/{}/fd", pid);
  DIR* const files = opendir(folder.c_str());
  if (files == nullptr) return std::nullopt;
  std::optional<int> found;
  while (const dirent* const entry = readdir(files)) {
    char link[64] = {};
    if (readlink(fmt::format("{}/{}", folder, entry->d_name).c_str(), link, sizeof link - 1) <= 0 ||
        strcmp(link, tape::kListenLink) != 0)
      continue;
    const int number = static_cast<int>(strtol(entry->d_name, nullptr, 10));
    const auto file = ListenFile::open(pid, number);
    if (file && memcmp(file->block().magic, tape::kListenMagic, sizeof tape::kListenMagic) == 0 &&
        file->block().pid == static_cast<uint32_t>(inner_pid))
      found = number;
  }
  closedir(files);
  return found;
}

}  // namespace tacho::attach
