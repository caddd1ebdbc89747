// Claims names of output files: checks whether tacho may write a file, and reserves its name before the program starts,
// so that of several tachos only one gets it.
#pragma once

#include <string>

#include "base/files/name_claim.h"
#include "base/result.h"

namespace tacho {

/// Refuses an existing file unless `overwrite`, a folder, a link to nowhere, with `overwrite` a link into another
/// folder, and a path whose folder does not exist. Accepts devices and pipes.
Status may_write(const std::string& path, bool overwrite);

/// Gives the finished file `temporary` the name `target`, in one step for all observers. Without `overwrite`, a file
/// that exists by now stays, on file systems without hard links too, and `temporary` as well. Returns 0, or errno
/// (EEXIST).
int move_into_place(const std::string& temporary, const std::string& target, bool overwrite);

/// The name of an output, reserved for this process until the claim is destroyed.
class OutputClaim {
 public:
  OutputClaim() = default;
  /// Claims `name`. Fails if may_write() refuses it or another process has claimed it.
  static Result<OutputClaim> exactly(const std::string& name, bool overwrite);
  /// Claims the first of `name`, NAME.1, NAME.2, ... (before the extension) that is free and unclaimed.
  static Result<OutputClaim> numbered(const std::string& name);

  const std::string& name() const { return name_; }

 private:
  std::string name_;
  NameClaim claim_;
};

}  // namespace tacho
