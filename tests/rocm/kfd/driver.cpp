// The driver's calls (driver.h): memory, events, queues, clocks. The structures are those of linux/kfd_ioctl.h.
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace kfd {
namespace {

uint64_t nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// The interface version of the driver of ROCm 6.2 and later; TACHO_KFD_VERSION=1.N makes it older or newer.
constexpr uint32_t kMinorVersion = 14;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kDoorbellBytes = 8192;

struct Event {
  uint32_t type;
  bool resets_itself;
  bool set = false;
  uint64_t age = 1;
  Exception exception{};
};
struct Buffer {
  uint64_t address, size, offset;
  uint32_t flags;
};

// Destroyed never: queues' threads may outlive the end of the program.
struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint32_t, Event> events;
  std::map<uint64_t, Buffer> buffers;
  std::map<uint32_t, Queue*> queues;
  uint32_t next_event = 1, next_queue = 0;
  uint64_t next_buffer = 1;
  uint64_t doorbells = ~0ull;  // offset in the memory file
};
State& state() {
  static State* const made = new State;
  return *made;
}

int fail(int code) {
  errno = code;
  return -1;
}

uint64_t doorbells(State& all) {
  if (all.doorbells == ~0ull) all.doorbells = memory().reserve(kDoorbellBytes, kDoorbellBytes);
  return all.doorbells;
}

uint32_t number_of(uint32_t gpu_id) {
  uint32_t number = 0;
  for (const Gpu& gpu : gpus()) {
    if (gpu.id == gpu_id) return number;
    ++number;
  }
  return ~0u;
}

int create_queue(kfd_ioctl_create_queue_args& args) {
  State& all = state();
  const uint32_t gpu = number_of(args.gpu_id);
  if (gpu == ~0u) return fail(EINVAL);
  auto* const queue = new Queue;
  std::unique_lock lock(all.mutex);
  queue->id = all.next_queue++;
  queue->gpu = gpu;
  queue->copies = args.queue_type != KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
  queue->ring = memory().host<std::byte>(args.ring_base_address);
  queue->bytes = args.ring_size;
  queue->read = memory().host<uint64_t>(args.read_pointer_address);
  queue->write = memory().host<uint64_t>(args.write_pointer_address);
  args.queue_id = queue->id;
  args.doorbell_offset = doorbells(all) + 8 * (queue->id % (kDoorbellBytes / 8));
  all.queues[queue->id] = queue;
  lock.unlock();
  start(*queue);
  return 0;
}

int destroy_queue(uint32_t id) {
  State& all = state();
  std::unique_lock lock(all.mutex);
  const auto found = all.queues.find(id);
  if (found == all.queues.end()) return fail(EINVAL);
  Queue* const queue = found->second;
  all.queues.erase(found);
  lock.unlock();
  end(*queue);
  delete queue;
  return 0;
}

int create_event(kfd_ioctl_create_event_args& args) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const uint32_t id = all.next_event++;
  all.events[id] = {args.event_type, args.auto_reset != 0};
  args.event_id = args.event_slot_index = args.event_trigger_data = id;
  if (args.event_page_offset == 0) args.event_page_offset = 1;  // 0 would mean that there is no page of events
  return 0;
}

// The driver of 2023 and later puts the age of a signal's event where exceptions have their data.
uint64_t& age_of(kfd_event_data& event) {
  return *reinterpret_cast<uint64_t*>(&event);
}

// The data for a thread that waited for an exception.
void tell(const Event& event, kfd_event_data& data) {
  if (event.type == KFD_IOC_EVENT_MEMORY) {
    data.memory_exception_data = {};
    data.memory_exception_data.failure.NotPresent = 1;
    data.memory_exception_data.va = event.exception.address;
    data.memory_exception_data.gpu_id = event.exception.gpu_id;
  } else if (event.type == KFD_IOC_EVENT_HW_EXCEPTION) {
    data.hw_exception_data = {};
    data.hw_exception_data.reset_type = 1;  // the whole GPU
    data.hw_exception_data.memory_lost = 1;
    data.hw_exception_data.gpu_id = event.exception.gpu_id;
  }
}

