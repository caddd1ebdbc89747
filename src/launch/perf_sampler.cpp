// The kernel's sampling events and their ring buffers (perf_sampler.h).
#include "launch/perf_sampler.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <fstream>
#include <utility>

#include "base/format.h"

namespace tacho::launch {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kDataPages = 512;  // per CPU, a power of two
constexpr size_t kRingBytes = (kDataPages + 1) * kPage;

// Registers in the kernel's order (asm/perf_regs.h): ax bx cx dx si di bp sp ip, r8 to r15. The DWARF number of each.
constexpr uint64_t kRegisterMask = 0x1ff | 0xff0000;
constexpr int kDwarf[17] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};

std::string paranoid() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  std::string level;
  std::getline(file, level);
  return level;
}

}  // namespace

Result<std::unique_ptr<PerfSampler>> PerfSampler::open(pid_t target, uint32_t hz, uint32_t stack_bytes) {
  auto self = std::unique_ptr<PerfSampler>(new PerfSampler);
  self->period_ = 1'000'000'000 / std::max<uint32_t>(hz, 1);
  self->stack_bytes_ = std::min<uint32_t>(stack_bytes & ~7u, 57344);
  perf_event_attr event{};
  event.size = sizeof event;
  event.type = PERF_TYPE_SOFTWARE;
  event.config = PERF_COUNT_SW_CPU_CLOCK;
  event.sample_period = self->period_;
  event.sample_type =
      PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  event.sample_regs_user = kRegisterMask;
  event.sample_stack_user = self->stack_bytes_;
  event.disabled = event.enable_on_exec = event.inherit = event.inherit_stat = 1;
  event.mmap = event.mmap2 = event.comm = event.comm_exec = event.task = event.sample_id_all = 1;
  event.exclude_hv = event.exclude_guest = 1;
  event.use_clockid = 1;
  event.clockid = CLOCK_MONOTONIC_RAW;
  event.watermark = 1;
  event.wakeup_watermark = kDataPages * kPage / 4;
  const long cpus = sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < cpus; ++cpu) {
    const auto try_open = [&] {
      return static_cast<int>(syscall(SYS_perf_event_open, &event, target, cpu, -1, PERF_FLAG_FD_CLOEXEC));
    };
    int file = try_open();
    if (file < 0 && (errno == EACCES || errno == EPERM) && event.exclude_kernel == 0) {
      event.exclude_kernel = event.exclude_callchain_kernel = 1;
      self->kernel_time_ = false;
      file = try_open();
    }
    if (file < 0 && errno == ENODEV) continue;  // a CPU that is off
    if (file < 0) {
      const int error = errno;
      if (error == EACCES || error == EPERM)
        return fail(
            "the kernel does not permit sampling from outside (perf_event_open: {}; kernel.perf_event_paranoid is {}): "
            "sysctl kernel.perf_event_paranoid=2, a container that allows the call, or --sampler timer",
            strerror(error), paranoid());
      return fail("the kernel cannot sample from outside (perf_event_open: {}): use --sampler timer", strerror(error));
    }
    void* const memory = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
      const int error = errno;
      close(file);
      return fail("no memory for sampling from outside ({}): raise ulimit -l or "
                  "kernel.perf_event_mlock_kb, or use --sampler timer",
                  strerror(error));
    }
    self->rings_.push_back({file, memory});
  }
  if (self->rings_.empty()) return fail("the kernel gives no sampling event on any CPU: use --sampler timer");
  return self;
}

PerfSampler::~PerfSampler() {
  for (const Ring& ring : rings_) {
    munmap(ring.memory, kRingBytes);
    close(ring.file);
  }
}

// Threads whose end an earlier call has seen. One that lived for less than a period has no sample at all.
void PerfSampler::tell_rests(decode::OutsideStacks& stacks, const std::function<bool(int64_t time)>& wanted) {
  for (auto at = threads_.begin(); at != threads_.end();) {
    Thread& thread = at->second;
    if (thread.ended == 0 || !std::exchange(thread.told, true)) {
      ++at;
      continue;
    }
    if (thread.counted > thread.sampled && wanted(thread.ended))
      stacks.rest(thread.pid, at->first, thread.ended, thread.counted - thread.sampled);
    at = threads_.erase(at);
  }
}

