// The unlinked temporary file behind SortedFile (sorted_file.h).
#include "base/sorted_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace tacho {

SpillFile::SpillFile(SpillFile&& other) noexcept {
  *this = std::move(other);
}

SpillFile& SpillFile::operator=(SpillFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  return *this;
}

SpillFile::~SpillFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status SpillFile::append(const void* bytes, size_t size) {
  if (size == 0) return {};
  if (descriptor_ < 0) {
    const char* const chosen = std::getenv("TMPDIR");
    std::string path = std::string(chosen != nullptr && *chosen != '\0' ? chosen : "/tmp") + "/tacho-XXXXXX";
    descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
    if (descriptor_ < 0)
      return fail("{}: a temporary file cannot be created: {}; set TMPDIR", path, std::strerror(errno));
    ::unlink(path.c_str());
  }
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t wrote = ::write(descriptor_, at, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0)
      return fail("temporary file: {}; set TMPDIR to a place with more room", std::strerror(errno));
    at += wrote;
    size -= static_cast<size_t>(wrote);
    size_ += static_cast<size_t>(wrote);
  }
  return {};
}

Result<const std::byte*> SpillFile::map() {
  if (size_ == 0) return nullptr;
  if (mapping_ == nullptr) {
    void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
    if (data == MAP_FAILED) return fail("temporary file: {}", std::strerror(errno));
    mapping_ = data;
  }
  return static_cast<const std::byte*>(mapping_);
}

}  // namespace tacho
