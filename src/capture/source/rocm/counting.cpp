// Counting on AMD GPUs (counting.h). Before the program's first dispatch the SDK lets us choose: for each GPU and pass
// one configuration of counters. It asks us for each dispatch which configuration counts, and hands over the values
// when the dispatch is done.
//
// Config lines: counter=NAME, or define=NAME EXPRESSION for one that the SDK is to compute, once for each counter of
// the run; pass=INDEX,INDEX,... (indices of those lines) once for each pass; policy=N to count pass N in every
// dispatch, policy=kernel or policy=launch to take the next pass at each dispatch of the same kernel, or of the same
// kernel and sizes, policy=replay to run each launch once for each pass (replay.h), and patience=MS to limit its waits
// for the GPU. A run that samples has one line instead, sampling=METHOD UNIT INTERVAL (pc_samples.h).
#include "capture/source/rocm/counting.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <type_traits>

#include "capture/capture.h"
#include "capture/counter_spool.h"
#include "capture/room/say.h"
#include "capture/source/rocm/pc_samples.h"
#include "capture/source/rocm/replay/replay.h"
#include "capture/source/rocm/replay/replay_kernels.h"
#include "capture/source/rocm/rocm.h"
#include "capture/source/rocm/sdk/sdk.h"
#include "event/spool/spool_instances.h"
#include "tape/writer.h"

