// Files that appear whole or not at all: bytes go into a file without a name (or with a temporary one where
// the file system cannot do that), and commit() syncs it and gives it its own name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho {

/// One output, written through a buffer of 256 KiB. From the ninth MiB on a thread writes beside the caller,
/// in pieces of 1 MiB and past the page cache (O_DIRECT) on local file systems that allow it: gigabytes that
/// are synced at the end anyway need not be copied into it first. commit() reports errors of writing (disk
/// full, quota). Without commit() nothing is left. It writes directly to an existing device, pipe or terminal
/// (/dev/stdout); "-" is standard output. The caller must ignore SIGXFSZ if a limit of file sizes is to be an
/// error and not a signal.
class OutputFile {
 public:
  /// Refuses an existing file unless `overwrite`, a folder, and a folder part that does not exist.
  static Result<OutputFile> create(const std::string& path, bool overwrite);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  void write(std::string_view bytes);
  /// At least `bytes` writable bytes (at most 64 KiB may be asked for); advance() says how many were used.
  char* reserve(size_t bytes) {
    if (capacity_ - used_ < bytes) flush();
    return buffer_.get() + used_;
  }
  void advance(size_t bytes) { used_ += bytes; }
  /// Bytes written so far.
  uint64_t size() const { return flushed_ + used_; }
  /// True after the first error of writing: long exports look now and then, and stop.
  bool failed() const { return error_ != 0; }  // seen at the next flush when a thread writes
  const std::string& path() const { return path_; }

  /// Flushes, syncs, names. No further calls.
  Status commit();
  /// Commits several files: they are written back at the same time and get their names when all of them are
  /// safe.
  static Status commit_all(std::span<OutputFile> files);

 private:
  struct Background;
  struct Free {
    void operator()(char* bytes) const;
  };
  using Buffer = std::unique_ptr<char[], Free>;
  static Buffer make_buffer(size_t bytes);

  OutputFile();
  void flush();
  void start_background();
  void drain();  // waits for the thread and ends it
  Status sync();
  Status give_name();
  void discard();
  tl::unexpected<Error> failure() const;

  std::string path_;       // as the user wrote it
  std::string target_;     // the file to replace: path_ with links followed
  std::string temporary_;  // empty: the file has no name yet
  Buffer buffer_;
  std::unique_ptr<Background> background_;
  size_t capacity_ = 0;
  size_t used_ = 0;
  uint64_t flushed_ = 0;
  int descriptor_ = -1;
  int error_ = 0;
  bool overwrite_ = false;
  bool direct_ = false;  // a device or pipe: no temporary, no sync
};

/// Whether an output of this name goes to the process's standard output: "-", or a name of its descriptor
/// (/dev/stdout, /dev/fd/1, /proc/self/fd/1), also where that is redirected to a file.
bool is_standard_output(std::string_view path);

/// Advice on an errno of writing, to append to a sentence; empty when there is none.
std::string write_hint(int error);

/// Creates `folder` and its missing parents. The error names the part that cannot be created.
Status create_folders(const std::string& folder);

}  // namespace tacho
