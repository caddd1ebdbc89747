// Temporary files and folders: only their user can read them, and none of them stay behind.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho {

/// $TMPDIR, or /tmp where that is not set or empty.
std::string temporary_folder();

/// The folder part of a path: "." where it has none, "/" for what lies in the root.
std::string folder_of(std::string_view path);

/// Sixteen hexadecimal digits that nobody can guess, for names that must not meet another's.
std::string random_name();

/// A file without a name, mode 0600: it is gone once it is closed, also after a crash. Movable; empty until
/// created.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  /// Creates one in `folder`. The error names the folder and says to set TMPDIR.
  static Result<TemporaryFile> create(std::string folder = temporary_folder());
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&& other) noexcept;
  ~TemporaryFile();

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  /// The descriptor, which is the caller's to close from now on.
  int release();

  /// Makes the file `bytes` long, on disk and not only by its size, and maps it: zeroes, read and written,
  /// shared. A full disk is an error here and not a SIGBUS later. The mapping outlives this object; munmap()
  /// ends it.
  Result<void*> map(size_t bytes);

 private:
  std::string folder_;
  int descriptor_ = -1;
};

/// A folder with a random name, mode 0700, that is removed with all that is in it. Movable; empty until
/// created.
class TemporaryFolder {
 public:
  TemporaryFolder() = default;
  /// Creates `prefix` plus a random part ("/data/run/.tacho-spool-" gives "/data/run/.tacho-spool-x8Yt2q").
  static Result<TemporaryFolder> create(std::string_view prefix);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  /// Its path; empty when there is none.
  const std::string& path() const { return path_; }
  /// Its path; the folder stays from now on.
  std::string release();

 private:
  std::string path_;
};

}  // namespace tacho
