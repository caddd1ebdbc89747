// Scratch: zeroed memory backed by an unnamed temporary file. The kernel may write it out, so tables that grow with
// their input cost no anonymous memory.
#pragma once

#include <cstddef>
#include <string>

namespace tacho::trace {

class Scratch {
 public:
  Scratch() = default;
  /// `bytes` zeroed bytes backed by a file in `folder`. Falls back to ordinary memory, without that bound, when
  /// `folder` is empty or has no room for them. Throws std::bad_alloc as new does.
  Scratch(size_t bytes, const std::string& folder);
  /// The same in $TMPDIR (or /tmp); ordinary memory up to 8 MiB.
  static Scratch temporary(size_t bytes);
  Scratch(Scratch&& other) noexcept;
  Scratch& operator=(Scratch&& other) noexcept;
  ~Scratch();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace tacho::trace
