// Scratch: a temporary file, mapped; ordinary memory where there is none (scratch.h).
#include "trace/write/scratch.h"

#include <sys/mman.h>

#include <new>
#include <utility>

#include "base/files/temporary.h"

namespace tacho::trace {
namespace {

void* map_file(size_t bytes, const std::string& folder) {
  Result<TemporaryFile> file = TemporaryFile::create(folder);
  if (!file) return MAP_FAILED;
  return file->map(bytes).value_or(MAP_FAILED);
}

}  // namespace

Scratch::Scratch(size_t bytes, const std::string& folder) : bytes_(bytes) {
  void* data = folder.empty() ? MAP_FAILED : map_file(bytes, folder);
  if (data == MAP_FAILED) data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  data_ = data;
}

Scratch Scratch::temporary(size_t bytes) {
  constexpr size_t kInMemory = 8u << 20;
  return Scratch(bytes, bytes <= kInMemory ? std::string() : temporary_folder());
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
