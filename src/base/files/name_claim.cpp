// Claims names with locked files (name_claim.h).
#include "base/files/name_claim.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace tacho {

NameClaim::NameClaim(const std::string& folder, const std::string& name)
    : path_((folder.empty() ? std::string() : folder + "/") + "." + name + ".claim") {
  const SignalsWait wait;  // from the file's creation until it is noted
  for (;;) {
    bool made = true;
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file_ < 0 && errno == EEXIST) {
      made = false;
      file_ = open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
      if (file_ < 0 && errno == ENOENT) continue;  // released in between
    }
    if (file_ < 0) {
      held_ = made;
      return;
    }
    int done;
    do done = flock(file_, LOCK_EX | LOCK_NB);
    while (done != 0 && errno == EINTR);
    // Without locks, the process that created the file has the name.
    const bool locked = done == 0 || (errno != EWOULDBLOCK && made);
    struct stat ours {
    }, there{};
    const bool same = locked && fstat(file_, &ours) == 0 && stat(path_.c_str(), &there) == 0 &&
                      ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
    if (same) {
      held_ = true;
      removed_ = RemovedOnSignal(path_);
      return;
    }
    close(file_);
    file_ = -1;
    if (!locked) return;
    // Its owner removed the file between our opening and locking it.
  }
}

NameClaim::NameClaim(NameClaim&& other) noexcept {
  *this = std::move(other);
}

NameClaim& NameClaim::operator=(NameClaim&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(removed_, other.removed_);
  std::swap(file_, other.file_);
  std::swap(held_, other.held_);
  return *this;
}

NameClaim::~NameClaim() {
  if (file_ < 0) return;
  removed_ = {};  // while still locked, so that no other process has claimed it
  close(file_);
}

}  // namespace tacho
