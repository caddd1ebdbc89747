// Claims names of output files: checks whether tacho may write one, and gives it to one of several tachos
// before its program starts.
#pragma once

#include <string>

#include "base/name_claim.h"
#include "base/result.h"

namespace tacho {

/// Refuses an existing file unless `overwrite`, a folder, a link that leads nowhere or, with `overwrite`, to another folder, and
/// a folder part that is none.
Status may_write(const std::string& path, bool overwrite);

/// Gives the finished file `temporary` the name `target`, in one step for whoever looks. Without `overwrite` a file that is
/// there by now stays, on file systems without hard links too, and `temporary` as well. Returns 0, or errno (EEXIST).
int move_into_place(const std::string& temporary, const std::string& target, bool overwrite);

/// A name for an output that belongs to this process until the claim's end.
class OutputClaim {
 public:
  OutputClaim() = default;
  /// Claims `name` if it may be written and no other process has claimed it.
  static Result<OutputClaim> exactly(const std::string& name, bool overwrite);
  /// Claims `name`, or the first of NAME.1, NAME.2, ... (before the extension) that is free: no file, and nobody's.
  static Result<OutputClaim> numbered(const std::string& name);

  const std::string& name() const { return name_; }

 private:
  std::string name_;
  NameClaim claim_;
};

}  // namespace tacho
