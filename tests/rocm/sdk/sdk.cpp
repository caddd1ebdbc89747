// An imitation of rocprofiler-sdk for machines where the real one is missing: loaded by AMD's librocprofiler-register
// as librocprofiler-sdk.so.1, fed with the tables of the real HIP and HSA (register.cpp), so that its records come from
// real calls.
//
//   sdk.cpp        registration, contexts, buffers, services, agents; records of calls
//   dispatches.cpp queues, kernels, copies, dispatch counting by AMD's aqlprofile
//   samples.cpp    code objects, PC samples
// calls.S        the function that replaces every HIP call
//   abi.h          layouts
//
// TACHO_SDK asks for events that tests cannot provoke: words separated by spaces.
//   abi=0.6     says it is version 0.6, with the layouts of that time
//   too-old     says it is version 0.3
//   unknown     puts records of an unknown category and kind into every buffer
//   shuffled    delivers the records of a buffer in reverse order
//   drops=N     says with each buffer that N records were dropped
//   refuse=NAME configuring this kind of record fails
//   made        puts a call of HSA, an allocation with its free, scratch memory, a page migration, a change of stream and an event of
//               the driver beside each kernel: the latter two into every buffer, although nobody asked for them
//   rccl        puts a call of RCCL around every outermost hipLaunchKernel, as a collective that launches one kernel
#include "sdk.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace imitation {

// Scenario

std::string scenario(const std::string& key) {
  static const std::string all = [] {
    const char* const value = getenv("TACHO_SDK");
    return " " + std::string(value == nullptr ? "" : value) + " ";
  }();
  const size_t word = all.find(" " + key + " ");
  if (word != std::string::npos) return "1";
  const size_t at = all.find(" " + key + "=");
  if (at == std::string::npos) return {};
  const size_t begin = at + key.size() + 2;
  return all.substr(begin, all.find(' ', begin) - begin);
}
bool narrow() {
  static const bool is = scenario("abi") == "0.6";
  return is;
}

uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}
uint64_t thread_id() {
  thread_local const auto id = static_cast<uint64_t>(syscall(SYS_gettid));
  return id;
}

State& state() {
  static auto* const all = new State;  // never destroyed: threads of the runtime outlive static objects
  return *all;
}

// Kinds: other numbers in each version

