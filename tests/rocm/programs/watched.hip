// For `tacho watch`: programs that count their own work. watched HOW, prints "name value" lines:
//   ways          launches by each function, copies and fills of many kinds, allocations, waits
//   errors        what hipGetLastError says behind launches, good and bad ones, and behind other calls
//   often COUNT   launches of two kernels, one small and one that takes longer, on two streams, waiting now and then
//   past SECONDS LAUNCHES   so many launches and a wait, again and again: in turns of some 1024 launches by the functions to which the
//                 program's names lead, and by HIP's own
//   captures      a thread launches while another one captures and launches graphs
//   streams       streams that are destroyed with work in them
//   reset         hipDeviceReset, then more work, three times
//   modules FILE  a code object that is loaded and unloaded again and again
//   fork          the child uses no GPU
//   unread [held] launches that have ended when the program does, and nobody has waited for them; held: guard_hold() of exit_guard.hip
#include <dlfcn.h>
#include <hip/hip_ext.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "bed.h"

__host__ __device__ void small_item(uint32_t at, uint32_t* out) {
  if (at == 0) ++*out;
}
BED_KERNEL(small, (uint32_t * out), (out))

__host__ __device__ void large_item(uint32_t at, float* out, uint32_t size) {
  if (at < size) out[at] += 1;
}
BED_KERNEL(large, (float* out, uint32_t size), (out, size))

static uint32_t* g_out;

static void make_out() {
  HIP(hipHostMalloc(&g_out, sizeof *g_out));
  *g_out = 0;
}

// The first call of a function goes another way through tacho than all others.
static int launch_every_way(hipStream_t stream) {
  void* arguments[] = {&g_out};
  const void* const host = reinterpret_cast<const void*>(small);
  int launches = 0;
  const auto launched = [&](hipError_t result) {
    HIP(result);
    ++launches;
  };
  const auto chevron = [] {
    small<<<2, 64>>>(g_out);
    return hipGetLastError();
  };
  hipFunction_t function;
  HIP(hipGetFuncBySymbol(&function, host));
  void* by_name = nullptr;
  HIP(hipGetProcAddress("hipModuleLaunchKernel", &by_name, HIP_VERSION, 0, nullptr));
  Dl_info library{};
  dladdr(dlsym(RTLD_DEFAULT, "hipModuleLoadDataEx"), &library);
  void* const found = dlsym(dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD), "hipLaunchKernel");
  hipEvent_t events[2];
  for (hipEvent_t& event : events) HIP(hipEventCreate(&event));
  // The GPU writes events that a launch takes along.
  const auto timed = [&](hipError_t result) {
    launched(result);
    HIP(hipStreamSynchronize(stream));
    float ms = -1;
    HIP(hipEventElapsedTime(&ms, events[0], events[1]));
    if (ms < 0) exit(1);
  };
  for (int turn = 0; turn < 3; ++turn) {
    launched(chevron());
    launched(hipLaunchKernel(host, dim3(2), dim3(64), arguments, 0, stream));
    launched(hipLaunchKernel_spt(host, dim3(2), dim3(64), arguments, 0, nullptr));
    timed(hipExtLaunchKernel(host, dim3(2), dim3(64), arguments, 0, stream, events[0], events[1], 0));
    launched(hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr));
    timed(hipExtModuleLaunchKernel(function, 128, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr, events[0], events[1],
                                   0));
    launched(reinterpret_cast<decltype(&hipModuleLaunchKernel)>(by_name)(function, 2, 1, 1, 64, 1, 1, 0, stream,
                                                                         arguments, nullptr));
    using Launch = hipError_t (*)(const void*, dim3, dim3, void**, size_t, hipStream_t);
    launched(reinterpret_cast<Launch>(found)(host, dim3(2), dim3(64), arguments, 0, stream));
#if HIP_VERSION >= 60500000
    hipLaunchConfig_t config{};
    config.gridDim = dim3(2);
    config.blockDim = dim3(64);
    config.stream = stream;
    launched(hipLaunchKernelExC(&config, host, arguments));
    HIP_LAUNCH_CONFIG other{};
    other.gridDimX = 2;
    other.gridDimY = other.gridDimZ = other.blockDimY = other.blockDimZ = 1;
    other.blockDimX = 64;
    other.hStream = stream;
    launched(hipDrvLaunchKernelEx(&other, function, arguments, nullptr));
