// libtacho.so as a tool of rocprofiler-sdk (sdk.h): the library calls rocprofiler_configure, then initialize(), the
// only moment in which services can be set up, and finalize() at the process's end.
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/own_thread.h"
#include "capture/source/rocm/counting.h"
#include "capture/source/rocm/device_counters.h"
#include "capture/source/rocm/rocm.h"
#include "capture/source/rocm/sdk/sdk.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

constinit sdk::Functions g_functions{};
constinit uint32_t g_sdk_version = 0;
constinit void* g_sdk_library = nullptr;  // its handle
constinit sdk::ClientId g_client{};
constinit sdk::ClientIdNarrow g_client_narrow{};
constinit sdk::Finalize* g_finalize = nullptr;
constinit sdk::Context g_names = 0, g_context = 0;
constinit sdk::Buffer g_buffer = 0;
constinit std::atomic<pid_t> g_sdk_pid{0};
constinit std::atomic<uint32_t> g_sdk_finished{0}, g_sdk_inside{0}, g_sdk_exit_asked{0}, g_sdk_exit_done{0};
constinit std::atomic<uint64_t> g_sdk_enabled{0};

void say_sdk(event::NoteSeverity severity, const char* what, const char* detail) {
  char line[1024];
  snprintf(line, sizeof line, what, detail);
  tape::note(severity, line);
}

// Clock

void define_sdk_clock() {
  event::ClockPairRecord best{};
  best.uncertainty = ~0ull;
  for (int attempt = 0; attempt < 3; ++attempt) {
    uint64_t theirs = 0;
    const int64_t raw = raw_now();
    const uint64_t before = host_ticks();
    if (g_functions.timestamp(&theirs) != sdk::kSuccess) return;
    const uint64_t after = host_ticks();
    const auto uncertainty = static_cast<uint64_t>(raw_now() - raw) / 2;
    if (uncertainty >= best.uncertainty) continue;
    best.uncertainty = uncertainty;
    best.host = before + (after - before) / 2;
    best.device = theirs;
  }
  best.header = {event::RecordKind::kClockPair, static_cast<uint8_t>(kSdkBlocks), sizeof best, 0};
  tape::define(&best.header);
}

// Kernels and agents

template <size_t Most>
void define_object(sdk::Object what, const void* payload, const char* first, const char* second) {
  struct {
    event::BlockObjectRecord head;
    std::byte bytes[Most];
  } record{};
  uint64_t bytes = 0;
  memcpy(&bytes, payload, sizeof bytes);  // both begin with their size
  if (bytes > Most) bytes = Most;
  memcpy(record.bytes, payload, bytes);
  record.head.header = {event::RecordKind::kBlockObject, static_cast<uint8_t>(kSdkBlocks),
                        static_cast<uint16_t>((sizeof record.head + bytes + 7) & ~size_t{7}),
                        static_cast<uint32_t>(what)};
  record.head.bytes = static_cast<uint32_t>(bytes);
  record.head.texts[0] = first != nullptr ? tape::intern(first) : 0;
  record.head.texts[1] = second != nullptr ? tape::intern(second) : 0;
  tape::define(&record.head.header);
}

template <typename T>
T read_member(const void* payload, sdk::Member<T> member) {
  T value;
  memcpy(&value, static_cast<const char*>(payload) + member.offset, sizeof value);
  return value;
}

sdk::Status see_agents(int32_t, const void** agents, size_t count, void*) {
  for (size_t at = 0; at < count; ++at)
    define_object<sdk::agent::kMost>(sdk::Object::kAgent, agents[at],
                                     reinterpret_cast<const char*>(read_member(agents[at], sdk::agent::name)),
                                     reinterpret_cast<const char*>(read_member(agents[at], sdk::agent::product)));
  return sdk::kSuccess;
}

template <typename Record>
void see_code_object(Record record, uint64_t*, void*) {
  if (record.phase != sdk::kPhaseEnter || record.operation != sdk::kernel_symbol::kOperation ||
      record.payload == nullptr || !sdk_active())
    return;
  define_object<sdk::kernel_symbol::kMost>(
      sdk::Object::kKernel, record.payload,
      reinterpret_cast<const char*>(read_member(record.payload, sdk::kernel_symbol::name)), nullptr);
}

// Services

struct Wanted {
  int32_t operations[1024];
  size_t count;
  bool left_out_some;
};
constinit Wanted g_wanted{};