namespace {

struct Kind {
  const char* name;
  int32_t number1, number0;
};
constexpr Kind kBufferKinds[] = {{"HSA_CORE_API", 1, 1},
                                 {"HIP_RUNTIME_API", 5, 5},
                                 {"HIP_COMPILER_API", 6, 6},
                                 {"MEMORY_COPY", 10, 10},
                                 {"KERNEL_DISPATCH", 11, 11},
                                 {"SCRATCH_MEMORY", 12, 13},
                                 {"RCCL_API", kRccl, kRccl0},
                                 {"MEMORY_ALLOCATION", 16, 17},
                                 {"HIP_STREAM", 20, -1},
                                 {"KFD_PAGE_MIGRATE", kMigration, -1},
                                 {"PAGE_MIGRATION", -1, kMigrationEvent}};
constexpr Kind kCallbackKinds[] = {{"CODE_OBJECT", 10, 10}, {"KERNEL_DISPATCH", 12, 12}};
constexpr Kind kRequestKinds[] = {{"MEMORY_COPY", 10, 10}, {"KERNEL_DISPATCH", 11, 11}};

int32_t number_of(const Kind& kind) {
  return narrow() ? kind.number0 : kind.number1;
}
template <size_t N>
const char* name_in(const Kind (&kinds)[N], int32_t number) {
  for (const Kind& kind : kinds)
    if (number_of(kind) == number) return kind.name;
  return nullptr;
}

Status answer(const char* text, const char** name, uint64_t* length) {
  if (text == nullptr) return kKindNotFound;
  *name = text;
  if (length != nullptr) *length = strlen(text);
  return kOk;
}

// Names of HIP's functions, in the order of its tables: register.cpp has them.
struct HipTable {
  void** entries;
  const char* const* names;
  size_t count;
};
const HipTable* hip_table(int32_t kind) {
  return static_cast<const HipTable*>(dlsym(RTLD_DEFAULT, kind == 6 ? "tacho_hip_compiler" : "tacho_hip_runtime"));
}

// The calls of the scenario "rccl", in turn: numbers of rocprofiler_rccl_api_id_t.
struct Collective {
  int32_t operation;
  const char* name;
};
constexpr Collective kCollectives[] = {
    {0, "ncclAllGather"}, {1, "ncclAllReduce"}, {9, "ncclSend"}, {14, "ncclGroupEnd"}};

const char* operation_name(int32_t kind, int32_t operation) {  // of records in buffers
  static constexpr const char* kCopies[] = {"MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST",
                                            "MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_HOST",
                                            "MEMORY_COPY_DEVICE_TO_DEVICE"};
  if (kind < 0) return nullptr;
  if (kind == buffer_kind("KFD_PAGE_MIGRATE"))
    return operation == kMigrationByGpuFault ? "KFD_PAGE_MIGRATE_PAGEFAULT_GPU" : nullptr;
  static constexpr const char* kMigrations[] = {"PAGE_MIGRATION_NONE", "PAGE_MIGRATION_PAGE_MIGRATE_START",
                                                "PAGE_MIGRATION_PAGE_MIGRATE_END"};
  if (kind == buffer_kind("PAGE_MIGRATION")) return operation >= 0 && operation < 3 ? kMigrations[operation] : nullptr;
  if (kind == 10) return operation >= 0 && operation < 5 ? kCopies[operation] : nullptr;
  if (kind == 11) return operation == 2 ? "KERNEL_DISPATCH_COMPLETE" : nullptr;
  if (kind == 1) return operation == 3 ? "hsa_signal_store_screlease" : nullptr;
  static constexpr const char* kAllocations[] = {"MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE",
                                                 "MEMORY_ALLOCATION_VMEM_ALLOCATE", "MEMORY_ALLOCATION_FREE"};
  static constexpr const char* kScratch[] = {"SCRATCH_MEMORY_NONE", "SCRATCH_MEMORY_ALLOC", "SCRATCH_MEMORY_FREE"};
  if (kind == buffer_kind("MEMORY_ALLOCATION"))
    return operation >= 0 && operation < 4 ? kAllocations[operation] : nullptr;
  if (kind == buffer_kind("SCRATCH_MEMORY")) return operation >= 0 && operation < 3 ? kScratch[operation] : nullptr;
  if (kind == buffer_kind("RCCL_API")) {
    for (const Collective& each : kCollectives)
      if (each.operation == operation) return each.name;
    return nullptr;
  }
  if (kind != 5 && kind != 6) return nullptr;
  const HipTable* const table = hip_table(kind);
  return table != nullptr && operation >= 0 && static_cast<size_t>(operation) + 1 < table->count
             ? table->names[operation + 1]
             : nullptr;
}

}  // namespace

int32_t buffer_kind(const char* name) {
  for (const Kind& kind : kBufferKinds)
    if (strcmp(kind.name, name) == 0) return number_of(kind);
  return -1;
}

// Buffers

namespace {

// With the buffer's lock.
void deliver(Buffer& buffer) {
  if (buffer.records.empty()) return;
  std::vector<Record> records;
  records.swap(buffer.records);
  buffer.bytes = 0;
  std::vector<Header> headers;
  for (Record& record : records) headers.push_back({record.category, record.kind, record.bytes.data()});
  uint64_t odd[8] = {sizeof odd, 99};
  if (!scenario("unknown").empty()) {
    headers.insert(headers.begin(), {1, 99, odd});
    headers.push_back({7, 1, odd});
  }
  std::vector<Header*> pointers;
  for (Header& header : headers) pointers.push_back(&header);
  if (!scenario("shuffled").empty()) std::reverse(pointers.begin(), pointers.end());
  const std::string drops = scenario("drops");
  buffer.callback(buffer.context, {buffer.number}, pointers.data(), pointers.size(), buffer.data,
                  drops.empty() ? 0 : strtoull(drops.c_str(), nullptr, 10));
}

}  // namespace

void put(const char* kind_name, int32_t operation, const void* record, size_t bytes) {
  State& s = state();
  const int32_t kind = buffer_kind(kind_name);
  for (const auto& [context, traced] : s.traced) {
    if (!s.contexts[context.handle].active || !traced.kinds.contains(kind)) continue;
    const auto& wanted = traced.kinds.at(kind);
    if (!wanted.operations.empty() && !wanted.operations.contains(operation)) continue;
    append(wanted.buffer, 1, static_cast<uint32_t>(kind), record, bytes);
  }
}

