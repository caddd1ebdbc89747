// Temporary files and folders that only their user can read and that never stay behind.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho {

/// $TMPDIR, or /tmp if that is unset or empty.
std::string temporary_folder();

/// The folder part of a path: "." if it has none, "/" for a file in the root.
std::string folder_of(std::string_view path);

/// Sixteen hexadecimal digits that cannot be guessed, for names that must not clash with another process's.
std::string random_name();

/// A file without a name, mode 0600, which disappears when it is closed, even after a crash. Movable; empty until
/// created.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  /// Creates one in `folder`. The error names the folder and advises setting TMPDIR.
  static Result<TemporaryFile> create(std::string folder = temporary_folder());
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&& other) noexcept;
  ~TemporaryFile();

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  /// Hands the descriptor over: the caller must close it.
  int release();

  /// Allocates `bytes` bytes on disk, makes the file that long and maps it: zeroed, writable, shared. So a full disk is
  /// an error here and not a SIGBUS later. The mapping outlives this object; the caller ends it with munmap().
  Result<void*> map(size_t bytes);

 private:
  std::string folder_;
  int descriptor_ = -1;
};

/// A folder with a random name, mode 0700; the destructor removes it with everything in it. Movable; empty until
/// created.
class TemporaryFolder {
 public:
  TemporaryFolder() = default;
  /// Creates `prefix` plus six random characters ("/data/run/.tacho-spool-x8Yt2q"). The error names the path.
  static Result<TemporaryFolder> create(std::string_view prefix);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  /// Its path; empty if there is none.
  const std::string& path() const { return path_; }
  /// Returns the path and keeps the folder.
  std::string release();

 private:
  std::string path_;
};

}  // namespace tacho
