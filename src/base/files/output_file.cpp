// Writes, syncs and names output files (output_file.h).
#include "base/files/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/output_claim.h"
#include "base/files/temporary.h"

namespace tacho {
namespace {

std::string temporary_name(const std::string& target) {
  const std::string folder = target.substr(0, target.rfind('/') + 1);  // npos + 1 == 0: no folder part
  // Leaves out the name itself, which may already be as long as the file system allows.
  return fmt::format("{}.tacho-{}.partial", folder, random_name());
}

// Writes all bytes; returns 0 or an errno.
int write_all(int descriptor, const char* at, size_t left) {
  while (left > 0) {
    const ssize_t written = ::write(descriptor, at, left);
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    at += written;
    left -= static_cast<size_t>(written);
  }
  return 0;
}

constexpr size_t kSmallBuffer = 256 * 1024;    // while the caller writes
constexpr size_t kLargeBuffer = 1 << 20;       // of each of the two buffers while a thread writes
constexpr uint64_t kBackgroundFrom = 8 << 20;  // a file this long, in bytes, is worth a thread
constexpr uint64_t kWriteBackEvery =
    32 << 20;                    // starts write-back after this many bytes, so that the last sync is short
constexpr size_t kBlock = 4096;  // direct writes need addresses, offsets and lengths in multiples of this

// Makes the file bypass the page cache, or not. False if the file system refuses.
bool set_direct(int descriptor, bool direct) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && fcntl(descriptor, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

// True on local file systems where bypassing the page cache is known to pay. Over a network, every piece would wait.
bool pays_direct(int descriptor) {
  struct statfs about {};
  if (fstatfs(descriptor, &about) != 0) return false;
  switch (static_cast<uint32_t>(about.f_type)) {
    case 0xEF53:      // ext2, ext3, ext4
    case 0x58465342:  // XFS
    case 0xF2F52010:  // F2FS
    case 0x794C7630:  // overlayfs: refuses if the file system below does
      return true;
    default:
      return false;
  }
}

}  // namespace

void OutputFile::Free::operator()(char* bytes) const {
  free(bytes);
}

OutputFile::Buffer OutputFile::make_buffer(size_t bytes) {
  auto* const memory = static_cast<char*>(aligned_alloc(kBlock, bytes));
  if (memory == nullptr) throw std::bad_alloc();
  return Buffer(memory);
}

// The thread that writes one buffer while the caller fills the other.
struct OutputFile::Background {
  /// With `past_cache`, the file offset and every length passed must be multiples of kBlock.
  Background(int file, bool past_cache)
      : descriptor(file),
        direct(past_cache && set_direct(file, true)),
        buffer(make_buffer(kLargeBuffer)),
        thread([this] { run(); }) {}
  ~Background() { stop(); }

  /// Takes `full` over and swaps in an empty buffer; returns the errno of earlier writes, or 0.
  int pass(Buffer& full, size_t bytes) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return size == 0; });
    std::swap(full, buffer);
    size = bytes;
    changed.notify_all();
    return error;
  }
  int stop() {
    if (!thread.joinable()) return error;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return size == 0; });
      stopping = true;
      changed.notify_all();
    }
    thread.join();
    if (direct) set_direct(descriptor, false);  // the remaining bytes are not a whole block
    return error;
  }
  int write(const char* at, size_t left) {
    while (direct && left > 0) {
      const ssize_t written = ::write(descriptor, at, left);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno != EINVAL) return errno;
      if (written > 0) {
        at += written;
        left -= static_cast<size_t>(written);
      }
      // The file system refused, or cut the write within a block (disk full): the page cache takes any length, or gives
      // the reason.
      if (written < 0 || left % kBlock != 0) {
        set_direct(descriptor, false);
        direct = false;
      }
    }
    return write_all(descriptor, at, left);
  }
  void run() {
    uint64_t since = 0;
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return size != 0 || stopping; });
      if (size == 0) return;
      const size_t bytes = size;
      const int before = error;
      lock.unlock();
      const int now = before != 0 ? before : write(buffer.get(), bytes);
      since += bytes;
      if (since >= kWriteBackEvery && !direct) {
        sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
        since = 0;
      }
      lock.lock();
      error = now;
      size = 0;
      changed.notify_all();
    }
  }

  const int descriptor;
  bool direct;  // belongs to the thread once it runs
  std::mutex mutex;
  std::condition_variable changed;
  Buffer buffer;
  size_t size = 0;  // bytes to write; 0 = none
  bool stopping = false;
  int error = 0;
  std::thread thread;
};