void append(uint64_t number, uint32_t category, uint32_t kind, const void* record, size_t bytes) {
  Buffer& buffer = *state().buffers.at(number);
  const std::lock_guard lock(buffer.mutex);
  const auto* const from = static_cast<const std::byte*>(record);
  buffer.records.push_back({category, kind, {from, from + bytes}});
  buffer.bytes += bytes;
  if (buffer.bytes >= buffer.watermark) deliver(buffer);
}

void put_made_records(uint64_t agent, uint64_t queue, uint64_t time) {
  if (scenario("made").empty()) return;
  // Words behind size, kind and operation; 1.x has one more of correlation.
  const auto made = [](const char* name, int32_t kind, int32_t operation, std::vector<uint64_t> words,
                       bool asked = true) {
    words.insert(words.begin(), {(words.size() + 2) * 8, 0});
    const int32_t head[2] = {kind, operation};
    memcpy(&words[1], head, sizeof head);
    if (asked) return put(name, operation, words.data(), words.size() * 8);
    for (const auto& [number, buffer] : state().buffers)
      append(number, 1, static_cast<uint32_t>(kind), words.data(), words.size() * 8);
  };
  static std::atomic<uint64_t> number{0};
  const uint64_t address = 0x7000'0000'0000 + number.fetch_add(1) * 4096, thread = thread_id();
  const uint64_t correlation = 1'000'000 + number.load();
  std::vector<uint64_t> ids = {correlation, 0, 0};
  if (narrow()) ids.pop_back();
  const auto with_ids = [&](std::vector<uint64_t> rest) {
    rest.insert(rest.begin(), ids.begin(), ids.end());
    return rest;
  };
  made("HSA_CORE_API", 1, 3, with_ids({time, time + 10, thread}));
  const int32_t allocation = buffer_kind("MEMORY_ALLOCATION"), scratch = buffer_kind("SCRATCH_MEMORY");
  made("MEMORY_ALLOCATION", allocation, 1, with_ids({thread, time, time + 20, agent, address, 4096}));
  made("MEMORY_ALLOCATION", allocation, 3, with_ids({thread, time + 30, time + 40, 0, address, 0}));
  std::vector<uint64_t> scratched = {agent, queue, thread, time, time + 5, 0};
  if (!narrow()) scratched.push_back(65536);
  made("SCRATCH_MEMORY", scratch, 1, with_ids(scratched));
  made("", 20, 3, {1, 2, 3, 4, 5}, false);  // HIP_STREAM
  const Id host = state().agents.front().id;
  const auto pid = static_cast<uint32_t>(getpid());
  if (narrow()) {
    for (const int32_t operation : {kMigrationBegins, kMigrationEnds}) {
      const MigrationEvent event{sizeof event,
                                 kMigrationEvent,
                                 operation,
                                 time + (operation == kMigrationEnds ? 50 : 0),
                                 pid,
                                 address,
                                 address + 8191,
                                 host,
                                 {agent},
                                 {}};
      put("PAGE_MIGRATION", operation, &event, sizeof event);
    }
  } else {
    const MigrationRecord record{sizeof record,
                                 kMigration,
                                 kMigrationByGpuFault,
                                 time,
                                 time + 50,
                                 pid,
                                 address,
                                 address + 8192,
                                 host,
                                 {agent},
                                 {},
                                 {},
                                 0};
    put("KFD_PAGE_MIGRATE", kMigrationByGpuFault, &record, sizeof record);
  }
  made("", 25, 1, {time, time + 9, 1, address, address + 4096, agent, agent, 0, 0, 0},
       false);  // KFD_EVENT_...
}

// Calls of HIP

namespace {

struct OpenCall {
  void* returns_to;
  uint64_t start, correlation, outer;
  int32_t kind, operation;
  uint64_t collective_start, collective;  // the call of RCCL around it; 0 = none
};
thread_local OpenCall t_calls[64];
thread_local int t_depth = 0;
std::atomic<uint64_t> g_correlation{0};

template <typename Correlation>
void put_call(const OpenCall& call, uint64_t end) {
  ApiRecord<Correlation> record{};
  record.size = sizeof record;
  record.kind = call.kind;
  record.operation = call.operation;
  record.correlation.internal = call.correlation;
  if constexpr (sizeof(Correlation) == sizeof(Correlation1)) record.correlation.ancestor = call.outer;
  record.start = call.start;
  record.end = end;
  record.thread = thread_id();
  put(call.kind == 6 ? "HIP_COMPILER_API" : "HIP_RUNTIME_API", call.operation, &record, sizeof record);
  if (call.collective == 0) return;
  static std::atomic<size_t> turn{0};
  record.kind = buffer_kind("RCCL_API");
  record.operation = kCollectives[turn.fetch_add(1) % std::size(kCollectives)].operation;
  record.correlation = {};
  record.correlation.internal = call.collective;
  record.start = call.collective_start;
  record.end = now();
  put("RCCL_API", record.operation, &record, sizeof record);
}

bool begins_collective(int32_t kind, uint32_t index) {
  static const bool wanted = !scenario("rccl").empty();
  const HipTable* const table = wanted && kind == 5 && t_depth == 0 ? hip_table(kind) : nullptr;
  return table != nullptr && index < table->count && table->names[index] != nullptr &&
         strcmp(table->names[index], "hipLaunchKernel") == 0;
}

}  // namespace