int see_wanted(int32_t kind, int32_t operation, void*) {
  const char* name = nullptr;
  uint64_t length = 0;
  if (g_functions.buffer_operation_name(kind, operation, &name, &length) == sdk::kSuccess && name != nullptr &&
      sdk::only_asks(name))
    g_wanted.left_out_some = true;
  else if (g_wanted.count < sizeof g_wanted.operations / sizeof *g_wanted.operations)
    g_wanted.operations[g_wanted.count++] = operation;
  return 0;
}

sdk::Status trace_kind(int32_t kind) {
  g_wanted.count = 0;
  g_wanted.left_out_some = false;
  if (!tape::configuration().all_api_calls) g_functions.buffer_operations(kind, see_wanted, nullptr);
  return g_wanted.left_out_some
             ? g_functions.trace_buffered(g_context, kind, g_wanted.operations, g_wanted.count, g_buffer)
             : g_functions.trace_buffered(g_context, kind, nullptr, 0, g_buffer);
}

struct BufferKinds {
  int32_t numbers[64];
  char names[64][40];
  size_t count;
};
constinit BufferKinds g_buffer_kinds{};

int see_buffer_kind(int32_t kind, void*) {
  const char* name = nullptr;
  uint64_t length = 0;
  BufferKinds& kinds = g_buffer_kinds;
  if (kinds.count < sizeof kinds.numbers / sizeof *kinds.numbers &&
      g_functions.buffer_kind_name(kind, &name, &length) == sdk::kSuccess && name != nullptr) {
    kinds.numbers[kinds.count] = kind;
    snprintf(kinds.names[kinds.count++], sizeof kinds.names[0], "%s", name);
  }
  return 0;
}
int32_t buffer_kind(std::string_view name) {
  for (size_t at = 0; at < g_buffer_kinds.count; ++at)
    if (name == g_buffer_kinds.names[at]) return g_buffer_kinds.numbers[at];
  return -1;
}

struct CallbackKinds {
  int32_t code_object = -1, hip = -1;
};
int see_callback_kind(int32_t kind, void* data) {
  const char* name = nullptr;
  uint64_t length = 0;
  auto& kinds = *static_cast<CallbackKinds*>(data);
  if (g_functions.callback_kind_name(kind, &name, &length) != sdk::kSuccess || name == nullptr) return 0;
  if (std::string_view(name) == sdk::kind::kCodeObject) kinds.code_object = kind;
  if (std::string_view(name) == sdk::kind::kHip) kinds.hip = kind;
  return 0;
}

// Traces records called `name` into `table`. Kinds that an older library lacks are left out with a note.
bool record_kind(const char* name, event::Table table, event::NoteSeverity refused = event::NoteSeverity::kWarning) {
  const int32_t kind = buffer_kind(name);
  if (kind < 0) return false;
  describe_kind(kind, name, table);
  const sdk::Status status = trace_kind(kind);
  if (status == sdk::kSuccess) return true;
  const char* const text = g_functions.status_text(status);
  char line[256];
  snprintf(line, sizeof line, "rocprofiler-sdk records no %s (%s): they are not in the trace", name,
           text != nullptr ? text : "it gives no reason");
  tape::note(refused, line);
  return false;
}

int see_operation_at_all(int32_t kind, int32_t operation, void* data) {
  const char* name = nullptr;
  uint64_t length = 0;
  *static_cast<bool*>(data) =
      g_functions.buffer_operation_name(kind, operation, &name, &length) == sdk::kSuccess && name != nullptr;
  return *static_cast<bool*>(data) ? 1 : 0;
}
// With results if the library has such records, and names their functions.
bool record_hip_calls() {
  bool named = false;
  if (const int32_t kind = buffer_kind(sdk::asked::kHipCalls); kind >= 0)
    g_functions.buffer_operations(kind, see_operation_at_all, &named);
  return (named && record_kind(sdk::asked::kHipCalls, event::Table::kApi)) ||
         record_kind("HIP_RUNTIME_API", event::Table::kApi);
}

