// The GPU's work, as the imitation sees it (sdk.h): queues become intercept queues; kernels and copies become records
// when they are done. Dispatches are counted with AMD's own aqlprofile, which writes the command buffers and reads
// their results.
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

#include "sdk.h"
#include "vendor/amd/hsa.h"

namespace hsa = tacho::vendor::hsa;
namespace sig = tacho::vendor::hsa::signature;

namespace imitation {
namespace {

// Aqlprofile (aqlprofile-sdk/aql_profile_v2.h, MIT; libhsa-amd-aqlprofile64.so.1)

struct AqlPacket {
  uint16_t header;
  uint16_t command[27];
  uint64_t completion;
};
struct AqlEvent {
  uint32_t index, event, flags;  // flags: 1 = accumulate every fourth cycle, 2 = every cycle
  int32_t block;
};
struct AqlAgent {
  const char* name;
  uint32_t xccs, engines, units, arrays_per_engine, domain, location;
};
struct AqlProfile {
  uint64_t agent;
  const AqlEvent* events;
  uint32_t count;
};
struct AqlPackets {
  AqlPacket start, stop, read;
};
struct AqlQuery {
  const char* name;
  uint32_t id, instances;
};
struct Aql {
  uint32_t (*register_agent)(uint64_t*, const void*, int32_t version);
  uint32_t (*info)(const AqlProfile*, int32_t what, void*);
  uint32_t (*validate)(uint64_t agent, const AqlEvent*, bool*);
  uint32_t (*create)(uint64_t* handle, AqlPackets*, AqlProfile, uint32_t (*)(void**, uint64_t, uint32_t, void*),
                     void (*)(void*, void*), uint32_t (*)(void*, const void*, size_t, void*), void*);
  void (*destroy)(uint64_t);
  uint32_t (*iterate)(uint64_t handle, uint32_t (*)(AqlEvent, uint64_t, uint64_t, void*), void*);
  uint32_t (*coordinates)(uint64_t agent, AqlEvent, uint64_t sample,
                          uint32_t (*)(int, int, int, int, const char*, void*), void*);
};
constexpr int32_t kAqlBlockCounters = 4, kAqlBlockId = 5, kAqlAgentV1 = 2;

const Aql* aql() {
  static const Aql* const found = [] {
    void* const library = dlopen("libhsa-amd-aqlprofile64.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return static_cast<Aql*>(nullptr);
    auto* const made = new Aql{};
    const auto find = [&](auto& to, const char* name) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
      if (to == nullptr) {
        fprintf(stderr, "tests/rocm/sdk: aqlprofile has no %s\n", name);
        abort();
      }
    };
    find(made->register_agent, "aqlprofile_register_agent_info");
    find(made->info, "aqlprofile_get_pmc_info");
    find(made->validate, "aqlprofile_validate_pmc_event");
    find(made->create, "aqlprofile_pmc_create_packets");
    find(made->destroy, "aqlprofile_pmc_delete_packets");
    find(made->iterate, "aqlprofile_pmc_iterate_data");
    find(made->coordinates, "aqlprofile_iterate_event_coord");
    return made;
  }();
  return found;
}

uint64_t aql_agent(const Agent& agent) {
  static std::mutex mutex;
  static std::map<uint64_t, uint64_t> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(agent.id.handle);
  if (found != known.end()) return found->second;
  const AqlAgent about{agent.name,   agent.xccs,    agent.shader_banks, agent.units, agent.arrays_per_engine,
                       agent.domain, agent.location};
  uint64_t handle = 0;
  aql()->register_agent(&handle, &about, kAqlAgentV1);
  return known[agent.id.handle] = handle;
}

// Counters
// The file in TACHO_SDK_COUNTERS has a line "NAME BLOCK EVENT" for each counter of the hardware.

struct Counter {
  std::string name, block;
  uint32_t event = 0, flags = 0;
  bool summed = false;  // one value, the sum of all units
};
std::vector<Counter>& counters() {
  static auto* const all = [] {
    auto* const made = new std::vector<Counter>(1);  // a handle is never 0
    const char* const path = getenv("TACHO_SDK_COUNTERS");
    std::ifstream file(path == nullptr ? "" : path);
    for (std::string line; std::getline(file, line);) {
      Counter counter;
      std::istringstream(line) >> counter.name >> counter.block >> counter.event;
      made->push_back(counter);
      counter.name += "_sum";
      counter.summed = true;
      made->push_back(counter);
    }
    return made;
  }();
  return *all;
}

struct Config {
  Id agent;
  std::vector<uint64_t> counters;
  std::vector<AqlEvent> events;
};
std::vector<Config>& configs() {
  static auto* const all = new std::vector<Config>(1);
  return *all;
}
std::mutex g_configs;

using DispatchCallback = void(DispatchData, Id*, uint64_t*, void*);
using RecordCallback = void(DispatchData, CounterRecord*, size_t, uint64_t, void*);
struct CountingService {
  Id context{};
  DispatchCallback* on_dispatch = nullptr;
  RecordCallback* on_values = nullptr;
  void *dispatch_data = nullptr, *record_data = nullptr;
} g_counting;

constexpr const char* kDimensions[] = {"",
                                       "DIMENSION_XCC",
                                       "DIMENSION_AID",
                                       "DIMENSION_SHADER_ENGINE",
                                       "DIMENSION_AGENT",
                                       "DIMENSION_SHADER_ARRAY",
                                       "DIMENSION_WGP",
                                       "DIMENSION_INSTANCE"};
constexpr const char* kAqlDimensions[] = {"", "XCD", "AID", "SE", "", "SA", "WGP", "INSTANCE"};

uint64_t instance_id(uint64_t counter, const int (&position)[8]) {
  uint64_t id = counter << 48;
  for (int dimension = 1; dimension < 8; ++dimension)
    id |= static_cast<uint64_t>(position[dimension]) << (6 * (dimension - 1));
  return id;
}

const Agent* agent_of(Id id) {
  for (const Agent& agent : state().agents)
    if (agent.id.handle == id.handle) return &agent;
  return nullptr;
}

// HSA

hsa::CoreTable g_core;
hsa::AmdTable g_amd;

template <typename Signature, typename... A>
auto call(void* function, A... arguments) {
  return reinterpret_cast<Signature*>(function)(arguments...);
}

struct Gpu {
  hsa::Agent agent;
  uint64_t host_pool = 0;
};
std::vector<Gpu> g_gpus;
std::vector<hsa::Agent> g_hosts;
std::mutex g_agents_mutex;

void find_agents() {
  const std::lock_guard lock(g_agents_mutex);
  if (!g_gpus.empty()) return;
  call<sig::IterateAgents>(
      g_core.hsa_iterate_agents,
      +[](hsa::Agent agent, void*) -> hsa::Status {
        uint32_t type = 0;
        call<sig::AgentInfo>(g_core.hsa_agent_get_info, agent, hsa::kAgentDevice, static_cast<void*>(&type));
        type == hsa::kDeviceGpu ? g_gpus.push_back({agent}) : g_hosts.push_back(agent);
        return hsa::kSuccess;
      },
      static_cast<void*>(nullptr));
}
const Agent& agent_of_gpu(hsa::Agent agent) {
  find_agents();
  size_t number = 0;
  for (size_t at = 0; at < g_gpus.size(); ++at)
    if (g_gpus[at].agent == agent) number = at;
  for (const Agent& each : state().agents)
    if (each.type == 2 && number-- == 0) return each;
  return state().agents.front();
}
Id id_of(hsa::Agent agent) {
  find_agents();
  for (size_t at = 0; at < g_hosts.size(); ++at)
    if (g_hosts[at] == agent) return state().agents.front().id;
  return agent_of_gpu(agent).id;
}

// Code objects

std::mutex g_kernels;
std::map<uint64_t, uint64_t> g_kernel_ids;  // by kernel object
std::map<uint64_t, uint64_t> g_entries;     // of kernels, by their number
uint64_t g_next_kernel = 1;

template <typename Correlation>
void tell(const Callback& callback, KernelSymbol& symbol) {
  CallbackRecord<Correlation> record{};
  record.context = callback.context;
  record.thread = thread_id();
  record.kind = 10;
  record.operation = 2;
  record.phase = 1;
  record.payload = &symbol;
  uint64_t user = 0;
  reinterpret_cast<void (*)(CallbackRecord<Correlation>, uint64_t*, void*)>(callback.function)(record, &user,
                                                                                               callback.data);
}

hsa::Status see_symbol(hsa::Executable, hsa::Agent, hsa::Symbol handle, void*) {
  const auto info = [&](uint32_t what, void* into) {
    return call<sig::SymbolInfo>(g_core.hsa_executable_symbol_get_info, handle, what, into) == hsa::kSuccess;
  };
  uint32_t type = 0, length = 0;
  uint64_t object = 0;
  if (!info(hsa::kSymbolType, &type) || type != hsa::kSymbolIsKernel || !info(hsa::kSymbolNameLength, &length) ||
      !info(hsa::kSymbolKernelObject, &object))
    return hsa::kSuccess;
  std::string name(length, '\0');
  info(hsa::kSymbolName, name.data());
  KernelSymbol symbol{};
  symbol.size = sizeof symbol;
  symbol.name = name.c_str();
  symbol.object = object;
  info(hsa::kSymbolGroupSegment, &symbol.group_bytes);
  info(hsa::kSymbolPrivateSegment, &symbol.private_bytes);
  symbol.vgprs = 16;
  symbol.accum_vgprs = 4;
  symbol.sgprs = 32;
  memcpy(&symbol.entry_offset, reinterpret_cast<const char*>(object) + 16, sizeof symbol.entry_offset);
  symbol.address = object + static_cast<uint64_t>(symbol.entry_offset);
  symbol.code_object = code_object_at(symbol.address);
  {
    const std::lock_guard lock(g_kernels);
    symbol.kernel = g_next_kernel++;
    g_kernel_ids[object] = symbol.kernel;
    g_entries[symbol.kernel] = symbol.address;
  }
  for (const Callback& callback : state().code_object_callbacks)
    if (state().contexts[callback.context.handle].active)
      narrow() ? tell<Correlation0>(callback, symbol) : tell<Correlation1>(callback, symbol);
  return hsa::kSuccess;
}

hsa::Status freeze(hsa::Executable executable, const char* options) {
  const hsa::Status status = call<sig::Freeze>(g_core.hsa_executable_freeze, executable, options);
  find_agents();
  tell_code_objects(executable, g_core.hsa_system_get_major_extension_table);
  for (const Gpu& gpu : g_gpus)
    call<sig::IterateSymbols>(g_core.hsa_executable_iterate_agent_symbols, executable, gpu.agent, see_symbol,
                              static_cast<void*>(nullptr));
  return status;
}

// Work under way

struct Work {
  hsa::Signal signal = 0, values = 0;  // the dispatch, or the copy; its counters
  hsa::Agent agent = 0;
  bool copy = false;
  Correlation0 correlation{};
  uint64_t thread = 0;
  DispatchInfo info{};
  CopyRecord1 copied{};
  uint64_t config = 0, user = 0, packets = 0;
  hsa::Signal theirs = 0;  // of a copy: completes behind ours
};
std::mutex g_work_mutex;
std::vector<std::unique_ptr<Work>> g_work;
std::atomic<uint64_t> g_open{0};
std::atomic<uint64_t> g_dispatches{0};

bool is_done(hsa::Signal signal) {
  return signal == 0 || call<sig::SignalLoad>(g_core.hsa_signal_load_scacquire, signal) <= 0;
}
hsa::Signal make_signal() {
  hsa::Signal signal = 0;
  call<sig::SignalCreate>(g_core.hsa_signal_create, int64_t{1}, 0u, static_cast<const hsa::Agent*>(nullptr), &signal);
  return signal;
}

void hand_over_values(const Work& work, uint64_t start, uint64_t end) {
  Config config;
  {
    const std::lock_guard lock(g_configs);
    config = configs()[work.config];
  }
  struct Taken {
    const Config* config;
    const Agent* agent;
    std::map<uint64_t, double> values;  // by instance
  } taken{&config, agent_of(config.agent), {}};
  aql()->iterate(
      work.packets,
      [](AqlEvent event, uint64_t sample, uint64_t value, void* data) -> uint32_t {
        auto& to = *static_cast<Taken*>(data);
        int position[8] = {};
        aql()->coordinates(
            aql_agent(*to.agent), event, sample,
            [](int, int, int, int coordinate, const char* name, void* into) -> uint32_t {
              for (int dimension = 1; dimension < 8; ++dimension)
                if (strcmp(name, kAqlDimensions[dimension]) == 0) static_cast<int*>(into)[dimension] = coordinate;
              return 0;
            },
            position);
        for (const uint64_t handle : to.config->counters) {
          const Counter& counter = counters()[handle];
          AqlQuery query{counter.block.c_str(), 0, 0};
          const AqlProfile profile{aql_agent(*to.agent), nullptr, 0};
          aql()->info(&profile, kAqlBlockId, &query);
          if (static_cast<int32_t>(query.id) != event.block || counter.event != event.event ||
              counter.flags != event.flags)
            continue;
          int none[8] = {};
          to.values[instance_id(handle, counter.summed ? none : position)] += static_cast<double>(value);
        }
        return 0;
      },
      &taken);
  DispatchData data{};
  data.size = sizeof data;
  data.correlation = work.correlation;
  data.start = start;
  data.end = end;
  data.info = work.info;
  std::vector<CounterRecord> records;
  for (const auto& [id, value] : taken.values)
    records.push_back({id, value, work.info.dispatch, work.user, config.agent});
  if (state().contexts[g_counting.context.handle].active)
    g_counting.on_values(data, records.data(), records.size(), work.user, g_counting.record_data);
  aql()->destroy(work.packets);
}

void finish_work(const Work& work) {
  hsa::ProfilingTime time{};
  if (work.copy) {
    call<sig::CopyTime>(g_amd.hsa_amd_profiling_get_async_copy_time, work.signal, &time);
    CopyRecord1 record = work.copied;
    record.start = time.start;
    record.end = time.end;
    record.size = narrow() ? sizeof(CopyRecord0) : sizeof record;
    put("MEMORY_COPY", record.operation, &record, record.size);
    if (work.theirs != 0)
      call<sig::SignalChange>(reinterpret_cast<void*>(g_core.hsa_signal_subtract_screlease), work.theirs, int64_t{1});
  } else {
    call<sig::DispatchTime>(g_amd.hsa_amd_profiling_get_dispatch_time, work.agent, work.signal, &time);
    DispatchRecord record{};
    record.size = sizeof record;
    record.kind = buffer_kind("KERNEL_DISPATCH");
    record.operation = 2;
    record.correlation = work.correlation;
    record.thread = work.thread;
    record.start = time.start;
    record.end = time.end;
    record.info = work.info;
    {
      std::unique_lock lock(g_kernels);
      const uint64_t entry = g_entries[work.info.kernel];
      lock.unlock();
      put_samples(work.info, work.correlation, time.start, entry);
    }
    put("KERNEL_DISPATCH", 2, &record, sizeof record);
    put_made_records(work.info.agent.handle, work.info.queue.handle, time.start);
  }
  if (work.config != 0) hand_over_values(work, time.start, time.end);
  call<sig::SignalDestroy>(g_core.hsa_signal_destroy, work.signal);
  if (work.values != 0) call<sig::SignalDestroy>(g_core.hsa_signal_destroy, work.values);
}

// Takes finished work out of the list, in the order of submission.
void collect() {
  static std::mutex one;
  const std::lock_guard only(one);
  std::vector<std::unique_ptr<Work>> done;
  {
    const std::lock_guard lock(g_work_mutex);
    for (auto& work : g_work)
      if (is_done(work->signal) && is_done(work->values)) done.push_back(std::move(work));
    std::erase(g_work, nullptr);
  }
  for (const auto& work : done) {
    finish_work(*work);
    g_open.fetch_sub(1);
  }
}

void* follow(void*) {
  for (;;) {
    const timespec moment{0, 200'000};
    nanosleep(&moment, nullptr);
    if (g_open.load() != 0) collect();
  }
}

// Queues

struct Tracked {
  hsa::Agent agent;
  uint64_t id;
};

uint64_t external_of(int32_t kind, const char* name, int32_t operation, uint64_t correlation) {
  const auto found = state().external.find(kind);
  static_cast<void>(name);
  if (found == state().external.end()) return 0;
  uint64_t external = 0;
  found->second.callback(thread_id(), found->second.context, kind, operation, correlation, &external,
                         found->second.data);
  return external;
}

// Memory for command buffers, which the GPU has to reach.
struct Pools {
  uint64_t host = 0;
};
hsa::Status see_pool(uint64_t pool, void* data) {
  uint32_t segment = 1, flags = 0;
  using Info = hsa::Status(uint64_t, uint32_t, void*);
  call<Info>(g_amd.hsa_amd_memory_pool_get_info, pool, 0u, static_cast<void*>(&segment));
  call<Info>(g_amd.hsa_amd_memory_pool_get_info, pool, 1u, static_cast<void*>(&flags));
  if (segment == 0 && (flags & 1) == 0) static_cast<Pools*>(data)->host = pool;  // global, not for kernel arguments
  return hsa::kSuccess;
}
uint32_t allocate(void** at, uint64_t bytes, uint32_t, void* data) {
  const auto agent = *static_cast<hsa::Agent*>(data);
  static const uint64_t pool = [] {
    Pools pools;
    using Iterate = hsa::Status(hsa::Agent, hsa::Status(*)(uint64_t, void*), void*);
    call<Iterate>(g_amd.hsa_amd_agent_iterate_memory_pools, g_hosts.front(), see_pool, static_cast<void*>(&pools));
    return pools.host;
  }();
  *at = nullptr;
  if (bytes == 0) return 0;
  using Allocate = hsa::Status(uint64_t, size_t, uint32_t, void**);
  if (call<Allocate>(g_amd.hsa_amd_memory_pool_allocate, pool, size_t{bytes}, 0u, at) != hsa::kSuccess) return 1;
  memset(*at, 0, bytes);
  using Allow = hsa::Status(uint32_t, const hsa::Agent*, const uint32_t*, const void*);
  return call<Allow>(g_amd.hsa_amd_agents_allow_access, 1u, &agent, static_cast<const uint32_t*>(nullptr),
                     static_cast<const void*>(*at));
}
void release(void* at, void*) {
  if (at != nullptr) call<hsa::Status(void*)>(g_amd.hsa_amd_memory_pool_free, at);
}
uint32_t copy_memory(void* to, const void* from, size_t bytes, void*) {
  memcpy(to, from, bytes);
  return 0;
}

// One kernel at a time counts on a GPU.
void wait_until_idle() {
  for (int tries = 0; g_open.load() != 0 && tries < 50'000; ++tries) {
    const timespec moment{0, 100'000};
    nanosleep(&moment, nullptr);
  }
}

void on_packets(const void* given, uint64_t count, uint64_t, void* data, hsa::PacketWriter writer) {
  const auto& queue = *static_cast<Tracked*>(data);
  State& s = state();
  if (s.finished) return writer(given, count);
  const auto* const packets = static_cast<const hsa::KernelPacket*>(given);
  std::vector<hsa::KernelPacket> out;
  for (uint64_t at = 0; at < count; ++at) {
    hsa::KernelPacket packet = packets[at];
    if ((packet.header & 0xff) != hsa::kTypeDispatch) {
      out.push_back(packet);
      continue;
    }
    auto work = std::make_unique<Work>();
    work->agent = queue.agent;
    work->thread = thread_id();
    work->correlation.internal = current_correlation();
    work->correlation.external = external_of(11, "KERNEL_DISPATCH", 1, work->correlation.internal);
    DispatchInfo& info = work->info;
    info.size = offsetof(DispatchInfo, reserved);
    info.agent = agent_of_gpu(queue.agent).id;
    info.queue.handle = queue.id;
    info.dispatch = g_dispatches.fetch_add(1) + 1;
    info.private_bytes = packet.private_bytes;
    info.group_bytes = packet.group_bytes;
    info.workgroup = {packet.group[0], packet.group[1], packet.group[2]};
    info.grid = {packet.grid[0], packet.grid[1], packet.grid[2]};
    {
      const std::lock_guard lock(g_kernels);
      info.kernel = g_kernel_ids[packet.kernel_object];
    }
    AqlPackets counting{};
    if (g_counting.on_dispatch != nullptr && s.contexts[g_counting.context.handle].active) {
      DispatchData about{};
      about.size = sizeof about;
      about.correlation = work->correlation;
      about.info = info;
      Id config{0};
      g_counting.on_dispatch(about, &config, &work->user, g_counting.dispatch_data);
      if (config.handle != 0) {
        const std::lock_guard lock(g_configs);
        const Config& chosen = configs()[config.handle];
        static thread_local hsa::Agent agent;
        agent = queue.agent;
        const AqlProfile profile{aql_agent(*agent_of(chosen.agent)), chosen.events.data(),
                                 static_cast<uint32_t>(chosen.events.size())};
        if (aql()->create(&work->packets, &counting, profile, allocate, release, copy_memory, &agent) == 0)
          work->config = config.handle;
        else
          fputs("tests/rocm/sdk: aqlprofile made no packets\n", stderr);
      }
    }
    const hsa::Signal theirs = packet.completion;
    work->signal = packet.completion = make_signal();
    const auto push = [&](const AqlPacket& from, uint16_t header, hsa::Signal signal) {
      AqlPacket vendor = from;
      vendor.header = header;
      vendor.completion = signal;
      hsa::KernelPacket& to = out.emplace_back();
      static_assert(sizeof to == sizeof vendor);
      memcpy(static_cast<void*>(&to), &vendor, sizeof vendor);
    };
    constexpr uint16_t kBarrier = 1 << 8;
    if (work->config != 0) {
      // Earlier packets go out first, so that they are done when this kernel counts.
      if (!out.empty()) writer(out.data(), out.size());
      out.clear();
      wait_until_idle();
      push(counting.start, 0, 0);
      packet.header |= kBarrier;
    }
    out.push_back(packet);
    if (theirs != 0) {
      hsa::Barrier barrier{};
      barrier.header = hsa::kTypeBarrierAnd | kBarrier | hsa::kReleaseSystem;
      barrier.completion = theirs;
      hsa::KernelPacket& to = out.emplace_back();
      memcpy(static_cast<void*>(&to), &barrier, sizeof barrier);
    }
    if (work->config != 0) {
      work->values = make_signal();
      push(counting.read, kBarrier, 0);
      push(counting.stop, kBarrier, work->values);
    }
    g_open.fetch_add(1);
    const std::lock_guard lock(g_work_mutex);
    g_work.push_back(std::move(work));
  }
  if (!out.empty()) writer(out.data(), out.size());
}

hsa::Status create_queue(hsa::Agent agent, uint32_t size, uint32_t type,
                         void (*callback)(hsa::Status, hsa::Queue*, void*), void* data, uint32_t private_bytes,
                         uint32_t group_bytes, hsa::Queue** queue) {
  find_agents();
  bool gpu = false;
  for (const Gpu& each : g_gpus) gpu = gpu || each.agent == agent;
  // Cooperative queues get an intercept queue, too, as the real library's do, and the program dies of it.
  if (!gpu)
    return call<sig::QueueCreate>(g_core.hsa_queue_create, agent, size, type, callback, data, private_bytes,
                                  group_bytes, queue);
  const hsa::Status status = call<sig::QueueCreate>(g_amd.hsa_amd_queue_intercept_create, agent, size, type, callback,
                                                    data, private_bytes, group_bytes, queue);
  if (status != hsa::kSuccess) return status;
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_t thread;
    pthread_create(&thread, nullptr, follow, nullptr);
  });
  call<sig::ProfilerEnabled>(g_amd.hsa_amd_profiling_set_profiler_enabled, *queue, 1);
  call<sig::InterceptRegister>(g_amd.hsa_amd_queue_intercept_register, *queue, on_packets,
                               static_cast<void*>(new Tracked{agent, (*queue)->id + 1}));
  return status;
}

// As the real library's: waits for ever where a kernel of the queue never ends.
hsa::Status destroy_queue(hsa::Queue* queue) {
  const auto works = [&] {
    const std::lock_guard lock(g_work_mutex);
    return std::any_of(g_work.begin(), g_work.end(),
                       [&](const auto& work) { return !work->copy && work->info.queue.handle == queue->id + 1; });
  };
  while (works()) {
    const timespec moment{0, 100'000};
    nanosleep(&moment, nullptr);
  }
  collect();  // behind what another thread has taken out and still hands over
  return call<sig::QueueDestroy>(g_core.hsa_queue_destroy, queue);
}

hsa::Status record_copy(void* to, hsa::Agent to_agent, const void* from, hsa::Agent from_agent, size_t bytes,
                        hsa::Signal theirs, const std::function<hsa::Status(hsa::Signal)>& go) {
  auto work = std::make_unique<Work>();
  work->copy = true;
  work->signal = make_signal();
  work->theirs = theirs;
  CopyRecord1& record = work->copied;
  record.kind = buffer_kind("MEMORY_COPY");
  const auto is_host = [](hsa::Agent agent) {
    find_agents();
    return std::find(g_hosts.begin(), g_hosts.end(), agent) != g_hosts.end();
  };
  record.operation = is_host(from_agent) ? (is_host(to_agent) ? 1 : 2) : is_host(to_agent) ? 3 : 4;
  record.correlation.internal = current_correlation();
  record.correlation.external = external_of(10, "MEMORY_COPY", record.operation, record.correlation.internal);
  record.thread = thread_id();
  record.target = id_of(to_agent);
  record.source = id_of(from_agent);
  record.bytes = bytes;
  record.target_address = reinterpret_cast<uint64_t>(to);
  record.source_address = reinterpret_cast<uint64_t>(from);
  const hsa::Signal ours = work->signal;
  {
    const std::lock_guard lock(g_work_mutex);
    g_work.push_back(std::move(work));
  }
  g_open.fetch_add(1);
  return go(ours);
}
hsa::Status async_copy(void* to, hsa::Agent to_agent, const void* from, hsa::Agent from_agent, size_t bytes,
                       uint32_t count, const hsa::Signal* wait_for, hsa::Signal completion) {
  return record_copy(to, to_agent, from, from_agent, bytes, completion, [&](hsa::Signal ours) {
    return call<sig::AsyncCopy>(g_amd.hsa_amd_memory_async_copy, to, to_agent, from, from_agent, bytes, count, wait_for,
                                ours);
  });
}
hsa::Status async_copy_on(void* to, hsa::Agent to_agent, const void* from, hsa::Agent from_agent, size_t bytes,
                          uint32_t count, const hsa::Signal* wait_for, hsa::Signal completion, uint32_t engine,
                          bool force) {
  return record_copy(to, to_agent, from, from_agent, bytes, completion, [&](hsa::Signal ours) {
    return call<sig::AsyncCopyOn>(g_amd.hsa_amd_memory_async_copy_on_engine, to, to_agent, from, from_agent, bytes,
                                  count, wait_for, ours, engine, force);
  });
}

}  // namespace

Id id_of_agent(uint64_t agent) {
  return id_of(agent);
}

void take_hsa(void* table) {
  auto& tables = *static_cast<hsa::Tables*>(table);
  memcpy(static_cast<void*>(&g_core), tables.core, std::min<size_t>(tables.core->version.size, sizeof g_core));
  memcpy(static_cast<void*>(&g_amd), tables.amd, std::min<size_t>(tables.amd->version.size, sizeof g_amd));
  tables.core->hsa_queue_create = reinterpret_cast<void*>(create_queue);
  tables.core->hsa_queue_destroy = reinterpret_cast<void*>(destroy_queue);
  tables.core->hsa_executable_freeze = reinterpret_cast<void*>(freeze);
  tables.amd->hsa_amd_memory_async_copy = reinterpret_cast<void*>(async_copy);
  tables.amd->hsa_amd_memory_async_copy_on_engine = reinterpret_cast<void*>(async_copy_on);
  call<sig::CopyEnable>(g_amd.hsa_amd_profiling_async_copy_enable, true);
}

void wait_for_work() {
  const auto kernels = [] {
    const std::lock_guard lock(g_work_mutex);
    return std::any_of(g_work.begin(), g_work.end(), [](const auto& work) { return !work->copy; });
  };
  for (int tries = 0; g_open.load() != 0 && (tries < 5'000 || kernels()); ++tries) {
    collect();
    const timespec moment{0, 100'000};
    nanosleep(&moment, nullptr);
  }
}

}  // namespace imitation

// The library's functions for counters

using namespace imitation;
#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

TACHO_EXPORT Status rocprofiler_iterate_agent_supported_counters(Id agent, Status (*callback)(Id, Id*, size_t, void*),
                                                                 void* data) {
  const Agent* const found = agent_of(agent);
  if (found == nullptr || found->type != 2 || aql() == nullptr || counters().size() < 2) return kError;
  std::vector<Id> handles;
  for (uint64_t handle = 1; handle < counters().size(); ++handle) handles.push_back({handle});
  return callback(agent, handles.data(), handles.size(), data);
}
TACHO_EXPORT Status rocprofiler_query_counter_info(Id counter, int32_t version, void* info) {
  if (version != 1) return kInvalid;
  if (counter.handle == 0 || counter.handle >= counters().size()) return kCounterNotFound;
  const Counter& found = counters()[counter.handle];
  *static_cast<CounterInfo*>(info) = {counter, found.name.c_str(), "", found.block.c_str(), "", 0};
  return kOk;
}
TACHO_EXPORT Status rocprofiler_iterate_counter_dimensions(Id counter,
                                                           Status (*callback)(Id, const Dimension*, size_t, void*),
                                                           void* data) {
  if (counter.handle == 0 || counter.handle >= counters().size()) return kCounterNotFound;
  const Counter& found = counters()[counter.handle];
  std::vector<Dimension> dimensions;
  if (!found.summed) {
    const bool engines = found.block != "TCC" && found.block != "TCA" && found.block != "GRBM" &&
                         !found.block.starts_with("CP") && found.block != "GDS";
    dimensions.push_back({kDimensions[1], 8, 1});
    if (engines) dimensions.push_back({kDimensions[3], 32, 3});
    dimensions.push_back({kDimensions[7], 32, 7});
  }
  return callback(counter, dimensions.data(), dimensions.size(), data);
}
TACHO_EXPORT Status rocprofiler_query_record_counter_id(uint64_t id, Id* counter) {
  counter->handle = id >> 48;
  return kOk;
}
TACHO_EXPORT Status rocprofiler_query_record_dimension_position(uint64_t id, uint64_t dimension, size_t* position) {
  *position = id >> (6 * (dimension - 1)) & 63;
  return kOk;
}
TACHO_EXPORT Status rocprofiler_create_counter_config(Id agent, Id* list, size_t count, Id* config) {
  const Agent* const found = agent_of(agent);
  if (found == nullptr || aql() == nullptr) return kError;
  Config made{agent, {}, {}};
  std::map<std::string, std::set<std::pair<uint32_t, uint32_t>>> used;
  for (size_t at = 0; at < count; ++at) {
    if (list[at].handle == 0 || list[at].handle >= counters().size()) return kCounterNotFound;
    const Counter& counter = counters()[list[at].handle];
    made.counters.push_back(list[at].handle);
    if (!used[counter.block].insert({counter.event, counter.flags}).second) continue;
    AqlQuery query{counter.block.c_str(), 0, 0};
    const AqlProfile profile{aql_agent(*found), nullptr, 0};
    if (aql()->info(&profile, kAqlBlockId, &query) != 0) return kError;
    for (uint32_t index = 0; index < query.instances; ++index)
      made.events.push_back({index, counter.event, counter.flags, static_cast<int32_t>(query.id)});
    const AqlEvent event = made.events.back();
    bool valid = false;
    if (aql()->validate(profile.agent, &event, &valid) != 0 || !valid) return kInvalid;
    const AqlProfile one{profile.agent, &event, 1};
    uint32_t slots = 0;
    aql()->info(&one, kAqlBlockCounters, &slots);
    if (used[counter.block].size() > slots) return kExceeds;
  }
  const std::lock_guard lock(g_configs);
  config->handle = configs().size();
  configs().push_back(std::move(made));
  return kOk;
}
TACHO_EXPORT Status rocprofiler_create_profile_config(Id agent, Id* list, size_t count, Id* config) {  // 0.x
  return rocprofiler_create_counter_config(agent, list, count, config);
}
// Of a definition only what tacho writes: a name, and behind it accumulate(COUNTER, HIGH_RES).
TACHO_EXPORT Status rocprofiler_load_counter_definition(const char* yaml, size_t bytes, int32_t flags) {
  if (narrow() || flags != 2) return kNotImplemented;
  std::istringstream lines(std::string(yaml, bytes));
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    if (const size_t at = line.find("name: "); at != std::string::npos) name = line.substr(at + 6);
    const size_t open = line.find("expression: accumulate("), comma = line.find(',');
    if (open == std::string::npos || comma == std::string::npos) continue;
    const std::string base = line.substr(open + 23, comma - open - 23);
    for (size_t each = 0; each < counters().size(); ++each)
      if (counters()[each].name == base) {
        Counter made = counters()[each];
        made.name = name;
        made.flags = 2;
        counters().push_back(made);
        break;
      }
  }
  return kOk;
}
TACHO_EXPORT Status rocprofiler_configure_callback_dispatch_counting_service(Id context, DispatchCallback* on_dispatch,
                                                                             void* dispatch_data,
                                                                             RecordCallback* on_values,
                                                                             void* record_data) {
  g_counting = {context, on_dispatch, on_values, dispatch_data, record_data};
  return kOk;
}

// Counters of whole GPUs: made up. Each reading finds 1000 more in each of two units than the one before.

namespace {
struct DeviceCounting {
  Id context, agent;
  void (*choose)(Id, Id, Status (*)(Id, Id), void*);
  void* data;
  uint64_t config, readings;
};
std::vector<DeviceCounting>& device_counting() {
  static auto* const all = new std::vector<DeviceCounting>;
  return *all;
}
Status set_config(Id context, Id config) {
  for (DeviceCounting& each : device_counting())
    if (each.context.handle == context.handle) each.config = config.handle;
  return kOk;
}
}  // namespace

TACHO_EXPORT Status rocprofiler_configure_device_counting_service(Id context, Id, Id agent,
                                                                  void (*choose)(Id, Id, Status (*)(Id, Id), void*),
                                                                  void* data) {
  device_counting().push_back({context, agent, choose, data, 0, 0});
  return kOk;
}
TACHO_EXPORT Status rocprofiler_sample_device_counting_service(Id context, uint64_t, int32_t flags,
                                                               CounterRecord* records, size_t* count) {
  for (DeviceCounting& each : device_counting()) {
    if (each.context.handle != context.handle || flags != 0) continue;
    if (each.config == 0) each.choose(context, each.agent, set_config, each.data);
    const std::lock_guard lock(g_configs);
    ++each.readings;
    size_t made = 0;
    for (const uint64_t counter : configs()[each.config].counters)
      for (int unit = 0; unit < 2 && made < *count; ++unit) {
        const int position[8] = {0, unit, 0, 0, 0, 0, 0, 0};
        records[made++] = {instance_id(counter, position), 1000.0 * static_cast<double>(each.readings), 0, 0,
                           each.agent};
      }
    *count = made;
    return kOk;
  }
  return kInvalid;
}