uint64_t current_correlation() {
  return t_depth > 0 ? t_calls[t_depth - 1].correlation : 0;
}

// calls.S: `entry` = kind << 32 | index in the table. Returns the function to go on with.
extern "C" __attribute__((visibility("hidden"))) void* imitation_enter(uint64_t entry, void* returns_to) {
  const auto kind = static_cast<int32_t>(entry >> 32);
  const auto index = static_cast<uint32_t>(entry);
  const bool collective = begins_collective(kind, index);
  const uint64_t collective_start = collective ? now() : 0;
  const uint64_t collective_id = collective ? g_correlation.fetch_add(1) + 1 : 0;
  OpenCall& call = t_calls[t_depth++ & 63];
  call = {returns_to,
          now(),
          g_correlation.fetch_add(1) + 1,
          current_correlation(),
          kind,
          static_cast<int32_t>(index) - 1,
          collective_start,
          collective_id};
  call.outer = t_depth > 1 ? t_calls[(t_depth - 2) & 63].correlation : collective_id;
  return state().hip[kind == 6 ? 1 : 0][index];
}
extern "C" __attribute__((visibility("hidden"))) void* imitation_leave() {
  const OpenCall call = t_calls[--t_depth & 63];
  const uint64_t end = now();
  narrow() ? put_call<Correlation0>(call, end) : put_call<Correlation1>(call, end);
  return call.returns_to;
}
extern "C" __attribute__((visibility("hidden"))) char imitation_stubs[];  // one every kStubBytes, by index

