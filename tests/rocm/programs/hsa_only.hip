// HSA without HIP, for `tacho watch`: hsa_only CODE_OBJECT COUNT [own|none]. Launches kernel `small` COUNT times with 128
// work-items, and `large` every fourth time, with completion signals of its own or with one behind all; copies 64 KiB to the
// GPU and 32 KiB back. hsa_only CODE_OBJECT SECONDS past: batches of 64 launches and a wait, in turns of 16 on a queue like
// other queues and on one for cooperative launches, of which a GPU has one, and which tools leave alone.
#include <fcntl.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define HSA(call)                                  \
  do {                                             \
    const hsa_status_t status_ = (call);           \
    if (status_ != HSA_STATUS_SUCCESS) {           \
      fprintf(stderr, "%s: %x\n", #call, status_); \
      exit(1);                                     \
    }                                              \
  } while (0)

static hsa_agent_t g_gpu{}, g_cpu{};

static hsa_status_t see_agent(hsa_agent_t agent, void*) {
  hsa_device_type_t type;
  HSA(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
  (type == HSA_DEVICE_TYPE_GPU ? g_gpu : g_cpu) = agent;
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t see_pool(hsa_amd_memory_pool_t pool, void* found) {
  bool allowed = false;
  HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allowed));
  if (!allowed) return HSA_STATUS_SUCCESS;
  *static_cast<hsa_amd_memory_pool_t*>(found) = pool;
  return HSA_STATUS_INFO_BREAK;
}

static uint64_t kernel(hsa_executable_t executable, const char* name) {
  hsa_executable_symbol_t symbol;
  uint64_t object = 0;
  HSA(hsa_executable_get_symbol_by_name(executable, name, &g_gpu, &symbol));
  HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object));
  return object;
}

static void wait(hsa_signal_t signal) {
  while (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) >= 1) {
  }
}

