// The base of the OpenCL source: the dispatch table of the functions to call next, the span of one API call, and its
// locks.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "base/clock.h"
#include "capture/room/handle_map.h"
#include "capture/room/lock.h"
#include "capture/room/slab.h"
#include "event/functions/functions_opencl.h"
#include "event/records.h"
#include "tape/writer.h"

namespace tacho::capture::opencl {

using event::opencl::Function;
namespace bit = tape::source_bit;

// Slots of the dispatch table

/// The number (event::opencl::Function) of a member of cl_icd_dispatch.
template <auto Member>
struct SlotOf;
#define TACHO_CL_FUNCTION(number, name, count, parameters) \
  template <>                                              \
  struct SlotOf<&cl_icd_dispatch::name> {                  \
    static constexpr uint16_t kNumber = number;            \
  };
#include "event/functions/functions_opencl.def"

template <typename Member>
struct PointeeOf;
template <typename F>
struct PointeeOf<F cl_icd_dispatch::*> {
  using Type = F;
};
template <auto Member>
using FunctionOf = typename PointeeOf<decltype(Member)>::Type;

template <typename F>
struct Signature;
template <typename R, typename... A>
struct Signature<R (*)(A...)> {
  using Return = R;
  using Arguments = std::tuple<A...>;
  static constexpr size_t kArity = sizeof...(A);
  template <size_t I>
  using Argument = std::tuple_element_t<I, Arguments>;
};

template <typename T>
inline constexpr bool kIsObject =
    std::is_same_v<T, cl_platform_id> || std::is_same_v<T, cl_device_id> || std::is_same_v<T, cl_context> ||
    std::is_same_v<T, cl_command_queue> || std::is_same_v<T, cl_mem> || std::is_same_v<T, cl_program> ||
    std::is_same_v<T, cl_kernel> || std::is_same_v<T, cl_event> || std::is_same_v<T, cl_sampler>;

/// The last of `args`.
template <typename... A>
auto& last_of(A&... args) {
  return std::get<sizeof...(A) - 1>(std::tie(args...));
}
template <typename... A>
inline constexpr bool kLastIsErrorCode = false;
template <typename A, typename... B>
inline constexpr bool kLastIsErrorCode<A, B...> =
    std::is_same_v<std::tuple_element_t<sizeof...(B), std::tuple<A, B...>>, cl_int*>;

/// The result of a call to a function that the runtime lacks (or that would recurse for ever).
template <typename F>
struct Refusal;
template <typename R, typename... A>
struct Refusal<R (*)(A...)> {
  static R CL_API_CALL answer(A... args) {
    if constexpr (std::is_same_v<R, cl_int>) {
      ((void)args, ...);
      return CL_INVALID_OPERATION;
    } else {
      if constexpr (!std::is_void_v<R> && kLastIsErrorCode<A...>) {
        if (last_of(args...) != nullptr) *last_of(args...) = CL_INVALID_OPERATION;
      } else {
        ((void)args, ...);
      }
      if constexpr (!std::is_void_v<R>) return R{};
    }
  }
};

/// The functions to call after our hooks: the next layer's or the loader's. No member is null once set up.
extern cl_icd_dispatch g_next;
/// True once tacho has met a runtime whose table has slots that lead back into the loader (see vendor.h).
extern std::atomic<bool> g_detours;
/// The function to call instead of slot `number` of the runtime that `object` belongs to; nullptr = call the slot.
/// Returns `refusal` when that runtime has no function of its own.
void* detour(uint16_t number, const void* object, void* refusal);

template <typename... A>
const void* first_object(const A&... args) {
  if constexpr (sizeof...(A) == 0) {
    return nullptr;
  } else {
    const auto& first = std::get<0>(std::tie(args...));
    if constexpr (kIsObject<std::remove_cvref_t<decltype(first)>>)
      return first;
    else
      return nullptr;
  }
}

template <auto Member, typename F>
struct NextCall;
template <auto Member, typename R, typename... A>
struct NextCall<Member, R (*)(A...)> {
  static R call(A... args) {
    auto function = g_next.*Member;
    if (__builtin_expect(g_detours.load(std::memory_order_relaxed), 0)) {
      if (void* const other = detour(SlotOf<Member>::kNumber, first_object(args...),
                                     reinterpret_cast<void*>(&Refusal<R (*)(A...)>::answer)))
        function = reinterpret_cast<R (*)(A...)>(other);
    }
    return function(args...);
  }
};
/// Calls the next function. All calls go through here, those that hooks forward and tacho's own.
template <auto Member, typename... A>
auto next(A... args) {
  return NextCall<Member, FunctionOf<Member>>::call(args...);
}

// Locks

/// State in a MADV_WIPEONFORK page: a forked child finds it zeroed.
struct Wiped {
  std::atomic<uint32_t> alive;           // 1 in the process that set it up; 0 = a child that has not taken over yet
  std::atomic<uint32_t> thread_started;  // the flush thread runs
  std::atomic<uint32_t> kicked;          // futex: the flush thread is to run now
  std::atomic<uint32_t> stopping;        // the process is at its end: no more calls by the flush thread
  std::atomic<uint32_t> next_ordinal;    // dispatches launched
  std::atomic<uint32_t> pass;            // lock: one pass over all queues at a time
  std::atomic<uint32_t> objects;         // lock: handle maps and slabs
  std::atomic<uint32_t> definitions;     // lock: devices, vendors, kernel descriptions
  std::atomic<uint32_t> chunks;          // lock: free list of chunks
  std::atomic<uint64_t> filtered;        // launches that the user's filter excluded, not yet reported
  std::atomic<tape::CommandCounts*> progress;  // in the pool, or `unseen`
  tape::CommandCounts unseen;                  // where the pool has no room for it
  static constexpr uint32_t kQueueLocks = 480;
  std::atomic<uint32_t> append[kQueueLocks];
  std::atomic<uint32_t> drain[kQueueLocks];
};
static_assert(sizeof(Wiped) <= 4096);
extern Wiped* g_wiped;

// API calls

inline uint64_t enabled_bits() {
  const tape::PoolHeader* const pool = tape::writer_internal::g_pool.load(std::memory_order_relaxed);
  return pool->enabled.load(std::memory_order_relaxed);
}

/// While alive, marks this thread's calls as the runtime's own: hooks only forward them.
class Inner {
 public:
  Inner() { ++tape::t_state.inner; }
  ~Inner() { --tape::t_state.inner; }
  Inner(const Inner&) = delete;
  Inner& operator=(const Inner&) = delete;
};
/// True when a hook must only forward.
inline bool only_forward() {
  return (tape::t_state.hidden | tape::t_state.inner) != 0;
}

/// Set at start when arguments are recorded, too (configuration: api_args).
extern bool g_arguments;
inline bool wants_arguments() {
  return __builtin_expect(g_arguments, 0);
}
/// Parameters as 64-bit words.
template <typename... A>
struct Words {
  static constexpr uint32_t kCount = sizeof...(A);
  uint64_t words[kCount + 1];
  void set(const A&... args) {
    [[maybe_unused]] uint64_t* at = words;
    ((*at++ = word(args)), ...);
  }

