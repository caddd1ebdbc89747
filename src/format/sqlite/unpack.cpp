// Unpacks compressed databases (unpack.h) through format/source.
#include "format/sqlite/unpack.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/format.h"
#include "format/source/source.h"

namespace tacho::sqlite {
namespace {

constexpr size_t kBlock = 1 << 20, kHeader = 100;
constexpr uint64_t kSpare = 64 << 20;  // bytes of disk that stay free

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

// The bytes 18 and 19 of a database say 2 if it has a write-ahead log, which nothing unpacked has.
void forget_log(int descriptor) {
  static constexpr char kRollback[2] = {1, 1};
  char version[2] = {};
  if (::pread(descriptor, version, 2, 18) == 2 && version[0] == 2 && version[1] == 2)
    (void)!::pwrite(descriptor, kRollback, 2, 18);
}

// How many bytes the database has that begins with `head`; UINT64_MAX if its header does not tell.
uint64_t stated_size(std::string_view head) {
  const auto number = [&](size_t at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = at; i < at + bytes; ++i) value = value << 8 | static_cast<uint8_t>(head[i]);
    return value;
  };
  // Old versions of SQLite do not keep the number of pages up to date: then the number of changes differs, too.
  if (head.size() < kHeader || number(24, 4) != number(92, 4)) return UINT64_MAX;
  const uint64_t page = number(16, 2) == 1 ? 65536 : number(16, 2);
  return page >= 512 && number(28, 4) > 0 ? number(28, 4) * page : UINT64_MAX;
}

}  // namespace

bool is_packed(const std::string& path) {
  return format::source::peek(path).packing != format::source::Packing::kNone;
}

bool is_database(const std::string& path) {
  return format::source::peek(path).text.starts_with(kDatabaseHead);
}

Result<TemporaryFile> unpack(const std::string& path) {
  TACHO_ASSIGN(format::source::SourceStream stream, format::source::SourceStream::open(path));
  TACHO_ASSIGN(TemporaryFile file, TemporaryFile::create());
  std::vector<char> buffer(kBlock);
  uint64_t size = 0, most = UINT64_MAX;
  while (size_t got = stream.read(buffer.data(), buffer.size())) {
    // The header lies in the first block, however short the parts are that the data is packed in.
    while (const size_t more = size == 0 && got < kHeader ? stream.read(buffer.data() + got, buffer.size() - got) : 0)
      got += more;
    std::string_view plain(buffer.data(), got);
    if (size == 0 && !plain.starts_with(kDatabaseHead))
      return fail("{}: no SQLite database lies compressed in it", path);
    if (size == 0) most = stated_size(plain);
    if (size == most) break;  // what follows is no part of the database
    plain = plain.substr(0, most - size);
    size += plain.size();
    if (const int error = write_all(file.descriptor(), plain); error == ENOSPC)
      return fail("{}: there is no room to unpack it: {} is full after {} MB; set TMPDIR to a folder with more free "
                  "space",
                  path, temporary_folder(), size / 1'000'000);
    else if (error != 0)
      return fail("{}: cannot be unpacked in {}: {}", path, temporary_folder(), std::strerror(error));
  }
  TACHO_TRY(Status(stream.status()));
  forget_log(file.descriptor());
  return file;
}

}  // namespace tacho::sqlite