namespace {

constexpr size_t kStubBytes = 16, kMostEntries = 700;

void wrap_hip(void** table, int32_t kind) {
  const size_t count = reinterpret_cast<size_t>(table[0]) / sizeof(void*);
  auto& saved = state().hip[kind == 6 ? 1 : 0];
  saved.assign(table, table + count);
  for (size_t at = 1; at < count && at < kMostEntries; ++at)
    if (table[at] != nullptr) table[at] = imitation_stubs + (at + (kind == 6 ? kMostEntries : 0)) * kStubBytes;
}

// Agents

void read_agents() {
  State& s = state();
  for (int node = 0; node < 64; ++node) {
    std::ifstream file("/sys/class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/properties");
    std::map<std::string, uint64_t> facts;
    std::string key;
    for (uint64_t value = 0; file >> key >> value;) facts[key] = value;
    if (facts.empty()) break;
    Agent& agent = s.agents.emplace_back();
    agent.size = narrow() ? sizeof agent - sizeof agent.uuid : sizeof agent;
    const auto number = [&](const char* name) { return static_cast<uint32_t>(facts[name]); };
    agent.id.handle = 13000 + static_cast<uint64_t>(node);
    agent.type = facts["simd_count"] > 0 ? 2 : 1;
    agent.simds = number("simd_count");
    agent.wave_size = number("wave_front_size");
    agent.waves_per_simd = number("max_waves_per_simd");
    agent.lds_kib = number("lds_size_in_kb");
    agent.xccs = std::max(number("num_xcc"), 1u);
    agent.simds_per_unit = std::max(number("simd_per_cu"), 1u);
    agent.units = agent.simds / agent.simds_per_unit;
    agent.arrays = number("array_count");
    agent.arrays_per_engine = std::max(number("simd_arrays_per_engine"), 1u);
    agent.shader_banks = agent.arrays / agent.arrays_per_engine;
    agent.target_version = number("gfx_target_version");
    agent.location = number("location_id");
    agent.gpu_clock = number("max_engine_clk_fcompute");
    agent.gpu_id = facts["gpu_id"];
    agent.node = static_cast<uint32_t>(node);
    agent.logical = node;
    agent.logical_of_type = static_cast<int32_t>(agent.type == 2 ? s.gpus++ : 0);
    char* const name = new char[16];
    snprintf(name, 16, "gfx%u%u%x", agent.target_version / 10000 % 100, agent.target_version / 100 % 100,
             agent.target_version % 100);
    agent.name = agent.type == 2 ? name : "CPU";
    agent.vendor_name = "AMD";
    agent.product = agent.type == 2 ? "AMD Instinct (imitated)" : "CPU";
    agent.model = "";
  }
}

// Tools

void finish() {
  State& s = state();
  if (s.finished.exchange(true)) return;
  wait_for_work();
  for (auto& [number, context] : s.contexts) context.active = false;
  for (auto& [number, buffer] : s.buffers) {
    const std::lock_guard lock(buffer->mutex);
    deliver(*buffer);
  }
  if (s.tool != nullptr && s.tool->finalize != nullptr) s.tool->finalize(s.tool->data);
}

void wrong(const char* what) {
  fprintf(stderr, "tests/rocm/sdk: the tool got the %s wrong\n", what);
  abort();
}

void start_tools() {
  State& s = state();
  if (s.started) return;
  s.started = true;
  atexit(finish);  // before the tool is asked, as the real library
  read_agents();
  using Configure = Tool*(uint32_t, const char*, uint32_t, Client*);
  auto* const configure = reinterpret_cast<Configure*>(dlsym(RTLD_DEFAULT, "rocprofiler_configure"));
  if (configure == nullptr) return;
  static Client client{sizeof client, nullptr, 77};
  static Client0 client0{nullptr, 77};
  if (!scenario("too-old").empty()) {
    configure(300, "0.3.0", 0, reinterpret_cast<Client*>(&client0));
    return;
  }
  s.tool = narrow() ? configure(600, "0.6.0", 0, reinterpret_cast<Client*>(&client0))
                    : configure(10000, "1.0.0", 0, &client);
  if (s.tool == nullptr) return;
  const char* const name = narrow() ? client0.name : client.name;
  if (name == nullptr || strcmp(name, "tacho") != 0 || client.handle != 77 || client0.handle != 77) wrong("client id");
  void (*end)(Client) = [](Client given) {
    if (given.handle != 77) wrong("client id at the end");
    finish();
  };
  void (*end0)(Client0) = [](Client0 given) {
    if (given.handle != 77) wrong("client id at the end");
    finish();
  };
  if (s.tool->initialize != nullptr)
    s.tool->initialize(narrow() ? reinterpret_cast<void (*)(Client)>(reinterpret_cast<void (*)()>(end0)) : end,
                       s.tool->data);
}

}  // namespace
}  // namespace imitation

// The library's functions

using namespace imitation;
#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

TACHO_EXPORT int rocprofiler_set_api_table(const char* name, uint64_t, uint64_t, void** tables, uint64_t count) {
  start_tools();
  State& s = state();
  if (s.tool == nullptr || count == 0) return 0;
  const std::string which = name;
  if (which == "hip") wrap_hip(static_cast<void**>(tables[0]), 5);
  if (which == "hip_compiler") wrap_hip(static_cast<void**>(tables[0]), 6);
  if (which == "hsa") take_hsa(tables[0]);
  return 0;
}

