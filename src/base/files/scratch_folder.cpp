// Folders that a killed run leaves are removed by the next (scratch_folder.h).
#include "base/files/scratch_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <utility>

#include "base/format.h"

namespace tacho {

namespace fs = std::filesystem;

namespace {

constexpr int kRandom = 6;  // characters at the end of a name

std::string machine_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

void remove_abandoned(const fs::path& parent, const std::string& begin, const std::string& lock) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin)) continue;
    pid_t pid = 0;
    const char* const end = name.data() + name.size();
    const auto [next, error] = std::from_chars(name.data() + begin.size(), end, pid);
    if (error != std::errc() || pid <= 0 || end - next != kRandom + 1 || *next != '-') continue;
    if (kill(pid, 0) == 0 || errno != ESRCH) continue;
    // A process of another container is not among ours, but holds its lock.
    const int file = ::open((entry.path() / lock).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), ignored);
    close(file);
  }
}

}  // namespace

Result<ScratchFolder> ScratchFolder::create(const std::string& parent, std::string_view kind, std::string_view lock) {
  // The target may change its working directory.
  std::error_code error;
  const fs::path absolute = fs::absolute(parent, error);
  const fs::path place = error ? fs::path(parent) : absolute;
  const std::string begin = fmt::format(".tacho-{}-{}-", kind, machine_name()), file(lock);
  remove_abandoned(place, begin, file);
  ScratchFolder made;
  TACHO_ASSIGN(made.folder_, TemporaryFolder::create(fmt::format("{}/{}{}-", place.string(), begin, getpid())));
  made.lock_ = ::open((made.path() + "/" + file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (made.lock_ < 0) return fail("{}/{}: {}", made.path(), file, strerror(errno));
  flock(made.lock_, LOCK_EX | LOCK_NB);
  return made;
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : folder_(std::move(other.folder_)), lock_(std::exchange(other.lock_, -1)) {}

ScratchFolder& ScratchFolder::operator=(ScratchFolder&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(lock_, other.lock_);
  return *this;
}

ScratchFolder::~ScratchFolder() {
  if (lock_ >= 0) close(lock_);
}

}  // namespace tacho
