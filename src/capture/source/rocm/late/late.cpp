// The life of HIP's late source (late.h): it waits until HIP is in use, becomes HIP's tracer, and gives that up again.
#include "capture/source/rocm/late/late.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "capture/kernel_filter.h"
#include "capture/room/loaded.h"
#include "capture/source/rocm/late_hsa/late_hsa.h"
#include "capture/source/rocm/rocm.h"
#include "tape/attach_block.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

enum class Stage : uint32_t { kAbsent, kWaiting, kProbing, kRecording, kLeaving, kRefused };
constinit std::atomic<Stage> g_stage{Stage::kAbsent};

struct HipLibrary {
  tracer::Register* become;
  tracer::NameOf* name_of;
  tracer::Version* version;
  HsaFunctions hsa;
  uint32_t count;  // of libraries with HIP in them
  bool has_hsa;
};
constinit HipLibrary g_hip = {};
constinit std::atomic<void*>* g_place = nullptr;  // where HIP keeps its tracer; nullptr = its code does not tell
constinit bool g_calls = false;                   // HIP's calls are as hip_tracer.h says
constinit std::atomic<bool> g_probe_answered{false};
constinit int64_t g_clocks = 0;

// Finding HIP

int see_library(dl_phdr_info* info, size_t, void* data) {
  auto& found = *static_cast<HipLibrary*>(data);
  if (exported_by(*info, tape::kAttachEntry) != nullptr) return 0;  // libtacho.so has functions of HIP's itself
  if (void* const become = exported_by(*info, "hipRegisterTracerCallback")) {
    if (found.count++ == 0) {
      found.become = reinterpret_cast<tracer::Register*>(become);
      found.name_of = reinterpret_cast<tracer::NameOf*>(exported_by(*info, "hipApiName"));
      found.version = reinterpret_cast<tracer::Version*>(exported_by(*info, "hipRuntimeGetVersion"));
    }
  }
  void* const system = exported_by(*info, "hsa_system_get_info");
  if (system != nullptr && !found.has_hsa) {
    found.has_hsa = true;
    found.hsa = {system, exported_by(*info, "hsa_iterate_agents"), exported_by(*info, "hsa_agent_get_info")};
  }
  return 0;
}

// The word that hipRegisterTracerCallback writes, from its few instructions:
//   [endbr64]  lea place(%rip),%rax | mov place@GOT(%rip),%rax   mov %rdi,(%rax)   ret
//   [endbr64]  mov %rdi,place(%rip)   ret
std::atomic<void*>* place_of(tracer::Register* become) {
  const auto* code = reinterpret_cast<const uint8_t*>(become);
  constexpr uint8_t kEndbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
  if (memcmp(code, kEndbr, sizeof kEndbr) == 0) code += sizeof kEndbr;
  int32_t distance = 0;
  memcpy(&distance, code + 3, sizeof distance);
  const uint8_t* const at = code + 7 + distance;
  constexpr uint8_t kStore[] = {0x48, 0x89, 0x38};  // mov %rdi,(%rax)
  if (code[0] == 0x48 && code[1] == 0x8d && code[2] == 0x05 && memcmp(code + 7, kStore, sizeof kStore) == 0)
    return reinterpret_cast<std::atomic<void*>*>(const_cast<uint8_t*>(at));
  if (code[0] == 0x48 && code[1] == 0x8b && code[2] == 0x05 && memcmp(code + 7, kStore, sizeof kStore) == 0) {
    void* place = nullptr;
    memcpy(static_cast<void*>(&place), at, sizeof place);
    return static_cast<std::atomic<void*>*>(place);
  }
  if (code[0] == 0x48 && code[1] == 0x89 && code[2] == 0x3d && code[7] == 0xc3)
    return reinterpret_cast<std::atomic<void*>*>(const_cast<uint8_t*>(at));
  return nullptr;
}

// Being its tracer

void on_probe(uint32_t, tracer::TracedCall*) {
  g_probe_answered.store(true, std::memory_order_relaxed);
}

int on_event(uint32_t domain, uint32_t operation, void* data) {
  constexpr int kNotWanted = 1;
  const Stage stage = g_stage.load(std::memory_order_acquire);
  if (stage == Stage::kProbing) {
    // Only of the call that learn_calls() makes.
    if (domain != tracer::kCalls || data == nullptr || tape::t_state.hidden == 0) return kNotWanted;
    auto& call = *static_cast<tracer::TracedCall*>(data);
    memset(static_cast<void*>(&call), 0, sizeof call);
    call.enter = on_probe;
    return 0;
  }
  if (stage != Stage::kRecording && stage != Stage::kLeaving) return kNotWanted;
  if (domain == tracer::kCalls)
    return data == nullptr || !g_calls || stage == Stage::kLeaving
               ? kNotWanted
               : begin_call(operation, *static_cast<tracer::TracedCall*>(data));
  if (domain != tracer::kWork) return kNotWanted;
  if (data == nullptr) {
    const auto work = static_cast<tracer::TracedWork>(operation);
    return stage == Stage::kRecording ? wants_work(work) : static_cast<int>(work == tracer::TracedWork::kBarrier);
  }
  if (reinterpret_cast<uintptr_t>(data) == tracer::kWillCome) {
    if (stage == Stage::kRecording) work_will_come(static_cast<tracer::TracedWork>(operation));
    return 0;
  }
  record_work(*static_cast<const tracer::Record*>(data));
  return 0;
}

// Zeros where the next function's frame will lie: what HIP finds where tacho does not write then leads nowhere.
__attribute__((noinline)) void clear_stack() {
  char below[32 * 1024];
  memset(below, 0, sizeof below);
  asm volatile("" : : "r"(below) : "memory");
}

