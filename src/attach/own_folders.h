// Folders of a process that sees other files than tacho (a container), in which tacho may put what both use.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tacho::attach {

/// /dev/shm, /tmp, /var/tmp and /run of a process, held open. The process may have put a link there, which would lead
/// tacho into the files that tacho sees: such folders are left out.
class OwnFolders {
 public:
  OwnFolders() = default;
  explicit OwnFolders(pid_t pid);
  OwnFolders(OwnFolders&& other) noexcept : open_(std::exchange(other.open_, {})) {}
  OwnFolders& operator=(OwnFolders&& other) noexcept {
    std::swap(open_, other.open_);
    return *this;
  }
  OwnFolders(const OwnFolders&) = delete;
  ~OwnFolders();

  /// Paths by which this process, as long as it holds this object, opens files in them.
  std::vector<std::string> ours() const;
  /// The process's own path of a file that was made by one of ours(); nothing for others.
  std::optional<std::string> theirs(const std::string& path) const;

 private:
  std::vector<std::pair<int, std::string>> open_;  // descriptor, and path in the process
};

}  // namespace tacho::attach