#endif
  }
  return launches;
}

static int ways() {
  make_out();
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  const int launches = launch_every_way(stream);
  HIP(hipDeviceSynchronize());

  constexpr size_t kBytes = 1 << 16;
  char *device = nullptr, *other = nullptr, *pinned = nullptr;
  std::vector<char> pageable(kBytes);
  HIP(hipMalloc(&device, kBytes));
  HIP(hipMalloc(&other, kBytes));
  HIP(hipHostMalloc(&pinned, kBytes));
  HIP(hipMemcpy(device, pageable.data(), kBytes, hipMemcpyHostToDevice));
  HIP(hipMemcpyAsync(device, pinned, kBytes, hipMemcpyHostToDevice, stream));
  HIP(hipMemcpyHtoD(device, pageable.data(), 1000));
  HIP(hipMemcpyHtoDAsync(device, pinned, 2000, stream));
  HIP(hipMemcpy_spt(device, pageable.data(), 3000, hipMemcpyHostToDevice));
  HIP(hipMemcpyDtoH(pageable.data(), device, 4000));
  HIP(hipMemcpyDtoHAsync(pinned, device, 5000, stream));
  HIP(hipMemcpyWithStream(pinned, device, 6000, hipMemcpyDeviceToHost, stream));
  HIP(hipMemcpyDtoD(other, device, 7000));
  HIP(hipMemcpyDtoDAsync(other, device, 8000, stream));
  HIP(hipMemcpy(other, device, 9000, hipMemcpyDefault));
  HIP(hipMemcpyPeer(other, 0, device, 0, 10000));
  HIP(hipMemset(device, 1, 11000));
  HIP(hipMemsetAsync(device, 1, 12000, stream));
  HIP(hipMemsetD8(device, 1, 13000));
  HIP(hipMemsetD16(device, 1, 7000));
  HIP(hipMemsetD32Async(device, 1, 3750, stream));
  hipEvent_t event;
  HIP(hipEventCreate(&event));
  HIP(hipEventRecord(event, stream));
  HIP(hipEventSynchronize(event));
  HIP(hipStreamSynchronize(stream));
  HIP(hipStreamSynchronize_spt(nullptr));
  printf("launches %d\nran %u\nto_device %zu\nto_host %d\non_device %d\nfilled %d\n", launches, *g_out,
         2 * kBytes + 6000, 15000, 15000, 11000 + 12000 + 13000 + 14000 + 15000);
  return 0;
}

// The same lines with and without tacho.
static int errors() {
  make_out();
  void* arguments[] = {&g_out};
  const void* const host = reinterpret_cast<const void*>(small);
  hipEvent_t event;
  HIP(hipEventCreate(&event));
  int good = 0, bad = 0, kept = 0, peeked = 0;
  for (int i = 0; i < 200; ++i) {
    small<<<1, 64>>>(g_out);
    good += hipGetLastError() == hipSuccess;
    const hipError_t result = hipLaunchKernel(host, dim3(1), dim3(100000), arguments, 0, nullptr);
    bad += result != hipSuccess && hipGetLastError() == result;
    (void)hipSetDevice(99);  // an error that waits while tacho works
    peeked += hipPeekAtLastError() != hipSuccess;
    small<<<1, 64>>>(g_out);
    (void)hipDeviceSynchronize();
    kept += hipGetLastError() != hipSuccess;  // newer versions keep it, older ones forget it with the next good call
    HIP(hipEventRecord(event, nullptr));
    (void)hipEventQuery(event);
    small<<<1, 64>>>(g_out);
    good += hipGetLastError() == hipSuccess;
    HIP(hipDeviceSynchronize());
  }
  printf("good %d\nbad %d\npeeked %d\nkept %d\nran %u\n", good, bad, peeked, kept, *g_out);
  return 0;
}