 private:
  template <typename T>
  static uint64_t word(const T& value) {
    if constexpr (std::is_pointer_v<T>)
      return reinterpret_cast<uintptr_t>(value);
    else
      return static_cast<uint64_t>(value);
  }
};
/// Before the record of the call, kernel or copy that they belong to, on the same thread.
void write_arguments(event::ArgumentsOf of, uint32_t value, uint64_t correlation, const uint64_t* words,
                     uint32_t count);

/// Times and correlation of a call; all 0 when it was not recorded.
struct CallTimes {
  uint64_t correlation = 0, start = 0, end = 0;
};

/// One API call. The constructor takes the correlation and the start; end() takes the end and writes the row.
class ApiSpan {
 public:
  explicit ApiSpan(uint64_t bits) : bits_(bits) {
    tape::ThreadState& state = tape::t_state;
    times_.correlation = tape::next_correlation();
    outer_ = state.open_correlation;
    state.open_correlation = times_.correlation;
    times_.start = host_ticks();
  }
  void end(uint16_t function, cl_int result) {
    times_.end = host_ticks();
    tape::t_state.open_correlation = outer_;
    if ((bits_ & bit::kApi) == 0) return;
    const auto code = static_cast<int16_t>(result < INT16_MIN ? INT16_MIN : result > INT16_MAX ? INT16_MAX : result);
    if (auto* const record =
            tape::begin<event::ApiRecord>(event::RecordKind::kApi, event::Table::kApi, event::api_value(function, code),
                                          static_cast<uint8_t>(event::Domain::kOpenCL))) {
      record->start = times_.start;
      record->end = times_.end;
      record->correlation = times_.correlation;
      tape::commit();
    }
  }
  /// Before end(): the call's arguments.
  template <typename... A>
  void arguments(uint16_t function, const A&... args) const {
    if (!wants_arguments()) return;
    Words<A...> given;
    given.set(args...);
    arguments(function, given);
  }
  template <typename... A>
  void arguments(uint16_t function, const Words<A...>& given) const {
    if (wants_arguments() && (bits_ & bit::kApi) != 0)
      write_arguments(event::ArgumentsOf::kOpenClCall, function, times_.correlation, given.words, given.kCount);
  }
  const CallTimes& times() const { return times_; }