OutputFile::OutputFile() = default;

Result<OutputFile> OutputFile::create(const std::string& path, bool overwrite) {
  if (path.empty()) return fail("the name of an output file is empty");
  OutputFile file;
  file.path_ = path;
  file.target_ = path;
  file.overwrite_ = overwrite;
  if (!is_standard_output(path)) TACHO_TRY(may_write(path, overwrite));
  struct stat status {};
  mode_t mode = 0;  // of the file that this one replaces
  if (is_standard_output(path)) {
    // If the shell redirects it to a file, writes that file from its current position, without replacing it.
    file.direct_ = true;
    file.descriptor_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (file.descriptor_ < 0) return fail("standard output cannot be written: {}", strerror(errno));
  } else if (stat(path.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode)) {
      file.direct_ = true;
      file.descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (file.descriptor_ < 0) return fail("{}: cannot write: {}", path, strerror(errno));
    } else if (char* const real = realpath(path.c_str(), nullptr); real != nullptr) {
      file.target_ = real;
      free(real);
      mode = status.st_mode & 07777;
    }
  }
  if (!file.direct_) {
    const std::string folder = folder_of(file.target_);
    file.descriptor_ = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (file.descriptor_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOENT)) {
      file.temporary_ = temporary_name(file.target_);
      file.descriptor_ = open(file.temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    }
    if (file.descriptor_ < 0) {
      file.temporary_.clear();
      return fail("{}: cannot write into {}: {}", path, folder, strerror(errno));
    }
    if (mode != 0) fchmod(file.descriptor_, mode);
  }
  file.buffer_ = make_buffer(kSmallBuffer);
  file.capacity_ = kSmallBuffer;
  return file;
}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(buffer_, other.buffer_);
  std::swap(background_, other.background_);
  std::swap(capacity_, other.capacity_);
  std::swap(used_, other.used_);
  std::swap(flushed_, other.flushed_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(error_, other.error_);
  std::swap(overwrite_, other.overwrite_);
  std::swap(direct_, other.direct_);
  return *this;
}

OutputFile::OutputFile(OutputFile&& other) noexcept {
  *this = std::move(other);
}

OutputFile::~OutputFile() {
  discard();
}

void OutputFile::discard() {
  background_.reset();
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (used_ == capacity_) flush();
    const size_t part = std::min(bytes.size(), capacity_ - used_);
    memcpy(buffer_.get() + used_, bytes.data(), part);
    used_ += part;
    bytes.remove_prefix(part);
  }
}

// From here on a thread writes whole blocks; the bytes before them are in the page cache.
void OutputFile::start_background() {
  const bool direct = pays_direct(descriptor_);
  const size_t rest = static_cast<size_t>((flushed_ + used_) % kBlock);
  Buffer larger = make_buffer(kLargeBuffer);
  const size_t now = rest <= used_ ? used_ - rest : used_;
  error_ = write_all(descriptor_, buffer_.get(), now);
  memcpy(larger.get(), buffer_.get() + now, used_ - now);
  flushed_ += now;
  used_ -= now;
  buffer_ = std::move(larger);
  capacity_ = kLargeBuffer;
  background_ = std::make_unique<Background>(descriptor_, direct && flushed_ % kBlock == 0);
}

void OutputFile::flush() {
  if (used_ == 0) return;
  if (background_ == nullptr && !direct_ && flushed_ >= kBackgroundFrom && error_ == 0) {
    start_background();
    return;
  }
  if (background_ == nullptr) {
    if (error_ == 0) error_ = write_all(descriptor_, buffer_.get(), used_);
    flushed_ += used_;
    used_ = 0;
    return;
  }
  // An incomplete block moves to the front of the next buffer.
  const size_t rest = used_ % kBlock, whole = used_ - rest;
  if (whole == 0) return;
  char tail[kBlock];
  memcpy(tail, buffer_.get() + whole, rest);
  if (error_ == 0) error_ = background_->pass(buffer_, whole);
  memcpy(buffer_.get(), tail, rest);
  flushed_ += whole;
  used_ = rest;
}

