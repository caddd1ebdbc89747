// HIP's streams (rocm.h). A stream is a handle of HIP's, which lays several of them on one HSA queue; packets do not
// name it. The open call does: HIP hands packets over on the calling thread. Streams have small numbers, as under
// rocprofv3, and every (queue, stream) is a queue of its own in the pool.
#include <string.h>

#include "capture/source/rocm/rocm.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

// Handles that are not streams but names of default ones (hip_runtime_api.h).
constexpr uint64_t kLegacyStream = 1, kPerThreadStream = 2;

struct Stream {
  uint64_t handle;  // 0 = free
  uint32_t number;
};
constexpr uint32_t kMostStreams = 4096;
constinit Stream g_streams[kMostStreams] = {};
constinit uint32_t g_streams_end = 0;
constinit std::atomic<uint32_t> g_streams_lock{0};
constinit std::atomic<uint32_t> g_last_stream{0};
constinit std::atomic<uint32_t> g_changes{0};

// The stream that a thread used last, good until the set of streams changes; and the thread's own default stream.
struct Recent {
  uint64_t generation;
  uint64_t handle;
  uint32_t number, changes, own;
};
constinit PerThread<Recent> g_recent;

uint32_t number_of(uint64_t handle) {
  if (handle == 0 || handle == kLegacyStream) return 0;
  const uint32_t changes = g_changes.load(std::memory_order_acquire);
  Recent* const recent = g_recent.get();
  if (recent != nullptr && recent->handle == handle && recent->changes == changes) return recent->number;
  const Guard lock(g_streams_lock);
  uint32_t at = 0, free = kMostStreams;
  for (; at < g_streams_end && g_streams[at].handle != handle; ++at)
    if (g_streams[at].handle == 0) free = at;
  if (at == g_streams_end) {  // made where tacho did not see it
    at = free != kMostStreams ? free : at;
    if (at == kMostStreams) return kNoStream;
    g_streams[at] = {handle, g_last_stream.fetch_add(1, std::memory_order_relaxed) + 1};
    if (at == g_streams_end) ++g_streams_end;
  }
  if (recent != nullptr) {
    recent->handle = handle;
    recent->number = g_streams[at].number;
    recent->changes = changes;
  }
  return g_streams[at].number;
}

uint32_t own_stream() {
  Recent* const recent = g_recent.get();
  if (recent == nullptr) return kNoStream;
  if (recent->own == 0) recent->own = g_last_stream.fetch_add(1, std::memory_order_relaxed) + 1;
  return recent->own;
}

// Queues of the pool, by base queue and stream.
struct Of {
  std::atomic<uint64_t> key;  // base << 32 | stream + 1; 0 = free
  std::atomic<uint32_t> queue;
};
constexpr uint32_t kMostQueuesOfStreams = 1 << 13;
constinit Of g_of[kMostQueuesOfStreams] = {};
constinit std::atomic<uint32_t> g_of_lock{0};

}  // namespace

uint32_t open_stream() {
  const OpenCall& open = open_call();
  if (open.depth == 0 || !open.stream_known) return kNoStream;
  if (open.stream == kPerThreadStream || (open.stream == 0 && open.per_thread)) return own_stream();
  return number_of(open.stream);
}

void stream_created(uint64_t handle) {
  stream_destroyed(handle);  // an address that is used again is another stream
  number_of(handle);
}

void stream_destroyed(uint64_t handle) {
  if (handle <= kPerThreadStream) return;
  const Guard lock(g_streams_lock);
  for (uint32_t at = 0; at < g_streams_end; ++at)
    if (g_streams[at].handle == handle) {
      g_streams[at].handle = 0;
      g_changes.fetch_add(1, std::memory_order_release);
    }
}

void forget_streams() {
  const Guard streams(g_streams_lock), queues(g_of_lock);
  memset(static_cast<void*>(g_streams), 0, sizeof g_streams);
  g_streams_end = 0;
  g_last_stream.store(0, std::memory_order_relaxed);
  g_changes.fetch_add(1, std::memory_order_release);
  for (Of& of : g_of) of.key.store(0, std::memory_order_relaxed);
}

uint32_t queue_of_stream(uint32_t base, uint32_t device, uint32_t hardware, uint32_t stream) {
  if (stream == kNoStream || base == 0) return base;
  const uint64_t key = static_cast<uint64_t>(base) << 32 | (stream + 1);
  const auto first = static_cast<uint32_t>(key * 0x9e3779b97f4a7c15ull >> 40);
  const auto find = [&](uint32_t tried) -> Of& { return g_of[(first + tried) % kMostQueuesOfStreams]; };
  constexpr uint32_t kFar = 64;
  for (uint32_t tried = 0; tried < kFar; ++tried) {
    const uint64_t here = find(tried).key.load(std::memory_order_acquire);
    if (here == key) return find(tried).queue.load(std::memory_order_relaxed);
    if (here == 0) break;
  }
  const Guard lock(g_of_lock);
  for (uint32_t tried = 0; tried < kFar; ++tried) {
    Of& of = find(tried);
    const uint64_t here = of.key.load(std::memory_order_relaxed);
    if (here == key) return of.queue.load(std::memory_order_relaxed);
    if (here != 0) continue;
    event::QueueRecord record{};
    record.header = {event::RecordKind::kQueue, event::kQueueNumbered | event::kQueueStream, sizeof record,
                     tape::next_queue()};
    record.device = device;
    record.category = tape::intern("stream");
    record.clock = static_cast<uint32_t>(event::DeviceClock::kPaired);
    record.native = stream;
    record.context = hardware;
    tape::define(&record.header);
    of.queue.store(record.header.value, std::memory_order_relaxed);
    of.key.store(key, std::memory_order_release);
    return record.header.value;
  }
  return base;
}

}  // namespace tacho::capture::rocm
