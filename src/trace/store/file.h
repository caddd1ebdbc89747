// Files that hold traces. RandomAccessFile is for writing: it has a temporary name until it is published by renaming,
// and reports a full disk instead of dying of SIGXFSZ. MappedFile is for reading: a read-only memory map.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/files/mapping_guard.h"
#include "base/result.h"

namespace tacho::trace {

class RandomAccessFile {
 public:
  /// Creates a new file beside `path`. An error if `path` exists, unless `overwrite`, or if it is not a file.
  static Result<RandomAccessFile> beside(const std::string& path, bool overwrite);
  /// Creates a file without a name in temporary_folder().
  static Result<RandomAccessFile> unnamed();
  RandomAccessFile(RandomAccessFile&& other) noexcept;
  RandomAccessFile& operator=(RandomAccessFile&& other) noexcept;
  /// Removes the file unless it is published.
  ~RandomAccessFile();

  int descriptor() const { return descriptor_; }
  /// The final name, also for messages.
  const std::string& path() const { return path_; }
  /// The folder that holds the file.
  std::string folder() const;
  /// The name until the file is published; empty for an unnamed file.
  const std::string& temporary() const { return temporary_; }

  /// Creates a second file in the same place with the same final name; whichever is published first gets it.
  Result<RandomAccessFile> another() const;

  /// Writes `bytes`. Returns 0, or the errno of the first failure; an unknown part of `bytes` is then written.
  int write_at(uint64_t offset, std::span<const uint8_t> bytes);
  /// Fills `bytes`. Returns 0 or an errno: EIO when the file is too short.
  int read_at(uint64_t offset, std::span<uint8_t> bytes) const;
  int truncate(uint64_t size);
  /// Gives the file its final name; with `sync`, once all of it is on disk. Where the program under trace has meanwhile
  /// removed or moved the unfinished file or its folder, makes the folder again and writes the file anew, if need be
  /// into the folder for temporary files; the error then says where.
  Status publish(bool sync);

 private:
  RandomAccessFile() = default;
  Status write_anew(bool sync);
  int copy_to(int descriptor) const;

  std::string path_, target_, temporary_;  // target_: what path_ means, with links followed
  std::string absolute_;                   // target_ from the root: the current folder may vanish
  int descriptor_ = -1;
  bool overwrite_ = false;
};

/// The file that a killed TraceWriter::create(path) left behind (PATH.partial-XXXXXXXX; the newest of several), empty
/// when there is none.
std::string left_by_killed_writer(const std::string& path);
/// The path that a TraceWriter writes the unfinished file `path` for; empty if that is not such a file's name.
std::string target_of_partial(const std::string& path);
/// Whether a process of this machine writes the file. True where files cannot be locked.
bool has_living_writer(const std::string& path);

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  /// Maps the file of `descriptor`, which the caller keeps and closes.
  static Result<MappedFile> map(int descriptor, const std::string& name);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  MappedFile() = default;
  std::span<const uint8_t> bytes_;
  MappingGuard guard_;
};

}  // namespace tacho::trace
