// CUPTI activity buffers in the pool (buffers.h).
#include "capture/source/cuda/buffers.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "base/clock.h"
#include "capture/room/pages.h"
#include "event/records.h"
#include "tape/writer.h"

namespace tacho::capture::cuda {
namespace {

constinit const Cupti* g_cupti = nullptr;
constinit uint32_t g_version = 0;
constinit uint32_t g_blocks = 1;

// Sizes of records by kind in the library loaded, 0 = it does not know the kind. The decoder gets them too, so that it
// can walk buffers of a CUPTI newer than itself.
constinit uint16_t g_sizes[abi::kKinds] = {};

// Texts and callback ids that have been defined. A set of 64-bit keys that only grows: open addressing in a chain of
// ever larger tables, lock-free; a key inserted twice at the same moment costs one superfluous definition.
class KeySet {
 public:
  /// True if `key` (not 0) was not there.
  bool insert(uint64_t key) {
    const uint64_t hash = key * 0x9e3779b97f4a7c15ULL;
    for (int level = 0; level < kLevels; ++level) {
      std::atomic<uint64_t>* const table = tables_[level].load(std::memory_order_acquire);
      if (table == nullptr) {
        if (!add_level(level)) return true;  // out of memory: define again, which is harmless
        --level;
        continue;
      }
      const uint64_t mask = capacity(level) - 1;
      for (uint64_t probe = 0; probe < 16; ++probe) {
        std::atomic<uint64_t>& slot = table[((hash >> 20) + probe) & mask];
        uint64_t found = slot.load(std::memory_order_relaxed);
        if (found == key) return false;
        if (found == 0) {
          if (slot.compare_exchange_strong(found, key, std::memory_order_relaxed)) return true;
          if (found == key) return false;
        }
      }
    }
    return true;
  }
  /// Not while others insert.
  void clear() {
    for (int level = 0; level < kLevels; ++level)
      if (auto* const table = tables_[level].load(std::memory_order_acquire))
        memset(static_cast<void*>(table), 0, capacity(level) * sizeof(uint64_t));
  }

 private:
  static constexpr int kLevels = 6;
  static constexpr uint64_t capacity(int level) { return uint64_t{1} << (12 + 3 * level); }
  bool add_level(int level) {
    const size_t bytes = capacity(level) * sizeof(uint64_t);
    void* const fresh = map_pages(bytes);
    if (fresh == nullptr) return false;
    std::atomic<uint64_t>* expected = nullptr;
    if (!tables_[level].compare_exchange_strong(expected, static_cast<std::atomic<uint64_t>*>(fresh)))
      munmap(fresh, bytes);
    return true;
  }
  std::atomic<std::atomic<uint64_t>*> tables_[kLevels] = {};
};
constinit KeySet g_texts;
constinit std::atomic<uint64_t> g_callbacks[2][64] = {};  // bit sets of callback ids: runtime, driver

constinit std::atomic<bool> g_last{false};
constinit std::atomic<bool> g_refused{false};  // CUPTI asked for a buffer and got none

constinit std::atomic<bool> g_graph_kernels{false};

// The driver's function of newest_call(), 0 = none, and the number in buffers that CUPTI has completed.
constinit std::atomic<uint32_t> g_function_sought{0}, g_call_found{0};

constinit std::atomic<void (*)(uint32_t)> g_see_launch{nullptr};

// Buffers that CUPTI holds. A buffer leaves this table before the drainer gets it, so text read from a buffer that is
// still here afterwards was valid.
struct OpenBuffer {
  std::atomic<tape::BlockHeader*> extent;
  std::atomic<uint32_t> scanned;  // bytes in which names have been looked for
};
constexpr uint32_t kMaxOpen = 4096;
constinit OpenBuffer g_open[kMaxOpen] = {};
constinit std::atomic<uint32_t> g_open_end{0};  // slots from here on were never used

void remember(tape::BlockHeader* extent) {
  for (uint32_t i = 0; i < kMaxOpen; ++i) {
    tape::BlockHeader* expected = nullptr;
    if (g_open[i].extent.load(std::memory_order_relaxed) != nullptr) continue;
    g_open[i].scanned.store(0, std::memory_order_relaxed);
    if (!g_open[i].extent.compare_exchange_strong(expected, extent, std::memory_order_acq_rel)) continue;
    uint32_t end = g_open_end.load(std::memory_order_relaxed);
    while (end < i + 1 && !g_open_end.compare_exchange_weak(end, i + 1, std::memory_order_relaxed)) {
    }
    return;
  }
}
void forget(tape::BlockHeader* extent) {
  const uint32_t end = g_open_end.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < end; ++i) {
    tape::BlockHeader* expected = extent;
    if (g_open[i].extent.load(std::memory_order_relaxed) == extent &&
        g_open[i].extent.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel))
      return;
  }
}
size_t capacity_of(const tape::BlockHeader* extent) {
  return static_cast<size_t>(extent->blocks) * tape::kBlockSize - sizeof(tape::BlockHeader);
}

