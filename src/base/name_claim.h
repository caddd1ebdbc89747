// Lets concurrent processes agree on a name: the process that claims it holds it until it releases it or
// ends, however it ends.
#pragma once

#include <string>

#include "base/removed_on_signal.h"

namespace tacho {

/// A hidden, locked file `.NAME.claim` stands for the claim and goes with it. What a killed process leaves of it binds
/// nobody, except on file systems without locks.
class NameClaim {
 public:
  NameClaim() = default;
  /// `name` has no '/'. An empty `folder` is the current one. Where no file can be made, nothing is claimed and held()
  /// is true all the same: writing will say why.
  NameClaim(const std::string& folder, const std::string& name);
  NameClaim(NameClaim&& other) noexcept;
  NameClaim& operator=(NameClaim&& other) noexcept;
  ~NameClaim();

  /// False if another process has the name.
  bool held() const { return held_; }

 private:
  std::string path_;
  RemovedOnSignal removed_;
  int file_ = -1;
  bool held_ = false;
};

}  // namespace tacho
