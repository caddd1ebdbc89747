// What PyTorch's allocators hand out and take back (--memory). Their code reports each block to a function of
// libc10.so, which hands it to torch.profiler; libtacho.so, which stands before libc10.so in the order of symbols,
// has the same function. It records and passes on. The allocators of CUDA, ROCm and the CPU all report through it,
// with the block's size as it is counted in torch.cuda.memory_allocated(), and with that sum. CuPy's pool is told by
// hooks in Python, which call a function of this file.
//
// The names are those of two C++ functions; before 2.0 their sums were int64_t:
//   void c10::reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, c10::Device)
//   void c10::reportOutOfMemoryToProfiler(int64_t, size_t, size_t, c10::Device)
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "capture/source/sampler/sampler.h"
#include "event/records.h"
#include "tape/writer.h"

#define TACHO_TORCH_EXPORT extern "C" __attribute__((visibility("default")))

namespace tacho::capture::torch {
namespace {

// c10::Device: the kind of device, and its index, -1 = the current one. It is passed in a register.
struct Device {
  int8_t type, index;
};
static_assert(sizeof(Device) == 2);

#define TACHO_TORCH_MEMORY "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define TACHO_TORCH_MEMORY_1 "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"
#define TACHO_TORCH_OUT_OF_MEMORY "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
#define TACHO_TORCH_OUT_OF_MEMORY_1 "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"

constinit std::atomic<void*> g_next_memory{nullptr}, g_next_out_of_memory{nullptr};
constinit std::atomic<uint32_t> g_name{0}, g_array{0};

// torch's own function. The caller's library depends on the one that has it, and dlsym of its handle does not find
// ours.
void* next(std::atomic<void*>& slot, const char* name, const void* caller) {
  void* found = slot.load(std::memory_order_relaxed);
  if (__builtin_expect(found != nullptr, 1)) return found;
  Dl_info info{};
  if (dladdr(caller, &info) != 0 && info.dli_fname != nullptr)
    if (void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      found = dlsym(library, name);
      dlclose(library);
    }
  slot.store(found, std::memory_order_relaxed);
  return found;
}

// `number`: of the text `of`, 0 = not known yet.
void record(event::AllocationOperation operation, uint64_t bytes, const void* address, size_t in_use, size_t reserved,
            Device device, std::atomic<uint32_t>& number = g_name, const char* of = "tensor") {
  if (!tape::enabled(tape::source_bit::kAllocation) || !tape::configuration().memory ||
      tape::t_state.hidden >= tape::kHiddenForGood)
    return;
  uint32_t name = number.load(std::memory_order_relaxed);
  if (name == 0) number.store(name = tape::intern(of), std::memory_order_relaxed);
  if (device.type != 0) sampler::memory_stack();
  const auto kind = device.type == 0 ? event::MemoryKind::kHost : event::MemoryKind::kDevice;
  const uint8_t index = device.type != 0 && device.index >= 0 ? static_cast<uint8_t>(device.index) : 0xff;
  const uint32_t value = static_cast<uint32_t>(operation) | static_cast<uint32_t>(kind) << 8 |
                         static_cast<uint32_t>(event::AllocationLevel::kBlock) << 16 | uint32_t{index} << 24;
  auto* const made =
      tape::begin<event::BlockMemoryRecord>(event::RecordKind::kBlockMemory, event::Table::kAllocation, value);
  if (made == nullptr) return;
  made->time = host_ticks();
  made->bytes = bytes;
  made->address = reinterpret_cast<uint64_t>(address);
  made->in_use = in_use;
  // The CPU's allocator reserves nothing.
  made->reserved = device.type != 0 ? reserved : ~uint64_t{0};
  made->name = name;
  made->unused = 0;
  tape::commit();
}

using MemoryFunction = void(void* address, int64_t bytes, size_t in_use, size_t reserved, Device device);
using OutOfMemoryFunction = void(int64_t bytes, size_t in_use, size_t reserved, Device device);

void memory(void* address, int64_t bytes, size_t in_use, size_t reserved, Device device, const char* name,
            const void* caller) {
  const bool frees = bytes < 0;
  record(frees ? event::AllocationOperation::kFree : event::AllocationOperation::kAllocate,
         static_cast<uint64_t>(frees ? -bytes : bytes), address, in_use, reserved, device);
  if (auto* const own = reinterpret_cast<MemoryFunction*>(next(g_next_memory, name, caller)))
    own(address, bytes, in_use, reserved, device);
}

void out_of_memory(int64_t bytes, size_t in_use, size_t reserved, Device device, const char* name, const void* caller) {
  record(event::AllocationOperation::kOutOfMemory, bytes > 0 ? static_cast<uint64_t>(bytes) : 0, nullptr, in_use,
         reserved, device);
  if (auto* const own = reinterpret_cast<OutOfMemoryFunction*>(next(g_next_out_of_memory, name, caller)))
    own(bytes, in_use, reserved, device);
}

}  // namespace

#define TACHO_TORCH_REPORTS(function, symbol, record, arguments, ...) \
  TACHO_TORCH_EXPORT void function arguments asm(symbol);             \
  void function arguments {                                           \
    record(__VA_ARGS__, symbol, __builtin_return_address(0));         \
  }
TACHO_TORCH_REPORTS(torch_memory, TACHO_TORCH_MEMORY, memory,
                    (void* address, int64_t bytes, size_t in_use, size_t reserved, Device device), address, bytes,
                    in_use, reserved, device)
TACHO_TORCH_REPORTS(torch_memory_1, TACHO_TORCH_MEMORY_1, memory,
                    (void* address, int64_t bytes, size_t in_use, size_t reserved, Device device), address, bytes,
                    in_use, reserved, device)
TACHO_TORCH_REPORTS(torch_out_of_memory, TACHO_TORCH_OUT_OF_MEMORY, out_of_memory,
                    (int64_t bytes, size_t in_use, size_t reserved, Device device), bytes, in_use, reserved, device)
TACHO_TORCH_REPORTS(torch_out_of_memory_1, TACHO_TORCH_OUT_OF_MEMORY_1, out_of_memory,
                    (int64_t bytes, size_t in_use, size_t reserved, Device device), bytes, in_use, reserved, device)

// What python/tacho/cupy_memory.py tells of CuPy's pool. `operation`: 0 an allocation, 1 a free, 2 memory ran out. CuPy
// tells no sums.
TACHO_TORCH_EXPORT void tacho_cupy_memory(int operation, const void* address, uint64_t bytes, int device) {
  constexpr event::AllocationOperation kOperations[] = {event::AllocationOperation::kAllocate,
                                                        event::AllocationOperation::kFree,
                                                        event::AllocationOperation::kOutOfMemory};
  if (operation < 0 || operation > 2) return;
  constexpr size_t kUntold = ~size_t{0};
  record(kOperations[operation], bytes, address, kUntold, kUntold, {1, static_cast<int8_t>(device)}, g_array,
         "CuPy array");
}

}  // namespace tacho::capture::torch
