// Memory that kernel replay has to put back: kernels that change memory in place, of every kind that the bed has, from
// several threads and streams. Prints the contents of memory at the end; a launch too many or too few shows there.
// replay SCENE [LAUNCHES [LIBRARY]]
//
//   plain     (with -DMANAGED) device memory, through a table of pointers too, variables, managed memory, host memory that the arguments name
//   threads   four threads, each with a stream and memory of its own, and one variable of all
//   many      70 launches on three streams, with nothing between them, then one more, and the end of the program without waiting
//   code      two launches around one of LIBRARY, this file with -DLIBRARY, whose code is loaded by that
//   graph     three launches in a graph, one beside it
//   modules   a buffer of arguments (hipModuleLaunchKernel), launches with start and stop events
//   once      kernels that are not run again: a collective's name, printf, a call that takes its arguments one by one before
//   answered  a kernel that waits for the program's answer, in memory of the host, while it runs
//   dies      ends the process in the middle of a kernel (_exit), once it has run LAUNCHES times
//   room      64 MiB, and between two kernels LAUNCHES MiB more
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "bed.h"

// Small copies are kernels of HIP's, which change nothing on the bed: copies here are large.
constexpr uint32_t kSize = 20'000;
constexpr size_t kBytes = kSize * sizeof(uint32_t);

static const dim3 kGroups((kSize + 255) / 256), kGroup(256);

#ifdef LIBRARY
__host__ __device__ void other_item(uint32_t at, uint32_t* data, uint32_t size) {
  if (at < size) data[at] = data[at] * 5 + 2;
}
BED_KERNEL(other, (uint32_t * data, uint32_t size), (data, size))

extern "C" __attribute__((visibility("default"))) void launch_other(uint32_t* data, hipStream_t stream) {
  other<<<kGroups, kGroup, 0, stream>>>(data, kSize);
}
#else

__device__ uint32_t variables[kSize];  // a sum by atomics, a count, and a history that grows with each launch
#ifdef MANAGED  // where a program has such memory, every launch is a batch of its own
__managed__ uint32_t managed_variable = 7;
#endif
static uint32_t* g_variables = nullptr;  // where they are on the GPU, for the host's version

__host__ __device__ inline void add(uint32_t* to, uint32_t value) {
#ifdef __HIP_DEVICE_COMPILE__
  atomicAdd(to, value);
#else
  __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
#endif
}
__host__ __device__ inline uint32_t* variables_at() {
#ifdef __HIP_DEVICE_COMPILE__
  return variables;
#else
  return g_variables;
#endif
}

__host__ __device__ void increment_item(uint32_t at, uint32_t* data, uint32_t size) {
  if (at < size) data[at] = data[at] * 3 + 1;
}
BED_KERNEL(increment, (uint32_t * data, uint32_t size), (data, size))

__host__ __device__ void accumulate_item(uint32_t at, uint32_t value) {
  uint32_t* const all = variables_at();
  add(all, value);
  if (at == 0) all[2 + all[1]++ % 100] += value;
}
BED_KERNEL(accumulate, (uint32_t value), (value))

#ifdef MANAGED
// A variable that no argument names.
__host__ __device__ void by_name_item(uint32_t at, uint32_t value) {
  if (at == 0) managed_variable += value;
}
BED_KERNEL(by_name, (uint32_t value), (value))
#endif

struct Table {
  uint64_t unused;
  uint32_t** rows;
};
__host__ __device__ void through_item(uint32_t at, Table table) {
  if (at < 2) table.rows[at][5] += at + 1;
}
BED_KERNEL(through, (Table table), (table))

// Under a collective's name: a second run would be one too many.
__host__ __device__ void ncclDevKernel_Sum_item(uint32_t at, uint32_t* data) {
  if (at == 0) ++*data;
}
BED_KERNEL(ncclDevKernel_Sum, (uint32_t * data), (data))

__global__ void prints(uint32_t value) {
  printf("value %u\n", value);
}

extern "C" __global__ void answered(volatile uint32_t* flag, uint32_t* asked) {
  *asked = 1;
  while (*flag == 0) {
  }
}
extern "C" __attribute__((visibility("default"), used)) void bed_answered(const bed::Dispatch*, const void* block) {
  const char* at = static_cast<const char*>(block);
  auto* const flag = bed::next<uint32_t*>(at);
  auto* const asked = bed::next<uint32_t*>(at);
  __atomic_store_n(asked, 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) sched_yield();
}

extern "C" __global__ void dies(uint32_t*) {}
static int g_runs_left = 0;
extern "C" __attribute__((visibility("default"), used)) void bed_dies(const bed::Dispatch*, const void*) {
  if (g_runs_left-- == 0) _exit(7);
}

static uint32_t checksum(const uint32_t* data, size_t size) {
  uint32_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum = sum * 31 + data[i];
  return sum;
}