bool set_up_services() {
  const uint64_t sources = tape::pool()->sources;
  CallbackKinds callbacks;
  g_functions.callback_kinds(see_callback_kind, &callbacks);
  g_functions.buffer_kinds(see_buffer_kind, nullptr);
  auto* const callback =
      g_sdk_version >= sdk::kFirstWide
          ? reinterpret_cast<sdk::signature::AnyCallback*>(&see_code_object<sdk::CallbackRecordWide>)
          : reinterpret_cast<sdk::signature::AnyCallback*>(&see_code_object<sdk::CallbackRecordNarrow>);
  if (g_functions.create_context(&g_names) != sdk::kSuccess ||
      g_functions.create_context(&g_context) != sdk::kSuccess || callbacks.code_object < 0 ||
      g_functions.trace_callback(g_names, callbacks.code_object, nullptr, 0, callback, nullptr) != sdk::kSuccess ||
      g_functions.create_buffer(g_context, sdk::kBufferBytes, sdk::kFlushAt, sdk::kPolicyLossless, copy_records,
                                nullptr, &g_buffer) != sdk::kSuccess)
    return false;
  if ((sources & tape::source_bit::kApi) != 0) {
    if (record_hip_calls()) tape::define_attached(event::Domain::kHipRuntime);
    if (record_kind(sdk::asked::kHipCompilerCalls, event::Table::kApi))
      tape::define_attached(event::Domain::kHipCompiler);
    if (record_kind(sdk::asked::kRcclCalls, event::Table::kApi)) tape::define_attached(event::Domain::kRccl);
    if (tape::configuration().hsa_calls) {
      for (const char* const name : {"HSA_CORE_API", "HSA_AMD_EXT_API", "HSA_IMAGE_EXT_API", "HSA_FINALIZE_EXT_API"})
        record_kind(name, event::Table::kApi);
      tape::define_attached(event::Domain::kHsa);
    }
  }
  const bool kernels = (sources & tape::source_bit::kDispatch) != 0;
  const bool copies = (sources & tape::source_bit::kCopy) != 0;
  if (kernels) record_kind(sdk::asked::kKernels, event::Table::kDispatch);
  if (copies) record_kind(sdk::asked::kCopies, event::Table::kCopy);
  // The driver's own events: the library follows them with its own thread and file. Only with retried page faults do
  // pages move while kernels run; kernel drivers before Linux 6.1 or so report nothing.
  if (const char* const retries = getenv("HSA_XNACK"); copies && retries != nullptr && strcmp(retries, "1") == 0)
    for (const std::string_view name : {sdk::kind::kMigration, sdk::kind::kMigrationEvent})
      record_kind(name.data(), event::Table::kCopy, event::NoteSeverity::kInfo);
  if ((sources & tape::source_bit::kAllocation) != 0) {
    record_kind(sdk::asked::kAllocations, event::Table::kAllocation);
    record_kind(sdk::asked::kScratchMemory, event::Table::kAllocation);
  }
  const Services services{g_functions, g_sdk_version, g_context, buffer_kind(sdk::kind::kHip), callbacks.hip};
  watch_calls(services);
  if (kernels || copies) follow_work(services, kernels, copies);
  return g_functions.start_context(g_names) == sdk::kSuccess;
}

// Recording on and off, flushing, the end

constinit bool g_context_started = false;

// rocprofiler_flush_buffer() clears a list of the library's tasks that threads which record append to, without a lock
// (1.0): it is for times in which nothing is recorded.
void flush_when_stopped() {
  const timespec moment{0, 20'000'000};  // calls that began before end
  nanosleep(&moment, nullptr);
  g_functions.flush_buffer(g_buffer);
}

void apply_sources(uint64_t wanted) {
  // Until the launch that recording begins with, launches have to be seen; the decoder drops them.
  const bool started = wanted != 0 || waits_for_launch();
  if (started != g_context_started) (started ? g_functions.start_context : g_functions.stop_context)(g_context);
  if (g_context_started && !started) {
    flush_when_stopped();
    forgive_open_work();
  }
  g_context_started = started;
  recording_switched(wanted != 0);
  g_sdk_enabled.store(wanted, std::memory_order_relaxed);
}

class InsideSdk {
 public:
  InsideSdk() { g_sdk_inside.store(1); }
  ~InsideSdk() { g_sdk_inside.store(0); }
  bool allowed() const { return g_sdk_finished.load() == 0; }
};