int wait_events(kfd_ioctl_wait_events_args& args) {
  State& all = state();
  auto* const wanted = reinterpret_cast<kfd_event_data*>(args.events_ptr);
  const uint32_t count = args.num_events;
  std::vector<uint8_t> active(count, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(args.timeout);
  const bool forever = args.timeout == 0xffffffff;
  bool expired = args.timeout == 0;
  std::unique_lock lock(all.mutex);
  uint32_t found = 0;
  for (;;) {
    for (uint32_t at = 0; at < count; ++at) {
      const auto event = all.events.find(wanted[at].event_id);
      if (event == all.events.end() || active[at] != 0) continue;
      const bool signal = event->second.type == KFD_IOC_EVENT_SIGNAL;
      const bool aged = signal && age_of(wanted[at]) != 0 && age_of(wanted[at]) != event->second.age;
      if (!event->second.set && !aged) continue;
      active[at] = 1;
      ++found;
      if (event->second.resets_itself) event->second.set = false;
    }
    if (args.wait_for_all != 0 ? found == count : found > 0) break;
    if (expired) break;
    if (forever)
      all.changed.wait(lock);
    else
      expired = all.changed.wait_until(lock, deadline) == std::cv_status::timeout;
  }
  for (uint32_t at = 0; at < count; ++at) {
    const auto event = all.events.find(wanted[at].event_id);
    if (active[at] != 0 && event != all.events.end()) tell(event->second, wanted[at]);
    if (active[at] != 0 && event != all.events.end() && event->second.type == KFD_IOC_EVENT_SIGNAL &&
        age_of(wanted[at]) != 0)
      age_of(wanted[at]) = event->second.age;
  }
  const bool done = args.wait_for_all != 0 ? found == count : found > 0;
  args.wait_result = done ? KFD_IOC_WAIT_RESULT_COMPLETE : KFD_IOC_WAIT_RESULT_TIMEOUT;
  return 0;
}

int apertures(kfd_ioctl_get_process_apertures_new_args& args) {
  const auto count = static_cast<uint32_t>(gpus().size());
  if (args.num_of_nodes == 0) {
    args.num_of_nodes = count;
    return 0;
  }
  auto* const out = reinterpret_cast<kfd_process_device_apertures*>(args.kfd_process_device_apertures_ptr);
  for (uint32_t at = 0; at < count && at < args.num_of_nodes; ++at) {
    out[at] = {};
    out[at].gpu_id = gpus()[at].id;
    out[at].lds_base = 0x1000000000000;
    out[at].lds_limit = 0x10000ffffffff;
    out[at].scratch_base = 0x2000000000000;
    out[at].scratch_limit = 0x20000ffffffff;
    out[at].gpuvm_base = 4 * kPage;
    out[at].gpuvm_limit = 0x7fffffffffff;
  }
  args.num_of_nodes = count;
  return 0;
}

bool is_pinned(uint32_t flags) {
  return (flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0;
}
bool is_doorbell(uint32_t flags) {
  return (flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) != 0;
}

int allocate(kfd_ioctl_alloc_memory_of_gpu_args& args) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  Buffer buffer{args.va_addr, args.size, 0, args.flags};
  if ((args.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0 && !fault::has_memory(args.size)) return fail(ENOMEM);
  if (is_pinned(args.flags)) {
    memory().pin(args.va_addr, args.size, args.mmap_offset);
  } else {
    buffer.offset = is_doorbell(args.flags) ? doorbells(all) : memory().reserve(args.size, 1 << 16);
    args.mmap_offset = buffer.offset;
  }
  args.handle = static_cast<uint64_t>(args.gpu_id) << 32 | all.next_buffer++;
  all.buffers[args.handle] = buffer;
  return 0;
}

int release(uint64_t handle) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.buffers.find(handle);
  if (found == all.buffers.end()) return fail(EINVAL);
  const Buffer& buffer = found->second;
  if ((buffer.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0) fault::give_memory(buffer.size);
  if (is_pinned(buffer.flags))
    memory().unpin(buffer.address);
  else if (!is_doorbell(buffer.flags))
    memory().release(buffer.offset, buffer.size);
  all.buffers.erase(found);
  return 0;
}

int map(kfd_ioctl_map_memory_to_gpu_args& args) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.buffers.find(args.handle);
  if (found == all.buffers.end()) return fail(EINVAL);
  const Buffer& buffer = found->second;
  if (!is_pinned(buffer.flags) && !is_doorbell(buffer.flags) &&
      !memory().map(buffer.address, buffer.size, buffer.offset))
    return fail(ENOMEM);
  args.n_success = args.n_devices;
  return 0;
}

int version(kfd_ioctl_get_version_args& args) {
  args.major_version = 1;
  args.minor_version = kMinorVersion;
  if (const char* wanted = getenv("TACHO_KFD_VERSION"); wanted != nullptr)
    if (sscanf(wanted, "%u.%u", &args.major_version, &args.minor_version) != 2) abort();
  return 0;
}

}  // namespace

