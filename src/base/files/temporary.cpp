// Creates temporary files and folders (temporary.h).
#include "base/files/temporary.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <utility>

namespace tacho {

std::string temporary_folder() {
  const char* const chosen = getenv("TMPDIR");
  return chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
}

std::string folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string random_name() {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random)
    random = static_cast<uint64_t>(getpid()) << 32 | (reinterpret_cast<uintptr_t>(&random) & 0xffffffff);
  return fmt::format("{:016x}", random);
}

Result<TemporaryFile> TemporaryFile::create(std::string folder) {
  TemporaryFile file;
  file.folder_ = std::move(folder);
  file.descriptor_ = open(file.folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file.descriptor_ >= 0) return file;
  std::string name = file.folder_ + "/.tacho-XXXXXX";  // a file system without O_TMPFILE
  file.descriptor_ = mkostemp(name.data(), O_CLOEXEC);
  if (file.descriptor_ < 0)
    return fail("cannot create a temporary file in {}: {}; set TMPDIR to a folder with room", file.folder_,
                strerror(errno));
  unlink(name.c_str());
  return file;
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept {
  *this = std::move(other);
}
TemporaryFile& TemporaryFile::operator=(TemporaryFile&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}
TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

int TemporaryFile::release() {
  return std::exchange(descriptor_, -1);
}

Result<void*> TemporaryFile::map(size_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes));
  if (error != 0)
    return fail("no room for {} MiB of temporary data in {}: {}; set TMPDIR to a folder with room", bytes >> 20,
                folder_, strerror(error));
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (data == MAP_FAILED)
    return fail("{} MiB of temporary data in {} cannot be mapped: {}", bytes >> 20, folder_, strerror(errno));
  return data;
}

Result<TemporaryFolder> TemporaryFolder::create(std::string_view prefix) {
  std::string pattern = std::string(prefix) + "XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return fail("{}: cannot be made: {}", pattern, strerror(errno));
  TemporaryFolder folder;
  folder.path_ = std::move(pattern);
  return folder;
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept {
  *this = std::move(other);
}
TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::release() {
  return std::exchange(path_, {});
}

}  // namespace tacho
