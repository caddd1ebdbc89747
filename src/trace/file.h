// The file under a trace. OutputFile is the one being written: it has a temporary name, is published by renaming, and
// reports a full disk instead of dying of SIGXFSZ. MappedFile is the one being read, a read-only memory map.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace tacho::trace {

class RandomAccessFile {
 public:
  /// Opens a new file beside `path`. Refuses an existing `path` unless `overwrite`, and anything that is not
  /// a file.
  static Result<RandomAccessFile> beside(const std::string& path, bool overwrite);
  /// Opens a file without a name, in temporary_folder().
  static Result<RandomAccessFile> unnamed();
  RandomAccessFile(RandomAccessFile&& other) noexcept;
  RandomAccessFile& operator=(RandomAccessFile&& other) noexcept;
  /// Removes the file unless it was published.
  ~RandomAccessFile();

  int descriptor() const { return descriptor_; }
  /// The name for sentences: the final one.
  const std::string& path() const { return path_; }
  /// The folder in which it lies.
  std::string folder() const;
  /// Where it lies until it is published; empty for an unnamed file.
  const std::string& temporary() const { return temporary_; }

  /// A second new file in the same place with the same final name; whichever is published first gets it.
  Result<RandomAccessFile> another() const;

  /// 0, or the errno of the first failure; then an unknown part of `bytes` was written.
  int write_at(uint64_t offset, std::span<const uint8_t> bytes);
  /// As write_at for the other direction; EIO when the file ends before.
  int read_at(uint64_t offset, std::span<uint8_t> bytes) const;
  int truncate(uint64_t size);
  /// Gives the file its final name; with `sync` only when all of it is on disk.
  Status publish(bool sync);

 private:
  RandomAccessFile() = default;
  std::string path_, temporary_;
  int descriptor_ = -1;
  bool overwrite_ = false;
};

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  /// Maps what `descriptor` refers to; the descriptor stays the caller's.
  static Result<MappedFile> map(int descriptor, const std::string& name);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  MappedFile() = default;
  std::span<const uint8_t> bytes_;
};

}  // namespace tacho::trace