namespace tacho::capture::rocm::counting {

namespace {

namespace sdk_call = vendor::sdk::signature;

constexpr size_t kMostCounters = 4096, kMostPasses = 256, kMostAgents = 64;
// How many pairs of counter and unit a process can name: 400 counters in 1024 units.
constexpr size_t kMostInstances = 1u << 20;

struct CountingFunctions {
  sdk_call::CreateContext* create_context;
  sdk_call::OnContext* start_context;
  sdk_call::OnContext* stop_context;
  sdk_call::TraceCallback* trace_callback;
  sdk_call::QueryAgents* query_agents;
  sdk_call::AgentCounters* agent_counters;
  sdk_call::CounterInfo* counter_info;
  sdk_call::CounterDimensions* counter_dimensions;
  sdk_call::CreateConfig* create_config;
  sdk_call::LoadDefinition* load_definition;
  sdk_call::DispatchService* dispatch_service;
  sdk_call::RecordCounter* record_counter;
  sdk_call::RecordPosition* record_position;
  sdk_call::StatusText* status_text;
};

struct Wanted {
  const char* name;
  const char* expression;  // nullptr: the SDK knows the counter
};

struct Kernel {
  char* name;  // mangled
  uint32_t vgpr, accum, sgpr;
  bool wanted;
};

struct Agent {
  sdk::Handle id;
  uint32_t gpu;                      // number among the GPUs
  const char* name;                  // of its architecture
  uint64_t counters[kMostCounters];  // the SDK's handle of each wanted counter; 0 = it has none
  uint64_t configs[kMostPasses];
};

struct State {
  counter::CounterSpool spool;
  CountingFunctions call;
  sdk::Context code_objects, context;
  Wanted counters[kMostCounters];
  size_t counter_count;
  const char* passes[kMostPasses];  // the lines' texts
  size_t pass_count;
  int64_t policy_pass = -1;  // -1: they alternate
  bool by_launch;            // they alternate by kernel and sizes
  bool replays;              // each launch runs once for each of them
  int64_t patience_ms = 30'000;
  const char* sampling;  // nullptr: this run counts
  MappedBytes agents;    // of Agent
  size_t agent_count;
  MappedBytes kernels;  // of Kernel, by the SDK's number
  MappedBytes turns;    // (key, next pass), open addressing
  size_t turn_count;
  MappedBytes seen;  // ids of instances that have been defined, open addressing
  size_t seen_count;
  MappedBytes record;
  int file;
  char library[1024];  // the SDK's path
};
constinit State g_state{};
constinit std::atomic<uint32_t> g_counting_lock{0};
constinit std::atomic<bool> g_on{false};
constinit std::atomic<uint64_t> g_counts_begun{0}, g_counts_back{0};  // dispatches that count
constinit std::atomic<bool> g_others_begun{false};

bool counts_here() {
  return g_on.load(std::memory_order_acquire) && getpid() == g_state.spool.pid;
}

const char* text_of(sdk::Status status) {
  const char* const text = g_state.call.status_text != nullptr ? g_state.call.status_text(status) : nullptr;
  return text != nullptr ? text : "unknown error";
}

// The user sees it at once: a run that counts leaves no trace behind.
void refuse(const char* sentence) {
  say(sentence);
  if (g_state.spool.state != nullptr) g_state.spool.state->refused.fetch_add(1);
}

void missing(uint32_t gpu, const char* counter, const char* reason) {
  char path[1152], line[640];
  snprintf(path, sizeof path, "%s/%u.missing", g_state.spool.folder, g_state.spool.process);
  const int size = snprintf(line, sizeof line, "%u %s %s\n", gpu, counter, reason);
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || size <= 0 || !write_all(file, reinterpret_cast<const uint8_t*>(line), static_cast<size_t>(size)))
    g_state.spool.state->failures.fetch_add(1);
  if (file >= 0) close(file);
}

// Settings

void take_setting(const char* key, const char* value) {
  State& s = g_state;
  const auto is = [&](const char* name) { return strcmp(key, name) == 0; };
  if ((is("counter") || is("define")) && s.counter_count < kMostCounters) {
    Wanted& wanted = s.counters[s.counter_count++];
    wanted = {value, nullptr};
    if (char* const space = is("define") ? const_cast<char*>(strchr(value, ' ')) : nullptr; space != nullptr) {
      *space = '\0';
      wanted.expression = space + 1;
    }
  } else if (is("sampling")) {
    s.sampling = value;
  } else if (is("pass") && s.pass_count < kMostPasses) {
    s.passes[s.pass_count++] = value;
  } else if (is("patience")) {
    s.patience_ms = strtoll(value, nullptr, 10);
  } else if (is("policy")) {
    s.replays = strcmp(value, "replay") == 0;
    s.by_launch = strcmp(value, "launch") == 0;
    s.policy_pass = s.replays || s.by_launch || strcmp(value, "kernel") == 0
                        ? -1
                        : static_cast<int64_t>(strtoull(value, nullptr, 10));
  }
}

// The SDK's side: agents, counters, kernels

Agent& agent_at(size_t index) {
  return reinterpret_cast<Agent*>(g_state.agents.data)[index];
}
Agent* agent_of(sdk::Handle id) {
  for (size_t at = 0; at < g_state.agent_count; ++at)
    if (agent_at(at).id.handle == id.handle) return &agent_at(at);
  return nullptr;
}

sdk::Status take_agents(int32_t, const void** agents, size_t count, void*) {
  State& s = g_state;
  uint32_t gpu = 0;
  for (size_t at = 0; at < count; ++at) {
    const auto* const agent = static_cast<const sdk::AgentHead*>(agents[at]);
    if (agent->type != static_cast<int32_t>(sdk::agent::kGpu)) continue;
    if (s.agent_count == kMostAgents || !s.agents.reserve((s.agent_count + 1) * sizeof(Agent))) break;
    Agent& made = agent_at(s.agent_count++);
    s.agents.count = s.agent_count * sizeof(Agent);
    memset(static_cast<void*>(&made), 0, sizeof made);
    made.id = agent->id;
    made.gpu = gpu++;
    const uint64_t name = sdk::agent::name.read(static_cast<const std::byte*>(agents[at]), agent->size);
    made.name = name != 0 ? reinterpret_cast<const char*>(name) : "";
  }
  return sdk::kSuccess;
}

sdk::Status take_counters(sdk::Handle, sdk::Handle* counters, size_t count, void* data) {
  State& s = g_state;
  auto& agent = *static_cast<Agent*>(data);
  for (size_t at = 0; at < count; ++at) {
    sdk::CounterDescription about{};
    if (s.call.counter_info(counters[at], sdk::kCounterInfoVersion, &about) != sdk::kSuccess || about.name == nullptr)
      continue;
    for (size_t i = 0; i < s.counter_count; ++i)
      if (strcmp(s.counters[i].name, about.name) == 0) agent.counters[i] = counters[at].handle;
  }
  return sdk::kSuccess;
}

// True if the SDK's own definitions (counter_defs.yaml beside it) have the counter for an architecture. A definition
// that uses a missing counter ends the program (seen with 1.0.0), and asking the SDK itself is too early.
bool is_defined(const char* counter, size_t length, const char* architecture) {
  static constinit MappedBytes s_definitions{};
  if (s_definitions.count == 0) {
    char path[1152];
    const char* const folder = getenv("ROCPROFILER_METRICS_PATH");
    const char* const slash = strrchr(g_state.library, '/');
    if (folder != nullptr && folder[0] != '\0')
      snprintf(path, sizeof path, "%.1000s/counter_defs.yaml", folder);
    else
      snprintf(path, sizeof path, "%.*s/../share/rocprofiler-sdk/counter_defs.yaml",
               slash != nullptr ? static_cast<int>(slash - g_state.library) : 0, g_state.library);
    if (!read_file(path, s_definitions)) return false;
    s_definitions.data[s_definitions.count] = '\0';
  }
  const auto* const text = reinterpret_cast<const char*>(s_definitions.data);
  for (const char* at = text; (at = strstr(at, "- name: ")) != nullptr;) {
    at += strlen("- name: ");
    if (strncmp(at, counter, length) != 0 || at[length] != '\n') continue;
    const char* const end = strstr(at, "- name: ");
    for (const char* found = at; (found = strstr(found, architecture)) != nullptr && (end == nullptr || found < end);
         ++found)
      if (found[strlen(architecture)] == '\n') return true;
    return false;
  }
  return false;
}

// Gives the SDK the definitions of counters that it is to compute from others, for the GPUs here. It takes definitions
// only until its counters are first asked for.
void define_counters() {
  State& s = g_state;
  static constinit MappedBytes s_text{};
  const auto append = [&](const char* text) {
    const size_t length = strlen(text);
    if (!s_text.reserve(s_text.count + length + (s_text.count + length > s_text.capacity ? 65536 : 0))) return;
    memcpy(s_text.data + s_text.count, text, length);
    s_text.count += length;
  };
  append("rocprofiler-sdk:\n  counters-schema-version: 1\n  counters:\n");
  bool any = false;
  for (size_t i = 0; i < s.counter_count; ++i) {
    const char* const expression = s.counters[i].expression;
    if (expression == nullptr) continue;
    // accumulate(COUNTER, HIGH_RES)
    const char* const base = strchr(expression, '(') != nullptr ? strchr(expression, '(') + 1 : expression;
    const size_t length = strcspn(base, ",)");
    bool begun = false;
    for (size_t at = 0; at < s.agent_count; ++at) {
      const char* const architecture = agent_at(at).name;
      bool first = true;
      for (size_t before = 0; before < at; ++before) first = first && strcmp(agent_at(before).name, architecture) != 0;
      if (!first || !is_defined(base, length, architecture)) continue;
      if (!begun) {
        append("  - name: ");
        append(s.counters[i].name);
        append("\n    description: ''\n    properties: []\n    definitions:\n    - architectures:\n");
        begun = any = true;
      }
      append("      - ");
      append(architecture);
      append("\n");
    }
    if (!begun) continue;
    append("      expression: ");
    append(expression);
    append("\n");
  }
  if (any && s.agent_count != 0 && s.call.load_definition != nullptr)
    s.call.load_definition(reinterpret_cast<const char*>(s_text.data), s_text.count, sdk::kAppendDefinition);
}

void configure_pass(Agent& agent, size_t pass) {
  State& s = g_state;
  sdk::Handle counters[256];
  size_t indices[256], count = 0;
  for (const char* at = s.passes[pass]; *at != '\0';) {
    char* end = nullptr;
    const size_t index = strtoull(at, &end, 10);
    if (end == at) break;
    at = *end == ',' ? end + 1 : end;
    if (index < s.counter_count && count < 256 && agent.counters[index] != 0) {
      indices[count] = index;
      counters[count++] = {agent.counters[index]};
    }
  }
  // Drops counters that do not fit, from the end, and names them.
  while (count > 0) {
    sdk::Handle config{};
    const sdk::Status status = s.call.create_config(agent.id, counters, count, &config);
    if (status == sdk::kSuccess) {
      agent.configs[pass] = config.handle;
      return;
    }
    missing(agent.gpu, s.counters[indices[--count]].name, text_of(status));
  }
}

void take_kernel(const sdk::KernelSymbol& symbol) {
  State& s = g_state;
  const char* const name = symbol.name != nullptr ? symbol.name : "";
  const Guard lock(g_counting_lock);
  const size_t need = (symbol.kernel + 1) * sizeof(Kernel);
  if (symbol.kernel > 1u << 22 || !s.kernels.reserve(need > s.kernels.capacity ? need * 2 : need)) return;
  if (s.kernels.count < need) s.kernels.count = need;
  Kernel& kernel = reinterpret_cast<Kernel*>(s.kernels.data)[symbol.kernel];
  size_t length = strlen(name);
  if (length > 3 && strcmp(name + length - 3, ".kd") == 0) length -= 3;
  free(kernel.name);
  kernel.name = strndup(name, length);
  kernel.vgpr = symbol.vgprs;
  kernel.accum = symbol.accum_vgprs;
  kernel.sgpr = symbol.sgprs;
  kernel.wanted = kernel.name != nullptr && s.spool.name_passes(kernel.name);
  if (s.replays && kernel.name != nullptr) replay::see_kernel(symbol.code_object, kernel.name, s.spool);
}

template <typename Record>
void on_code_object(Record record, sdk::UserData*, void*) {
  if (record.kind != sdk::kCallbackCodeObject || record.payload == nullptr || !counts_here()) return;
  const bool loads = record.phase == sdk::kPhaseEnter;
  if (g_state.replays && record.operation == sdk::CodeObject::kOperation)
    replay::see_code_object(*static_cast<const sdk::CodeObject*>(record.payload), loads);
  if (record.operation != sdk::kernel_symbol::kOperation || !loads) return;
  take_kernel(*static_cast<const sdk::KernelSymbol*>(record.payload));
}

Kernel kernel_of(uint64_t number) {  // with the lock
  const State& s = g_state;
  return (number + 1) * sizeof(Kernel) <= s.kernels.count ? reinterpret_cast<const Kernel*>(s.kernels.data)[number]
                                                          : Kernel{};
}

// Dispatches

// For on_values: a dispatch's tid, its pass or why it ran once (then the pass is the first), and its index.
constexpr int kIndexBits = 33, kPassBits = 9;
static_assert(kMostPasses + spool::kRanOnceReasons <= 1u << kPassBits);
struct Counted {
  uint64_t index;
  size_t pass;
  spool::RanOnce once;
  uint32_t tid;  // at most 22 bits (PID_MAX_LIMIT)

