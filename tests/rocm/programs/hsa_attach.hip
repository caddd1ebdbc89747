// HSA without HIP, for `tacho attach`: works until it is told to end (SIGTERM), with the kernels of attach.hip. Each round
// runs `mix` on a queue that is as old as the program and `step` on one that is made anew every 20 rounds, and copies 64 KiB
// to the GPU. Prints "ready" when all is made and, at its end, the number of rounds and what they computed.
//   hsa_attach CODE_OBJECT [PAUSE IN US] [bare] [shared] [again] [idle] [threads] [fork]
// bare: of `step` three more without a signal of their own, on both queues; shared: twice `mix` with one signal; again: as if
// a part of the program began and ended its use of HSA, every 100 rounds; idle: HSA is started by the first SIGUSR1 only; threads: three more
// run `step` on the old queue without a pause, each with a signal of its own that it makes and destroys; fork: SIGUSR1 forks
// a child that sleeps for a minute.
#include <fcntl.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define HSA(call)                                  \
  do {                                             \
    const hsa_status_t status_ = (call);           \
    if (status_ != HSA_STATUS_SUCCESS) {           \
      fprintf(stderr, "%s: %x\n", #call, status_); \
      exit(1);                                     \
    }                                              \
  } while (0)

// The host's versions of the kernels (bed.h).
static void mix_item(uint32_t at, uint32_t* out, uint32_t size, uint32_t round) {
  if (at < size) out[at] = out[at] * 31 + at + round;
}
static uint32_t stepped(uint32_t value) {
  return value * 17 + 3;
}
struct MixArguments {
  uint32_t *out, size, round;
};
extern "C" __attribute__((visibility("default"), used)) void bed_mix(const hsa_kernel_dispatch_packet_t* packet,
                                                                     const void* block) {
  MixArguments given;
  memcpy(&given, block, sizeof given);
  for (uint32_t at = 0; at < packet->grid_size_x; ++at) mix_item(at, given.out, given.size, given.round);
}
extern "C" __attribute__((visibility("default"), used)) void bed_step(const hsa_kernel_dispatch_packet_t*,
                                                                      const void* block) {
  uint32_t* out = nullptr;
  memcpy(&out, block, sizeof out);
  out[0] = stepped(out[0]);
}

static volatile std::sig_atomic_t g_stop = 0, g_start = 0;
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

constexpr uint32_t kSize = 1024;
constexpr size_t kBytes = 1 << 16;

struct Machine {  // what a runtime's start makes
  hsa_executable_t executable;
  hsa_queue_t *old = nullptr, *fresh = nullptr;
  hsa_signal_t done, other;
  uint64_t mix = 0, step = 0;
  char* host = nullptr;     // arguments; what is copied
  uint32_t* out = nullptr;  // what mix computes; behind it, what step does on the old and on the fresh queue
  void* device = nullptr;
};

static hsa_queue_t* make_queue() {
  hsa_queue_t* queue = nullptr;
  HSA(hsa_queue_create(g_gpu, 256, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX, UINT32_MAX, &queue));
  return queue;
}

static void start(Machine& machine, const char* code) {
  HSA(hsa_init());
  HSA(hsa_iterate_agents(see_agent, nullptr));
  machine.old = make_queue();
  machine.fresh = make_queue();
  hsa_code_object_reader_t reader;
  const int file = open(code, O_RDONLY);
  HSA(hsa_code_object_reader_create_from_file(file, &reader));
  HSA(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr,
                                &machine.executable));
  HSA(hsa_executable_load_agent_code_object(machine.executable, g_gpu, reader, nullptr, nullptr));
  HSA(hsa_executable_freeze(machine.executable, nullptr));
  HSA(hsa_code_object_reader_destroy(reader));
  close(file);
  machine.mix = kernel(machine.executable, "mix.kd");
  machine.step = kernel(machine.executable, "step.kd");
  hsa_amd_memory_pool_t of_gpu{}, of_cpu{};
  hsa_amd_agent_iterate_memory_pools(g_gpu, see_pool, &of_gpu);
  hsa_amd_agent_iterate_memory_pools(g_cpu, see_pool, &of_cpu);
  HSA(hsa_amd_memory_pool_allocate(of_gpu, kBytes, 0, &machine.device));
  void* memory = nullptr;
  HSA(hsa_amd_memory_pool_allocate(of_cpu, 2 * kBytes, 0, &memory));
  HSA(hsa_amd_agents_allow_access(1, &g_gpu, nullptr, memory));
  memset(memory, 0, 2 * kBytes);
  machine.host = static_cast<char*>(memory);
  machine.out = reinterpret_cast<uint32_t*>(machine.host + kBytes);
  HSA(hsa_signal_create(1, 0, nullptr, &machine.done));
  HSA(hsa_signal_create(1, 0, nullptr, &machine.other));
}

static void end(Machine& machine) {
  HSA(hsa_queue_destroy(machine.old));
  HSA(hsa_queue_destroy(machine.fresh));
  HSA(hsa_signal_destroy(machine.done));
  HSA(hsa_signal_destroy(machine.other));
  HSA(hsa_executable_destroy(machine.executable));
  HSA(hsa_amd_memory_pool_free(machine.device));
  HSA(hsa_amd_memory_pool_free(machine.host));
  HSA(hsa_shut_down());
}

