// How the OpenCL source gets into a program: as a layer of the ICD loader (clInitLayer), or, when the program's loader
// knows no layers, through the OpenCL functions that libtacho.so exports and that come first when it is preloaded.
//
// Every exported function jumps through g_entry. It starts with stubs that find the real functions, forward the first
// call and then know whether the loader has called clInitLayer meanwhile (loaders read OPENCL_LAYERS at their first
// call): if so, the exported functions only forward from then on; if not, they are the hooks.
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/kernel_filter.h"
#include "capture/source/opencl/enqueue.h"
#include "capture/source/opencl/extensions.h"
#include "capture/source/opencl/objects/devices.h"
#include "capture/source/opencl/objects/kernels.h"
#include "capture/source/opencl/objects/memory_objects.h"
#include "capture/source/opencl/opencl.h"
#include "capture/source/opencl/queue_hooks.h"
#include "capture/source/opencl/queues.h"

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;

constinit cl_icd_dispatch g_hooks = {};
constinit cl_icd_dispatch g_entry = {};

enum class Mode : uint32_t { kUnknown, kLayer, kInterposed, kLate, kOff };
constinit std::atomic<Mode> g_mode{Mode::kUnknown};
constinit std::atomic<uint32_t> g_starting{0};

// The library's state for this process. False when it is not traced.
bool set_up() {
  if (!capture::start()) return false;
  auto* const wiped = g_wiped != nullptr ? g_wiped : static_cast<Wiped*>(map_pages(4096));
  if (wiped == nullptr) return false;
  madvise(wiped, 4096, MADV_WIPEONFORK);
  wiped->alive.store(1, std::memory_order_relaxed);
  g_wiped = wiped;
  g_arguments = tape::configuration().api_args;
#define TACHO_CL_FUNCTION(number, name, count, parameters) g_hooks.name = Plain<&D::name>::call;
#define TACHO_CL_OPAQUE(number, name) g_hooks.name = g_next.name;
#include "event/functions/functions_opencl.def"
  install_device_hooks(g_hooks);
  install_kernel_hooks(g_hooks);
  install_memory_hooks(g_hooks);
  install_queue_hooks(g_hooks);
  install_enqueue(g_hooks);
  install_extensions(g_hooks);
  read_kernel_filter();
  return true;
}

void refuse_what_is_missing() {
#define TACHO_CL_FUNCTION(number, name, count, parameters) \
  if (g_next.name == nullptr) g_next.name = &Refusal<FunctionOf<&D::name>>::answer;
#include "event/functions/functions_opencl.def"
}

// Interposition

