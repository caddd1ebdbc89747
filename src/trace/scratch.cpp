// Scratch: a nameless file, filled with room before it is mapped, since a hole in a full disk is a SIGBUS.
#include "trace/scratch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>

namespace tacho::trace {
namespace {

int nameless_file(const std::string& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  std::string name = folder + "/.tacho-XXXXXX";  // a filesystem without O_TMPFILE
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

void* map_file(size_t bytes, const std::string& folder) {
  const int file = nameless_file(folder);
  if (file < 0) return MAP_FAILED;
  void* data = MAP_FAILED;
  if (posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0)
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return data;
}

}  // namespace

Scratch::Scratch(size_t bytes, const std::string& folder) : bytes_(bytes) {
  void* data = folder.empty() ? MAP_FAILED : map_file(bytes, folder);
  if (data == MAP_FAILED)
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  data_ = data;
}

Scratch Scratch::temporary(size_t bytes) {
  constexpr size_t kInMemory = 8u << 20;
  const char* const chosen = getenv("TMPDIR");
  return Scratch(bytes, bytes <= kInMemory                     ? std::string()
                        : chosen != nullptr && *chosen != '\0' ? chosen
                                                               : "/tmp");
}

Scratch::Scratch(Scratch&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Scratch& Scratch::operator=(Scratch&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Scratch::~Scratch() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace tacho::trace