  uint64_t packed() const {
    const uint64_t which = once == spool::RanOnce::kNo ? uint64_t{pass} : kMostPasses + static_cast<uint64_t>(once);
    return (index & ((1ull << kIndexBits) - 1)) | which << kIndexBits |
           static_cast<uint64_t>(tid) << (kIndexBits + kPassBits);
  }
  static Counted of(uint64_t packed) {
    const uint64_t which = packed >> kIndexBits & ((1u << kPassBits) - 1);
    const bool once = which >= kMostPasses;
    return {packed & ((1ull << kIndexBits) - 1), once ? 0 : static_cast<size_t>(which),
            once ? static_cast<spool::RanOnce>(which - kMostPasses) : spool::RanOnce::kNo,
            static_cast<uint32_t>(packed >> (kIndexBits + kPassBits))};
  }
};

// Appends the ids that have no definition yet, then the dispatch. With the lock.
void write(const sdk::DispatchData& data, uint64_t index, size_t pass, spool::RanOnce once, uint32_t tid, bool selected,
           const sdk::SdkCounterRecord* values, size_t count) {
  State& s = g_state;
  Agent* const agent = agent_of(data.info.agent);
  if (agent == nullptr) return;
  const Kernel kernel = kernel_of(data.info.kernel);
  const size_t name_bytes = kernel.name != nullptr ? strlen(kernel.name) : 0, padded = (name_bytes + 7) / 8 * 8;
  const size_t bytes = sizeof(spool::InstanceRecord) + padded + count * sizeof(spool::InstanceValue);
  const size_t most = bytes + count * sizeof(spool::InstanceDefinition);
  s.record.count = 0;
  if (!s.record.reserve(most) || !s.seen.reserve(kMostInstances * sizeof(uint64_t))) {
    s.spool.state->failures.fetch_add(1);
    return;
  }
  auto* const seen = reinterpret_cast<uint64_t*>(s.seen.data);
  uint8_t* at = s.record.data;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t id = values[i].id, key = id + 1;  // 0 = free
    size_t slot = static_cast<size_t>((id * 0x9e3779b97f4a7c15ull) >> 44) & (kMostInstances - 1);
    while (seen[slot] != 0 && seen[slot] != key) slot = (slot + 1) & (kMostInstances - 1);
    if (seen[slot] == key) continue;
    sdk::Handle of{};
    if (s.seen_count > kMostInstances / 2 || s.call.record_counter(id, &of) != sdk::kSuccess) {
      s.spool.state->failures.fetch_add(1);
      continue;
    }
    seen[slot] = key;
    ++s.seen_count;
    spool::InstanceDefinition definition{};
    definition.magic = spool::kDefinitionMagic;
    definition.bytes = sizeof definition;
    definition.id = id;
    definition.counter = ~0u;
    for (size_t c = 0; c < s.counter_count; ++c)
      if (agent->counters[c] == of.handle) definition.counter = static_cast<uint32_t>(c);
    for (int16_t& position : definition.position) position = -1;
    struct Asked {
      uint64_t id;
      spool::InstanceDefinition* definition;
    } asked{id, &definition};
    s.call.counter_dimensions(
        of,
        [](sdk::Handle, const sdk::DimensionInfo* dimensions, size_t number, void* given) -> sdk::Status {
          constexpr const char* kNames[spool::kDimensions] = {"DIMENSION_XCC",           "DIMENSION_AID",
                                                              "DIMENSION_SHADER_ENGINE", "DIMENSION_SHADER_ARRAY",
                                                              "DIMENSION_WGP",           "DIMENSION_INSTANCE"};
          const auto& to = *static_cast<const Asked*>(given);
          for (size_t d = 0; d < number; ++d)
            for (size_t which = 0; which < spool::kDimensions; ++which) {
              size_t position = 0;
              if (dimensions[d].name != nullptr && strcmp(dimensions[d].name, kNames[which]) == 0 &&
                  g_state.call.record_position(to.id, dimensions[d].id, &position) == sdk::kSuccess)
                to.definition->position[which] = static_cast<int16_t>(position);
            }
          return sdk::kSuccess;
        },
        &asked);
    memcpy(at, &definition, sizeof definition);
    at += sizeof definition;
  }
  spool::InstanceRecord record{};
  record.magic = spool::kInstanceMagic;
  record.bytes = static_cast<uint32_t>(bytes);
  record.index = index;
  record.pid = static_cast<uint32_t>(s.spool.pid);
  record.tid = tid;
  record.gpu = agent->gpu;
  record.pass = static_cast<uint32_t>(pass);
  record.queue = data.info.queue.handle;
  record.start = static_cast<int64_t>(data.start);
  record.end = static_cast<int64_t>(data.end);
  const auto size = [](uint32_t(&to)[3], const sdk::Size3& from) {
    to[0] = from.x;
    to[1] = from.y > 0 ? from.y : 1;
    to[2] = from.z > 0 ? from.z : 1;
  };
  size(record.grid, data.info.grid);
  size(record.workgroup, data.info.workgroup);
  record.lds = data.info.group_bytes;
  record.scratch = data.info.private_bytes;
  record.vgpr = kernel.vgpr;
  record.accum = kernel.accum;
  record.sgpr = kernel.sgpr;
  record.selected = selected ? 1 : 0;
  record.name_bytes = static_cast<uint32_t>(name_bytes);
  record.values = static_cast<uint32_t>(count);
  record.once = selected ? static_cast<uint32_t>(once) : 0;
  memcpy(at, &record, sizeof record);
  at += sizeof record;
  memset(at, 0, padded);
  if (name_bytes != 0) memcpy(at, kernel.name, name_bytes);
  at += padded;
  for (size_t i = 0; i < count; ++i) {
    const spool::InstanceValue value{values[i].id, values[i].value};
    memcpy(at, &value, sizeof value);
    at += sizeof value;
  }
  if (!write_all(s.file, s.record.data, static_cast<size_t>(at - s.record.data))) s.spool.state->failures.fetch_add(1);
  if (selected) s.spool.state->dispatches_done.fetch_add(1, std::memory_order_relaxed);
}

