// Sampling with rocprofiler-sdk (pc_samples.h). The library hands over full buffers on its own thread; each buffer is
// appended to the process's file with one write.
#include "capture/source/rocm/pc_samples.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <type_traits>

#include "capture/capture.h"
#include "capture/room/say.h"
#include "capture/source/rocm/rocm.h"
#include "capture/source/rocm/sdk/sdk.h"
#include "event/spool/spool.h"
#include "tape/writer.h"
#include "vendor/amd/sdk_sampling.h"

namespace tacho::capture::rocm::pc_samples {

namespace {

namespace sdk = vendor::sdk;
namespace sdk_call = vendor::sdk::signature;

constexpr size_t kMostGpus = 64, kMostRecord = 16384, kMostText = 8192;

struct Functions {
  sdk_call::CreateContext* create_context;
  sdk_call::OnContext *start_context, *stop_context;
  sdk_call::CreateBuffer* create_buffer;
  sdk_call::FlushBuffer* flush_buffer;
  sdk_call::TraceBuffered* trace_buffered;
  sdk_call::TraceCallback* trace_callback;
  sdk_call::IterateKinds* buffer_kinds;
  sdk_call::KindName* buffer_kind_name;
  sdk_call::QueryAgents* query_agents;
  sdk_call::SamplingChoices* choices;
  sdk_call::SamplePc* sample;
  sdk_call::StatusText* status_text;
  // nullptr if missing
  sdk_call::ExternalRequest* external_request;
  sdk_call::KindName* external_kind_name;
};
struct Gpu {
  sdk::Handle id;
  const char* name;
};

constinit Functions g_sampling{};
constinit counter::CounterSpool* g_spool = nullptr;
constinit uint32_t g_sampling_version = 0;
constinit int32_t g_method = 0, g_unit = 0, g_dispatch_kind = -1;
constinit uint64_t g_interval = 0, g_told_dropped = 0;
constinit sdk::Context g_code = 0, g_work = 0;
constinit sdk::Buffer g_samples = 0;
constinit Gpu g_gpus[kMostGpus]{};
constinit size_t g_gpu_count = 0;
constinit int g_file = -1;
constinit std::atomic<bool> g_sampled{false};
constinit std::atomic<uint32_t> g_write_lock{0};
constinit std::atomic<uint64_t> g_dispatches_begun{0}, g_dispatches_back{0};
constinit MappedBytes g_pieces{};

bool samples_here() {
  return g_sampled.load(std::memory_order_acquire) && getpid() == g_spool->pid;
}

const char* reason_of(sdk::Status status) {
  const char* const text = g_sampling.status_text != nullptr ? g_sampling.status_text(status) : nullptr;
  return text != nullptr ? text : "it gives no reason";
}

void refuse_to_sample(const char* sentence) {
  say(sentence);
  g_spool->state->refused.fetch_add(1);
}

// A GPU that hangs (sdk_exit.cpp)

bool dispatches_are_open() {
  return samples_here() &&
         g_dispatches_begun.load(std::memory_order_relaxed) > g_dispatches_back.load(std::memory_order_relaxed);
}

void flush_samples() {
  g_sampling.flush_buffer(g_samples);
}

void finish_hung_sampling() {
  say("the program had ended, but rocprofiler-sdk waited for GPU work that did not end: tacho ended the process with "
      "the program's exit code; the samples that it had handed over are kept");
  const Guard lock(g_write_lock);  // no record is cut in the middle
  g_sampled.store(false);
}

// The library calls this as a dispatch begins, to ask for its external correlation.
int on_dispatch_begins(uint64_t, sdk::Context, int32_t, int32_t, uint64_t, uint64_t* external, void*) {
  *external = 0;
  if (!samples_here()) return 0;
  watch_exit({dispatches_are_open, flush_samples, finish_hung_sampling});
  g_dispatches_begun.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

// Pieces

// With the lock. Room for a piece, its header written.
uint8_t* append(uint32_t category, uint32_t kind, uint64_t bytes) {
  const size_t need = sizeof(sdk::PieceHeader) + ((bytes + 7) & ~uint64_t{7});
  if (!g_pieces.reserve(g_pieces.count + need > g_pieces.capacity ? (g_pieces.count + need) * 2 : 1)) {
    g_spool->state->failures.fetch_add(1);
    return nullptr;
  }
  uint8_t* const at = g_pieces.data + g_pieces.count;
  const sdk::PieceHeader header{category, kind, bytes};
  memset(at, 0, need);
  memcpy(at, &header, sizeof header);
  g_pieces.count += need;
  return at + sizeof header;
}

// With the lock.
void write_pieces() {
  if (g_pieces.count != 0 && !write_all(g_file, g_pieces.data, g_pieces.count)) g_spool->state->failures.fetch_add(1);
  g_pieces.count = 0;
}

template <typename Fixed>
void say_piece(sdk::Spooled kind, Fixed fixed, const char* text) {
  if (text == nullptr) text = "";
  const size_t length = strnlen(text, kMostText);
  fixed.text_bytes = static_cast<uint32_t>(length);
  const Guard lock(g_write_lock);
  uint8_t* const at = append(sdk::kSpoolCategory, static_cast<uint32_t>(kind), sizeof fixed + length);
  if (at == nullptr) return;
  memcpy(at, &fixed, sizeof fixed);
  memcpy(at + sizeof fixed, text, length);
  write_pieces();
}

void take_buffer(sdk::Context, sdk::Buffer, sdk::SdkRecordHeader** headers, size_t count, void*, uint64_t dropped) {
  if (!samples_here()) return;
  sign_of_life();
  const Guard lock(g_write_lock);
  if (!samples_here()) return;
  if (dropped > g_told_dropped) {
    const uint64_t more = dropped - g_told_dropped;
    g_told_dropped = dropped;
    g_dispatches_back.fetch_add(more, std::memory_order_relaxed);  // they may have been dispatches
    if (uint8_t* const at = append(sdk::kSpoolCategory, static_cast<uint32_t>(sdk::Spooled::kDropped), sizeof more))
      memcpy(at, &more, sizeof more);
  }
  for (size_t i = 0; i < count; ++i) {
    if (headers[i] == nullptr || headers[i]->payload == nullptr) continue;
    uint64_t bytes = 0;
    memcpy(&bytes, headers[i]->payload, sizeof bytes);  // every record here begins with its size
    if (bytes < sizeof bytes || bytes > kMostRecord) {
      g_spool->state->failures.fetch_add(1);
      continue;
    }
    if (headers[i]->category == sdk::category::kTracing) g_dispatches_back.fetch_add(1, std::memory_order_relaxed);
    if (uint8_t* const at = append(headers[i]->category, headers[i]->kind, bytes))
      memcpy(at, headers[i]->payload, bytes);
  }
  write_pieces();
}

// Code

void keep_code(const sdk::CodeObject& code) {
  const bool in_memory = code.storage == sdk::CodeObject::kInMemory && code.memory != 0 && code.memory_bytes != 0;
  if (in_memory) {
    char path[1152];
    snprintf(path, sizeof path, "%.1000s/%u.%llu.code", g_spool->folder, g_spool->process,
             static_cast<unsigned long long>(code.id));
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || !write_all(file, reinterpret_cast<const uint8_t*>(code.memory), code.memory_bytes))
      g_spool->state->failures.fetch_add(1);
    if (file >= 0) close(file);
  }
  say_piece(sdk::Spooled::kCodeObject,
            sdk::SpooledCode{code.id, code.base, code.delta, code.agent.handle, in_memory ? 1u : 0u, 0}, code.uri);
}

template <typename Record>
void on_code(Record record, sdk::UserData*, void*) {
  if (record.phase != sdk::kPhaseEnter || record.payload == nullptr || !samples_here()) return;
  if (record.operation == sdk::CodeObject::kOperation) {
    sdk::CodeObject code{};
    uint64_t bytes = 0;
    memcpy(&bytes, record.payload, sizeof bytes);
    memcpy(&code, record.payload, bytes < sizeof code ? bytes : sizeof code);
    keep_code(code);
  } else if (record.operation == sdk::kernel_symbol::kOperation) {
    namespace f = sdk::kernel_symbol;
    const auto* const symbol = static_cast<const std::byte*>(record.payload);
    uint64_t size = 0;
    memcpy(&size, symbol, sizeof size);
    if (size < f::kLeast) return;
    constexpr sdk::Member<int64_t> kEntry{72};  // from 0.6 on
    say_piece(sdk::Spooled::kKernel,
              sdk::SpooledKernel{f::id.read(symbol, size), f::code_object.read(symbol, size),
                                 f::object.read(symbol, size), kEntry.read(symbol, size), f::vector.read(symbol, size),
                                 f::accumulation.read(symbol, size), f::scalar.read(symbol, size), 0},
              reinterpret_cast<const char*>(f::name.read(symbol, size)));
  }
}

// Setting up

sdk::Status take_gpus(int32_t, const void** agents, size_t count, void*) {
  for (size_t at = 0; at < count && g_gpu_count < kMostGpus; ++at) {
    const auto* const agent = static_cast<const sdk::AgentHead*>(agents[at]);
    if (agent->type != static_cast<int32_t>(sdk::agent::kGpu)) continue;
    const uint64_t name = sdk::agent::name.read(static_cast<const std::byte*>(agents[at]), agent->size);
    g_gpus[g_gpu_count] = {agent->id, name != 0 ? reinterpret_cast<const char*>(name) : ""};
    say_piece(sdk::Spooled::kAgent, sdk::SpooledAgent{agent->id.handle, static_cast<uint32_t>(g_gpu_count), 0},
              g_gpus[g_gpu_count].name);
    ++g_gpu_count;
  }
  return sdk::kSuccess;
}

struct Range {
  bool found = false;
  sdk::SamplingChoice choice{};
};
sdk::Status take_choices(const sdk::SamplingChoice* choices, size_t count, void* data) {
  auto& range = *static_cast<Range*>(data);
  for (size_t at = 0; at < count; ++at)
    if (choices[at].method == g_method && choices[at].unit == g_unit) range = {true, choices[at]};
  return sdk::kSuccess;
}

const char* method_name() {
  return g_method == static_cast<int32_t>(sdk::SamplingMethod::kHostTrap) ? "host_trap" : "stochastic";
}

// Why a GPU does not sample, "" if it does.
bool sample_gpu(size_t number, char (&why)[384]) {
  const Gpu& gpu = g_gpus[number];
  Range range;
  const sdk::Status asked = g_sampling.choices(gpu.id, take_choices, &range);
  const char* const name = gpu.name;
  const auto gpu_number = static_cast<unsigned>(number);
  if (asked != sdk::kSuccess)
    snprintf(why, sizeof why, "GPU %u (%s) takes no PC samples: %s", gpu_number, name, reason_of(asked));
  else if (!range.found)
    snprintf(why, sizeof why,
             "GPU %u (%s) takes no PC samples by --pc-sampling-method %s in this unit; try the other method",
             gpu_number, name, method_name());
  else if (g_interval < range.choice.least || g_interval > range.choice.most)
    snprintf(why, sizeof why, "--pc-sampling-interval %llu: GPU %u (%s) takes %llu to %llu by the method %s",
             static_cast<unsigned long long>(g_interval), gpu_number, name,
             static_cast<unsigned long long>(range.choice.least), static_cast<unsigned long long>(range.choice.most),
             method_name());
  else if (range.choice.flags == sdk::kPowerOfTwo && (g_interval & (g_interval - 1)) != 0)
    snprintf(why, sizeof why, "--pc-sampling-interval %llu: GPU %u (%s) takes powers of two by the method %s",
             static_cast<unsigned long long>(g_interval), gpu_number, name, method_name());
  else if (const sdk::Status done = g_sampling.sample(g_work, gpu.id, g_method, g_unit, g_interval, g_samples, 0);
           done != sdk::kSuccess)
    snprintf(why, sizeof why, "GPU %u (%s) takes no PC samples: %s", gpu_number, name, reason_of(done));
  else
    return true;
  return false;
}

int see_kind(int32_t kind, void*) {
  const char* name = nullptr;
  uint64_t length = 0;
  if (g_sampling.buffer_kind_name(kind, &name, &length) == sdk::kSuccess && name != nullptr &&
      sdk::kind::kDispatch == name)
    g_dispatch_kind = kind;
  return 0;
}

int initialize(void (*)(sdk::ClientId), void*) {
  g_spool->process = static_cast<uint32_t>(g_spool->state->attached.fetch_add(1));
  char path[1152];
  snprintf(path, sizeof path, "%.1000s/%u.sampled", g_spool->folder, g_spool->process);
  g_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (g_file < 0) {
    g_spool->state->failures.fetch_add(1);
    return 0;
  }
  char program[512] = "";
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = '\0';
  say_piece(sdk::Spooled::kRun, sdk::SpooledRun{g_sampling_version, g_method, static_cast<uint32_t>(g_spool->pid), 0},
            program);
  g_sampling.query_agents(sdk::kAgentVersion, take_gpus, sdk::kAgentBytes, nullptr);
  g_sampling.buffer_kinds(see_kind, nullptr);
  auto* const callback = g_sampling_version >= sdk::kFirstWide
                             ? reinterpret_cast<sdk_call::AnyCallback*>(&on_code<sdk::CallbackRecordWide>)
                             : reinterpret_cast<sdk_call::AnyCallback*>(&on_code<sdk::CallbackRecordNarrow>);
  constexpr size_t kBuffer = 1 << 20, kFlushAt = 256 << 10;
  sdk::Status status = sdk::kSuccess;
  const auto done = [&status](sdk::Status result) {
    if (status == sdk::kSuccess) status = result;
    return status == sdk::kSuccess;
  };
  bool ready = done(g_sampling.create_context(&g_code)) &&
               done(g_sampling.trace_callback(g_code, sdk::kCallbackCodeObject, nullptr, 0, callback, nullptr)) &&
               done(g_sampling.create_context(&g_work)) &&
               done(g_sampling.create_buffer(g_work, kBuffer, kFlushAt, sdk::kPolicyLossless, take_buffer, nullptr,
                                             &g_samples)) &&
               done(g_sampling.trace_buffered(g_work, g_dispatch_kind, nullptr, 0, g_samples));
  char why[384] = "";
  if (ready) {
    size_t sampled = 0;
    for (size_t at = 0; at < g_gpu_count; ++at) sampled += sample_gpu(at, why) ? 1 : 0;
    if (sampled == 0) {
      refuse_to_sample(why[0] != '\0' ? why : "rocprofiler-sdk sees no GPU, so there are no PC samples");
      return 0;
    }
    if (why[0] != '\0') {
      char line[480];
      snprintf(line, sizeof line, "%s; the other GPUs are sampled", why);
      say(line);
    }
    g_sampled.store(true, std::memory_order_release);
    if (g_sampling.external_request != nullptr && g_sampling.external_kind_name != nullptr)
      if (const int32_t kind = sdk::external_kind(g_sampling.external_kind_name, sdk::kind::kDispatch); kind > 0)
        g_sampling.external_request(g_work, &kind, 1, on_dispatch_begins, nullptr);
    ready = done(g_sampling.start_context(g_code)) && done(g_sampling.start_context(g_work));
  }
  if (!ready) {
    g_sampled.store(false);
    snprintf(why, sizeof why, "rocprofiler-sdk cannot take PC samples in process %d: %s",
             static_cast<int>(g_spool->pid), reason_of(status));
    refuse_to_sample(why);
  }
  return 0;
}

void finalize(void*) {
  end_exit_watch();
  if (!samples_here()) return;
  g_sampling.stop_context(g_work);
  g_sampling.flush_buffer(g_samples);
  g_sampled.store(false);
}

constinit sdk::ConfigureResult g_tool{sizeof(sdk::ConfigureResult), initialize, finalize, nullptr};

bool bind_sampling(const void* caller) {
  Dl_info at{};
  void* library = dladdr(caller, &at) != 0 && at.dli_fname != nullptr
                      ? dlopen(at.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)
                      : nullptr;
  if (library == nullptr) library = RTLD_DEFAULT;
  bool all = true;
  const auto find = [&](auto& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
    all = all && to != nullptr;
  };
  find(g_sampling.create_context, "rocprofiler_create_context");
  find(g_sampling.start_context, "rocprofiler_start_context");
  find(g_sampling.stop_context, "rocprofiler_stop_context");
  find(g_sampling.create_buffer, "rocprofiler_create_buffer");
  find(g_sampling.flush_buffer, "rocprofiler_flush_buffer");
  find(g_sampling.trace_buffered, "rocprofiler_configure_buffer_tracing_service");
  find(g_sampling.trace_callback, "rocprofiler_configure_callback_tracing_service");
  find(g_sampling.buffer_kinds, "rocprofiler_iterate_buffer_tracing_kinds");
  find(g_sampling.buffer_kind_name, "rocprofiler_query_buffer_tracing_kind_name");
  find(g_sampling.query_agents, "rocprofiler_query_available_agents");
  find(g_sampling.status_text, "rocprofiler_get_status_string");
  find(g_sampling.choices, "rocprofiler_query_pc_sampling_agent_configurations");
  find(g_sampling.sample, "rocprofiler_configure_pc_sampling_service");
  const bool enough = all;
  find(g_sampling.external_request, "rocprofiler_configure_external_correlation_id_request_service");
  find(g_sampling.external_kind_name, "rocprofiler_query_external_correlation_id_request_kind_name");
  return enough;
}

}  // namespace

sdk::ConfigureResult* configure(uint32_t version, const char* wanted, counter::CounterSpool& spool,
                                const void* caller) {
  g_spool = &spool;
  g_sampling_version = version;
  char* end = nullptr;
  g_method = static_cast<int32_t>(strtol(wanted, &end, 10));
  g_unit = static_cast<int32_t>(strtol(end, &end, 10));
  g_interval = strtoull(end, nullptr, 10);
  char line[256];
  if (version < sdk::kOldestSampling || !bind_sampling(caller)) {
    snprintf(line, sizeof line,
             "rocprofiler-sdk %u.%u.%u cannot take PC samples for tacho: that needs ROCm 6.3 or later", version / 10000,
             version / 100 % 100, version % 100);
    refuse_to_sample(line);
    return nullptr;
  }
  if (version < sdk::kFirstWide && g_method == static_cast<int32_t>(sdk::SamplingMethod::kStochastic)) {
    refuse_to_sample(
        "--pc-sampling-method stochastic needs the rocprofiler-sdk of ROCm 7 or later; host_trap works here");
    return nullptr;
  }
  return &g_tool;
}

}  // namespace tacho::capture::rocm::pc_samples