// The library whose functions the program would call without libtacho.so.
void* find_real(const char* name, const void* caller) {
  if (void* const found = dlsym(RTLD_NEXT, name)) return found;
  for (const char* const library : {"libOpenCL.so.1", "libOpenCL.so"})
    if (void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) {
      void* const found = dlsym(handle, name);
      dlclose(handle);
      if (found != nullptr) return found;
    }
  // A library loaded out of the global scope that means its own function.
  Dl_info at{};
  if (caller != nullptr && dladdr(caller, &at) != 0 && at.dli_fname != nullptr)
    if (void* const handle = dlopen(at.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      void* const found = dlsym(handle, name);
      dlclose(handle);
      return found;
    }
  return nullptr;
}

cl_icd_dispatch g_real = {};
constinit std::atomic<bool> g_real_found{false};

void find_all_real(const void* caller) {
  if (g_real_found.load(std::memory_order_acquire)) return;
  lock(g_starting);
  if (!g_real_found.load(std::memory_order_relaxed)) {
    Dl_info self{};
    dladdr(reinterpret_cast<void*>(&find_all_real), &self);
    const auto other = [&](void* found) {  // never ourselves
      Dl_info at{};
      return found != nullptr && dladdr(found, &at) != 0 && at.dli_fbase == self.dli_fbase ? nullptr : found;
    };
#define TACHO_CL_FUNCTION(number, name, count, parameters)                               \
  g_real.name = reinterpret_cast<FunctionOf<&D::name>>(other(find_real(#name, caller))); \
  if (g_real.name == nullptr) g_real.name = &Refusal<FunctionOf<&D::name>>::answer;
#include "event/functions/functions_opencl.def"
    g_real_found.store(true, std::memory_order_release);
  }
  unlock(g_starting);
}

// A first call, within which the loader may be setting itself up: calls that it makes meanwhile through our symbols, on
// the same thread, decide nothing.
constinit std::atomic<uint32_t> g_first_thread{0};
class FirstCall {
 public:
  FirstCall() : thread_(static_cast<uint32_t>(syscall(SYS_gettid))) {
    uint32_t none = 0;
    outermost_ = g_first_thread.compare_exchange_strong(none, thread_, std::memory_order_acq_rel);
    inner_ = !outermost_ && none == thread_;
  }
  ~FirstCall() {
    if (outermost_) g_first_thread.store(0, std::memory_order_release);
  }
  FirstCall(const FirstCall&) = delete;
  FirstCall& operator=(const FirstCall&) = delete;
  bool inner() const { return inner_; }

 private:
  uint32_t thread_;
  bool outermost_, inner_;
};

// Decides after the first real call which layer traces this process.
Mode decide() {
  Mode mode = g_mode.load(std::memory_order_acquire);
  if (mode != Mode::kUnknown) return mode;
  lock(g_starting);
  mode = g_mode.load(std::memory_order_acquire);
  if (mode == Mode::kUnknown) {
    g_next = g_real;
    if (set_up()) {
      tape::define_attached(event::Domain::kOpenCL);
      tape::define_property(event::Table::kEnd, 0, "opencl.attached", "interposed");
      add_code_range(reinterpret_cast<const void*>(g_real.clGetPlatformIDs));
      cl_platform_id platforms[32];
      cl_uint count = 0;
      if (g_real.clGetPlatformIDs(32, platforms, &count) == CL_SUCCESS)
        for (cl_uint i = 0; i < count && i < 32; ++i) vendor_of(platforms[i]);
      mode = Mode::kInterposed;
    } else {
      mode = Mode::kOff;
    }
    g_mode.store(mode, std::memory_order_release);
  }
  unlock(g_starting);
  return mode;
}

// Entries are read without a lock by other threads: each is one aligned pointer.
template <auto Member>
void set_entry(FunctionOf<Member> function) {
  __atomic_store_n(&(g_entry.*Member), function, __ATOMIC_RELEASE);
}

void set_entries() {
  const bool hooked = g_mode.load(std::memory_order_acquire) == Mode::kInterposed;
#define TACHO_CL_FUNCTION(number, name, count, parameters) set_entry<&D::name>(hooked ? g_hooks.name : g_real.name);
#include "event/functions/functions_opencl.def"
}

template <auto Member, typename F>
struct Exported;
template <auto Member, typename R, typename... A>
struct Exported<Member, R (*)(A...)> {
  static R call(const void* caller, A... args) {
    if (const auto function = __atomic_load_n(&(g_entry.*Member), __ATOMIC_ACQUIRE);
        __builtin_expect(function != nullptr, 1)) {
      // A library without a loader in front (or a runtime that finds our symbols first) calls its own functions here.
      if (function != g_real.*Member && called_by_runtime(caller)) return (g_real.*Member)(args...);
      return function(args...);
    }
    return first(caller, args...);
  }
  __attribute__((noinline)) static R first(const void* caller, A... args) {
    find_all_real(caller);
    // The clock is chosen after this call: both that may be.
    const uint64_t start_tsc = __rdtsc();
    const int64_t start_raw = raw_now();
    const FirstCall call;
    if constexpr (std::is_void_v<R>) {
      (g_real.*Member)(args...);
      if (call.inner()) return;
      decide();
      set_entries();
    } else {
      cl_int code = CL_SUCCESS;
      if constexpr (!std::is_same_v<R, cl_int> && kLastIsErrorCode<A...>)
        if (last_of(args...) == nullptr) last_of(args...) = &code;
      const R result = (g_real.*Member)(args...);
      if (call.inner()) return result;
      const bool before = g_mode.load(std::memory_order_acquire) == Mode::kUnknown;
      const Mode mode = decide();
      set_entries();
      if (before && mode == Mode::kInterposed) {
        if constexpr (std::is_same_v<R, cl_int>)
          code = result;
        else if constexpr (kLastIsErrorCode<A...>)
          code = *last_of(args...);
        record_first(SlotOf<Member>::kNumber, code, host_clock_is_tsc() ? start_tsc : static_cast<uint64_t>(start_raw));
      }
      return result;
    }
  }

 private:
  static void record_first(uint16_t function, cl_int code, uint64_t start) {
    const uint64_t bits = enabled_bits();
    if ((bits & bit::kApi) == 0) return;
    const uint64_t end = host_ticks();
    const uint64_t correlation = tape::next_correlation();
    if (auto* const record = tape::begin<event::ApiRecord>(event::RecordKind::kApi, event::Table::kApi,
                                                           event::api_value(function, static_cast<int16_t>(code)),
                                                           static_cast<uint8_t>(event::Domain::kOpenCL))) {
      record->start = start;
      record->end = end;
      record->correlation = correlation;
      tape::commit();
    }
  }
};

template <auto Member, size_t I>
using Parameter = typename Signature<FunctionOf<Member>>::template Argument<I>;
template <auto Member>
using Result = typename Signature<FunctionOf<Member>>::Return;

}  // namespace

void flush() {
  const Mode mode = g_mode.load(std::memory_order_acquire);
  if (mode == Mode::kLayer || mode == Mode::kInterposed || mode == Mode::kLate) collect_all_queues();
}

const cl_icd_dispatch* hooks_for(const cl_icd_dispatch& functions) {
  const Guard guard(g_starting);
  const bool again = g_mode.load(std::memory_order_acquire) == Mode::kLate;
  if (!again && g_mode.load(std::memory_order_acquire) != Mode::kUnknown) return nullptr;
  g_next = functions;
  refuse_what_is_missing();
  if (again) {
    // Nothing of the earlier attach is left: no thread, no command in flight.
    memset(static_cast<void*>(g_wiped), 0, sizeof *g_wiped);
    forget_queues();
    forget_kernels();
    forget_memory();
    forget_devices();
  }
  if (!set_up()) return nullptr;
  g_mode.store(Mode::kLate, std::memory_order_release);
  tape::define_attached(event::Domain::kOpenCL);
  tape::define_property(event::Table::kEnd, 0, "opencl.attached", "while the program ran");
  return &g_hooks;
}

cl_int init_layer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_ret,
                  const cl_icd_dispatch** layer_ret) {
  if (target == nullptr || entries_ret == nullptr || layer_ret == nullptr) return CL_INVALID_VALUE;
  constexpr auto kEntries = static_cast<cl_uint>(sizeof(cl_icd_dispatch) / sizeof(void*));
  lock(g_starting);
  cl_int result = CL_INVALID_OPERATION;  // the loader goes on without us
  if (g_mode.load(std::memory_order_acquire) == Mode::kUnknown) {
    const cl_uint known = entries < kEntries ? entries : kEntries;
    memcpy(static_cast<void*>(&g_next), target, known * sizeof(void*));
    refuse_what_is_missing();
    if (set_up()) {
      tape::define_attached(event::Domain::kOpenCL);
      tape::define_property(event::Table::kEnd, 0, "opencl.attached", "layer");
      *entries_ret = known;
      *layer_ret = &g_hooks;
      result = CL_SUCCESS;
      g_mode.store(Mode::kLayer, std::memory_order_release);
    } else {
      g_mode.store(Mode::kOff, std::memory_order_release);
    }
  }
  unlock(g_starting);
  return result;
}

}  // namespace tacho::capture::opencl

TACHO_EXPORT cl_int clGetLayerInfo(cl_layer_info what, size_t size, void* value, size_t* size_ret) {
  static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  static const char name[] = "tacho";
  const void* answer = nullptr;
  size_t bytes = 0;
  if (what == CL_LAYER_API_VERSION) {
    answer = &version;
    bytes = sizeof version;
  } else if (what == CL_LAYER_NAME) {
    answer = name;
    bytes = sizeof name;
  } else {
    return CL_INVALID_VALUE;
  }
  if (value != nullptr) {
    if (size < bytes) return CL_INVALID_VALUE;
    memcpy(value, answer, bytes);
  }
  if (size_ret != nullptr) *size_ret = bytes;
  return CL_SUCCESS;
}

TACHO_EXPORT cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_ret,
                                const cl_icd_dispatch** layer_ret) {
  return tacho::capture::opencl::init_layer(entries, target, entries_ret, layer_ret);
}

