// What hooks of a runtime with events do around its functions, whichever runtime it is.
#pragma once

#include "capture/plugin/watch/event_timing.h"
#include "capture/plugin/watch/ring.h"
#include "capture/plugin/watch/sums.h"

namespace tacho::capture::watch {

/// Whether a function is one of this library.
bool is_own(const void* function);
/// libc's dlsym, not this library's.
void* real_dlsym(void* handle, const char* symbol);

/// In a program that ran before tacho came, streams may be captured that tacho knows nothing of. While this lives, the
/// thread's own calls do not end such a capture. `Exchange`: takes the mode in which a thread's calls meet captures and
/// gives back the one before, false where the runtime cannot.
template <bool (*Exchange)(int* mode)>
class BesideCaptures {
 public:
  BesideCaptures() : changes_(g_late && Exchange(&mode_)) {}
  ~BesideCaptures() {
    if (changes_) Exchange(&mode_);
  }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  int mode_ = 2;  // relaxed, in CUDA and in HIP
  bool changes_;
};

/// Such a program: for how many looks (age()) whatever is counted is still asked whether its stream is being captured.
/// A capture that tacho has not seen begin may last longer: what is to be timed is always asked, and when one is found,
/// it begins again.
class UnknownCaptures {
 public:
  void begin() { looks_.store(100, std::memory_order_relaxed); }
  bool possible() const { return looks_.load(std::memory_order_relaxed) > 0; }
  void age() {
    const uint32_t left = looks_.load(std::memory_order_relaxed);
    if (left > 0) looks_.store(left - 1, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint32_t> looks_{0};
};

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

/// What a record in the ring says of a call beside its operation.
struct KeptBy {
  uint16_t call = 0;                ///< TACHO_KEPT_CALL
  uint64_t (*context)() = nullptr;  ///< what the calling thread works in; asked when something is kept
  Stream stream = nullptr;          ///< of a wait
  uint8_t flags = 0;                ///< of a wait: event::kWatchWaitsForQueue or kWatchWaitsForAll
};

/// Calls the runtime, and keeps the call where anything is kept. `by`: gives a KeptBy.
template <typename By, typename Call>
TACHO_RUN_OFTEN auto call_and_keep(OwnTime& own, const WatchedOperation& operation, By by, uint64_t& kept,
                                   Call forward) {
  const KeptCall keeping;
  own.pause();
  const auto result = forward();
  own.resume();
  if (!keeping.kept()) return result;
  const KeptBy facts = by();
  kept = keeping.end({.call = facts.call,
                      .row = row_number(*operation.row),
                      .object = reinterpret_cast<uint64_t>(operation.stream),
                      .amount = operation.bytes,
                      .context = facts.context != nullptr ? facts.context() : 0,
                      .result = static_cast<int>(result),
                      .flags = operation.waits ? event::kWatchWaitsForQueue : uint8_t{0}});
  return result;
}
/// That of an operation that is timed.
template <typename By, typename Call>
TACHO_RUN_SELDOM auto watch_timed(EventTimer& timer, OwnTime& own, const WatchedOperation operation, bool per_thread,
                                  uint32_t level, By by, Call forward) {
  uint64_t kept = 0;
  own.prepare();
  const OpenTiming timing = timer.open(operation.stream, per_thread);
  const auto result = call_and_keep(own, operation, by, kept, forward);
  const bool good = result == 0 && operation.stay == g_stay.load(std::memory_order_relaxed);
  timer.close(timing, *operation.row, level, good, kept);
  return result;
}

/// Calls the runtime, counts the operation when it returns 0, keeps it, and times 1 of N.
template <typename By, typename Call>
TACHO_RUN_OFTEN auto watch_work(EventTimer& timer, OwnTime& own, const WatchedOperation& operation, bool per_thread,
                                By by, Call forward) {
  uint32_t level = 0;
  decltype(forward()) result;
  if (to_be_timed(*operation.row, level)) {
    result = watch_timed(timer, own, operation, per_thread, level, by, forward);
  } else {
    uint64_t kept = 0;
    await_launch_place();
    result = call_and_keep(own, operation, by, kept, forward);
  }
  if (operation.stay != g_stay.load(std::memory_order_relaxed)) return result;  // tacho has left meanwhile
  if (__builtin_expect(result == 0, 1))
    count_operation(*operation.row, operation.bytes);
  else
    g_table->header.failed.fetch_add(1, std::memory_order_relaxed);
  own.end();
  if (operation.waits && result == 0) timer.relate_clocks(operation.stream, per_thread);
  if (operation.waits) timer.read_after_wait();
  return result;
}

/// Calls the runtime, and counts, keeps and times a call that waits, as host time, when it returns 0. `row`: nullptr
/// when the table is full. `waited`: called after a successful one, before times are read.
template <typename Call, typename Waited>
auto watch_wait(EventTimer& timer, WatchRow* row, const KeptBy& by, Call call, Waited waited) {
  const uint32_t stay = g_stay.load(std::memory_order_relaxed);
  const int64_t from = read_clock(CLOCK_MONOTONIC);
  const KeptCall keeping;
  const auto result = call();
  const int64_t to = read_clock(CLOCK_MONOTONIC);
  if (stay != g_stay.load(std::memory_order_relaxed)) return result;
  if (keeping.kept())
    keeping.end({.kind = WatchRecordKind::kWait,
                 .call = by.call,
                 .row = row != nullptr ? row_number(*row) : event::kWatchNoRow,
                 .object = reinterpret_cast<uint64_t>(by.stream),
                 .result = static_cast<int>(result),
                 .flags = by.flags});
  if (row == nullptr) {
    lose_operations(1);
  } else if (result == 0) {
    count_operation(*row, 0);
    add_time(*row, 0, static_cast<uint64_t>(to - from));
    note_wait(to);
  }
  if (result == 0) waited();
  timer.read_after_wait();
  return result;
}

}  // namespace tacho::capture::watch