// Launches `step` on the old queue until the program is to end. Returns what it must have computed.
static void keep_stepping(Machine& machine, uint32_t number, uint32_t& expected) {
  uint32_t* const counted = machine.out + kSize + 16 * (number + 1);
  char* const arguments = machine.host + 1024 + 256 * number;
  memcpy(arguments, &counted, sizeof counted);
  while (g_stop == 0) {
    hsa_signal_t done;
    HSA(hsa_signal_create(1, 0, nullptr, &done));
    for (int i = 0; i < 50 && g_stop == 0; ++i) {
      hsa_signal_store_relaxed(done, 1);
      launch(machine.old, machine.step, 64, arguments, done);
      wait(done);
      expected = stepped(expected);
    }
    HSA(hsa_signal_destroy(done));
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int pause = argc > 2 ? atoi(argv[2]) : 1000;
  const auto given = [&](const char* word) {
    for (int i = 3; i < argc; ++i)
      if (strcmp(argv[i], word) == 0) return true;
    return false;
  };
  const bool bare = given("bare"), shared = given("shared"), again = given("again");
  signal(SIGTERM, [](int) { g_stop = 1; });
  signal(SIGUSR1, [](int) { g_start = 1; });
  Machine machine;
  if (given("idle")) {
    puts("ready");
    fflush(stdout);
    while (g_start == 0 && g_stop == 0) usleep(1000);
  }
  start(machine, argv[1]);
  if (!given("idle")) puts("ready");
  fflush(stdout);
  static uint32_t expected[kSize] = {};
  uint32_t steps[2] = {};
  uint32_t round = 0, stepped_by[3] = {};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; given("threads") && i < 3; ++i)
    threads.emplace_back([&machine, &stepped_by, i] { keep_stepping(machine, i, stepped_by[i]); });
  for (; g_stop == 0; ++round) {
    if (given("fork") && g_start != 0) {
      g_start = 0;
      if (fork() == 0) {
        sleep(60);
        _exit(0);
      }
    }
    if (again && round % 100 == 99) {
      HSA(hsa_init());
      HSA(hsa_shut_down());
    }
    if (round % 20 == 0) {
      HSA(hsa_queue_destroy(machine.fresh));
      machine.fresh = make_queue();
    }
    const MixArguments arguments{machine.out, kSize, round};
    memcpy(machine.host, &arguments, sizeof arguments);
    for (int i = 0; i < 2; ++i) {
      uint32_t* const counted = machine.out + kSize + i;
      memcpy(machine.host + 256 * (i + 1), &counted, sizeof counted);
    }
    char *const of_old = machine.host + 256, *const of_fresh = machine.host + 512;
    const int mixes = shared ? 2 : 1;
    hsa_signal_store_relaxed(machine.done, mixes);
    for (int i = 0; i < mixes; ++i) {
      launch(machine.old, machine.mix, kSize, machine.host, machine.done);
      for (uint32_t at = 0; at < kSize; ++at) mix_item(at, expected, kSize, round);
    }
    hsa_signal_store_screlease(machine.other, 1);
    launch(machine.fresh, machine.step, 64, of_fresh, machine.other);
    steps[1] = stepped(steps[1]);
    wait(machine.done);
    wait(machine.other);
    if (bare) {
      launch(machine.old, machine.step, 64, of_old, {0});
      steps[0] = stepped(steps[0]);
      for (int i = 0; i < 2; ++i) {
        launch(machine.fresh, machine.step, 64, of_fresh, {0});
        steps[1] = stepped(steps[1]);
      }
      hsa_signal_store_relaxed(machine.other, 1);
      launch(machine.fresh, machine.step, 64, of_fresh, machine.other);
      steps[1] = stepped(steps[1]);
      wait(machine.other);
    }
    hsa_signal_store_relaxed(machine.done, 1);
    HSA(hsa_amd_memory_async_copy(machine.device, g_gpu, machine.host, g_cpu, kBytes, 0, nullptr, machine.done));
    wait(machine.done);
    if (pause != 0) usleep(static_cast<useconds_t>(pause));
  }
  for (std::thread& thread : threads) thread.join();
  // Behind everything on the old queue.
  uint32_t* const counted = machine.out + kSize;
  memcpy(machine.host + 256, &counted, sizeof counted);
  hsa_signal_store_relaxed(machine.done, 1);
  launch(machine.old, machine.step, 64, machine.host + 256, machine.done);
  steps[0] = stepped(steps[0]);
  wait(machine.done);
  bool right = true;
  for (uint32_t i = 0; i < 3; ++i) right = right && machine.out[kSize + 16 * (i + 1)] == stepped_by[i];
  right = right && memcmp(expected, machine.out, sizeof expected) == 0 && machine.out[kSize] == steps[0] &&
          machine.out[kSize + 1] == steps[1];
  printf("%u rounds: %s\n", round, right ? "right" : "wrong");
  end(machine);
  return 0;
}
