// HIP's calls (rocm.h), by interposing the functions that libamdhip64 exports. A preloaded libtacho.so comes first in
// every library's search; a program that links HIP statically, or asks dlsym() of HIP's own handle for its functions,
// is not seen.
//
// All functions are called alike: arguments that are integers, pointers or structs lie in six registers and then on the
// stack, in words. Six registers and eight words of stack (hipExtModuleLaunchKernel's, and a hipIpcMemHandle_t's) are
// enough for every one of them, and words that a function does not have are handed on unread. Functions with
// floating-point arguments are left out (TACHO_HIP_OPAQUE). hip_calls.h says what is to be done around each of them.
#include <dlfcn.h>
#include <string.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/source/rocm/hip_calls.h"
#include "capture/source/rocm/replay/replay.h"
#include "capture/source/rocm/replay/replay_memory.h"
#include "capture/source/rocm/rocm.h"
#include "capture/source/rocm/sdk/sdk.h"
#include "capture/source/sampler/counts.h"
#include "capture/source/sampler/sampler.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {

constinit PerThread<OpenCall> g_open_calls;

namespace {

using Word = uint64_t;
#define TACHO_WORDS                                                                                                    \
  uint64_t r0, uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5, uint64_t s0, uint64_t s1, uint64_t s2, \
      uint64_t s3, uint64_t s4, uint64_t s5, uint64_t s6, uint64_t s7
using Function = Word(TACHO_WORDS);

constexpr Word kNotFound = 302;  // hipErrorSharedObjectSymbolNotFound

// The function that the program would call if libtacho.so were not there.
Function* find_next(std::atomic<void*>& slot, const char* name, const void* caller) {
  void* found = dlsym(RTLD_NEXT, name);
  for (const char* const library : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"})
    if (found == nullptr)
      if (void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) {
        found = dlsym(handle, name);
        dlclose(handle);
      }
  // HIP of another name, loaded out of the global scope by the library that calls.
  Dl_info at{};
  if (found == nullptr && dladdr(caller, &at) != 0 && at.dli_fname != nullptr)
    if (void* const handle = dlopen(at.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      found = dlsym(handle, name);
      dlclose(handle);
    }
  Dl_info self{}, other{};
  if (found != nullptr && dladdr(reinterpret_cast<void*>(&find_next), &self) != 0 && dladdr(found, &other) != 0 &&
      self.dli_fbase == other.dli_fbase)
    found = nullptr;
  slot.store(found, std::memory_order_release);
  return reinterpret_cast<Function*>(found);
}

inline Function* next_function(std::atomic<void*>& slot, const char* name, const void* caller) {
  void* const found = slot.load(std::memory_order_acquire);
  return __builtin_expect(found != nullptr, 1) ? reinterpret_cast<Function*>(found) : find_next(slot, name, caller);
}

constinit std::atomic<uint32_t> g_attached{0};

void attach() {
  if (g_attached.exchange(1) != 0) return;
  if (capture::start()) tape::define_attached(event::Domain::kHipRuntime);
}

// One call: open from begin() to end().
struct Call {
  uint64_t start = 0, correlation = 0, outer = 0;
  TrackedAllocation freed{};
  bool recorded = false, outermost = false, taken = false;
  bool entered = false;  // replay::leave() is to be called
};

// Recording that begins with a launch begins with its call: until then calls are open, but recorded only if they were
// the one.
bool may_start() {
  return tape::attached() && tape::pool()->start_launch != 0 &&
         tape::pool()->trigger_start.load(std::memory_order_relaxed) == 0;
}

__attribute__((noinline)) void begin(Call& call, const HipCall& does, const Word* words) {
  if (__builtin_expect(g_attached.load(std::memory_order_relaxed) == 0, 0)) attach();
  tape::ThreadState& state = tape::t_state;
  OpenCall& open = open_call();
  // Questions come by the thousand: nothing is done for them.
  const bool passed_over = does.asks && !tape::configuration().all_api_calls;
  call.outermost = open.depth++ == 0 && !passed_over && state.hidden == 0;
  if (!call.outermost) return;
  open.stream_known = does.stream != -2;
  open.stream = does.stream >= 0 ? words[does.stream] : 0;
  open.per_thread = does.per_thread;
  open.graph = does.graph;
  open.graph_node = 0;
  open.starts = open.stops = open.own_memory = false;
  if (does.launch == HipLaunch::kNone && replay::on()) call.entered = replay::enter(does);
  // On this road the library records the calls; the open call tells sdk_work.cpp the stream and the graph.
  if (road() == Road::kSdk) return;
  call.start = host_ticks();
  if (does.memory == HipMemory::kFrees && active()) {
    call.taken = take_allocation(words[0], call.freed);
    open.own_memory = true;
  } else {
    open.own_memory = does.memory != HipMemory::kNone && tape::enabled(tape::source_bit::kAllocation);
  }
  const bool now = tape::enabled(tape::source_bit::kApi);
  if ((!now && !may_start()) || state.inner != 0) return;
  call.correlation = tape::next_correlation();
  call.outer = state.open_correlation;
  state.open_correlation = call.correlation;
  state.inner = 1;
  call.recorded = now;
  if (!now) return;
  if (does.works) {
    sampler::launch_stack(call.correlation);
    if (sampler::counts_calls()) sampler::begin_call_counts();
  }
}

// The memory that a call has got.
void got_memory(const HipCall& does, const Call& call, const Word* words, uint64_t now) {
  const auto* const out = reinterpret_cast<const uint64_t*>(words[0]);
  if (out == nullptr || *out == 0) return;
  uint64_t bytes = words[1];
  if (does.memory == HipMemory::kPitched)
    bytes = (words[1] != 0 ? *reinterpret_cast<const uint64_t*>(words[1]) : words[2]) * words[3];
  if (does.memory == HipMemory::kCubic) bytes = out[1] * words[7] * words[8];  // pitch; the extent lies on the stack
  const event::MemoryKind kind = does.managed  ? event::MemoryKind::kManaged
                                 : does.pinned ? event::MemoryKind::kPinned
                                               : event::MemoryKind::kDevice;
  allocated(*out, bytes, kind, call.correlation, call.start, now);
}

// HIP hands out its own functions: the program gets ours instead, where ours passes on to the one that it was given.
void replace_found(const Word* words) {
  auto* const name = reinterpret_cast<const char*>(words[0]);
  auto** const found = reinterpret_cast<void**>(words[1]);
  if (name == nullptr || found == nullptr || *found == nullptr) return;
  Dl_info self{}, theirs{};
  if (dladdr(reinterpret_cast<void*>(&replace_found), &self) == 0 || dladdr(*found, &theirs) == 0 ||
      self.dli_fname == nullptr || theirs.dli_fname == nullptr || strstr(theirs.dli_fname, "libamdhip64") == nullptr)
    return;
  void* const library = dlopen(theirs.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* const same = library != nullptr ? dlsym(library, name) : nullptr;
  if (library != nullptr) dlclose(library);
  void* const own = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* const ours = own != nullptr ? dlsym(own, name) : nullptr;
  if (own != nullptr) dlclose(own);
  if (same == *found && ours != nullptr) *found = ours;
}

// At the call's end. Records where the outputs are, not the values that the call wrote there.
void write_hip_arguments(const HipCall& does, uint16_t number, uint64_t correlation, const Word* words) {
  const auto bytes = static_cast<uint32_t>(does.words * sizeof(Word));
  auto* const record = tape::begin<event::ArgumentsRecord>(event::RecordKind::kArguments, event::Table::kApi, number,
                                                           static_cast<uint8_t>(event::ArgumentsOf::kHipCall), bytes);
  if (record == nullptr) return;
  record->correlation = correlation;
  memcpy(record + 1, words, bytes);
  tape::commit();
}

__attribute__((noinline)) void end(Call& call, const HipCall& does, const Word* words, uint16_t number, Word result) {
  OpenCall& open = open_call();
  if (open.depth > 0) --open.depth;  // a forked child's begins at 0
  if (!call.outermost) return;
  const bool worked = static_cast<uint32_t>(result) == 0;
  if (call.entered) replay::leave(does, words, worked);
  tape::ThreadState& state = tape::t_state;
  if (call.correlation != 0) {
    const uint64_t now = host_ticks();
    state.inner = 0;
    state.open_correlation = call.outer;
    if (does.works && call.recorded && sampler::counts_calls()) sampler::end_call_counts(call.correlation, now);
    // The call in which HIP registered with rocprofiler-sdk is that library's from its beginning.
    if (((call.recorded && !open.stops) || open.starts) && road() != Road::kSdk) {
      if (does.words != 0 && tape::configuration().api_args) write_hip_arguments(does, number, call.correlation, words);
      if (auto* const record = tape::begin<event::ApiRecord>(event::RecordKind::kApi, event::Table::kApi,
                                                             event::api_value(number, static_cast<int16_t>(result)),
                                                             static_cast<uint8_t>(event::Domain::kHipRuntime))) {
        record->start = call.start;
        record->end = now;
        record->correlation = call.correlation;
        tape::commit();
      }
    }
  }
  if (does.memory == HipMemory::kFrees) {
    if (call.taken && worked)
      freed(words[0], call.freed, call.correlation, call.start, host_ticks());
    else if (call.taken)
      keep_allocation(words[0], call.freed);
  } else if (open.own_memory && worked && active()) {
    got_memory(does, call, words, host_ticks());
  }
  open.own_memory = open.graph = false;
  if (worked && does.creates && words[0] != 0) stream_created(*reinterpret_cast<const uint64_t*>(words[0]));
  if (worked && does.destroys) stream_destroyed(words[0]);
  if (worked && does.finds) replace_found(words);
  if (does.waits && active()) collect(true);
}

}  // namespace
}  // namespace tacho::capture::rocm

#define TACHO_HIP_FUNCTION(number, name)                                                    \
  extern "C" __attribute__((visibility("default"))) uint64_t name(TACHO_WORDS) {            \
    using namespace tacho::capture::rocm;                                                   \
    static constinit std::atomic<void*> slot{nullptr};                                      \
    static constexpr HipCall kDoes = hip_call(#name);                                       \
    Function* const next = next_function(slot, #name, __builtin_return_address(0));         \
    if (next == nullptr) return kNotFound;                                                  \
    const Word words[] = {r0, r1, r2, r3, r4, r5, s0, s1, s2, s3, s4, s5, s6, s7};          \
    Call call;                                                                              \
    begin(call, kDoes, words);                                                              \
    const Word result = kDoes.launch != HipLaunch::kNone && call.outermost && replay::on()  \
                            ? replay::launch(kDoes, words, next)                            \
                            : next(r0, r1, r2, r3, r4, r5, s0, s1, s2, s3, s4, s5, s6, s7); \
    end(call, kDoes, words, number, result);                                                \
    return result;                                                                          \
  }
#include "event/functions/functions_hip.def"

// The program's start-up code announces a `__managed__` variable by this call: HIP puts it into memory of its own.
extern "C" __attribute__((visibility("default"))) void __hipRegisterManagedVar(void* module, void** pointer,
                                                                               void* value, const char* name,
                                                                               size_t bytes, unsigned alignment) {
  using namespace tacho::capture::rocm;
  using Register = void(void*, void**, void*, const char*, size_t, unsigned);
  static constinit std::atomic<void*> slot{nullptr};
  void* const next =
      reinterpret_cast<void*>(next_function(slot, "__hipRegisterManagedVar", __builtin_return_address(0)));
  if (next == nullptr) return;
  replay::note_managed_variable(pointer, bytes);
  reinterpret_cast<Register*>(next)(module, pointer, value, name, bytes, alignment);
}
