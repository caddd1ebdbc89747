// The ring of `tacho watch --keep` (event/watch_ring.h) on tacho's side: made, read, removed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "event/watch_ring.h"

namespace tacho::watch {

/// A copy of a record. Times are still the host's ticks, but for kTimes.
struct KeptRecord {
  uint64_t ticket = 0, start = 0, end = 0, object = 0, amount = 0, context = 0;
  uint32_t row = 0, tid = 0;
  uint16_t process = 0, call = 0;
  event::WatchRecordKind kind = event::WatchRecordKind::kNone;
  uint8_t flags = 0;
  int16_t result = 0;
};

/// Removes its file at its end. Programs that outlive it keep their mapping.
class RingFile {
 public:
  /// Beside the table of that path, 0600. Room for it is taken at once. `bytes`: of records; as many as a power of two
  /// allows. Removes there what killed tachos left.
  static Result<RingFile> create(const std::string& table, uint64_t bytes);
  RingFile(RingFile&& other) noexcept;
  RingFile& operator=(RingFile&&) = delete;
  ~RingFile();

  /// Makes another user the owner of the file. False if the kernel does not let tacho.
  bool give_to(uint32_t user, uint32_t group) const;
  const event::WatchRing& ring() const { return *ring_; }
  uint64_t capacity() const { return capacity_; }
  uint64_t head() const { return ring_->header.head.load(std::memory_order_acquire); }
  enum class Found { kWhole, kNotYet, kOverwritten };
  Found read(uint64_t ticket, KeptRecord& out) const;
  /// Of a call or a domain; "" for number 0 and such as are not there.
  std::string call_name(uint16_t number) const;
  /// The host's ticks as CLOCK_MONOTONIC_RAW, ns. follow() must have been called lately.
  int64_t time(uint64_t ticks) const;
  void follow();

 private:
  RingFile() = default;
  std::string path_;
  int file_ = -1;  // locked: this ring is in use
  event::WatchRing* ring_ = nullptr;
  size_t bytes_ = 0;
  uint64_t capacity_ = 0;
  ClockTuple first_, last_;
};

/// Hands on each record once, in the order of tickets, which is nearly that of time.
class RingStream {
 public:
  explicit RingStream(const RingFile& file) : file_(file) {}
  /// `final`: nobody writes any more, so it waits for no record that is being written.
  void poll(const std::function<void(const KeptRecord&)>& take, bool final);
  /// Records that were overwritten before they were read, and that their program never finished.
  uint64_t overwritten() const { return overwritten_; }
  uint64_t unfinished() const { return unfinished_; }
  uint64_t next() const { return cursor_ + 1; }

 private:
  const RingFile& file_;
  uint64_t cursor_ = 0;  // last ticket handed on
  uint64_t overwritten_ = 0, unfinished_ = 0;
  int64_t stuck_since_ = 0;
};

}  // namespace tacho::watch
