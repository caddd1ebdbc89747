// Packet processors (driver.h): one thread a queue. A compute queue takes AQL packets (HSA specification, 2.9), a copy
// engine SDMA packets (as ROCr writes them for GFX9).
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <time.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "driver.h"

namespace kfd {
namespace {

constexpr uint64_t kTickNs = 1'000'000'000 / kGpuClockHz;

void pause_ns(long ns) {
  const timespec moment{ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&moment, nullptr);
}

// An HSA signal as AMD's runtime lays it out (amd_hsa_signal.h).
struct Signal {
  int64_t kind;
  std::atomic<int64_t> value;
  uint64_t mailbox;
  uint32_t event, reserved;
  uint64_t start, end;
};

void complete(uint64_t handle, uint64_t start, uint64_t end) {
  if (handle == 0) return;
  auto* const signal = memory().host<Signal>(handle);
  signal->start = start;
  signal->end = end;
  const uint64_t mailbox = signal->mailbox;
  const uint32_t event = signal->event;
  signal->value.fetch_sub(1, std::memory_order_acq_rel);  // from here on the program may free it
  if (mailbox == 0) return;
  __atomic_store_n(memory().host<uint64_t>(mailbox), event, __ATOMIC_RELEASE);
  set_event(event);
}

int64_t value_of(uint64_t handle) {
  return memory().host<Signal>(handle)->value.load(std::memory_order_acquire);
}

namespace packet {
constexpr uint8_t kVendor = 0, kInvalid = 1, kDispatch = 2, kBarrierAnd = 3, kAgent = 4, kBarrierOr = 5;
}

// A kernel without a host version takes as long as its size says, the same every time.
uint64_t duration_ns(const Dispatch& dispatch) {
  const uint64_t items =
      static_cast<uint64_t>(dispatch.grid_x) * std::max(dispatch.grid_y, 1u) * std::max(dispatch.grid_z, 1u);
  return std::min<uint64_t>(2000 + items / 16, 50'000'000);
}

Work work_of(const Dispatch& dispatch) {
  const auto groups = [](uint32_t items, uint32_t group) {
    return uint64_t{std::max(items, 1u) + std::max(group, 1u) - 1} / std::max(group, 1u);
  };
  const uint64_t in_group = uint64_t{std::max<uint32_t>(dispatch.group_x, 1)} *
                            std::max<uint32_t>(dispatch.group_y, 1) * std::max<uint32_t>(dispatch.group_z, 1);
  return {uint64_t{std::max(dispatch.grid_x, 1u)} * std::max(dispatch.grid_y, 1u) * std::max(dispatch.grid_z, 1u),
          groups(dispatch.grid_x, dispatch.group_x) * groups(dispatch.grid_y, dispatch.group_y) *
              groups(dispatch.grid_z, dispatch.group_z),
          (in_group + 63) / 64, duration_ns(dispatch)};
}

// False when the queue ends while the kernel runs.
bool run_dispatch(Queue& queue, const Dispatch& dispatch, uint64_t longer) {
  const std::string name = kernel_name(dispatch.kernel_object);
  const uint64_t start = gpu_clock();
  for (const uint64_t until = start + longer / kTickNs; gpu_clock() < until; pause_ns(1'000'000))
    if (queue.stop) return false;
  const bool on_host = run_on_host(name, dispatch, memory().host(dispatch.arguments));
  if (!on_host) {
    const uint64_t until = start + duration_ns(dispatch) / kTickNs;
    while (gpu_clock() < until) {
    }
  }
  const uint64_t end = gpu_clock();
  count(queue, work_of(dispatch));
  log("kernel %u %u %s %u %u %u %u %u %u %u %u %llu %llu %s", queue.gpu, queue.id, name.empty() ? "?" : name.c_str(),
      dispatch.grid_x, dispatch.grid_y, dispatch.grid_z, dispatch.group_x, dispatch.group_y, dispatch.group_z,
      dispatch.group_bytes, dispatch.private_bytes, static_cast<unsigned long long>(start * kTickNs),
      static_cast<unsigned long long>(end * kTickNs), on_host ? "host" : "timed");
  complete(dispatch.signal, start, end);
  return true;
}

// Waits until the barrier's signals allow; false when the queue ends first.
bool wait_barrier(Queue& queue, const uint64_t* signals, bool all) {
  for (;;) {
    bool any = false, open = false, some = false;
    for (int at = 0; at < 5; ++at) {
      if (signals[at] == 0) continue;
      some = true;
      (value_of(signals[at]) == 0 ? any : open) = true;
    }
    if (!some || (all ? !open : any)) return true;
    if (queue.stop) return false;
    pause_ns(5'000);
  }
}

// AMD's packet that waits for a signal's value (hsa_amd_barrier_value_packet_t). False when the queue ends first.
struct BarrierValue {
  uint32_t header, reserved0;
  uint64_t signal;
  int64_t value, mask;
  uint32_t condition, reserved1;
  uint64_t reserved2, reserved3, completion;
};
static_assert(sizeof(BarrierValue) == sizeof(Dispatch));
bool wait_value(Queue& queue, const BarrierValue& barrier) {
  const auto holds = [&](int64_t value) {
    switch (barrier.condition) {
      case 0:
        return value == barrier.value;
      case 1:
        return value != barrier.value;
      case 2:
        return value < barrier.value;
      default:
        return value >= barrier.value;
    }
  };
  while (barrier.signal != 0 && !holds(value_of(barrier.signal) & barrier.mask)) {
    if (queue.stop) return false;
    pause_ns(5'000);
  }
  return true;
}

void process_aql(Queue& queue) {
  const uint64_t slots = queue.bytes / sizeof(Dispatch);
  uint64_t at = __atomic_load_n(queue.read, __ATOMIC_RELAXED);
  while (!queue.stop) {
    if (at >= __atomic_load_n(queue.write, __ATOMIC_ACQUIRE)) {
      pause_ns(20'000);
      continue;
    }
    auto* const slot = reinterpret_cast<Dispatch*>(queue.ring + at % slots * sizeof(Dispatch));
    uint8_t type = packet::kInvalid;
    while ((type = static_cast<uint8_t>(__atomic_load_n(&slot->header, __ATOMIC_ACQUIRE))) == packet::kInvalid) {
      if (queue.stop) return;
      pause_ns(5'000);
    }
    const Dispatch packet = *slot;
    const uint64_t start = gpu_clock();
    uint64_t longer = 0;
    if (fault::dead() || (type == packet::kDispatch && fault::strikes(queue, longer))) {
      while (!queue.stop) pause_ns(100'000);
      return;
    }
    if (type == packet::kDispatch) {
      if (!run_dispatch(queue, packet, longer)) return;
    } else if (type == packet::kBarrierAnd || type == packet::kBarrierOr) {
      uint64_t signals[5];
      memcpy(signals, reinterpret_cast<const std::byte*>(&packet) + 8, sizeof signals);
      if (!wait_barrier(queue, signals, type == packet::kBarrierAnd)) return;
      const uint64_t end = gpu_clock();
      log("barrier %u %u %llu %llu", queue.gpu, queue.id, static_cast<unsigned long long>(start * kTickNs),
          static_cast<unsigned long long>(end * kTickNs));
      complete(packet.signal, start, end);
    } else {
      uint32_t words[5];  // a vendor's packet of format 1 holds one command: a command buffer
      memcpy(words, &packet, sizeof words);
      if (type == packet::kVendor && packet.setup == 2) {
        BarrierValue barrier;
        memcpy(&barrier, &packet, sizeof barrier);
        if (!wait_value(queue, barrier)) return;
      } else if (type == packet::kVendor && packet.setup == 1) {
        if ((words[1] >> 8 & 0xff) == 0x3f)
          run_commands(queue, words[2] | static_cast<uint64_t>(words[3] & 0xffff) << 32, words[4] & 0xfffff);
        else
          log("unknown command %x in a packet", words[1]);
      }
      complete(packet.signal, start, gpu_clock());
    }
    __atomic_store_n(&slot->header, static_cast<uint16_t>(packet::kInvalid), __ATOMIC_RELEASE);
    __atomic_store_n(queue.read, ++at, __ATOMIC_RELEASE);
  }
}

// Copy engines

namespace sdma {
constexpr unsigned kNop = 0, kCopy = 1, kFence = 5, kTrap = 6, kPoll = 8, kAtomic = 10, kFill = 11, kTimestamp = 13,
                   kRegister = 14, kCacheFlush = 17;
}

uint64_t address(const uint32_t* words) {
  return words[0] | static_cast<uint64_t>(words[1]) << 32;
}

bool compare(unsigned how, uint32_t value, uint32_t reference) {
  switch (how) {
    case 1:
      return value < reference;
    case 2:
      return value <= reference;
    case 3:
      return value == reference;
    case 4:
      return value != reference;
    case 5:
      return value >= reference;
    case 6:
      return value > reference;
    default:
      return true;
  }
}

// Processes the packet in `words` and returns its length in words; 0 when the queue ends.
unsigned process_sdma_packet(Queue& queue, const uint32_t* words) {
  const unsigned operation = words[0] & 0xff, variant = words[0] >> 8 & 0xff;
  const uint64_t start = gpu_clock();
  const auto note = [&](const char* what, uint64_t bytes) {
    log("%s %u %u %llu %llu %llu", what, queue.gpu, queue.id, static_cast<unsigned long long>(bytes),
        static_cast<unsigned long long>(start * kTickNs), static_cast<unsigned long long>(gpu_clock() * kTickNs));
  };
  switch (operation) {
    case sdma::kNop:
      return 1 + (words[0] >> 16 & 0x3fff);
    case sdma::kCopy: {
      if (variant != 0) {  // rectangles: ROCr's packet of 13 words; not imitated
        log("unknown copy variant %u", variant);
        return 13;
      }
      const uint64_t bytes = (words[1] & 0x3fffffff) + 1ull;
      memcpy(memory().host(address(words + 5)), memory().host(address(words + 3)), bytes);
      note("copy", bytes);
      return 7;
    }
    case sdma::kFence:
      __atomic_store_n(memory().host<uint32_t>(address(words + 1)), words[3], __ATOMIC_RELEASE);
      return 4;
    case sdma::kTrap:
      set_event(words[1] & 0xfffffff);
      return 2;
    case sdma::kPoll:
      if (words[0] >> 31 != 0) {  // memory, not a register
        auto* const at = memory().host<uint32_t>(address(words + 1));
        while (!compare(words[0] >> 28 & 7, __atomic_load_n(at, __ATOMIC_ACQUIRE) & words[4], words[3])) {
          if (queue.stop) return 0;
          pause_ns(5'000);
        }
      }
      return 6;
    case sdma::kAtomic:
      __atomic_fetch_add(memory().host<uint64_t>(address(words + 1)), address(words + 3), __ATOMIC_ACQ_REL);
      return 8;
    case sdma::kFill: {
      const uint64_t bytes = (words[4] & 0x3fffff) + 4ull;
      auto* const at = memory().host<uint32_t>(address(words + 1));
      for (uint64_t word = 0; word < bytes / 4; ++word) at[word] = words[3];
      note("fill", bytes);
      return 5;
    }
    case sdma::kTimestamp:
      __atomic_store_n(memory().host<uint64_t>(address(words + 1)), gpu_clock(), __ATOMIC_RELEASE);
      return 3;
    case sdma::kRegister:
      return 6;
    case sdma::kCacheFlush:
      return 5;
    default:
      log("unknown sdma %u", operation);
      return 1;
  }
}

void process_sdma(Queue& queue) {
  uint64_t at = __atomic_load_n(queue.read, __ATOMIC_RELAXED);
  while (!queue.stop) {
    if (at >= __atomic_load_n(queue.write, __ATOMIC_ACQUIRE)) {
      pause_ns(20'000);
      continue;
    }
    if (fault::dead()) {
      pause_ns(100'000);
      continue;
    }
    uint32_t words[16];
    for (uint64_t word = 0; word < 16; ++word)
      memcpy(words + word, queue.ring + (at + 4 * word) % queue.bytes, sizeof *words);
    const unsigned length = process_sdma_packet(queue, words);
    if (length == 0) return;
    at += 4ull * length;
    __atomic_store_n(queue.read, at, __ATOMIC_RELEASE);
  }
}

void* run(void* given) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  auto& queue = *static_cast<Queue*>(given);
  queue.copies ? process_sdma(queue) : process_aql(queue);
  return nullptr;
}

}  // namespace

void start(Queue& queue) {
  // The next pthread_create, not the one a profiler interposes: these threads are the GPU, not the program's.
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (create(&queue.thread, nullptr, run, &queue) != 0) abort();
}

void end(Queue& queue) {
  queue.stop = true;
  pthread_join(queue.thread, nullptr);
}

}  // namespace kfd