static void launch(hsa_queue_t* queue, uint64_t object, uint32_t items, void* arguments, hsa_signal_t completion) {
  const uint64_t at = hsa_queue_add_write_index_relaxed(queue, 1);
  // Half full at most: ROCr's own intercept queues (7.2, with assertions) stop a program that fills one to its last slot.
  while (at - hsa_queue_load_read_index_scacquire(queue) >= queue->size / 2) usleep(10);
  auto* const packet = static_cast<hsa_kernel_dispatch_packet_t*>(queue->base_address) + at % queue->size;
  memset(reinterpret_cast<char*>(packet) + 4, 0, sizeof *packet - 4);
  packet->workgroup_size_x = 64;
  packet->workgroup_size_y = packet->workgroup_size_z = 1;
  packet->grid_size_x = items;
  packet->grid_size_y = packet->grid_size_z = 1;
  packet->kernel_object = object;
  packet->kernarg_address = arguments;
  packet->completion_signal = completion;
  constexpr uint32_t kHeader = HSA_PACKET_TYPE_KERNEL_DISPATCH | 1 << HSA_PACKET_HEADER_BARRIER;
  __atomic_store_n(reinterpret_cast<uint32_t*>(packet), kHeader | 1u << 16, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(at));
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

static void past(double seconds, hsa_queue_t* queue, uint64_t object, void* arguments, hsa_signal_t done) {
  constexpr int kEach = 64, kBatches = 16;
  hsa_queue_t* cooperative = nullptr;
  HSA(hsa_queue_create(g_gpu, 256, HSA_QUEUE_TYPE_COOPERATIVE, nullptr, nullptr, UINT32_MAX, UINT32_MAX, &cooperative));
  hsa_queue_t* const queues[] = {queue, cooperative};
  long launches[2] = {};
  const auto block = [&](int kind, Taken& taken) {
    const double from = now_ns(CLOCK_MONOTONIC), all_from = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int batch = 0; batch < kBatches; ++batch) {
      hsa_signal_store_relaxed(done, 1);
      const double begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
      for (int i = 0; i < kEach; ++i)
        launch(queues[kind], object, 128, arguments, i == kEach - 1 ? done : hsa_signal_t{0});
      taken.launches += now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
      wait(done);
      taken.thread += now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    }
    taken.all += now_ns(CLOCK_PROCESS_CPUTIME_ID) - all_from;
    taken.wall += now_ns(CLOCK_MONOTONIC) - from;
    launches[kind] += kBatches * kEach;
  };
  const double end = now_ns(CLOCK_MONOTONIC) + seconds * 1e9;
  for (int round = -1; now_ns(CLOCK_MONOTONIC) < end || round < 1; ++round) {
    Taken taken[2];
    for (const int turn : {0, 1, 1, 0}) block(turn ^ (round & 1), taken[turn ^ (round & 1)]);
    const auto& [with, without] = taken;
    if (round >= 0)  // the first one warms up
      printf("round %.5f %.5f %.5f %.5f %.1f\n", with.launches / without.launches, with.thread / without.thread,
             with.all / without.all, with.wall / without.wall, without.launches / (2.0 * kBatches * kEach));
  }
  printf("through %ld\npast %ld\n", launches[0], launches[1]);
  HSA(hsa_queue_destroy(cooperative));
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int count = atoi(argv[2]);
  const bool own_signals = argc > 3 && strcmp(argv[3], "own") == 0;
  HSA(hsa_init());
  HSA(hsa_iterate_agents(see_agent, nullptr));
  hsa_queue_t* queue = nullptr;
  HSA(hsa_queue_create(g_gpu, 256, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX, UINT32_MAX, &queue));
  hsa_code_object_reader_t reader;
  hsa_executable_t executable;
  HSA(hsa_code_object_reader_create_from_file(open(argv[1], O_RDONLY), &reader));
  HSA(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr, &executable));
  HSA(hsa_executable_load_agent_code_object(executable, g_gpu, reader, nullptr, nullptr));
  HSA(hsa_executable_freeze(executable, nullptr));
  const uint64_t small = kernel(executable, "small.kd"), large = kernel(executable, "large.kd");
  hsa_amd_memory_pool_t of_gpu{}, of_cpu{};
  hsa_amd_agent_iterate_memory_pools(g_gpu, see_pool, &of_gpu);
  hsa_amd_agent_iterate_memory_pools(g_cpu, see_pool, &of_cpu);
  void *device = nullptr, *host = nullptr;
  HSA(hsa_amd_memory_pool_allocate(of_gpu, 1 << 20, 0, &device));
  HSA(hsa_amd_memory_pool_allocate(of_cpu, 2 << 20, 0, &host));
  HSA(hsa_amd_agents_allow_access(1, &g_gpu, nullptr, host));
  memset(host, 0, 2 << 20);
  hsa_signal_t done;
  HSA(hsa_signal_create(1, 0, nullptr, &done));
  HSA(hsa_amd_memory_async_copy(device, g_gpu, host, g_cpu, 65536, 0, nullptr, done));
  wait(done);
  if (argc > 3 && strcmp(argv[3], "past") == 0) {
    past(atof(argv[2]), queue, small, host, done);
    HSA(hsa_queue_destroy(queue));
    HSA(hsa_shut_down());
    return 0;
  }
  int waits = 1, large_ones = 0;
  for (int i = 0; i < count; ++i) {
    const bool last = i == count - 1;
    if (i % 4 == 0) {
      launch(queue, large, 4096, host, {0});
      ++large_ones;
    }
    if (own_signals || last) hsa_signal_store_relaxed(done, 1);
    launch(queue, small, 128, host, own_signals || last ? done : hsa_signal_t{0});
    if (!own_signals && !last) continue;
    wait(done);
    ++waits;
  }
  hsa_signal_store_relaxed(done, 1);
  HSA(hsa_amd_memory_async_copy(host, g_cpu, device, g_gpu, 32768, 0, nullptr, done));
  wait(done);
  printf("small %d\nlarge %d\nwaits %d\n", count, large_ones, waits + 1);
  HSA(hsa_queue_destroy(queue));
  HSA(hsa_shut_down());
  return 0;
}
