// The imitated kernel driver, shared by its files: memory that "GPU" and process share, events, and the queues'
// threads.
//
//   device.cpp   what the preloaded library interposes: opening /dev/kfd and render nodes, ioctl, four functions of libdrm
//   driver.cpp   the driver's calls (ioctl): memory, events, queues, clocks
//   packets.cpp  packet processors: compute queues (AQL) and copy engines (SDMA), each queue on a thread of its own
//   pm4.cpp      hardware counters: command buffers (PM4) of AMD's aqlprofile, and the values that they read
//   kernels.cpp  which kernel a dispatch runs (from the loader's list of code objects) and the program's host version of it
//   faults.cpp   what goes wrong on demand (TACHO_KFD_FAULT)
//   ledger.cpp   what the bed did, one line a packet, for tests to compare with
//
// One memory file holds all memory of the GPUs. A buffer's address on the GPU is its address in the process, except for
// the process's own pages that it pins (USERPTR), which Memory::host translates.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kfd {

/// The GPU's clock: 100 MHz, in step with CLOCK_MONOTONIC_RAW.
uint64_t gpu_clock();
inline constexpr uint64_t kGpuClockHz = 100'000'000;

struct Gpu {
  uint32_t id = 0;            // the driver's, from the topology
  uint32_t node = 0;          // number of the topology's node
  uint32_t render_minor = 0;  // of its render node
};
/// As the topology under /sys/class/kfd says.
const std::vector<Gpu>& gpus();

class Memory {
 public:
  /// A new descriptor of the memory file; maps of it are maps of the GPU's memory.
  int descriptor();
  /// Takes `size` bytes of the file and returns their offset.
  uint64_t reserve(uint64_t size, uint64_t alignment);
  void release(uint64_t offset, uint64_t size);
  /// Maps part of the file at a fixed address.
  bool map(uint64_t address, uint64_t size, uint64_t offset);
  void pin(uint64_t address, uint64_t size, uint64_t host);
  void unpin(uint64_t address);
  /// Where the GPU's `address` lies in this process.
  template <typename T = void>
  T* host(uint64_t address) {
    return reinterpret_cast<T*>(translate(address));
  }

 private:
  uint64_t translate(uint64_t address);
  struct Pinned {
    uint64_t size, host;
  };
  std::mutex mutex_;
  int file_ = -1;
  uint64_t size_ = 0;
  std::map<uint64_t, Pinned> pinned_;  // by address on the GPU
};
Memory& memory();

/// Sets an event, as an interrupt of the GPU does.
void set_event(uint32_t id);

struct Queue {
  uint32_t id = 0;
  uint32_t gpu = 0;  // number of the GPU, from 0
  bool copies = false;
  std::byte* ring = nullptr;
  uint64_t bytes = 0;
  uint64_t *read = nullptr, *write = nullptr;  // AQL: packets, SDMA: bytes
  std::byte* saved = nullptr;                  // where its waves are saved (struct kfd_context_save_area_header)
  std::atomic<bool> stop{false};
  pthread_t thread{};
};
/// Start and end the thread that processes a queue's packets.
void start(Queue& queue);
void end(Queue& queue);

/// A dispatch packet, as in the HSA specification.
struct Dispatch {
  uint16_t header, setup, group_x, group_y, group_z, reserved0;
  uint32_t grid_x, grid_y, grid_z, private_bytes, group_bytes;
  uint64_t kernel_object, arguments, reserved2, signal;
};
static_assert(sizeof(Dispatch) == 64);

/// A dispatch's work, as the counters see it.
struct Work {
  uint64_t items, groups, waves_per_group;
  uint64_t nanoseconds;  // as its size says, the same every time
};
/// Adds a dispatch to the counters of the queue's GPU, if they count.
void count(const Queue& queue, const Work& work);
/// Runs a command buffer (PM4) at the GPU's `address`, which a vendor's packet names.
void run_commands(Queue& queue, uint64_t address, uint32_t words);

/// Name of the kernel at `object`; empty when no code object has one there.
std::string kernel_name(uint64_t object);
/// Runs the program's host version of the kernel, if it has one, or a copy of ROCr's own. Else false.
bool run_on_host(const std::string& name, const Dispatch& dispatch, void* arguments);

/// Faults on demand: TACHO_KFD_FAULT is a list of words separated by commas.
namespace fault {
/// permission: /dev/kfd and the render nodes may not be opened (EACCES); absent: they are not there (ENOENT), as in a
/// container that got no devices. 0 = neither.
int refuses_open();
/// out-of-memory@N: allocations of GPU memory beyond N MiB fail. Counts `bytes` and returns whether they fit;
/// give_memory() takes them back, memory_left() returns the rest (60 GiB without that word).
bool has_memory(uint64_t bytes);
void give_memory(uint64_t bytes);
uint64_t memory_left();
/// KIND@N strikes the process's N-th dispatch, from 1: queue-error (a packet that cannot be read), memory-fault (a page
/// that is not there), reset (the GPU is reset), hang (the kernel never ends). True when the queue processes nothing
/// from here on. long@N:MS makes the N-th dispatch take MS milliseconds longer, which come as nanoseconds in `longer`.
bool strikes(const Queue& queue, uint64_t& longer);
/// True once the GPU has been reset: no queue processes anything.
bool dead();
}  // namespace fault

/// Sets the process's events of `type` (KFD_IOC_EVENT_MEMORY, KFD_IOC_EVENT_HW_EXCEPTION), with the data for a waiting
/// thread.
struct Exception {
  uint32_t gpu_id;
  uint64_t address;
};
void raise(uint32_t type, const Exception& exception);

/// Adds a line to the ledger (TACHO_KFD_LEDGER), if there is one.
void log(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// One call of the driver. Returns 0, or -1 with errno set.
int call(unsigned number, void* argument);

}  // namespace kfd