// All records that the kernel has written into the rings, in order of time.
std::vector<PerfSampler::Record> PerfSampler::take() {
  std::vector<Record> records;
  for (const Ring& ring : rings_) {
    auto* const page = static_cast<perf_event_mmap_page*>(ring.memory);
    const std::byte* const data = static_cast<const std::byte*>(ring.memory) + kPage;
    constexpr uint64_t kSize = kDataPages * kPage;
    const uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
    uint64_t tail = page->data_tail;
    const auto copy = [&](uint64_t from, std::byte* to, size_t size) {
      const size_t first = std::min<size_t>(size, kSize - from % kSize);
      memcpy(to, data + from % kSize, first);
      memcpy(to + first, data, size - first);
    };
    while (head - tail >= sizeof(perf_event_header)) {
      perf_event_header header;
      copy(tail, reinterpret_cast<std::byte*>(&header), sizeof header);
      if (header.size < sizeof header || header.size > head - tail) break;
      Record record{0, records.size(), std::vector<std::byte>(header.size)};
      copy(tail, record.bytes.data(), header.size);
      tail += header.size;
      // Time: in a sample after pid and tid; in others near the end (tid, then time).
      const size_t at = header.type == PERF_RECORD_SAMPLE ? 16 : header.size >= 8 ? header.size - 8u : 0;
      if (at + 8 <= header.size) memcpy(&record.time, record.bytes.data() + at, 8);
      records.push_back(std::move(record));
    }
    std::atomic_ref(page->data_tail).store(tail, std::memory_order_release);
  }
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.time != b.time ? a.time < b.time : a.order < b.order; });
  return records;
}

uint64_t PerfSampler::read(decode::OutsideStacks& stacks, const std::function<bool(int64_t time)>& wanted) {
  uint64_t lost = 0;
  for (const Record& record : take()) {
    perf_event_header header;
    memcpy(&header, record.bytes.data(), sizeof header);
    const std::byte* const body = record.bytes.data() + sizeof header;
    const size_t size = record.bytes.size() - sizeof header;
    const auto word = [&](size_t at) {
      uint64_t value = 0;
      if (at + 8 <= size) memcpy(&value, body + at, 8);
      return value;
    };
    const auto half = [&](size_t at) {
      uint32_t value = 0;
      if (at + 4 <= size) memcpy(&value, body + at, 4);
      return value;
    };
    const auto text = [&](size_t at) {
      const char* const begin = reinterpret_cast<const char*>(body + std::min(at, size));
      return std::string_view(begin, strnlen(begin, size - std::min(at, size)));
    };
    switch (header.type) {
      case PERF_RECORD_SAMPLE: {
        // pid, tid | time | period | abi, registers[17] | size, stack, dynamic size
        decode::OutsideSample sample;
        sample.pid = half(0);
        sample.tid = half(4);
        sample.time = static_cast<int64_t>(word(8));
        if (word(24) == 0) break;  // no registers: the thread was ending
        threads_[sample.tid].sampled += period_;
        if (!wanted(sample.time)) break;
        sample.period = period_;
        size_t at = 32;
        for (const int number : kDwarf) {
          sample.registers[number] = word(at);
          at += 8;
        }
        const uint64_t room = word(at);
        at += 8;
        if (room > size || at + room + 8 > size) break;
        const uint64_t there = room != 0 ? std::min(word(at + room), room) : 0;
        sample.stack = std::span(body + at, there);
        sample.stack_begin = sample.registers[7];
        sample.stack_whole = there < room;
        stacks.sample(sample);
        break;
      }
      case PERF_RECORD_MMAP2:
        // pid, tid, address, length, offset, device and inode (24 bytes), protection, flags, path
        stacks.map(half(0), word(8), word(8) + word(16), word(24), text(64), static_cast<int64_t>(record.time));
        break;
      case PERF_RECORD_COMM:
        stacks.name(half(0), text(8), (header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0);
        break;
      case PERF_RECORD_FORK:
        stacks.fork(half(0), half(4));
        break;
      case PERF_RECORD_READ: {
        // pid, tid, the count of an ended thread on this CPU
        Thread& thread = threads_[half(4)];
        thread.pid = half(0);
        thread.counted += word(8);
        thread.ended = static_cast<int64_t>(record.time);
        break;
      }
      case PERF_RECORD_LOST:
        lost += word(8);
        break;
      default:
        break;
    }
  }
  tell_rests(stacks, wanted);
  return lost;
}

}  // namespace tacho::launch
