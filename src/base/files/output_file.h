// Files that appear complete or not at all: bytes go into a file without a name (or with a temporary one if the file
// system has no nameless files); commit() syncs it and gives it its own name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho {

/// One output, written through a buffer of 256 KiB. After 8 MiB a thread takes over the writing, in pieces of 1 MiB and
/// past the page cache (O_DIRECT) on local file systems that allow it: commit() syncs anyway, so copying gigabytes into
/// the cache first would only cost time. commit() reports write errors (disk full, quota). Without commit() nothing
/// stays on disk. Existing devices, pipes and terminals (/dev/stdout) are written to directly; "-" is standard output.
/// To get an error instead of a signal at a file size limit, the caller must ignore SIGXFSZ.
class OutputFile {
 public:
  /// Fails where may_write() (output_claim.h) does, and if the folder cannot be written. Errors name `path`.
  static Result<OutputFile> create(const std::string& path, bool overwrite);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  void write(std::string_view bytes);
  /// Room for `bytes` bytes (64 KiB at most) or more; advance() then says how many the caller wrote.
  char* reserve(size_t bytes) {
    if (capacity_ - used_ < bytes) flush();
    return buffer_.get() + used_;
  }
  void advance(size_t bytes) { used_ += bytes; }
  /// Bytes written so far.
  uint64_t size() const { return flushed_ + used_; }
  /// True after the first write error; long exports check it now and then, and stop.
  bool failed() const { return error_ != 0; }  // once a thread writes, known only at the next flush
  const std::string& path() const { return path_; }

  /// Flushes, syncs and names the file. Call nothing but the destructor afterwards.
  Status commit();
  /// Commits several files: writes all of them back at the same time and names them once all are safe on disk.
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
  void drain();  // waits until the thread has written everything, then ends it
  Status sync();
  Status give_name();
  void discard();
  tl::unexpected<Error> failure() const;

  std::string path_;       // as the user wrote it
  std::string target_;     // the file to replace: path_ with links resolved
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

/// True if an output of this name goes to the process's standard output: "-", or a name of its descriptor (/dev/stdout,
/// /dev/fd/1, /proc/self/fd/1), even if the shell redirects it to a file.
bool is_standard_output(std::string_view path);

/// Advice for the errno of a failed write, to append to a sentence; empty if there is none.
std::string write_hint(int error);

/// Creates `folder` and its missing parents. The error names the part that cannot be created.
Status create_folders(const std::string& folder);

}  // namespace tacho