// Whether this version hands over calls as hip_tracer.h says: a call of tacho's own has to come back by the function
// that was written where the others' will be.
bool learn_calls() {
  int version = 0;
  if (g_hip.name_of == nullptr || g_hip.version == nullptr) return false;
  g_probe_answered.store(false);
  if (g_hip.version(&version) != 0) return false;
  set_announces(version / 100'000 >= tracer::kFirstThatAnnounces);
  if (version / 10'000'000 < tracer::kFirstMajor) return false;
  g_stage.store(Stage::kProbing, std::memory_order_release);
  clear_stack();
  g_hip.version(&version);
  if (!g_probe_answered.load(std::memory_order_relaxed)) return false;
  learn_operations(g_hip.name_of);
  return true;
}

void refuse(const char* why) {
  g_stage.store(Stage::kRefused, std::memory_order_release);
  char line[320];
  snprintf(line, sizeof line, "HIP's calls, kernels and copies are not in this trace: %s", why);
  tape::note(event::NoteSeverity::kWarning, line);
}

bool others_trace() {
  if (g_place == nullptr) {
    void* const loaded = dlopen("libroctracer64.so.4", RTLD_NOLOAD | RTLD_LAZY);
    if (loaded != nullptr) dlclose(loaded);
    return loaded != nullptr;
  }
  return g_place->load(std::memory_order_relaxed) != nullptr;
}

void begin_recording() {
  g_place = place_of(g_hip.become);
  if (g_place != nullptr && (rights_of(g_place) & 2) == 0) g_place = nullptr;
  if (others_trace())
    return refuse("another profiler of the program (roctracer) is HIP's tracer, and HIP has only one; end it there, or "
                  "start the program with tacho trace");
  read_kernel_filter();
  forget_launches();
  forget_calls();
  forget_streams();
  g_hip.become(on_event);
  g_calls = learn_calls();
  find_late_devices();
  begin_work(hsa_now());
  g_clocks = raw_now();
  tape::define_property(event::Table::kProcess, 0, "rocm.source", "HIP's tracer");
  if (g_calls) tape::define_attached(event::Domain::kHipRuntime);
  tape::note(event::NoteSeverity::kInfo,
             g_calls ? "HIP tells a tool that comes late neither the results and arguments of calls nor allocations, "
                       "and of kernels neither registers nor static LDS: these are empty"
                     : "this version of HIP tells its calls in a way that tacho does not know: kernels and copies are "
                       "recorded without the calls that made them");
  if (g_hip.count > 1)
    tape::note(event::NoteSeverity::kWarning,
               "the program has more than one HIP library loaded: only what goes through the first is recorded");
  g_stage.store(Stage::kRecording, std::memory_order_release);
}

void try_to_begin() {
  if (g_stage.load(std::memory_order_relaxed) != Stage::kWaiting || hsa_now() == 0) return;
  begin_recording();
}

}  // namespace

bool recording_late() {
  return g_stage.load(std::memory_order_acquire) == Stage::kRecording;
}

void start_late() {
  if (g_stage.load(std::memory_order_relaxed) != Stage::kAbsent) return;
  HipLibrary found{};
  dl_iterate_phdr(see_library, &found);
  if (found.become == nullptr) {
    if (found.has_hsa && !only_opencl()) start_late_hsa();
    return;
  }
  // What HIP does when it is loaded only now goes through the same tables.
  if (hsa_is_recorded_late()) return;
  if (!found.has_hsa || found.hsa.agents == nullptr || found.hsa.agent == nullptr)
    return refuse("its HSA runtime has no functions that tacho could ask for its GPUs");
  g_hip = found;
  use_hsa(found.hsa);
  g_stage.store(Stage::kWaiting, std::memory_order_release);
  try_to_begin();
}

void look_late() {
  constexpr int64_t kClockPeriod = 1'000'000'000;  // ns
  look_at_late_hsa();
  try_to_begin();
  if (!recording_late() || raw_now() - g_clocks < kClockPeriod) return;
  g_clocks = raw_now();
  define_late_clocks();
}

void leave_late() {
  leave_late_hsa();
  const Stage stage = g_stage.load(std::memory_order_relaxed);
  if (stage == Stage::kRecording) {
    g_stage.store(Stage::kLeaving, std::memory_order_release);
    constexpr int64_t kPatience = 1'000'000'000;
    const int64_t begin = raw_now();
    Unfinished left = unfinished_work();
    for (; left.kernels + left.copies != 0 && raw_now() - begin < kPatience; left = unfinished_work()) {
      const timespec moment{0, 200'000};
      nanosleep(&moment, nullptr);
    }
    void* const ours = reinterpret_cast<void*>(&on_event);
    if (g_place == nullptr || g_place->load(std::memory_order_relaxed) == ours) g_hip.become(nullptr);
    define_late_clocks();
    if (left.kernels != 0) tape::loss(event::Table::kDispatch, event::LossReason::kUnmatched, left.kernels);
    if (left.copies != 0) tape::loss(event::Table::kCopy, event::LossReason::kUnmatched, left.copies);
    if (const uint64_t open = open_calls(); open != 0)
      tape::loss(event::Table::kApi, event::LossReason::kUnmatched, open);
  }
  g_stage.store(Stage::kAbsent, std::memory_order_release);
}

void leave_late_in_child() {
  leave_late_hsa_in_child();
  const Stage stage = g_stage.load(std::memory_order_relaxed);
  if (stage == Stage::kRecording || stage == Stage::kLeaving || stage == Stage::kProbing) g_hip.become(nullptr);
  g_stage.store(Stage::kAbsent, std::memory_order_release);
}

}  // namespace tacho::capture::rocm
