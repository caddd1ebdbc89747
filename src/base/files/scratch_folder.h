// Hidden folders for what a run needs beside its outputs, which the next run removes if this one was killed.
#pragma once

#include <string>
#include <string_view>

#include "base/files/temporary.h"
#include "base/result.h"

namespace tacho {

/// A folder ".tacho-<kind>-<machine>-<process>-XXXXXX", mode 0700, with a locked file in it. The destructor removes it
/// with everything in it. Movable; empty until created.
class ScratchFolder {
 public:
  ScratchFolder() = default;
  /// Creates one in `parent`, and first removes those of `kind` whose process is dead: it is none of this machine's,
  /// and nobody holds the lock. `lock`: the name of the locked file. The error names the path.
  static Result<ScratchFolder> create(const std::string& parent, std::string_view kind, std::string_view lock = "lock");
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&& other) noexcept;
  ~ScratchFolder();

  /// Its absolute path; empty if there is none.
  const std::string& path() const { return folder_.path(); }
  /// The locked file, open for reading and writing. Keep it open.
  int lock() const { return lock_; }

 private:
  TemporaryFolder folder_;
  int lock_ = -1;
};

}  // namespace tacho
