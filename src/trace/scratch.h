// Scratch: zeroed memory that a temporary file without a name stands behind, so that tables which grow with
// their input do not count as memory of the process: the kernel may write them out.
#pragma once

#include <cstddef>
#include <string>

namespace tacho::trace {

class Scratch {
 public:
  Scratch() = default;
  /// `bytes` zeroed bytes, behind them a file in `folder`; ordinary memory when `folder` is empty or has no
  /// room for them (then nothing is lost but the bound). Throws std::bad_alloc as new does.
  Scratch(size_t bytes, const std::string& folder);
  /// As that, in $TMPDIR (or /tmp); ordinary memory up to 8 MiB.
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
