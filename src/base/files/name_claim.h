// Lets concurrent processes agree on a name: the process that claims it holds it until it releases the name or ends, in
// whatever way.
#pragma once

#include <string>

#include "base/files/removed_on_signal.h"

namespace tacho {

/// A hidden, locked file `.NAME.claim` represents the claim. Releasing the claim removes it, and so does a signal that
/// ends the process. A file left by SIGKILL blocks nobody, except on file systems without locks.
class NameClaim {
 public:
  NameClaim() = default;
  /// `name` has no '/'. An empty `folder` is the current one. If the file cannot be created, nothing is claimed and
  /// held() is still true: writing the output will then report the error.
  NameClaim(const std::string& folder, const std::string& name);
  NameClaim(NameClaim&& other) noexcept;
  NameClaim& operator=(NameClaim&& other) noexcept;
  ~NameClaim();

  /// False if another process holds the name.
  bool held() const { return held_; }

 private:
  std::string path_;
  RemovedOnSignal removed_;
  int file_ = -1;
  bool held_ = false;
};

}  // namespace tacho