// The pass of the next dispatch of this kernel, where passes alternate. With the lock.
size_t next_pass(const sdk::DispatchInfo& info) {
  State& s = g_state;
  uint64_t key = info.kernel + 1;
  if (s.by_launch)
    for (const uint32_t part : {info.grid.x, info.grid.y, info.grid.z, info.workgroup.x, info.workgroup.y,
                                info.workgroup.z, info.group_bytes})
      key = (key ^ part) * 0x9e3779b97f4a7c15ull;
  struct Turn {
    uint64_t key, next;
  };
  constexpr size_t kTurns = 1u << 16;
  if (!s.turns.reserve(kTurns * sizeof(Turn))) return 0;
  auto* const turns = reinterpret_cast<Turn*>(s.turns.data);
  size_t slot = static_cast<size_t>(key >> 40 ^ key) % kTurns;
  while (turns[slot].key != 0 && turns[slot].key != key) slot = (slot + 1) % kTurns;
  if (turns[slot].key == 0) {
    if (s.turn_count > kTurns / 2) return 0;
    ++s.turn_count;
    turns[slot].key = key;
  }
  return static_cast<size_t>(turns[slot].next++ % s.pass_count);
}

bool values_are_open() {
  return g_counts_begun.load() > g_counts_back.load();
}