// How long CUPTI's requests for a buffer have waited in this process, as far as a clock outside would see it: time in
// which several threads wait counts once.
class Patience {
 public:
  /// Time to wait now, 0 when it is used up.
  int64_t next() {
    const int64_t now = raw_now();
    int64_t last = last_.load(std::memory_order_relaxed);
    if (now - last >= kTurn && last_.compare_exchange_strong(last, now, std::memory_order_relaxed))
      used_.fetch_add(kTurn, std::memory_order_relaxed);
    return used_.load(std::memory_order_relaxed) <= kMost ? kTurn : 0;
  }

  void renew() { used_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr int64_t kTurn = 2'000'000, kMost = 500'000'000;
  std::atomic<int64_t> last_{0}, used_{0};
};
constinit Patience g_patience;

template <typename T>
T load(const uint8_t* at) {
  T value;
  memcpy(&value, at, sizeof value);
  return value;
}

// Length of the text at `pointer`, at most `most`; false if the memory is not readable. The pointer comes from a record
// whose layout is another library's: a surprise there must not end the program.
bool measure_text(uint64_t pointer, size_t most, size_t& length) {
  constexpr uint64_t kPage = 4096;
  const auto* const text = reinterpret_cast<const char*>(pointer);
  for (length = 0; length < most;) {
    char byte;
    iovec from{const_cast<char*>(text + length), 1}, to{&byte, 1};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1 && errno == EFAULT) return false;
    const uint64_t rest = kPage - (pointer + length) % kPage;
    const size_t here = rest < most - length ? rest : most - length;
    const size_t found = strnlen(text + length, here);
    length += found;
    if (found < here) return true;
  }
  return true;
}