TACHO_EXPORT Status rocprofiler_create_context(Id* context) {
  State& s = state();
  if (context->handle != 0) return 13;
  context->handle = s.contexts.size() + 1;
  s.contexts[context->handle] = {};
  return kOk;
}
TACHO_EXPORT Status rocprofiler_start_context(Id context) {
  if (!state().contexts.contains(context.handle)) return 2;
  state().contexts[context.handle].active = true;
  return kOk;
}
TACHO_EXPORT Status rocprofiler_stop_context(Id context) {
  if (!state().contexts.contains(context.handle)) return 2;
  state().contexts[context.handle].active = false;
  return kOk;
}
TACHO_EXPORT Status rocprofiler_create_buffer(Id context, size_t, size_t watermark, int32_t, BufferCallback* callback,
                                              void* data, Id* buffer) {
  State& s = state();
  auto made = std::make_unique<Buffer>();
  made->context = context;
  made->number = s.buffers.size() + 1;
  made->watermark = watermark;
  made->callback = callback;
  made->data = data;
  buffer->handle = made->number;
  s.buffers[made->number] = std::move(made);
  return kOk;
}
TACHO_EXPORT Status rocprofiler_flush_buffer(Id buffer) {
  State& s = state();
  if (!s.buffers.contains(buffer.handle)) return 3;
  Buffer& found = *s.buffers[buffer.handle];
  const std::lock_guard lock(found.mutex);
  deliver(found);
  return kOk;
}
TACHO_EXPORT Status rocprofiler_configure_buffer_tracing_service(Id context, int32_t kind, const int32_t* operations,
                                                                 size_t count, Id buffer) {
  State& s = state();
  const char* const name = name_in(kBufferKinds, kind);
  if (name == nullptr) return kKindNotFound;
  if (scenario("refuse") == name) return kNotImplemented;
  auto& wanted = s.traced[context].kinds[kind];
  wanted.buffer = buffer.handle;
  if (operations != nullptr) wanted.operations.insert(operations, operations + count);
  return kOk;
}
TACHO_EXPORT Status rocprofiler_configure_callback_tracing_service(Id context, int32_t kind, const int32_t*, size_t,
                                                                   void* callback, void* data) {
  if (kind != 10) return kNotImplemented;
  state().code_object_callbacks.push_back({context, callback, data});
  return kOk;
}
TACHO_EXPORT Status rocprofiler_query_buffer_tracing_kind_name(int32_t kind, const char** name, uint64_t* length) {
  return answer(name_in(kBufferKinds, kind), name, length);
}
TACHO_EXPORT Status rocprofiler_query_callback_tracing_kind_name(int32_t kind, const char** name, uint64_t* length) {
  return answer(name_in(kCallbackKinds, kind), name, length);
}
TACHO_EXPORT Status rocprofiler_query_external_correlation_id_request_kind_name(int32_t kind, const char** name,
                                                                                uint64_t* length) {
  return answer(name_in(kRequestKinds, kind), name, length);
}
TACHO_EXPORT Status rocprofiler_query_buffer_tracing_kind_operation_name(int32_t kind, int32_t operation,
                                                                         const char** name, uint64_t* length) {
  return answer(operation_name(kind, operation), name, length);
}
TACHO_EXPORT Status rocprofiler_iterate_buffer_tracing_kinds(int (*callback)(int32_t, void*), void* data) {
  for (const Kind& kind : kBufferKinds)
    if (number_of(kind) >= 0 && callback(number_of(kind), data) != 0) break;
  return kOk;
}
TACHO_EXPORT Status rocprofiler_iterate_callback_tracing_kinds(int (*callback)(int32_t, void*), void* data) {
  for (const Kind& kind : kCallbackKinds)
    if (callback(number_of(kind), data) != 0) break;
  return kOk;
}
TACHO_EXPORT Status rocprofiler_iterate_buffer_tracing_kind_operations(int32_t kind,
                                                                       int (*callback)(int32_t, int32_t, void*),
                                                                       void* data) {
  for (int32_t operation = 0; operation < 1000; ++operation)
    if (operation_name(kind, operation) != nullptr && callback(kind, operation, data) != 0) break;
  return kOk;
}
TACHO_EXPORT Status rocprofiler_configure_external_correlation_id_request_service(Id context, const int32_t* kinds,
                                                                                  size_t count,
                                                                                  ExternalCallback* callback,
                                                                                  void* data) {
  for (size_t at = 0; at < count; ++at) state().external[kinds[at]] = {context, callback, data};
  return kOk;
}
TACHO_EXPORT Status rocprofiler_query_available_agents(int32_t version,
                                                       Status (*callback)(int32_t, const void**, size_t, void*),
                                                       size_t size, void* data) {
  State& s = state();
  if (version != 1 || s.agents.empty() || size > s.agents[0].size) return kInvalid;
  std::vector<const void*> agents;
  for (const Agent& agent : s.agents) agents.push_back(&agent);
  return callback(version, agents.data(), agents.size(), data);
}
TACHO_EXPORT Status rocprofiler_get_timestamp(uint64_t* time) {
  *time = now();
  return kOk;
}
TACHO_EXPORT Status rocprofiler_get_version(uint32_t* major, uint32_t* minor, uint32_t* patch) {
  *major = narrow() ? 0 : 1;
  *minor = narrow() ? 6 : 0;
  *patch = 0;
  return kOk;
}
TACHO_EXPORT const char* rocprofiler_get_status_string(Status status) {
  return status == kOk               ? "Success"
         : status == kExceeds        ? "Request exceeds the capabilities of the hardware to collect"
         : status == kNotAvailable   ? "The service is not available"
         : status == kNotImplemented ? "API function is defined but not implemented"
                                     : "Unknown error";
}