// A GPU that hangs: sdk_exit.cpp. The end of a dispatch that does not count is never reported: it counts as open.
bool counts_are_open() {
  return counts_here() && (g_others_begun.load(std::memory_order_relaxed) || values_are_open());
}

void finish_hung_run() {
  say("the program had ended, but rocprofiler-sdk waited for GPU work that did not end: tacho ended the process with "
      "the program's exit code; what had been counted is kept");
  g_on.store(false);
}

void on_dispatch(sdk::DispatchData data, sdk::Handle* config, sdk::UserData* user, void*) {
  if (!counts_here()) return;
  watch_exit({counts_are_open, [] {}, finish_hung_run, replay::finish});
  State& s = g_state;
  const auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
  const Guard lock(g_counting_lock);
  const Kernel kernel = kernel_of(data.info.kernel);
  const replay::Turn turn = s.replays ? replay::turn_of(kernel.name) : replay::Turn{};
  if (turn.ignored) return;
  const uint64_t index = turn.again ? turn.index : s.spool.state->dispatches.fetch_add(1, std::memory_order_relaxed);
  const Agent* const agent = agent_of(data.info.agent);
  // A launch runs again because it passed, whatever the program asks for meanwhile.
  const bool selected = agent != nullptr && kernel.wanted && (turn.again || s.spool.launch_passes(index));
  if (turn.launched && !turn.again) replay::counted_as(index, selected);
  const size_t pass = !selected            ? 0
                      : s.replays          ? turn.pass
                      : s.policy_pass >= 0 ? static_cast<size_t>(s.policy_pass)
                                           : next_pass(data.info);
  if (selected && pass < s.pass_count && agent->configs[pass] != 0) {
    config->handle = agent->configs[pass];
    g_counts_begun.fetch_add(1, std::memory_order_relaxed);
    user->value = Counted{index, pass, turn.once, tid}.packed();
    return;
  }
  g_others_begun.store(true, std::memory_order_relaxed);
  data.start = data.end = 0;
  write(data, index, pass, turn.once, tid, selected, nullptr, 0);
}