void see_text(uint64_t pointer) {
  if (pointer == 0 || !g_texts.insert(pointer)) return;
  size_t length;
  if (measure_text(pointer, 60'000, length))
    tape::define_name(kBlocks, event::NameSpace::kKernel, pointer, {reinterpret_cast<const char*>(pointer), length});
}

void see_callback(int domain, uint32_t id) {
  const bool driver = domain == abi::domain::kDriver;
  if (id < 64 * 64) {
    const uint64_t bit = 1ull << (id % 64);
    std::atomic<uint64_t>& word = g_callbacks[driver][id / 64];
    if ((word.load(std::memory_order_relaxed) & bit) != 0) return;
    if ((word.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  }
  const char* name = nullptr;
  if (g_cupti->get_callback_name(domain, id, &name) != abi::kSuccess || name == nullptr) return;
  tape::define_name(kBlocks, driver ? event::NameSpace::kDriverFunction : event::NameSpace::kRuntimeFunction, id, name);
}

// Size of records of `kind`, asked from the library's iterator; 0 = it does not know the kind. On a record of zeros
// alone in a buffer the iterator reports the end as long as the buffer ends within or with the record, and an invalid
// record after.
uint32_t learn_size(uint32_t kind) {
  constexpr size_t kMost = 512;
  alignas(8) uint8_t probe[kMost + 64] = {};
  memcpy(probe, &kind, sizeof kind);
  size_t size = 0;
  for (size_t length = 8; length <= kMost; length += 8) {
    void* next = probe;
    if (g_cupti->next_record(probe, length, &next) != abi::kMaxLimitReached) break;
    size = length;
  }
  return size == kMost ? 0 : static_cast<uint32_t>(size);
}

// Calls see(record, kind, size) for the records of `buffer` from `offset` on; returns where it ended.
template <typename See>
size_t walk(uint8_t* buffer, size_t valid, size_t offset, See see) {
  while (offset + 8 <= valid) {
    const uint8_t* const at = buffer + offset;
    const uint32_t kind = load<uint32_t>(at) & ~abi::kIncomplete;
    if (kind == 0) break;
    const uint32_t size = kind < abi::kKinds ? g_sizes[kind] : 0;
    if (size == 0 || offset + size > valid || !see(at, kind, size)) break;
    offset += size;
  }
  return offset;
}

// The pointer to a text in a record, 0 when its kind has none.
uint64_t text_of(const uint8_t* record, uint32_t kind, uint32_t size) {
  switch (kind) {
    case abi::kind::kSerialKernel:
    case abi::kind::kKernel:
      return load<uint64_t>(record + abi::kernel::name.offset);
    case abi::kind::kMemory2:
      return load<uint64_t>(record + abi::memory::name.offset);
    case abi::kind::kName:
      return load<uint64_t>(record + abi::name::text.offset);
    case abi::kind::kDevice:
      return abi::device::name.in(size) ? load<uint64_t>(record + abi::device::name.offset) : 0;
    default:
      return 0;
  }
}

void see_record(const uint8_t* record, uint32_t kind, uint64_t text) {
  if (kind == abi::kind::kRuntime)
    see_callback(abi::domain::kRuntime, load<uint32_t>(record + abi::api::callback.offset));
  else if (kind == abi::kind::kDriver)
    see_callback(abi::domain::kDriver, load<uint32_t>(record + abi::api::callback.offset));
  else
    see_text(text);
}

// The number of a call of the function that newest_call() seeks; 0: the record is none.
uint32_t sought_call(const uint8_t* record, uint32_t kind) {
  if (kind != abi::kind::kDriver) return 0;
  const uint32_t function = g_function_sought.load(std::memory_order_relaxed);
  if (function == 0 || load<uint32_t>(record + abi::api::callback.offset) != function) return 0;
  return load<uint32_t>(record + abi::api::correlation.offset);
}

void tell_launches(uint8_t* buffer, size_t valid) {
  const auto see = g_see_launch.load(std::memory_order_acquire);
  if (see == nullptr) return;
  walk(buffer, valid, 0, [see](const uint8_t* record, uint32_t kind, uint32_t size) {
    const bool kernel = kind == abi::kind::kKernel || kind == abi::kind::kSerialKernel;
    const bool of_graph =
        kernel && abi::kernel::graph_node.in(size) && load<uint64_t>(record + abi::kernel::graph_node.offset) != 0;
    if (kernel && !of_graph) see(load<uint32_t>(record + abi::kernel::correlation.offset));
    return true;
  });
}

// 0 = none. Numbers begin anew behind 2^32.
uint32_t later_call(uint32_t a, uint32_t b) {
  return a == 0 || (b != 0 && static_cast<int32_t>(b - a) > 0) ? b : a;
}

}  // namespace

void setup_buffers(const Cupti& cupti, uint32_t version, uint32_t blocks) {
  g_cupti = &cupti;
  g_version = version;
  g_blocks = blocks;
  struct {
    event::BlockSizesRecord head{};
    event::BlockSize sizes[abi::kKinds];
  } record{};
  uint64_t& count = record.head.count;
  for (uint32_t kind = 1; kind < abi::kKinds; ++kind) {
    g_sizes[kind] = static_cast<uint16_t>(learn_size(kind));
    if (g_sizes[kind] != 0) record.sizes[count++] = {static_cast<uint16_t>(kind), g_sizes[kind]};
  }
  const size_t bytes = (sizeof record.head + count * sizeof(event::BlockSize) + 7) & ~size_t{7};
  record.head.header = {event::RecordKind::kBlockSizes, static_cast<uint8_t>(kBlocks), static_cast<uint16_t>(bytes), 0};
  tape::define(&record.head.header);
}

void buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  // Many threads, each with its own buffers, share the pool: use smaller buffers.
  constexpr uint32_t kFewBuffers = 32;
  uint32_t blocks = g_open_end.load(std::memory_order_relaxed) > kFewBuffers ? 1 : g_blocks;
  tape::PoolHeader* const pool = tape::pool();
  tape::BlockHeader* extent;
  for (;;) {
    const uint32_t backed = pool->populated_blocks.load(std::memory_order_acquire);
    extent = tape::open_extent(kBlocks, blocks, g_version);
    if (extent != nullptr) break;
    if (blocks > 1) {
      blocks /= 2;
      continue;
    }
    // Without a buffer CUPTI drops records. If the pool can still grow, some milliseconds help.
    if (!tape::can_grow()) break;
    const int64_t wait = g_patience.next();
    if (wait == 0) break;
    tape::wait_for_growth(backed, wait);
  }
  *max_records = 0;
  if (extent == nullptr) {  // CUPTI drops the records and counts them
    g_refused.store(true, std::memory_order_relaxed);
    *buffer = nullptr;
    *size = 0;
    return;
  }
  // If the process dies before CUPTI clears the buffer, its old contents must not be mistaken for records.
  memset(tape::payload(extent), 0, sizeof(uint64_t));
  remember(extent);
  *buffer = reinterpret_cast<uint8_t*>(tape::payload(extent));
  *size = static_cast<size_t>(blocks) * tape::kBlockSize - sizeof(tape::BlockHeader);
}

void buffer_completed(abi::Context, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  if (buffer == nullptr) return;
  const auto* const pool = reinterpret_cast<const uint8_t*>(tape::pool());
  if (buffer < pool || buffer >= pool + tape::pool_bytes()) return;  // another client's, requested before we took over
  auto* const extent = reinterpret_cast<tape::BlockHeader*>(buffer - sizeof(tape::BlockHeader));
  tell_launches(buffer, valid);
  walk(buffer, valid, 0, [](const uint8_t* record, uint32_t kind, uint32_t size) {
    see_record(record, kind, text_of(record, kind, size));
    if (kind == abi::kind::kKernel && abi::kernel::graph_node.in(size) &&
        load<uint64_t>(record + abi::kernel::graph_node.offset) != 0)
      g_graph_kernels.store(true, std::memory_order_relaxed);
    if (const uint32_t call = sought_call(record, kind); call != 0) g_call_found.store(call, std::memory_order_relaxed);
    return true;
  });
  forget(extent);
  extent->aux = g_last.load(std::memory_order_relaxed) ? 1 : 0;
  tape::close_extent(extent, static_cast<uint32_t>(valid));
  count_dropped_records();
}

namespace {

// What see(record, kind, found) finds in the records of each of CUPTI's open buffers, from 0 on, joined by
// join(all, found). A buffer that CUPTI has given back meanwhile is left out.
template <typename Found, typename See, typename Join>
Found look_into_open(See see, Join join) {
  Found all = 0;
  const uint32_t end = g_open_end.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < end; ++i) {
    tape::BlockHeader* const extent = g_open[i].extent.load(std::memory_order_acquire);
    if (extent == nullptr) continue;
    Found here = 0;
    walk(reinterpret_cast<uint8_t*>(tape::payload(extent)), capacity_of(extent), 0,
         [&](const uint8_t* record, uint32_t kind, uint32_t) {
           see(record, kind, here);
           return true;
         });
    std::atomic_thread_fence(std::memory_order_acquire);
    if (g_open[i].extent.load(std::memory_order_relaxed) == extent) all = join(all, here);
  }
  return all;
}

// Records in them that are incomplete and that counts(record, kind) wants.
template <typename Counts>
uint64_t count_incomplete(Counts counts) {
  return look_into_open<uint64_t>(
      [&](const uint8_t* record, uint32_t kind, uint64_t& here) {
        here += (load<uint32_t>(record) & abi::kIncomplete) != 0 && counts(record, kind);
      },
      [](uint64_t all, uint64_t here) { return all + here; });
}

}  // namespace

uint64_t incomplete_records() {
  return count_incomplete([](const uint8_t*, uint32_t) { return true; });
}

uint64_t incomplete_records_before(uint32_t call) {
  return count_incomplete([&](const uint8_t* record, uint32_t kind) {
    const bool kernel = kind == abi::kind::kKernel || kind == abi::kind::kSerialKernel;
    if (!kernel && kind != abi::kind::kCopy) return false;
    const uint32_t number =
        load<uint32_t>(record + (kernel ? abi::kernel::correlation : abi::copy::correlation).offset);
    return static_cast<int32_t>(number - call) < 0;
  });
}

void watch_launches(void (*see)(uint32_t number)) {
  g_see_launch.store(see, std::memory_order_release);
}

uint32_t newest_call(uint32_t driver_function) {
  if (g_function_sought.exchange(driver_function, std::memory_order_relaxed) != driver_function)
    g_call_found.store(0, std::memory_order_relaxed);
  const auto newest = look_into_open<uint32_t>(
      [](const uint8_t* record, uint32_t kind, uint32_t& here) {
        if (const uint32_t call = sought_call(record, kind); call != 0) here = call;
      },
      later_call);
  return later_call(newest, g_call_found.exchange(0, std::memory_order_relaxed));
}

bool holds_buffers() {
  const uint32_t end = g_open_end.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < end; ++i)
    if (g_open[i].extent.load(std::memory_order_acquire) != nullptr) return true;
  return false;
}

