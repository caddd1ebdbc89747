// Reads memory that may be unmapped, without faults: the thread's own by asking the kernel page by page (Prober, also
// inside signal handlers), and that of threads that keep running (Snapshot).
#pragma once

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace tacho::capture::sampler {

/// Remembers pages that were found readable; made anew for every sample, since pages come and go.
class Prober {
 public:
  bool readable(uintptr_t at, size_t bytes) {
    if (at < kPage || at + bytes < at) return false;
    for (uintptr_t page = at & ~(kPage - 1); page < at + bytes; page += kPage)
      if (!page_readable(page)) return false;
    return true;
  }
  /// Copies; false, and nothing usable in `out`, when not all of it is readable.
  bool read(uintptr_t at, void* out, size_t bytes) {
    if (!readable(at, bytes)) return false;
    memcpy(out, reinterpret_cast<const void*>(at), bytes);
    return true;
  }
  template <typename T>
  bool load(uintptr_t at, T& out) {
    return read(at, &out, sizeof out);
  }
  /// Of memory that is known to be there.
  bool copy(uintptr_t at, void* out, size_t bytes) {
    memcpy(out, reinterpret_cast<const void*>(at), bytes);
    return true;
  }
  void expect(uintptr_t, size_t) {}

 private:
  static constexpr uintptr_t kPage = 4096;
  bool page_readable(uintptr_t page) {
    uintptr_t& slot = known_[(page >> 12) % kSlots];
    if (slot == page) return true;
    // The kernel reads 8 bytes from the address before it looks at the first argument, which is wrong on purpose.
    const long result = syscall(SYS_rt_sigprocmask, ~0L, page, nullptr, 8);
    if (result == 0 || errno != EFAULT) {
      slot = page;
      return true;
    }
    return false;
  }
  static constexpr size_t kSlots = 32;
  uintptr_t known_[kSlots] = {};
};

/// Memory that other threads use: a page may go between a check and a read, so the kernel copies. The copies are kept,
/// and one call checks whether all of it is still the same; then the conclusions drawn from it hold.
class Snapshot {
 public:
  void clear() {
    count_ = used_ = 0;
    complete_ = true;
  }
  /// Nothing that was read could not be kept.
  bool complete() const { return complete_ && count_ != 0; }
  void give_up() { complete_ = false; }
  bool read(uintptr_t at, void* out, size_t bytes) {
    for (uint32_t i = 0; i < count_; ++i)
      if (at >= pieces_[i].at && at - pieces_[i].at <= pieces_[i].size &&
          bytes <= pieces_[i].size - (at - pieces_[i].at)) {
        memcpy(out, bytes_ + pieces_[i].place + (at - pieces_[i].at), bytes);
        return true;
      }
    const std::byte* const kept = keep(at, bytes);
    if (kept == nullptr) {
      complete_ = false;
      return read_now(at, out, bytes);
    }
    memcpy(out, kept, bytes);
    return true;
  }
  template <typename T>
  bool load(uintptr_t at, T& out) {
    return read(at, &out, sizeof out);
  }
  bool copy(uintptr_t at, void* out, size_t bytes) { return read(at, out, bytes); }
  /// Reads at once what will be asked for in parts.
  void expect(uintptr_t at, size_t bytes) {
    if (keep(at, bytes) == nullptr) complete_ = false;
  }
  bool unchanged() {
    for (uint32_t i = 0; i < count_; ++i) {
      here_[i] = {again_ + pieces_[i].place, pieces_[i].size};
      there_[i] = {reinterpret_cast<void*>(pieces_[i].at), pieces_[i].size};
    }
    return process_vm_readv(getpid(), here_, count_, there_, count_, 0) == static_cast<ssize_t>(used_) &&
           memcmp(bytes_, again_, used_) == 0;
  }
  /// Reads without keeping a copy for unchanged().
  static bool read_now(uintptr_t at, void* out, size_t bytes) {
    const iovec here{out, bytes}, there{reinterpret_cast<void*>(at), bytes};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
  }

 private:
  const std::byte* keep(uintptr_t at, size_t bytes) {
    if (count_ == kMostPieces || bytes > sizeof bytes_ - used_ || !read_now(at, bytes_ + used_, bytes)) return nullptr;
    pieces_[count_++] = {at, static_cast<uint32_t>(bytes), used_};
    used_ += static_cast<uint32_t>(bytes);
    return bytes_ + used_ - bytes;
  }
  static constexpr uint32_t kMostPieces = 256;
  struct Piece {
    uintptr_t at;
    uint32_t size, place;
  } pieces_[kMostPieces];
  uint32_t count_, used_;
  bool complete_;
  iovec here_[kMostPieces], there_[kMostPieces];
  std::byte bytes_[49152], again_[49152];
};

}  // namespace tacho::capture::sampler