void on_values(sdk::DispatchData data, sdk::SdkCounterRecord* values, size_t count, sdk::UserData user, void*) {
  if (!counts_here()) return;
  sign_of_life();
  const Counted counted = Counted::of(user.value);
  {
    const Guard lock(g_counting_lock);
    write(data, counted.index, counted.pass, counted.once, counted.tid, true, values, count);
  }
  g_counts_back.fetch_add(1);
}

// The tool

bool find_functions(const void* caller) {
  Dl_info at{};
  void* library = dladdr(caller, &at) != 0 && at.dli_fname != nullptr
                      ? dlopen(at.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)
                      : nullptr;
  if (library == nullptr) library = RTLD_DEFAULT;
  if (at.dli_fname != nullptr) snprintf(g_state.library, sizeof g_state.library, "%s", at.dli_fname);
  CountingFunctions& f = g_state.call;
  const auto find = [&](auto& to, const char* name, const char* before = nullptr) {
    void* found = dlsym(library, name);
    if (found == nullptr && before != nullptr) found = dlsym(library, before);
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(found);
    return found != nullptr;
  };
  find(f.load_definition, "rocprofiler_load_counter_definition");
  find(f.status_text, "rocprofiler_get_status_string");
  return find(f.create_context, "rocprofiler_create_context") && find(f.start_context, "rocprofiler_start_context") &&
         find(f.stop_context, "rocprofiler_stop_context") &&
         find(f.trace_callback, "rocprofiler_configure_callback_tracing_service") &&
         find(f.query_agents, "rocprofiler_query_available_agents") &&
         find(f.agent_counters, "rocprofiler_iterate_agent_supported_counters") &&
         find(f.counter_info, "rocprofiler_query_counter_info") &&
         find(f.counter_dimensions, "rocprofiler_iterate_counter_dimensions") &&
         find(f.create_config, "rocprofiler_create_counter_config", "rocprofiler_create_profile_config") &&
         find(f.dispatch_service, "rocprofiler_configure_callback_dispatch_counting_service") &&
         find(f.record_counter, "rocprofiler_query_record_counter_id") &&
         find(f.record_position, "rocprofiler_query_record_dimension_position");
}