uint64_t gpu_clock() {
  return nanoseconds(CLOCK_MONOTONIC_RAW) / (1'000'000'000 / kGpuClockHz);
}

const std::vector<Gpu>& gpus() {
  static const std::vector<Gpu>* const found = [] {
    auto* const list = new std::vector<Gpu>;
    for (uint32_t node = 0;; ++node) {
      const std::string folder = "/sys/class/kfd/kfd/topology/nodes/" + std::to_string(node);
      std::ifstream id(folder + "/gpu_id"), properties(folder + "/properties");
      Gpu gpu;
      gpu.node = node;
      if (!(id >> gpu.id)) break;
      std::string key;
      uint64_t value = 0;
      while (properties >> key >> value)
        if (key == "drm_render_minor") gpu.render_minor = static_cast<uint32_t>(value);
      if (gpu.id != 0) list->push_back(gpu);
    }
    return list;
  }();
  return *found;
}

Memory& memory() {
  static Memory* const made = new Memory;
  return *made;
}

int Memory::descriptor() {
  const std::lock_guard lock(mutex_);
  if (file_ < 0) file_ = memfd_create("tacho-kfd", MFD_CLOEXEC);
  return file_ < 0 ? -1 : fcntl(file_, F_DUPFD_CLOEXEC, 3);
}

uint64_t Memory::reserve(uint64_t size, uint64_t alignment) {
  const std::lock_guard lock(mutex_);
  if (file_ < 0) file_ = memfd_create("tacho-kfd", MFD_CLOEXEC);
  const uint64_t offset = (size_ + alignment - 1) / alignment * alignment;
  size_ = offset + size;
  if (ftruncate(file_, static_cast<off_t>(size_)) != 0) abort();
  return offset;
}

void Memory::release(uint64_t offset, uint64_t size) {
  const std::lock_guard lock(mutex_);
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size));
}

bool Memory::map(uint64_t address, uint64_t size, uint64_t offset) {
  const std::lock_guard lock(mutex_);
  return mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_,
              static_cast<off_t>(offset)) != MAP_FAILED;
}

void Memory::pin(uint64_t address, uint64_t size, uint64_t host) {
  const std::lock_guard lock(mutex_);
  pinned_[address] = {size, host};
}
void Memory::unpin(uint64_t address) {
  const std::lock_guard lock(mutex_);
  pinned_.erase(address);
}
uint64_t Memory::translate(uint64_t address) {
  const std::lock_guard lock(mutex_);
  auto found = pinned_.upper_bound(address);
  if (found == pinned_.begin()) return address;
  --found;
  const uint64_t within = address - found->first;
  return within < found->second.size ? found->second.host + within : address;
}

void set_event(uint32_t id) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.events.find(id);
  if (found == all.events.end()) return;
  found->second.set = true;
  ++found->second.age;
  all.changed.notify_all();
}

void raise(uint32_t type, const Exception& exception) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  for (auto& [id, event] : all.events)
    if (event.type == type) {
      event.exception = exception;
      event.set = true;
      ++event.age;
    }
  all.changed.notify_all();
}