void* follow_sdk(void*) {
  pthread_setname_np(pthread_self(), "tacho-rocm");
  tape::t_state.hidden = 1;
  tape::PoolHeader* const pool = tape::pool();
  const uint32_t period = pool->flush_period_ms == 0 ? 1000 : pool->flush_period_ms;
  int64_t last_clock = raw_now();
  while (g_sdk_finished.load(std::memory_order_relaxed) == 0) {
    // Wakes at once when the launcher changes `enabled` and wakes its waiters, otherwise soon.
    const uint64_t seen = pool->enabled.load(std::memory_order_relaxed);
    if (seen == g_sdk_enabled.load(std::memory_order_relaxed) && g_sdk_exit_asked.load() == 0) {
      const timespec wait{0, 50'000'000};
      syscall(SYS_futex, &pool->enabled, FUTEX_WAIT, static_cast<uint32_t>(seen), &wait, nullptr, 0);
    }
    if (g_sdk_exit_asked.load() != 0) {
      // The library's own end: it waits for work in flight and calls finalize_sdk().
      if (g_sdk_version >= sdk::kFirstWide)
        g_finalize(g_client);
      else
        reinterpret_cast<sdk::FinalizeNarrow*>(reinterpret_cast<void (*)()>(g_finalize))(g_client_narrow);
      g_sdk_exit_done.store(1);
      break;
    }
    const InsideSdk inside;
    if (!inside.allowed()) break;
    const bool closing = pool->closing.load(std::memory_order_relaxed) != 0;
    const uint64_t wanted = closing ? 0 : pool->enabled.load(std::memory_order_relaxed);
    if (wanted != g_sdk_enabled.load(std::memory_order_relaxed)) apply_sources(wanted);
    if (raw_now() - last_clock < int64_t{period} * 1'000'000) continue;
    define_sdk_clock();
    last_clock = raw_now();
  }
  return nullptr;
}

// A forked child has none of the library's threads: nobody would empty the buffers that its wrappers fill, and a full
// buffer would stop the program for ever. So its contexts end, and a GPU that the child uses goes through HSA's
// interface.
void in_forked_child() {
  if (g_sdk_pid.load(std::memory_order_relaxed) == 0) return;
  g_functions.stop_context(g_context);
  g_functions.stop_context(g_names);
  forget_work();
  leave_sdk_road(nullptr);
}

// The library waits in exit() for work that does not end: the recording ends with the records so far. Work in flight
// stays counted.
void finish_hung_recording() {
  define_sdk_clock();
  g_sdk_finished.store(1);
  tape::note(event::NoteSeverity::kWarning,
             "the program had ended, but rocprofiler-sdk waited for GPU work that did not end: tacho ended the process "
             "with the program's exit code; work in flight is not in the trace");
}

int initialize_sdk(sdk::Finalize* finalize, void*) {
  g_finalize = finalize;
  set_up_sdk_buffers(g_functions, g_sdk_version);
  if (!set_up_services()) {
    leave_sdk_road(
        "rocprofiler-sdk refused its tracing services: tacho traces through HSA's interface for tools instead");
    return 0;
  }
  g_sdk_pid.store(getpid());
  set_up_device_counters(g_sdk_version, g_sdk_library);
  pthread_atfork(nullptr, nullptr, in_forked_child);
  define_sdk_clock();
  if (!tape::configuration().kernel_include.empty())
    tape::define_fact(kSdkBlocks, event::BlockFact::kKernelInclude, 0, tape::configuration().kernel_include);
  if (!tape::configuration().kernel_exclude.empty())
    tape::define_fact(kSdkBlocks, event::BlockFact::kKernelExclude, 0, tape::configuration().kernel_exclude);
  char text[64];
  snprintf(text, sizeof text, "%u.%u.%u", g_sdk_version / 10000, g_sdk_version / 100 % 100, g_sdk_version % 100);
  tape::define_property(event::Table::kProcess, 0, "rocm.source", "sdk");
  tape::define_property(event::Table::kProcess, 0, "rocm.sdk_version", text);
  apply_sources(tape::pool()->enabled.load(std::memory_order_relaxed));
  if (!start_own_thread(follow_sdk))
    tape::note(event::NoteSeverity::kWarning,
               "no thread could be started to flush rocprofiler-sdk's records: a killed program loses more of them");
  return 0;
}