constinit uint32_t g_version = 0;

int initialize(void (*)(sdk::ClientId), void*) {
  State& s = g_state;
  s.spool.process = static_cast<uint32_t>(s.spool.state->attached.fetch_add(1));
  char path[1152];
  const int length = snprintf(path, sizeof path, "%s/%u.instances", s.spool.folder, s.spool.process);
  if (length < 0 || static_cast<size_t>(length) >= sizeof path) return 0;
  s.file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (s.file < 0) return 0;
  sdk::Status status = s.call.query_agents(sdk::kAgentVersion, take_agents, sdk::kAgentBytes, nullptr);
  const auto done = [&](sdk::Status result) {
    if (status == sdk::kSuccess) status = result;
    return status == sdk::kSuccess;
  };
  define_counters();
  for (size_t at = 0; at < s.agent_count; ++at) {
    Agent& agent = agent_at(at);
    s.call.agent_counters(agent.id, take_counters, &agent);
    for (size_t i = 0; i < s.counter_count; ++i) {
      if (agent.counters[i] == 0)
        missing(agent.gpu, s.counters[i].name,
                s.counters[i].expression == nullptr
                    ? "is not among the counters that rocprofiler-sdk has for this GPU"
                    : "needs a rocprofiler-sdk of ROCm 7 or later that has the counter for this GPU");
    }
    for (size_t pass = 0; pass < s.pass_count; ++pass)
      if (s.policy_pass < 0 || static_cast<size_t>(s.policy_pass) == pass) configure_pass(agent, pass);
  }
  auto* const callback = g_version >= sdk::kFirstWide
                             ? reinterpret_cast<sdk_call::AnyCallback*>(&on_code_object<sdk::CallbackRecordWide>)
                             : reinterpret_cast<sdk_call::AnyCallback*>(&on_code_object<sdk::CallbackRecordNarrow>);
  const bool ready =
      done(s.call.create_context(&s.code_objects)) &&
      done(s.call.trace_callback(s.code_objects, sdk::kCallbackCodeObject, nullptr, 0, callback, nullptr)) &&
      done(s.call.create_context(&s.context)) &&
      done(s.call.dispatch_service(s.context, on_dispatch, nullptr, on_values, nullptr));
  if (ready && s.replays) replay::begin(s.spool, s.pass_count, s.patience_ms, values_are_open);
  if (ready) g_on.store(true, std::memory_order_release);
  if (!ready || !done(s.call.start_context(s.code_objects)) || !done(s.call.start_context(s.context))) {
    g_on.store(false);
    char line[256];
    snprintf(line, sizeof line, "rocprofiler-sdk cannot count in process %d: %s", static_cast<int>(s.spool.pid),
             text_of(status));
    refuse(line);
  }
  return 0;
}