static int often(int count) {
  make_out();
  constexpr uint32_t kSize = 1 << 16;
  float* out = nullptr;
  HIP(hipHostMalloc(&out, kSize * sizeof(float)));
  memset(out, 0, kSize * sizeof(float));
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  int large_ones = 0;
  for (int i = 0; i < count; ++i) {
    small<<<1, 64>>>(g_out);
    if (i % 4 == 0) {
      large<<<kSize / 64, 64, 0, stream>>>(out, kSize);
      ++large_ones;
    }
    if (i % 32 == 31) HIP(hipDeviceSynchronize());
  }
  HIP(hipDeviceSynchronize());
  printf("small %u\nlarge %d\nright %d\n", *g_out, large_ones, out[0] == static_cast<float>(large_ones));
  return 0;
}

// HIP's functions, for a program whose own names lead to others' functions first.
struct Functions {
  decltype(&hipLaunchKernel) launch = &hipLaunchKernel;
  decltype(&hipStreamSynchronize) wait = &hipStreamSynchronize;
};
static Functions functions_of_hip() {
  Dl_info library{};
  dladdr(dlsym(RTLD_DEFAULT, "hipModuleLoadDataEx"), &library);  // which nothing stands in for
  void* const hip = dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  const auto find = [&](auto& into, const char* name) {
    void* const found = dlvsym(hip, name, "hip_4.2");
    Dl_info of{};
    if (dladdr(found, &of) == 0 || of.dli_fbase != library.dli_fbase) {
      fprintf(stderr, "%s is not HIP's own\n", name);
      exit(1);
    }
    into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(found);
  };
  Functions own;
  find(own.launch, "hipLaunchKernel");
  find(own.wait, "hipStreamSynchronize");
  return own;
}

// ns: the thread's processor time in launches, its processor time, that of all threads, and the time that passed.
struct Taken {
  double launches = 0, thread = 0, all = 0, wall = 0;
};
static double now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}
static void work(const Functions& by, int batches, int each, Taken& taken) {
  void* arguments[] = {&g_out};
  const double from = now_ns(CLOCK_MONOTONIC), all_from = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  for (int batch = 0; batch < batches; ++batch) {
    const double begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < each; ++i)
      HIP(by.launch(reinterpret_cast<const void*>(small), dim3(1), dim3(64), arguments, 0, nullptr));
    taken.launches += now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    HIP(by.wait(nullptr));
    taken.thread += now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
  }
  taken.all += now_ns(CLOCK_PROCESS_CPUTIME_ID) - all_from;
  taken.wall += now_ns(CLOCK_MONOTONIC) - from;
}
static int past(double seconds, int each) {
  make_out();
  const Functions kinds[] = {{}, functions_of_hip()};  // as the program's names lead, and past all that stands in
  long launches[2] = {};
  const auto block = [&](int kind, int batches, Taken& taken) {
    work(kinds[kind], batches, each, taken);
    launches[kind] += static_cast<long>(batches) * each;
  };
  const int batches = std::max(1, 1024 / each);
  for (Taken warm; warm.wall < 2e8;)
    for (const int kind : {0, 1}) block(kind, 1, warm);
  const double end = now_ns(CLOCK_MONOTONIC) + seconds * 1e9;
  for (int round = 0; now_ns(CLOCK_MONOTONIC) < end; ++round) {
    Taken taken[2];
    for (const int turn : {0, 1, 1, 0}) {
      const int kind = turn ^ (round & 1);
      block(kind, batches, taken[kind]);
    }
    const auto& [with, without] = taken;
    printf("round %.5f %.5f %.5f %.5f %.1f\n", with.launches / without.launches, with.thread / without.thread,
           with.all / without.all, with.wall / without.wall, without.launches / (2.0 * batches * each));
  }
  printf("through %ld\npast %ld\nran %u\n", launches[0], launches[1], *g_out);
  return 0;
}