// By the library: at exit, when all work has ended and its contexts are stopped.
void finalize_sdk(void*) {
  end_exit_watch();
  if (!sdk_active()) return;
  const int64_t begin = raw_now();
  end_device_counters();
  g_functions.flush_buffer(g_buffer);
  define_sdk_clock();
  g_sdk_finished.store(1);
  end_work();
  constexpr int64_t kPatience = 1'000'000'000;
  while (g_sdk_inside.load() != 0 && raw_now() - begin < kPatience) {
    const timespec moment{0, 50'000};
    nanosleep(&moment, nullptr);
  }
}

constinit sdk::ConfigureResult g_result = {sizeof(sdk::ConfigureResult), initialize_sdk, finalize_sdk, nullptr};

// The functions of the library at `address`; nullptr, or the name of the one that it lacks.
const char* bind_functions(const void* address, Dl_info& at) {
  if (dladdr(address, &at) == 0 || at.dli_fname == nullptr) return "anything";
  void* const handle = dlopen(at.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return "anything";
  g_sdk_library = handle;
  const char* missing = nullptr;
#define TACHO_SDK_BIND(member, type, name)                                                          \
  g_functions.member = reinterpret_cast<sdk::signature::type*>(dlsym(handle, "rocprofiler_" name)); \
  if (g_functions.member == nullptr) missing = "rocprofiler_" name;
  TACHO_SDK_FUNCTIONS(TACHO_SDK_BIND)
#undef TACHO_SDK_BIND
  g_functions.external_request = reinterpret_cast<sdk::signature::ExternalRequest*>(
      dlsym(handle, "rocprofiler_configure_external_correlation_id_request_service"));
  g_functions.external_kind_name = reinterpret_cast<sdk::signature::KindName*>(
      dlsym(handle, "rocprofiler_query_external_correlation_id_request_kind_name"));
  return missing;
}

sdk::ConfigureResult* configure_sdk(uint32_t version, sdk::ClientId* client, const void* caller) {
  if (counting::wanted()) return counting::configure(version, client, caller);
  static constinit std::atomic<uint32_t> configured{0};
  Dl_info at{};
  const char* const library = dladdr(caller, &at) != 0 && at.dli_fname != nullptr ? at.dli_fname : "";
  if (client == nullptr || !take_sdk_road(library)) return nullptr;
  if (configured.exchange(1) != 0) {
    say_sdk(event::NoteSeverity::kWarning,
            "a second rocprofiler-sdk (%s) was started in this process: tacho stays with the first", library);
    return nullptr;
  }
  if (version < sdk::kOldest) {
    leave_sdk_road(
        "rocprofiler-sdk is older than 0.4 (ROCm 6.2): tacho traces through HSA's interface for tools instead");
    return nullptr;
  }
  if (const char* const missing = bind_functions(caller, at); missing != nullptr) {
    char line[256];
    snprintf(line, sizeof line, "rocprofiler-sdk has no %s: tacho traces through HSA's interface for tools instead",
             missing);
    leave_sdk_road(line);
    return nullptr;
  }
  g_sdk_version = version;
  sdk::name_client(version, client, "tacho");
  if (version >= sdk::kFirstWide)
    g_client = *client;
  else
    memcpy(static_cast<void*>(&g_client_narrow), client, sizeof g_client_narrow);
  tape::define_property(event::Table::kProcess, 0, "rocm.sdk_path", library);
  return &g_result;
}

}  // namespace

void watch_recordings_exit() {
  watch_exit({work_is_open, [] { g_functions.flush_buffer(g_buffer); }, finish_hung_recording, end_device_counters});
}

void describe_agents() {
  static constinit std::atomic<bool> described{false};
  if (!described.exchange(true)) g_functions.query_agents(1, see_agents, sdk::agent::kNarrow, nullptr);
}

bool sdk_active() {
  return g_sdk_pid.load(std::memory_order_relaxed) != 0 && g_sdk_finished.load(std::memory_order_relaxed) == 0 &&
         road() == Road::kSdk;
}

}  // namespace tacho::capture::rocm

namespace tacho::capture {
void finish_rocprofiler_before_exit() {
  using namespace rocm;
  if (!sdk_active() || g_finalize == nullptr) return;
  // By our thread: the caller may be anywhere, in a signal handler inside the library too, and is not kept waiting for
  // long.
  constexpr int64_t kPatience = 1'000'000'000;
  const int64_t begin = raw_now();
  g_sdk_exit_asked.store(1);
  syscall(SYS_futex, &tape::pool()->enabled, FUTEX_WAKE, 1 << 20, nullptr, nullptr, 0);
  while (g_sdk_exit_done.load() == 0 && raw_now() - begin < kPatience) {
    const timespec moment{0, 100'000};
    nanosleep(&moment, nullptr);
  }
}
}  // namespace tacho::capture

// For rocprofiler-sdk (rocprofiler-sdk/registration.h). nullptr: not interested.
extern "C" __attribute__((visibility("default"))) tacho::vendor::sdk::ConfigureResult* rocprofiler_configure(
    uint32_t version, const char*, uint32_t, tacho::vendor::sdk::ClientId* client) {
  return tacho::capture::rocm::configure_sdk(version, client, __builtin_return_address(0));
}
