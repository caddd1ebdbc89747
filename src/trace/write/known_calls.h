// When the calls of a recording began and returned, by process and correlation, and when the host waited for a device:
// in temporary files, so that they are found however many there are.
#pragma once

#include <cstdint>
#include <span>

#include "base/files/sorted_file.h"
#include "event/schema.h"
#include "trace/call_key.h"

namespace tacho::trace {

/// A call that returned when work on a queue (`track`, 0 = one that is not named) or on a device had ended.
struct HostWait {
  int64_t process, track, start, end;
  bool device;
  bool operator<(const HostWait& other) const {
    return process != other.process ? process < other.process : start < other.start;
  }
};

/// add() everything, finish(), then ask.
class KnownCalls {
 public:
  struct Times {
    int64_t start = event::kUnknown, end = event::kUnknown;  ///< kUnknown = there is none, or it did not return
    bool copies = false;                                     ///< copies to the host have ended when it returns
  };
  void add(int64_t process, int64_t correlation, const Times& times) {
    calls_.add({process, correlation}, times);
    empty_ = false;
  }
  void add(const HostWait& wait) { waits_.add(wait); }
  bool empty() const { return empty_; }
  /// Errors: the temporary files cannot be written.
  Status finish();
  /// Of several calls with one number, a runtime's and the driver's in it, the outermost times.
  Times find(int64_t process, int64_t correlation);
  /// Those of a process that begin at or after `from`, in order of their starts.
  std::span<const HostWait> waits(int64_t process, int64_t from) const;

 private:
  KeyIndex<Times, CallKey> calls_;
  SortedFile<HostWait> waits_;
  bool empty_ = true;
};

}  // namespace tacho::trace