int call(unsigned number, void* argument) {
  State& all = state();
  switch (number) {
    case _IOC_NR(AMDKFD_IOC_GET_VERSION):
      return version(*static_cast<kfd_ioctl_get_version_args*>(argument));
    case _IOC_NR(AMDKFD_IOC_CREATE_QUEUE):
      return create_queue(*static_cast<kfd_ioctl_create_queue_args*>(argument));
    case _IOC_NR(AMDKFD_IOC_DESTROY_QUEUE):
      return destroy_queue(static_cast<kfd_ioctl_destroy_queue_args*>(argument)->queue_id);
    case _IOC_NR(AMDKFD_IOC_GET_CLOCK_COUNTERS): {
      auto& args = *static_cast<kfd_ioctl_get_clock_counters_args*>(argument);
      // A kernel reads the three at once. A process may lose its processor in between, so this takes the closest of
      // some.
      uint64_t least = UINT64_MAX;
      for (int i = 0; i < 50 && least > 20'000; ++i) {
        const uint64_t begin = nanoseconds(CLOCK_MONOTONIC_RAW);
        const uint64_t gpu = gpu_clock(), cpu = nanoseconds(CLOCK_MONOTONIC_RAW), system = nanoseconds(CLOCK_BOOTTIME);
        const uint64_t took = nanoseconds(CLOCK_MONOTONIC_RAW) - begin;
        if (took >= least) continue;
        least = took;
        args.gpu_clock_counter = gpu;
        args.cpu_clock_counter = cpu;
        args.system_clock_counter = system;
      }
      args.system_clock_freq = 1'000'000'000;
      return 0;
    }
    case _IOC_NR(AMDKFD_IOC_CREATE_EVENT):
      return create_event(*static_cast<kfd_ioctl_create_event_args*>(argument));
    case _IOC_NR(AMDKFD_IOC_DESTROY_EVENT): {
      const std::lock_guard lock(all.mutex);
      all.events.erase(static_cast<kfd_ioctl_destroy_event_args*>(argument)->event_id);
      return 0;
    }
    case _IOC_NR(AMDKFD_IOC_SET_EVENT):
      set_event(static_cast<kfd_ioctl_set_event_args*>(argument)->event_id);
      return 0;
    case _IOC_NR(AMDKFD_IOC_RESET_EVENT): {
      const std::lock_guard lock(all.mutex);
      const auto found = all.events.find(static_cast<kfd_ioctl_reset_event_args*>(argument)->event_id);
      if (found != all.events.end()) found->second.set = false;
      return 0;
    }
    case _IOC_NR(AMDKFD_IOC_WAIT_EVENTS):
      return wait_events(*static_cast<kfd_ioctl_wait_events_args*>(argument));
    case _IOC_NR(AMDKFD_IOC_GET_TILE_CONFIG): {
      auto& args = *static_cast<kfd_ioctl_get_tile_config_args*>(argument);
      args.gb_addr_config = 0x10000444;
      args.num_tile_configs = args.num_macro_tile_configs = 0;
      return 0;
    }
    case _IOC_NR(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW):
      return apertures(*static_cast<kfd_ioctl_get_process_apertures_new_args*>(argument));
    case _IOC_NR(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU):
      return allocate(*static_cast<kfd_ioctl_alloc_memory_of_gpu_args*>(argument));
    case _IOC_NR(AMDKFD_IOC_FREE_MEMORY_OF_GPU):
      return release(static_cast<kfd_ioctl_free_memory_of_gpu_args*>(argument)->handle);
    case _IOC_NR(AMDKFD_IOC_MAP_MEMORY_TO_GPU):
      return map(*static_cast<kfd_ioctl_map_memory_to_gpu_args*>(argument));
    case _IOC_NR(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU): {
      auto& args = *static_cast<kfd_ioctl_unmap_memory_from_gpu_args*>(argument);
      args.n_success = args.n_devices;
      return 0;
    }
    case _IOC_NR(AMDKFD_IOC_SET_XNACK_MODE): {
      auto& args = *static_cast<kfd_ioctl_set_xnack_mode_args*>(argument);
      if (args.xnack_enabled > 0) return fail(EPERM);
      args.xnack_enabled = 0;
      return 0;
    }
    case _IOC_NR(AMDKFD_IOC_AVAILABLE_MEMORY):
      static_cast<kfd_ioctl_get_available_memory_args*>(argument)->available = fault::memory_left();
      return 0;
    // Nothing to imitate: the memory's caches, a queue's priority and compute units, the trap handler, scratch, the
    // process's address space, global wave synchronisation, shared virtual memory.
    case _IOC_NR(AMDKFD_IOC_SET_MEMORY_POLICY):
    case _IOC_NR(AMDKFD_IOC_UPDATE_QUEUE):
    case _IOC_NR(AMDKFD_IOC_SET_SCRATCH_BACKING_VA):
    case _IOC_NR(AMDKFD_IOC_SET_TRAP_HANDLER):
    case _IOC_NR(AMDKFD_IOC_ACQUIRE_VM):
    case _IOC_NR(AMDKFD_IOC_SET_CU_MASK):
    case _IOC_NR(AMDKFD_IOC_ALLOC_QUEUE_GWS):
    case _IOC_NR(AMDKFD_IOC_SVM):
      return 0;
    default:
      return fail(ENOTTY);
  }
}

}  // namespace kfd
