// Unpacks compressed databases (unpack.h).
#include "format/sqlite/unpack.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/format.h"

namespace tacho::sqlite {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b", kZstandard = "\x28\xb5\x2f\xfd";
constexpr size_t kBlock = 1 << 20;
constexpr uint64_t kSpare = 64 << 20;  // bytes of disk that stay free

// One piece of packed data after the other becomes pieces of plain data.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  enum class Outcome : uint8_t { kGoOn, kEnd, kDamaged };
  /// Takes bytes from the front of `packed` and appends at most kBlock bytes to `plain`. kEnd: a member is complete.
  virtual Outcome step(std::string_view& packed, std::string& plain) = 0;
};

class GzipUnpacker : public Unpacker {
 public:
  GzipUnpacker() { ready_ = ::inflateInit2(&stream_, 15 + 16) == Z_OK; }
  ~GzipUnpacker() override { ::inflateEnd(&stream_); }
  GzipUnpacker(const GzipUnpacker&) = delete;
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;
  Outcome step(std::string_view& packed, std::string& plain) override {
    if (!ready_) return Outcome::kDamaged;
    const size_t had = plain.size();
    plain.resize(had + kBlock);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(std::min<size_t>(packed.size(), 1u << 30));
    stream_.next_out = reinterpret_cast<Bytef*>(plain.data() + had);
    stream_.avail_out = static_cast<uInt>(kBlock);
    const uInt given = stream_.avail_in;
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    packed.remove_prefix(given - stream_.avail_in);
    plain.resize(had + kBlock - stream_.avail_out);
    if (code == Z_STREAM_END) return ::inflateReset(&stream_) == Z_OK ? Outcome::kEnd : Outcome::kDamaged;
    return code == Z_OK || code == Z_BUF_ERROR ? Outcome::kGoOn : Outcome::kDamaged;
  }

 private:
  z_stream stream_ = {};
  bool ready_ = false;
};

class ZstandardUnpacker : public Unpacker {
 public:
  Outcome step(std::string_view& packed, std::string& plain) override {
    if (stream_ == nullptr) return Outcome::kDamaged;
    const size_t had = plain.size();
    plain.resize(had + kBlock);
    ZSTD_inBuffer in = {packed.data(), packed.size(), 0};
    ZSTD_outBuffer out = {plain.data() + had, kBlock, 0};
    const size_t code = ::ZSTD_decompressStream(stream_.get(), &out, &in);
    packed.remove_prefix(in.pos);
    plain.resize(had + out.pos);
    return ::ZSTD_isError(code) != 0 ? Outcome::kDamaged : code == 0 ? Outcome::kEnd : Outcome::kGoOn;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ::ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_{::ZSTD_createDStream()};
};

std::unique_ptr<Unpacker> unpacker_of(std::string_view head) {
  if (head.starts_with(kGzip)) return std::make_unique<GzipUnpacker>();
  if (head.starts_with(kZstandard)) return std::make_unique<ZstandardUnpacker>();
  return nullptr;
}

// Writes all of it; 0, or the error's number. ENOSPC before the disk is really full: others need it too.
int write_all(int descriptor, std::string_view bytes) {
  struct statvfs disk {};
  if (::fstatvfs(descriptor, &disk) == 0 && disk.f_bavail * disk.f_frsize < kSpare + bytes.size()) return ENOSPC;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written == 0 ? ENOSPC : errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

// Reads the next bytes of a file at `offset`; "" at its end.
Result<std::string_view> read_some(int descriptor, uint64_t offset, std::vector<char>& buffer,
                                   const std::string& path) {
  while (true) {
    const ssize_t got = ::pread(descriptor, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (got >= 0) return std::string_view(buffer.data(), static_cast<size_t>(got));
    if (errno != EINTR) return fail("{}: {}", path, std::strerror(errno));
  }
}

// The bytes 18 and 19 of a database say 2 if it has a write-ahead log, which nothing unpacked has.
void forget_log(int descriptor) {
  static constexpr char kRollback[2] = {1, 1};
  char version[2] = {};
  if (::pread(descriptor, version, 2, 18) == 2 && version[0] == 2 && version[1] == 2)
    (void)!::pwrite(descriptor, kRollback, 2, 18);
}

}  // namespace

bool begins_compressed(std::string_view head) {
  return head.starts_with(kGzip) || head.starts_with(kZstandard);
}

bool begins_database(std::string_view head) {
  if (head.starts_with(kDatabaseHead)) return true;
  const std::unique_ptr<Unpacker> unpacker = unpacker_of(head);
  if (unpacker == nullptr) return false;
  std::string plain;
  while (plain.size() < kDatabaseHead.size()) {
    const size_t had = plain.size(), left = head.size();
    if (unpacker->step(head, plain) == Unpacker::Outcome::kDamaged) break;
    if (plain.size() == had && head.size() == left) break;
  }
  return plain.starts_with(kDatabaseHead);
}

bool is_database(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return false;
  char head[4096];
  const ssize_t got = ::pread(descriptor, head, sizeof head, 0);
  ::close(descriptor);
  return got > 0 && begins_database(std::string_view(head, static_cast<size_t>(got)));
}

Result<TemporaryFile> unpack(int descriptor, const std::string& path) {
  std::vector<char> buffer(kBlock);
  uint64_t offset = 0, size = 0;
  TACHO_ASSIGN(std::string_view packed, read_some(descriptor, offset, buffer, path));
  const std::unique_ptr<Unpacker> unpacker = unpacker_of(packed);
  if (unpacker == nullptr || !begins_database(packed.substr(0, 4096)))
    return fail("{}: no SQLite database lies compressed in it", path);
  TACHO_ASSIGN(TemporaryFile file, TemporaryFile::create());
  std::string plain;
  bool complete = false;  // nothing of a member is open
  bool more = false;      // the last step stopped because its output was full
  while (true) {
    if (packed.empty() && !more) {
      TACHO_ASSIGN(packed, read_some(descriptor, offset, buffer, path));
      if (packed.empty()) break;
    }
    // What follows a complete member is another one, or padding.
    if (complete && unpacker_of(packed) == nullptr) break;
    plain.clear();
    const size_t given = packed.size();
    const Unpacker::Outcome outcome = unpacker->step(packed, plain);
    offset += given - packed.size();
    more = outcome == Unpacker::Outcome::kGoOn && plain.size() == kBlock;
    if (outcome == Unpacker::Outcome::kDamaged || (plain.empty() && given > 0 && packed.size() == given))
      return fail("{}: its compressed data is damaged near byte {}", path, offset);
    complete = outcome == Unpacker::Outcome::kEnd;
    size += plain.size();
    if (const int error = write_all(file.descriptor(), plain); error == ENOSPC)
      return fail("{}: there is no room to unpack it: {} is full after {} MB; set TMPDIR to a folder with more free "
                  "space",
                  path, temporary_folder(), size / 1'000'000);
    else if (error != 0)
      return fail("{}: cannot be unpacked in {}: {}", path, temporary_folder(), std::strerror(error));
  }
  if (!complete) return fail("{}: cut off: its compressed data ends at byte {} before the database does", path, offset);
  forget_log(file.descriptor());
  return file;
}

}  // namespace tacho::sqlite
