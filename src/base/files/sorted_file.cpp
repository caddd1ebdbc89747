// The unnamed temporary file behind SortedFile (sorted_file.h).
#include "base/files/sorted_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tacho {

SpillFile::SpillFile(SpillFile&& other) noexcept {
  *this = std::move(other);
}

SpillFile& SpillFile::operator=(SpillFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  return *this;
}

SpillFile::~SpillFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, size_);
}

Status SpillFile::append(const void* bytes, size_t size) {
  if (size == 0) return {};
  if (!file_) {
    TACHO_ASSIGN(file_, TemporaryFile::create());
  }
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t wrote = ::write(file_.descriptor(), at, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return fail("temporary file: {}; set TMPDIR to a place with more room", std::strerror(errno));
    at += wrote;
    size -= static_cast<size_t>(wrote);
    size_ += static_cast<size_t>(wrote);
  }
  return {};
}

Result<const std::byte*> SpillFile::map() {
  if (size_ == 0) return nullptr;
  if (mapping_ == nullptr) {
    void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_.descriptor(), 0);
    if (data == MAP_FAILED) return fail("temporary file: {}", std::strerror(errno));
    mapping_ = data;
  }
  return static_cast<const std::byte*>(mapping_);
}

}  // namespace tacho