 private:
  uint64_t bits_, outer_;
  CallTimes times_;
};

/// Calls the next function as one recorded call. Replaces a null errcode_ret, so that the code is known.
template <auto Member, typename F = FunctionOf<Member>>
struct Traced;
template <auto Member, typename R, typename... A>
struct Traced<Member, R (*)(A...)> {
  static R call(uint64_t bits, CallTimes& times, A... args) {
    if constexpr (std::is_void_v<R>) {
      ApiSpan span(bits);
      next<Member, A...>(args...);
      span.arguments(SlotOf<Member>::kNumber, args...);
      span.end(SlotOf<Member>::kNumber, 0);
      times = span.times();
    } else {
      cl_int code = CL_SUCCESS;
      const cl_int* where = &code;
      if constexpr (!std::is_same_v<R, cl_int> && kLastIsErrorCode<A...>) {
        if (last_of(args...) == nullptr) last_of(args...) = &code;
        where = last_of(args...);
      }
      ApiSpan span(bits);
      const R result = next<Member, A...>(args...);
      span.arguments(SlotOf<Member>::kNumber, args...);
      if constexpr (std::is_same_v<R, cl_int>)
        span.end(SlotOf<Member>::kNumber, result);
      else
        span.end(SlotOf<Member>::kNumber, *where);
      times = span.times();
      return result;
    }
  }
};
/// Calls the next function and records the call if it is enabled; for hooks that do more before or after.
template <auto Member, typename... A>
auto traced(CallTimes& times, A... args) {
  const uint64_t bits = enabled_bits();
  if (bits == 0 || only_forward()) return NextCall<Member, FunctionOf<Member>>::call(args...);
  return Traced<Member>::call(bits, times, args...);
}
template <auto Member, typename... A>
auto traced(A... args) {
  CallTimes times;
  return traced<Member>(times, args...);
}

/// The hook of a function that needs no special treatment: only records the call.
template <auto Member, typename F = FunctionOf<Member>>
struct Plain;
template <auto Member, typename R, typename... A>
struct Plain<Member, R (*)(A...)> {
  static R CL_API_CALL call(A... args) {
    const uint64_t bits = enabled_bits();
    if (__builtin_expect((bits & bit::kApi) == 0 || only_forward(), 0)) return next<Member, A...>(args...);
    CallTimes times;
    return Traced<Member>::call(bits, times, args...);
  }
};

}  // namespace tacho::capture::opencl