void finalize(void*) {
  end_exit_watch();
  if (!counts_here()) return;
  g_state.call.stop_context(g_state.context);
  g_on.store(false);
}

constinit sdk::ConfigureResult g_result{sizeof(sdk::ConfigureResult), initialize, finalize, nullptr};

}  // namespace

bool wanted() {
  return capture::start() && !tape::configuration().counter_folder.empty();
}

vendor::sdk::ConfigureResult* configure(uint32_t version, vendor::sdk::ClientId* client, const void* caller) {
  if (!wanted() || client == nullptr) return nullptr;
  sdk::name_client(version, client, "tacho");
  const std::string_view folder = tape::configuration().counter_folder;
  char path[1024];
  if (folder.empty() || folder.size() >= sizeof path) return nullptr;
  memcpy(path, folder.data(), folder.size());
  path[folder.size()] = '\0';
  if (g_state.spool.state != nullptr || !g_state.spool.read(path, take_setting)) return nullptr;
  if (g_state.sampling != nullptr) return pc_samples::configure(version, g_state.sampling, g_state.spool, caller);
  if (g_state.counter_count == 0) return nullptr;
  g_version = version;
  char line[256];
  if (version < sdk::kOldestCounting || !find_functions(caller)) {
    snprintf(line, sizeof line, "rocprofiler-sdk %u.%u.%u cannot count for tacho: that needs ROCm 6.3 or later",
             version / 10000, version / 100 % 100, version % 100);
    refuse(line);
    return nullptr;
  }
  if (g_state.policy_pass < 0 && version < sdk::kFirstWide) {
    refuse(g_state.replays ? "--replay kernel needs the rocprofiler-sdk of ROCm 7 or later; "
                             "--replay application runs the program once a pass"
                           : "--iteration-multiplexing needs the rocprofiler-sdk of ROCm 7 or "
                             "later; leave it out, and the program runs once a pass");
    return nullptr;
  }
  return &g_result;
}

}  // namespace tacho::capture::rocm::counting
