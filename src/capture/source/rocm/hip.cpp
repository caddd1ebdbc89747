// HIP's calls (rocm.h), by interposing the functions that libamdhip64 exports. A preloaded libtacho.so comes first in every
// library's search; a program that links HIP statically, or asks dlsym() of HIP's own handle for its functions, is not seen.
//
// All functions are called alike: arguments that are integers, pointers or structs lie in six registers and then on the stack,
// in words. Six registers and eight words of stack (hipExtModuleLaunchKernel's, and a hipIpcMemHandle_t's) are enough for every
// one of them, and words that a function does not have are handed on unread. Functions with floating-point arguments are left
// out (TACHO_HIP_OPAQUE).
#include <dlfcn.h>

#include <string_view>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/source/rocm/rocm.h"
#include "capture/source/rocm/sdk.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

using Word = uint64_t;
#define TACHO_WORDS                                                                                       \
  uint64_t r0, uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5, uint64_t s0, uint64_t s1, \
      uint64_t s2, uint64_t s3, uint64_t s4, uint64_t s5, uint64_t s6, uint64_t s7
using Function = Word(TACHO_WORDS);

constexpr Word kNotFound = 302;  // hipErrorSharedObjectSymbolNotFound

// The function that the program would call if libtacho.so were not there.
Function* find_next(std::atomic<void*>& slot, const char* name, const void* caller) {
  void* found = dlsym(RTLD_NEXT, name);
  for (const char* const library :
       {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"})
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
  if (found != nullptr && dladdr(reinterpret_cast<void*>(&find_next), &self) != 0 &&
      dladdr(found, &other) != 0 && self.dli_fbase == other.dli_fbase)
    found = nullptr;
  slot.store(found, std::memory_order_release);
  return reinterpret_cast<Function*>(found);
}

inline Function* next_function(std::atomic<void*>& slot, const char* name, const void* caller) {
  void* const found = slot.load(std::memory_order_acquire);
  return __builtin_expect(found != nullptr, 1) ? reinterpret_cast<Function*>(found)
                                               : find_next(slot, name, caller);
}

// Calls that only ask, are over in nanoseconds and come by the thousand: not recorded by default, as with CUDA.
consteval bool only_asks(std::string_view name) {
  for (const std::string_view question :
       {"hipGetDevice", "hipGetLastError", "hipExtGetLastError", "hipPeekAtLastError",
        "hipDeviceGetAttribute", "hipGetDeviceFlags", "hipStreamIsCapturing", "hipStreamGetCaptureInfo",
        "hipThreadExchangeStreamCaptureMode", "hipDriverGetVersion", "hipRuntimeGetVersion",
        "hipStreamGetPriority", "hipStreamGetFlags", "hipStreamGetDevice", "hipGetErrorName",
        "hipGetErrorString"})
    if (name == question) return true;
  return false;
}
// Calls that return when device work has ended: its records are to be in the pool by then.
consteval bool waits(std::string_view name) {
  return name.find("Synchronize") != std::string_view::npos ||
         (name.starts_with("hipMemcpy") && name.find("Async") == std::string_view::npos) ||
         name == "hipFree" || name == "hipDeviceReset";
}

constinit std::atomic<uint32_t> g_attached{0};

void attach() {
  if (g_attached.exchange(1) != 0) return;
  if (capture::start()) tape::define_attached(event::Domain::kHipRuntime);
}

// One call: open from begin() to end().
struct Call {
  uint64_t start = 0, correlation = 0, outer = 0;
  bool recorded = false;
};

__attribute__((noinline)) void begin(Call& call, bool question) {
  if (__builtin_expect(g_attached.load(std::memory_order_relaxed) == 0, 0)) attach();
  tape::ThreadState& state = tape::t_state;
  if (road() == Road::kSdk || !tape::enabled(tape::source_bit::kApi) || state.inner != 0 ||
      state.hidden != 0 || (question && !tape::configuration().all_api_calls))
    return;
  call.recorded = true;
  call.correlation = tape::next_correlation();
  call.outer = state.open_correlation;
  state.open_correlation = call.correlation;
  state.inner = 1;
  call.start = host_ticks();
}

__attribute__((noinline)) void end(const Call& call, uint16_t number, Word result, bool waited) {
  if (call.recorded) {
    const uint64_t now = host_ticks();
    tape::ThreadState& state = tape::t_state;
    state.inner = 0;
    state.open_correlation = call.outer;
    // The call in which HIP registered with rocprofiler-sdk is that library's from its beginning.
    if (road() == Road::kSdk) return;
    if (auto* const record =
            tape::begin<event::ApiRecord>(event::RecordKind::kApi, event::Table::kApi,
                                          event::api_value(number, static_cast<int16_t>(result)),
                                          static_cast<uint8_t>(event::Domain::kHipRuntime))) {
      record->start = call.start;
      record->end = now;
      record->correlation = call.correlation;
      tape::commit();
    }
  }
  if (waited && active()) collect(true);
}

}  // namespace
}  // namespace tacho::capture::rocm

#define TACHO_HIP_FUNCTION(number, name)                                              \
  extern "C" __attribute__((visibility("default"))) uint64_t name(TACHO_WORDS) {      \
    using namespace tacho::capture::rocm;                                             \
    static constinit std::atomic<void*> slot{nullptr};                                \
    Function* const next = next_function(slot, #name, __builtin_return_address(0));   \
    if (next == nullptr) return kNotFound;                                            \
    Call call;                                                                        \
    begin(call, only_asks(#name));                                                    \
    const Word result = next(r0, r1, r2, r3, r4, r5, s0, s1, s2, s3, s4, s5, s6, s7); \
    end(call, number, result, waits(#name));                                          \
    return result;                                                                    \
  }
#include "event/functions_hip.def"