static uint32_t* new_memory(uint32_t* host, hipStream_t stream) {
  uint32_t* data = nullptr;
  HIP(hipMalloc(&data, kBytes));
  for (uint32_t i = 0; i < kSize; ++i) host[i] = i;
  HIP(hipMemcpyAsync(data, host, kBytes, hipMemcpyHostToDevice, stream));
  HIP(hipStreamSynchronize(stream));
  return data;
}
static void show(const char* what, uint32_t* data, uint32_t* host, hipStream_t stream) {
  HIP(hipMemcpyAsync(host, data, kBytes, hipMemcpyDeviceToHost, stream));
  HIP(hipStreamSynchronize(stream));
  printf("%s %u\n", what, checksum(host, kSize));
}

int main(int argc, char** argv) {
  const std::string scene = argc > 1 ? argv[1] : "plain";
  const int launches = argc > 2 ? atoi(argv[2]) : 3;
  uint32_t* host = nullptr;
  HIP(hipHostMalloc(&host, kBytes));
  HIP(hipGetSymbolAddress(reinterpret_cast<void**>(&g_variables), HIP_SYMBOL(variables)));
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  uint32_t* const data = new_memory(host, stream);

#ifdef MANAGED
  if (scene == "plain") {
    uint32_t *managed = nullptr, *registered = static_cast<uint32_t*>(aligned_alloc(4096, 65536));
    HIP(hipMallocManaged(&managed, 8192));
    memset(managed, 0, 8192);
    memset(registered, 0, 65536);
    HIP(hipHostRegister(registered, 65536, 0));
    uint32_t **rows = nullptr, *pinned = nullptr;
    HIP(hipMalloc(&rows, kBytes));
    HIP(hipHostMalloc(&pinned, kBytes));
    memcpy(pinned, &data, sizeof data);
    memcpy(pinned + 2, &managed, sizeof managed);
    HIP(hipMemcpyAsync(rows, pinned, kBytes, hipMemcpyHostToDevice, stream));
    HIP(hipStreamSynchronize(stream));
    for (int i = 0; i < launches; ++i) {
      increment<<<kGroups, kGroup, 0, stream>>>(data, kSize);
      accumulate<<<2, 100, 0, nullptr>>>(i + 1);
      through<<<1, 64, 0, stream>>>(Table{0, rows});
      increment<<<1, 64, 0, stream>>>(managed, 64);
      increment<<<1, 64, 0, hipStreamPerThread>>>(pinned + 100, 64);
      increment<<<1, 64, 0, stream>>>(registered, 64);
      increment<<<1, 64, 0, stream>>>(&managed_variable, 1);
      by_name<<<1, 64, 0, stream>>>(100 * i);
    }
    HIP(hipDeviceSynchronize());
    show("device", data, host, stream);
    printf("managed %u\npinned %u\nregistered %u\nvariable %u\n", checksum(managed, 2048), checksum(pinned + 100, 64),
           checksum(registered, 64), managed_variable);
  }
#endif
  if (scene == "threads") {
    std::vector<std::thread> threads;
    uint32_t sums[4] = {};
    for (uint32_t& sum : sums)
      threads.emplace_back([&sum, launches] {
        hipStream_t own;
        uint32_t* mine = nullptr;
        HIP(hipSetDevice(0));
        HIP(hipStreamCreate(&own));
        HIP(hipHostMalloc(&mine, kBytes));
        uint32_t* const memory = new_memory(mine, own);
        for (int i = 0; i < launches; ++i) {
          increment<<<kGroups, kGroup, 0, own>>>(memory, kSize);
          accumulate<<<1, 64, 0, own>>>(1);
          if (i == 1) HIP(hipStreamSynchronize(own));
          // The results of another thread's launch between two passes must not be visible here.
          HIP(hipMemcpyAsync(mine, memory, kBytes, hipMemcpyDeviceToHost, own));
          HIP(hipStreamSynchronize(own));
          sum = sum * 7 + checksum(mine, kSize);
        }
        HIP(hipFree(memory));
        HIP(hipHostFree(mine));
        HIP(hipStreamDestroy(own));
      });
    for (std::thread& thread : threads) thread.join();
    printf("sums %u %u %u %u\n", sums[0], sums[1], sums[2], sums[3]);
  } else if (scene == "many") {
    hipStream_t others[2];
    uint32_t* memories[3] = {data};
    for (int i = 0; i < 2; ++i) {
      HIP(hipStreamCreateWithFlags(&others[i], hipStreamNonBlocking));
      memories[i + 1] = new_memory(host, others[i]);
    }
    for (uint32_t i = 0; i < 70; ++i) {
      // The arguments do not outlive the launch.
      volatile uint32_t size = kSize - i;
      if (i % 7 == 6)
        accumulate<<<1, 64, 0, stream>>>(i);
      else
        increment<<<kGroups, kGroup, 0, i % 3 == 0 ? stream : others[i % 3 - 1]>>>(memories[i % 3], size);
    }
    for (int i = 0; i < 3; ++i) show("device", memories[i], host, i == 0 ? stream : others[i - 1]);
    show("variables", g_variables, host, stream);
    increment<<<1, 64, 0, stream>>>(data, 64);
    return 0;
  } else if (scene == "code") {
    void* const library = dlopen(argv[3], RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) return 1;
    const auto other = reinterpret_cast<void (*)(uint32_t*, hipStream_t)>(dlsym(library, "launch_other"));
    for (int i = 0; i < launches; ++i) {
      increment<<<kGroups, kGroup, 0, stream>>>(data, kSize);
      other(data, stream);
      increment<<<kGroups, kGroup, 0, stream>>>(data, kSize);
    }
    show("device", data, host, stream);
  } else if (scene == "graph") {
    hipGraph_t graph;
    hipGraphExec_t ready;
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    for (int i = 0; i < 3; ++i) increment<<<kGroups, kGroup, 0, stream>>>(data, kSize);
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
    for (int i = 0; i < launches; ++i) {
      HIP(hipGraphLaunch(ready, stream));
      accumulate<<<1, 64, 0, stream>>>(1);
    }
    HIP(hipStreamSynchronize(stream));
    show("device", data, host, stream);
  } else if (scene == "modules") {
    hipFunction_t function;
    HIP(hipGetFuncBySymbol(&function, reinterpret_cast<const void*>(increment)));
    struct {
      uint32_t* data;
      uint32_t size;
    } block{data, kSize};
    size_t bytes = sizeof block;
    void* buffer[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &block, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END};
    void* each[] = {&block.data, &block.size};
    hipEvent_t begin, end;
    HIP(hipEventCreate(&begin));
    HIP(hipEventCreate(&end));
    for (int i = 0; i < launches; ++i) {
      HIP(hipModuleLaunchKernel(function, kGroups.x, 1, 1, kGroup.x, 1, 1, 0, stream, nullptr, buffer));
      HIP(hipModuleLaunchKernel(function, kGroups.x, 1, 1, kGroup.x, 1, 1, 0, stream, each, nullptr));
      HIP(hipExtLaunchKernel(reinterpret_cast<const void*>(increment), kGroups, kGroup, each, 0, stream, begin, end, 0));
    }
    HIP(hipEventSynchronize(end));
    float ms = 0;
    HIP(hipEventElapsedTime(&ms, begin, end));
    show("device", data, host, stream);
    printf("timed %d\n", ms > 0);
  } else if (scene == "once") {
    for (int i = 0; i < launches; ++i) {
      ncclDevKernel_Sum<<<1, 64, 0, stream>>>(data);
      prints<<<1, 64, 0, stream>>>(i);
      uint32_t *of = data, size = kSize;
      HIP(hipConfigureCall(kGroups, kGroup, 0, stream));
      HIP(hipSetupArgument(&of, sizeof of, 0));
      HIP(hipSetupArgument(&size, sizeof size, sizeof of));
      HIP(hipLaunchByPtr(reinterpret_cast<const void*>(increment)));
    }
    HIP(hipStreamSynchronize(stream));
    show("device", data, host, stream);
  } else if (scene == "answered") {
    uint32_t* shared = nullptr;
    HIP(hipHostMalloc(&shared, 4096));
    memset(shared, 0, 4096);
    std::thread answers([shared] {
      while (__atomic_load_n(shared + 16, __ATOMIC_ACQUIRE) == 0) usleep(100);
      __atomic_store_n(shared, 1, __ATOMIC_RELEASE);
    });
    answered<<<1, 64, 0, stream>>>(shared, shared + 16);
    HIP(hipStreamSynchronize(stream));
    answers.join();
    printf("answered %u\n", shared[0]);
    shared[0] = 1;
    answered<<<1, 64, 0, stream>>>(shared, shared + 16);
    HIP(hipStreamSynchronize(stream));
  } else if (scene == "dies") {
    g_runs_left = launches;
    increment<<<kGroups, kGroup, 0, stream>>>(data, kSize);
    HIP(hipStreamSynchronize(stream));
    for (int i = 0; i < 2; ++i) {
      dies<<<1, 64, 0, stream>>>(data);
      HIP(hipStreamSynchronize(stream));
    }
  } else if (scene == "room") {
    uint32_t *large = nullptr, *more = nullptr;
    HIP(hipMalloc(&large, 64 << 20));
    increment<<<kGroups, kGroup, 0, stream>>>(data, kSize);
    HIP(hipMalloc(&more, static_cast<size_t>(launches) << 20));
    HIP(hipFree(more));
    increment<<<kGroups, kGroup, 0, stream>>>(data, kSize);
    HIP(hipStreamSynchronize(stream));
    show("device", data, host, stream);
  }
  show("variables", g_variables, host, stream);
  printf("sum %u launches %u\n", host[0], host[1]);
  return 0;
}
#endif