void look_for_names() {
  const uint32_t end = g_open_end.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < end; ++i) {
    OpenBuffer& open = g_open[i];
    tape::BlockHeader* const extent = open.extent.load(std::memory_order_acquire);
    if (extent == nullptr) continue;
    const uint64_t sequence = extent->sequence;
    const uint32_t from = open.scanned.load(std::memory_order_relaxed);
    const size_t to = walk(reinterpret_cast<uint8_t*>(tape::payload(extent)), capacity_of(extent), from,
                           [&](const uint8_t* record, uint32_t kind, uint32_t size) {
                             const uint64_t text = text_of(record, kind, size);
                             const bool wants_text = kind == abi::kind::kKernel || kind == abi::kind::kSerialKernel;
                             if (wants_text && text == 0) return false;  // not written yet
                             std::atomic_thread_fence(std::memory_order_acquire);
                             if (open.extent.load(std::memory_order_relaxed) != extent || extent->sequence != sequence)
                               return false;
                             see_record(record, kind, text);
                             return true;
                           });
    std::atomic_thread_fence(std::memory_order_acquire);
    if (open.extent.load(std::memory_order_relaxed) == extent && extent->sequence == sequence)
      open.scanned.store(static_cast<uint32_t>(to), std::memory_order_relaxed);
  }
}

void forget_buffers() {
  watch_launches(nullptr);
  g_texts.clear();
  for (auto& domain : g_callbacks)
    for (std::atomic<uint64_t>& word : domain) word.store(0, std::memory_order_relaxed);
  for (OpenBuffer& open : g_open) open.extent.store(nullptr, std::memory_order_relaxed);
  g_open_end.store(0, std::memory_order_relaxed);
  g_last.store(false, std::memory_order_relaxed);
  g_refused.store(false, std::memory_order_relaxed);
  g_patience.renew();
  g_graph_kernels.store(false, std::memory_order_relaxed);
}

bool saw_graph_kernels() {
  return g_graph_kernels.load(std::memory_order_relaxed);
}

void mark_last_buffers() {
  g_last.store(true, std::memory_order_relaxed);
}

void count_dropped_records() {
  size_t dropped = 0;
  if (g_cupti->dropped_records(nullptr, 0, &dropped) == abi::kSuccess && dropped != 0)
    tape::loss(event::Table::kFactEnd,
               g_refused.load(std::memory_order_relaxed) ? event::LossReason::kPoolFull : event::LossReason::kVendor,
               dropped);
}

}  // namespace tacho::capture::cuda