static int captures() {
  make_out();
  uint32_t* others = nullptr;
  HIP(hipHostMalloc(&others, sizeof *others));
  *others = 0;
  std::atomic<bool> done{false};
  int beside = 0;
  std::thread launches([&] {
    hipStream_t stream;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    for (; !done; ++beside) {
      large<<<1, 64, 0, stream>>>(reinterpret_cast<float*>(others), 0);
      if (beside % 16 == 15) HIP(hipStreamSynchronize(stream));
    }
    HIP(hipStreamSynchronize(stream));
  });
  hipStream_t stream;
  HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  int graphs = 0, whole = 0;
  for (int i = 0; i < 20; ++i) {
    hipGraph_t graph;
    hipGraphExec_t ready;
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
    for (int at = 0; at < 5; ++at) small<<<1, 64, 0, stream>>>(g_out);
    HIP(hipStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    HIP(hipGraphGetNodes(graph, nullptr, &nodes));
    whole += nodes == 5;
    HIP(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
    for (int at = 0; at < 3; ++at, ++graphs) HIP(hipGraphLaunch(ready, stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipGraphExecDestroy(ready));
    HIP(hipGraphDestroy(graph));
  }
  done = true;
  launches.join();
  printf("graphs %d\nwhole %d\nran %u\nbeside %d\n", graphs, whole, *g_out, beside);
  return 0;
}

static int streams() {
  make_out();
  for (int i = 0; i < 60; ++i) {
    hipStream_t stream;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    for (int at = 0; at < 3; ++at) small<<<1, 64, 0, stream>>>(g_out);
    HIP(hipStreamDestroy(stream));
  }
  HIP(hipDeviceSynchronize());
  printf("launches 180\nran %u\n", *g_out);
  return 0;
}

static int reset() {
  int launches = 0;
  for (int round = 0; round < 3; ++round) {
    make_out();
    for (int i = 0; i < 100; ++i, ++launches) small<<<1, 64>>>(g_out);
    HIP(hipDeviceSynchronize());  // HIP 7.2 may die of a reset with work under way
    HIP(hipDeviceReset());
  }
  make_out();
  for (int i = 0; i < 30; ++i, ++launches) small<<<1, 64>>>(g_out);
  HIP(hipDeviceSynchronize());
  printf("launches %d\nlast %u\n", launches, *g_out);
  return 0;
}

static int modules(const char* file) {
  make_out();
  std::ifstream stream(file, std::ios::binary);
  const std::string code{std::istreambuf_iterator<char>(stream), {}};
  uint32_t size = 0;
  float* out = nullptr;
  for (int i = 0; i < 40; ++i) {
    hipModule_t module;
    hipFunction_t function;
    HIP(hipModuleLoadData(&module, code.data()));
    const bool first = i % 2 == 0;
    HIP(hipModuleGetFunction(&function, module, first ? "small" : "large"));
    void* small_arguments[] = {&g_out};
    void* large_arguments[] = {&out, &size};
    HIP(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, first ? small_arguments : large_arguments,
                              nullptr));
    HIP(hipDeviceSynchronize());
    HIP(hipModuleUnload(module));
  }
  printf("small 20\nlarge 20\n");
  return 0;
}

static int forked() {
  make_out();
  for (int i = 0; i < 50; ++i) small<<<1, 64>>>(g_out);
  const pid_t child = fork();
  if (child == 0) _exit(7);
  int status = 0;
  waitpid(child, &status, 0);
  for (int i = 0; i < 50; ++i) small<<<1, 64>>>(g_out);
  HIP(hipDeviceSynchronize());
  printf("launches 100\nran %u\nchild %d\n", *g_out, WEXITSTATUS(status));
  return 0;
}

static int unread(bool held) {
  make_out();
  for (int i = 0; i < 20; ++i) small<<<1, 64>>>(g_out);
  while (*const_cast<volatile uint32_t*>(g_out) < 20) usleep(1000);
  usleep(100'000);
  printf("launches 20\n");
  if (held) reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "guard_hold"))();
  return 0;
}

static int run(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "ways") return ways();
  if (how == "errors") return errors();
  if (how == "often") return often(argc > 2 ? atoi(argv[2]) : 20000);
  if (how == "past") return past(argc > 2 ? atof(argv[2]) : 1, argc > 3 ? atoi(argv[3]) : 64);
  if (how == "captures") return captures();
  if (how == "streams") return streams();
  if (how == "reset") return reset();
  if (how == "modules") return modules(argv[2]);
  if (how == "fork") return forked();
  if (how == "unread") return unread(argc > 2);
  return 2;
}

int main(int argc, char** argv) {
  const int code = run(argc, argv);
  fflush(stdout);
  usleep(100'000);  // HIP 7.2 dies now and then when exit() comes while its own thread still frees what has ended
  return code;
}
