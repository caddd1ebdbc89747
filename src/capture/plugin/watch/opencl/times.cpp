// Times of timed operations: read from the runtime's events when these have ended.
#include <sys/mman.h>
#include <time.h>

#include "capture/plugin/watch/opencl/opencl.h"
#include "capture/plugin/watch/opencl/own.h"
#include "capture/plugin/watch/ring.h"
#include "capture/room/pages.h"

namespace tacho::capture::watch::cl {

constinit D g_next = {};
constinit OwnState* g_own = nullptr;

bool make_own() {
  auto* const own = static_cast<OwnState*>(map_pages(sizeof(OwnState)));
  if (own == nullptr) return false;
  madvise(own, sizeof(OwnState), MADV_WIPEONFORK);
  own->made.store(true, std::memory_order_relaxed);
  g_own = own;
  return true;
}

namespace {

// The runtime stamps an operation while it takes it: that relates its clock to the host's. Most use the host's own.
void keep_time(const Waiting& one, cl_ulong start, cl_ulong end) {
  cl_ulong queued = 0;
  if (one.kept.ticket == 0 || !ask(g_next.clGetEventProfilingInfo, one.event, CL_PROFILING_COMMAND_QUEUED, queued) ||
      queued > start)
    return;
  const auto stamp = static_cast<int64_t>(queued);
  constexpr int64_t kSame = 1000;  // ns
  if (stamp >= one.kept.from - kSame && stamp <= one.kept.to + kSame)
    return keep_times(one.kept.ticket, static_cast<int64_t>(start), end - start, 0);
  const int64_t half_width = (one.kept.to - one.kept.from + 1) / 2;
  keep_times(one.kept.ticket, one.kept.from + half_width + static_cast<int64_t>(start - queued), end - start,
             static_cast<uint64_t>(half_width));
}

void release_events(const Waiting& one) {
  for (cl_event event : {one.event, one.around[0], one.around[1]})
    if (event != nullptr) g_next.clReleaseEvent(event);
}

// True when the operation has ended: then its time is in its row, or among those lost.
bool read_time(const Waiting& one) {
  cl_int status = CL_QUEUED;
  const bool known = ask(g_next.clGetEventInfo, one.event, CL_EVENT_COMMAND_EXECUTION_STATUS, status);
  if (known && status > CL_COMPLETE) return false;
  cl_ulong start = 0, end = 0;
  if (known && status == CL_COMPLETE &&
      ask(g_next.clGetEventProfilingInfo, one.event, CL_PROFILING_COMMAND_START, start) &&
      ask(g_next.clGetEventProfilingInfo, one.event, CL_PROFILING_COMMAND_END, end) && end >= start) {
    add_time(*one.row, one.level, end - start);
    keep_time(one, start, end);
  } else {
    g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
  }
  release_events(one);
  g_table->header.pending.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

Waiting& waiting_at(uint32_t at) {
  return g_own->waiting[at % kMostWaiting];
}

// Queues of which an operation is known not to have ended: those behind it have not either.
class Stuck {
 public:
  bool has(const void* queue) const {
    for (uint32_t i = 0; i < count_; ++i)
      if (queues_[i] == queue) return true;
    return false;
  }
  void add(const void* queue) {
    if (queue != nullptr && count_ < kMost) queues_[count_++] = queue;
  }

 private:
  static constexpr uint32_t kMost = 8;
  const void* queues_[kMost];
  uint32_t count_ = 0;
};

void look_at(uint32_t at, Stuck& stuck) {
  Waiting& one = waiting_at(at);
  if (one.event == nullptr || (one.queue != nullptr && stuck.has(one.queue))) return;
  if (!read_time(one)) return stuck.add(one.queue);
  one.event = nullptr;
  g_own->waiting_count.fetch_sub(1, std::memory_order_relaxed);
}

// Those that have been read make room.
void close_ranks() {
  uint32_t end = g_own->first;
  for (uint32_t at = g_own->first; at != g_own->end; ++at)
    if (waiting_at(at).event != nullptr) waiting_at(end++) = waiting_at(at);
  g_own->end = end;
}

}  // namespace

void read_times(uint32_t most) {
  if (g_own->waiting_count.load(std::memory_order_relaxed) == 0 || !try_lock(g_own->waiting_lock)) return;
  Stuck stuck;
  uint32_t looked = 0;
  // The oldest first, until one has not ended; then by turns, so that no queue waits for another one.
  for (; looked < most && g_own->first != g_own->end; ++looked) {
    look_at(g_own->first, stuck);
    if (waiting_at(g_own->first).event != nullptr) break;
    ++g_own->first;
  }
  const uint32_t left = g_own->end - g_own->first;
  for (uint32_t i = 0; i < left && looked < most; ++i, ++looked) {
    if (g_own->turn - g_own->first >= g_own->end - g_own->first) g_own->turn = g_own->first;
    look_at(g_own->turn++, stuck);
  }
  unlock(g_own->waiting_lock);
}

void read_after_wait() {
  if (g_own->waiting_count.load(std::memory_order_relaxed) == 0) return;
  const int64_t from = read_clock(CLOCK_MONOTONIC);
  read_times(kMostWaiting);
  g_table->header.prepared_time.fetch_add(static_cast<uint64_t>(read_clock(CLOCK_MONOTONIC) - from),
                                          std::memory_order_relaxed);
}

void wait_for_time(const Waiting& one) {
  read_times(8);
  lock(g_own->waiting_lock);
  if (g_own->end - g_own->first == kMostWaiting) close_ranks();
  const bool room = g_own->end - g_own->first < kMostWaiting;
  if (room) {
    waiting_at(g_own->end++) = one;
    g_own->waiting_count.fetch_add(1, std::memory_order_relaxed);
    g_table->header.pending.fetch_add(1, std::memory_order_relaxed);
  }
  unlock(g_own->waiting_lock);
  if (room) return;
  release_events(one);
  g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
}

bool is_waited_for(cl_event event) {
  const Guard guard(g_own->waiting_lock);
  for (uint32_t at = g_own->first; at != g_own->end; ++at)
    if (waiting_at(at).event == event) return true;
  return false;
}

}  // namespace tacho::capture::watch::cl

namespace tacho::capture::watch {

using namespace cl;

void drain_opencl() {
  if (g_own == nullptr) return;
  constexpr int64_t kPatience = 1'000'000'000;
  const int64_t begin = read_clock(CLOCK_MONOTONIC);
  for (;;) {
    read_times(kMostWaiting);
    if (g_own->waiting_count.load(std::memory_order_relaxed) == 0) return;
    if (read_clock(CLOCK_MONOTONIC) - begin > kPatience) break;
    const timespec moment{0, 1'000'000};
    nanosleep(&moment, nullptr);
  }
  const Guard guard(g_own->waiting_lock);
  for (; g_own->first != g_own->end; ++g_own->first) {
    Waiting& one = waiting_at(g_own->first);
    if (one.event == nullptr) continue;
    release_events(one);
    one.event = nullptr;
    g_own->waiting_count.fetch_sub(1, std::memory_order_relaxed);
    g_table->header.pending.fetch_sub(1, std::memory_order_relaxed);
    g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace tacho::capture::watch