// Exported OpenCL functions: the parameters by position, as the headers declare them

#define P(name, i) tacho::capture::opencl::Parameter<&cl_icd_dispatch::name, i> a##i
#define TACHO_P0(n)
#define TACHO_P1(n) P(n, 0)
#define TACHO_P2(n) TACHO_P1(n), P(n, 1)
#define TACHO_P3(n) TACHO_P2(n), P(n, 2)
#define TACHO_P4(n) TACHO_P3(n), P(n, 3)
#define TACHO_P5(n) TACHO_P4(n), P(n, 4)
#define TACHO_P6(n) TACHO_P5(n), P(n, 5)
#define TACHO_P7(n) TACHO_P6(n), P(n, 6)
#define TACHO_P8(n) TACHO_P7(n), P(n, 7)
#define TACHO_P9(n) TACHO_P8(n), P(n, 8)
#define TACHO_P10(n) TACHO_P9(n), P(n, 9)
#define TACHO_P11(n) TACHO_P10(n), P(n, 10)
#define TACHO_P12(n) TACHO_P11(n), P(n, 11)
#define TACHO_P13(n) TACHO_P12(n), P(n, 12)
#define TACHO_P14(n) TACHO_P13(n), P(n, 13)
#define TACHO_A0
#define TACHO_A1 , a0
#define TACHO_A2 TACHO_A1, a1
#define TACHO_A3 TACHO_A2, a2
#define TACHO_A4 TACHO_A3, a3
#define TACHO_A5 TACHO_A4, a4
#define TACHO_A6 TACHO_A5, a5
#define TACHO_A7 TACHO_A6, a6
#define TACHO_A8 TACHO_A7, a7
#define TACHO_A9 TACHO_A8, a8
#define TACHO_A10 TACHO_A9, a9
#define TACHO_A11 TACHO_A10, a10
#define TACHO_A12 TACHO_A11, a11
#define TACHO_A13 TACHO_A12, a12
#define TACHO_A14 TACHO_A13, a13
#define TACHO_CL_FUNCTION(number, name, count, parameters)                                                  \
  TACHO_EXPORT tacho::capture::opencl::Result<&cl_icd_dispatch::name> name(TACHO_P##count(name)) {          \
    return tacho::capture::opencl::Exported<&cl_icd_dispatch::name, decltype(cl_icd_dispatch::name)>::call( \
        __builtin_return_address(0) TACHO_A##count);                                                        \
  }
#include "event/functions/functions_opencl.def"