void OutputFile::drain() {
  flush();
  if (background_ != nullptr) {
    const int error = background_->stop();
    if (error_ == 0) error_ = error;
    background_.reset();
  }
  if (error_ == 0) error_ = write_all(descriptor_, buffer_.get(), used_);
  flushed_ += used_;
  used_ = 0;
}

tl::unexpected<Error> OutputFile::failure() const {
  return fail("{}: not written: {}{}", path_, strerror(error_), write_hint(error_));
}

Status OutputFile::sync() {
  drain();
  if (error_ == 0 && !direct_ && fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) error_ = errno;
  if (error_ != 0) return failure();
  return {};
}

Status OutputFile::give_name() {
  if (direct_) {
    if (close(std::exchange(descriptor_, -1)) != 0) {
      error_ = errno;
      return failure();
    }
    return {};
  }
  // A link names a nameless file but never replaces another one; a rename does.
  if (temporary_.empty()) {
    const std::string source = fmt::format("/proc/self/fd/{}", descriptor_);
    const std::string name = overwrite_ ? temporary_name(target_) : target_;
    if (linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      if (errno == EEXIST && !overwrite_) return fail("{} has appeared meanwhile; left as it is", path_);
      error_ = errno;
      return failure();
    }
    if (!overwrite_) {
      close(std::exchange(descriptor_, -1));
      return {};
    }
    temporary_ = name;
  }
  if (const int error = move_into_place(temporary_, target_, overwrite_); error != 0) {
    if (error == EEXIST) return fail("{} has appeared meanwhile; left as it is", path_);
    error_ = error;
    return failure();
  }
  temporary_.clear();
  close(std::exchange(descriptor_, -1));
  return {};
}

Status OutputFile::commit() {
  Status done = sync();
  if (done) done = give_name();
  if (!done) discard();
  return done;
}

Status OutputFile::commit_all(std::span<OutputFile> files) {
  for (OutputFile& file : files) {
    file.drain();
    if (!file.direct_)
      sync_file_range(file.descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE);  // starts all of them, then waits
  }
  // Each sync waits for the disk and then for a CPU. With a thread for each, a dozen small files wait at the same time.
  constexpr size_t kMostThreads = 16;
  const size_t threads = std::min(files.size(), kMostThreads);
  std::vector<Status> results(files.size());
  std::vector<std::thread> others;
  const auto sync_from = [&](size_t first) {
    for (size_t i = first; i < files.size(); i += threads) results[i] = files[i].sync();
  };
  for (size_t i = 1; i < threads; ++i) others.emplace_back(sync_from, i);
  sync_from(0);
  for (std::thread& other : others) other.join();
  for (Status& result : results) TACHO_TRY(std::move(result));
  for (OutputFile& file : files) TACHO_TRY(file.give_name());
  return {};
}

bool is_standard_output(std::string_view path) {
  static constexpr std::string_view kNames[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
  return std::find(std::begin(kNames), std::end(kNames), path) != std::end(kNames);
}

std::string write_hint(int error) {
  if (error == ENOSPC) return "; free some space or write elsewhere";
  if (error == EDQUOT) return "; your quota is used up";
  if (error != EFBIG) return {};
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "; the file system takes no larger files";
  return fmt::format("; files may have {} bytes at most (ulimit -f{})", limit.rlim_cur,
                     limit.rlim_cur == limit.rlim_max ? ", the hard limit" : "");
}

Status create_folders(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (std::filesystem::is_directory(folder)) return {};
  std::filesystem::path part;
  for (const auto& element : std::filesystem::path(folder)) {
    part /= element;
    std::error_code ignored;
    if (std::filesystem::exists(part, ignored) && !std::filesystem::is_directory(part, ignored))
      return fail("cannot create the folder {}: {} is not a folder", folder, part.string());
  }
  return fail("cannot create the folder {}: {}", folder, error.message());
}

}  // namespace tacho
