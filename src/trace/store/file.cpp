// Files of traces: POSIX calls and their errors as sentences.
#include "trace/store/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/files/output_claim.h"
#include "base/files/output_file.h"
#include "base/files/temporary.h"
#include "base/format.h"

namespace tacho::trace {
namespace {

// While it lives, writing past RLIMIT_FSIZE gives EFBIG in this thread instead of the signal that ends the process.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileSizeSignalBlocked() {
    if (!was_pending_) {
      const timespec now{};
      while (sigtimedwait(&signal_, nullptr, &now) == SIGXFSZ) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t signal_{}, before_{};
  bool was_pending_ = false;
};

// The file that `path` means: a symbolic link is followed, so that publishing replaces its target and not the link.
std::string resolve(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string resolved = real;
  free(real);
  return resolved;
}

// How the names of unfinished files for `target` begin. File systems allow 255 bytes.
std::string partial_start(const std::string& target) {
  const size_t begin = target.rfind('/') + 1;  // npos + 1 == 0: no folder part
  constexpr size_t kLongest = 230;
  return target.substr(0, begin) + target.substr(begin, kLongest) + ".partial-";
}

}  // namespace

Result<RandomAccessFile> RandomAccessFile::beside(const std::string& path, bool overwrite) {
  if (path.empty()) return fail("the name of the output file is empty");
  if (is_standard_output(path))
    return fail("{}: a .tacho file cannot be written to standard output; give it a name", path);
  TACHO_TRY(may_write(path, overwrite));
  struct stat info {};
  const bool replaces = stat(path.c_str(), &info) == 0;
  if (replaces && !S_ISREG(info.st_mode))
    return fail("{}: is not a regular file; give another name for the trace", path);
  RandomAccessFile file;
  file.path_ = path;
  file.overwrite_ = overwrite;
  file.target_ = resolve(path);
  std::error_code unknown;
  file.absolute_ = std::filesystem::absolute(file.target_, unknown).string();
  const std::string start = partial_start(file.target_);
  for (int attempt = 0; attempt < 100; ++attempt) {
    file.temporary_ = start + random_name().substr(8);
    file.descriptor_ = open(file.temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.descriptor_ >= 0) {
      flock(file.descriptor_, LOCK_EX | LOCK_NB);  // says that its writer lives
      if (replaces) fchmod(file.descriptor_, info.st_mode & 07777);
      return file;
    }
    if (errno != EEXIST) break;
  }
  file.temporary_.clear();
  return fail("{}: cannot be created: {}", path, strerror(errno));
}

Result<RandomAccessFile> RandomAccessFile::unnamed() {
  TACHO_ASSIGN(TemporaryFile temporary, TemporaryFile::create());
  RandomAccessFile file;
  file.descriptor_ = temporary.release();
  file.path_ = "(temporary file in " + temporary_folder() + ")";
  return file;
}

std::string RandomAccessFile::folder() const {
  return temporary_.empty() ? temporary_folder() : folder_of(temporary_);
}

Result<RandomAccessFile> RandomAccessFile::another() const {
  if (temporary_.empty()) return unnamed();
  static_cast<void>(create_folders(folder_of(absolute_)));  // the program may have removed it; beside() tells the rest
  return beside(path_, overwrite_);
}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept {
  *this = std::move(other);
}
RandomAccessFile& RandomAccessFile::operator=(RandomAccessFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(absolute_, other.absolute_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(overwrite_, other.overwrite_);
  return *this;
}

RandomAccessFile::~RandomAccessFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

int RandomAccessFile::write_at(uint64_t offset, std::span<const uint8_t> bytes) {
  const FileSizeSignalBlocked guard;
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (written == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return 0;
}

int RandomAccessFile::read_at(uint64_t offset, std::span<uint8_t> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (got == 0) return EIO;
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return 0;
}

int RandomAccessFile::truncate(uint64_t size) {
  const FileSizeSignalBlocked guard;
  while (ftruncate(descriptor_, static_cast<off_t>(size)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

Status RandomAccessFile::publish(bool sync) {
  if (temporary_.empty()) return {};  // nobody can find it after a crash
  if (sync && fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) {
    return fail("{}: cannot be brought to disk: {}", path_, strerror(errno));
  }
  if (const int error = move_into_place(temporary_, target_, overwrite_); error != 0) {
    struct stat info {};
    if (stat(temporary_.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
      temporary_.clear();
      return write_anew(sync);
    }
    std::string where;
    where.swap(temporary_);  // keep what was recorded
    if (error == EEXIST) return fail("{}: was created by somebody else meanwhile; the trace is in {}", path_, where);
    return fail("{}: cannot get its name: {}; the trace is in {}", path_, strerror(error), where);
  }
  temporary_.clear();
  return {};
}

// Copies the whole file. Returns 0 or an errno.
int RandomAccessFile::copy_to(int descriptor) const {
  const FileSizeSignalBlocked guard;
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<char> piece(kPiece);
  for (off_t at = 0;;) {
    const ssize_t got = pread(descriptor_, piece.data(), piece.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return 0;
    for (ssize_t done = 0; done < got;) {
      const ssize_t put =
          pwrite(descriptor, piece.data() + done, static_cast<size_t>(got - done), at + static_cast<off_t>(done));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return put < 0 ? errno : ENOSPC;
      done += put;
    }
    at += got;
  }
}

Status RandomAccessFile::write_anew(bool sync) {
  const std::string self = fmt::format("/proc/self/fd/{}", descriptor_);
  const Status folder = create_folders(folder_of(absolute_));
  // Moved, not removed: it still has a name.
  struct stat info {};
  if (fstat(descriptor_, &info) == 0 && info.st_nlink > 0) {
    std::error_code unknown;
    const std::string moved = std::filesystem::read_symlink(self, unknown).string();
    if (!unknown && folder && move_into_place(moved, absolute_, overwrite_) == 0) return {};
    if (!unknown) return fail("{}: its folder was moved while it was written; the trace is in {}", path_, moved);
  }
  const auto write_to = [&](const std::string& name) {
    const int to = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (to < 0) return errno;
    int error = copy_to(to);
    if (error == 0 && sync && fsync(to) != 0 && errno != EINVAL && errno != EROFS) error = errno;
    if (close(to) != 0 && error == 0) error = errno;
    if (error != 0) unlink(name.c_str());
    return error;
  };
  std::string cause = folder ? std::string() : folder.error().message;
  if (folder) {
    const std::string anew = partial_start(absolute_) + random_name().substr(8);
    int error = write_to(anew);
    if (error == 0) {
      error = move_into_place(anew, absolute_, overwrite_);
      if (error != 0) unlink(anew.c_str());
    }
    if (error == 0) return {};
    cause = strerror(error);
  }
  const std::string elsewhere = temporary_folder() + "/" + random_name() + ".tacho";
  if (const int error = write_to(elsewhere); error != 0)
    return fail(
        "{}: was removed while it was written and cannot be written anew ({}), nor to {} ({}); the trace is lost",
        path_, cause, elsewhere, strerror(error));
  return fail("{}: was removed while it was written and cannot be written anew: {}; the trace is in {}", path_, cause,
              elsewhere);
}

std::string left_by_killed_writer(const std::string& path) {
  const std::string path_start = partial_start(resolve(path));
  const std::string folder = folder_of(path_start);
  const std::string start = path_start.substr(path_start.rfind('/') + 1);
  std::string newest;
  timespec newest_time{};
  DIR* listing = opendir(folder.c_str());
  if (listing == nullptr) return newest;
  while (const dirent* entry = readdir(listing)) {
    if (strncmp(entry->d_name, start.c_str(), start.size()) != 0) continue;
    const std::string candidate = folder + "/" + entry->d_name;
    struct stat info {};
    if (stat(candidate.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const timespec time = info.st_mtim;
    const bool newer =
        time.tv_sec != newest_time.tv_sec ? time.tv_sec > newest_time.tv_sec : time.tv_nsec > newest_time.tv_nsec;
    if (!newest.empty() && !newer) continue;
    newest = candidate;
    newest_time = time;
  }
  closedir(listing);
  return newest;
}

std::string target_of_partial(const std::string& path) {
  constexpr std::string_view kWord = ".partial-";
  constexpr size_t kRandom = 8;  // letters behind the word
  if (path.size() < kWord.size() + kRandom) return {};
  const size_t at = path.size() - kRandom - kWord.size();
  return path.compare(at, kWord.size(), kWord) == 0 ? path.substr(0, at) : std::string();
}

bool has_living_writer(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return errno != ENOENT;
  const bool free = flock(descriptor, LOCK_SH | LOCK_NB) == 0;
  close(descriptor);
  return !free;
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail("{}: cannot be opened: {}", path, strerror(errno));
  Result<MappedFile> file = map(descriptor, path);
  close(descriptor);
  return file;
}

Result<MappedFile> MappedFile::map(int descriptor, const std::string& name) {
  struct stat info {};
  if (fstat(descriptor, &info) != 0) return fail("{}: cannot be opened: {}", name, strerror(errno));
  if (S_ISDIR(info.st_mode)) return fail("{}: is a folder, not a trace file", name);
  if (!S_ISREG(info.st_mode)) return fail("{}: is not a regular file, so it cannot be a trace file", name);
  MappedFile file;
  if (info.st_size == 0) return file;
  const auto size = static_cast<size_t>(info.st_size);
  void* at = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) return fail("{}: cannot be mapped into memory: {}", name, strerror(errno));
  file.bytes_ = {static_cast<const uint8_t*>(at), size};
  file.guard_ = MappingGuard(at, size, name);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(guard_, other.guard_);
}
MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(guard_, other.guard_);
  return *this;
}
MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace tacho::trace
