// Whole files (files.h).
#include "capture/room/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tacho::capture {

bool read_file(const char* path, MappedBytes& into) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat about;
  bool good = fstat(file, &about) == 0 && into.reserve(static_cast<size_t>(about.st_size) + 1);
  into.count = 0;
  while (good && into.count < static_cast<size_t>(about.st_size)) {
    const ssize_t got = ::read(file, into.data + into.count, static_cast<size_t>(about.st_size) - into.count);
    if (got < 0 && errno == EINTR) continue;
    good = got > 0;
    if (good) into.count += static_cast<size_t>(got);
  }
  close(file);
  return good;
}

bool write_all(int file, const uint8_t* data, size_t size) {
  while (size != 0) {
    const ssize_t written = write(file, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

}  // namespace tacho::capture
