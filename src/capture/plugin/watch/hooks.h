// What hooks of a runtime with events do around its functions, whichever runtime it is.
#pragma once

#include "capture/plugin/watch/event_timing.h"
#include "capture/plugin/watch/sums.h"

namespace tacho::capture::watch {

/// Whether a function is one of this library.
bool is_own(const void* function);
/// libc's dlsym, not this library's.
void* real_dlsym(void* handle, const char* symbol);

/// What a call puts into a stream.
struct WatchedOperation {
  WatchRow* row = nullptr;
  uint64_t bytes = 0;
  Stream stream = nullptr;
  bool waits = false;  // for the work to end
  uint32_t stay = g_stay.load(std::memory_order_relaxed);
};

inline uint32_t threads(unsigned blocks, unsigned each) {
  const uint64_t all = static_cast<uint64_t>(blocks) * each;
  return all < UINT32_MAX ? static_cast<uint32_t>(all) : UINT32_MAX;
}

inline void lose_operations(uint64_t count) {
  g_table->header.lost_rows.fetch_add(count, std::memory_order_relaxed);
}

/// Calls the runtime, counts the operation when it returns 0, and times 1 of N.
template <typename Call>
auto watch_work(EventTimer& timer, OwnTime& own, const WatchedOperation& operation, bool per_thread, Call call) {
  uint32_t level = 0;
  decltype(call()) result;
  if (__builtin_expect(to_be_timed(*operation.row, level), 0)) {
    own.prepare();
    const OpenTiming timing = timer.open(operation.stream, per_thread);
    own.pause();
    result = call();
    own.resume();
    timer.close(timing, *operation.row, level, result == 0 && operation.stay == g_stay.load(std::memory_order_relaxed));
  } else {
    own.pause();
    result = call();
    own.resume();
  }
  if (operation.stay != g_stay.load(std::memory_order_relaxed)) return result;  // tacho has left meanwhile
  if (result == 0)
    count_operation(*operation.row, operation.bytes);
  else
    g_table->header.failed.fetch_add(1, std::memory_order_relaxed);
  own.end();
  if (operation.waits) timer.read_after_wait();
  return result;
}

/// Calls the runtime, and counts and times a call that waits, as host time, when it returns 0. `row`: nullptr when the
/// table is full.
template <typename Call>
auto watch_wait(EventTimer& timer, WatchRow* row, Call call) {
  const uint32_t stay = g_stay.load(std::memory_order_relaxed);
  const int64_t from = read_clock(CLOCK_MONOTONIC);
  const auto result = call();
  const int64_t to = read_clock(CLOCK_MONOTONIC);
  if (stay != g_stay.load(std::memory_order_relaxed)) return result;
  if (row == nullptr) {
    lose_operations(1);
  } else if (result == 0) {
    count_operation(*row, 0);
    add_time(*row, 0, static_cast<uint64_t>(to - from));
  }
  timer.read_after_wait();
  return result;
}

}  // namespace tacho::capture::watch
