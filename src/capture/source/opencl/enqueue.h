// Enqueues commands; shared by the hooks of the API's own functions and of extensions.
#pragma once

#include "capture/source/opencl/objects/kept_arguments.h"
#include "capture/source/opencl/objects/kernels.h"
#include "capture/source/opencl/objects/memory_objects.h"
#include "capture/source/opencl/queues.h"
#include "capture/source/sampler/counts.h"
#include "capture/source/sampler/sampler.h"

namespace tacho::capture::opencl {

/// The first queue that a command buffer was made for.
cl_command_queue queue_of_command_buffer(cl_command_buffer_khr buffer);

/// The parameters of an enqueueing function: where its list of events to wait for is, and whether it may wait itself.
template <typename... A>
struct EnqueueParameters {
  static constexpr size_t kCount = sizeof...(A);
  template <size_t I>
  using At = std::tuple_element_t < I<kCount ? I : 0, std::tuple<A...>>;
  static constexpr size_t list() {
    size_t at = 0, found = 0;
    ((found = std::is_same_v<A, const cl_event*> ? at : found, ++at), ...);
    return found;
  }
  /// 0 = there is none. The number of events stands before it.
  static constexpr size_t kList = list();
  /// 0 = it never waits.
  static constexpr size_t kBlocking =
      std::is_same_v<At<1>, cl_mem> && std::is_same_v<At<2>, cl_uint>                                           ? 2
      : std::is_same_v<At<1>, cl_uint> && (std::is_same_v<At<2>, void*> || std::is_same_v<At<2>, cl_map_flags>) ? 1
                                                                                                                : 0;
};

/// For a command of a queue without profiling: keeps it from beginning until the runtime has been asked to tell when it
/// begins and ends, by one more event that it waits for. A call that would wait itself waits here instead.
class HeldCommand {
 public:
  template <typename... A>
  HeldCommand(const ClQueue& queue, A&... args) {
    using Parameters = EnqueueParameters<A...>;
    if constexpr (Parameters::kList != 0) {
      auto all = std::tie(args...);
      auto& list = std::get<Parameters::kList>(all);
      auto& count = std::get<Parameters::kList - 1>(all);
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(count)>, cl_uint>) {
        if (count > kMost - 1 || (count != 0) != (list != nullptr)) return;
        const Inner inner;
        cl_int code = CL_SUCCESS;
        release_ = next<&cl_icd_dispatch::clCreateUserEvent>(reinterpret_cast<cl_context>(queue.context), &code);
        if (release_ == nullptr) return;
        for (cl_uint i = 0; i < count; ++i) events_[i] = list[i];
        events_[count] = release_;
        list = events_;
        ++count;
        if constexpr (Parameters::kBlocking != 0) {
          waits_ = std::get<Parameters::kBlocking>(all) != 0;
          std::get<Parameters::kBlocking>(all) = 0;
        }
      }
    }
  }
  /// Lets the command, whose event is `event` (nullptr: there is none, the call has failed), begin.
  Observation* let_go(cl_event event) {
    const Inner inner;
    Observation* const observation = event != nullptr ? observe(event) : nullptr;
    if (release_ != nullptr) {
      next<&cl_icd_dispatch::clSetUserEventStatus>(release_, cl_int{CL_COMPLETE});
      next<&cl_icd_dispatch::clReleaseEvent>(release_);
    }
    if (waits_ && event != nullptr)
      next<&cl_icd_dispatch::clWaitForEvents>(cl_uint{1}, const_cast<const cl_event*>(&event));
    return observation;
  }

 private:
  static constexpr cl_uint kMost = 16;
  cl_event release_ = nullptr;
  bool waits_ = false;
  cl_event events_[kMost];
};

template <typename F>
struct EnqueueCall;
/// One enqueueing function. Its parameters hold exactly one cl_event* (for the event that the program wants; null =
/// none) and may hold one cl_int* (errcode_ret).
template <typename R, typename... A>
struct EnqueueCall<R (*)(A...)> {
  /// `wanted`: the source_bit of its commands. `forward(args...)` calls the runtime. After success, `describe(command,
  /// queue, args...)` fills in the command; it returns false if the command must not be recorded.
  template <typename Forward, typename Describe>
  static R call(uint16_t function, uint64_t wanted, Forward&& forward, Describe&& describe, A... args) {
    if (only_forward()) return forward(args...);
    if (wanted == bit::kDispatch && __builtin_expect(first_launch_triggers(), 0)) before_first_launch();
    const uint64_t bits = enabled_bits();
    if (__builtin_expect((bits & (bit::kApi | wanted)) == 0, 0)) {
      const R result = forward(args...);
      if (wanted == bit::kDispatch && succeeded(result)) {
        count_launch();
        count_filtered();  // paused: its kernel record is not missing
      }
      return result;
    }
    Words<A...> given;
    if (wants_arguments()) given.set(args...);
    cl_event*& asked = std::get<cl_event*&>(std::tie(args...));
    cl_event own = nullptr;
    cl_event* const returned = asked;
    ClQueue* const queue = (bits & wanted) != 0 ? queue_of(queue_argument(args...)) : nullptr;
    if (queue != nullptr && asked == nullptr) asked = &own;
    cl_int code = CL_SUCCESS;
    if constexpr (!std::is_same_v<R, cl_int>) {
      cl_int*& errcode = std::get<cl_int*&>(std::tie(args...));
      if (errcode == nullptr) errcode = &code;
    }
    ApiSpan span(bits);
    sampler::launch_stack(span.times().correlation);
    const sampler::CallCounts counts;
    // A runtime may build one call from others, which must not be recorded. But a copy that waits may run the program's
    // callbacks.
    const uint16_t outer = tape::t_state.inner;
    tape::t_state.inner = wanted == bit::kCopy ? 0 : 1;
    Observation* observation = nullptr;
    const R result = __builtin_expect(queue != nullptr && queue->observed, 0)
                         ? forward_held(*queue, observation, forward, args...)
                         : forward(args...);
    tape::t_state.inner = outer;
    code = code_of(result, args...);
    span.arguments(function, given);
    span.end(function, code);
    counts.end(span.times().correlation, span.times().end);
    if (__builtin_expect(code != CL_SUCCESS, 0)) return result;
    uint32_t ordinal = 0;
    if (wanted == bit::kDispatch) ordinal = count_launch();
    if (queue == nullptr) {
      if (wanted == bit::kDispatch && (bits & wanted) == 0) count_filtered();
      return result;
    }
    ClCommand command;
    command.event = returned != nullptr ? *returned : own;
    command.correlation = span.times().correlation;
    command.host_start = span.times().start;
    command.host_end = span.times().end;
    command.ordinal = ordinal;
    command.flags = 0;
    command.arguments = 0;
    command.observation = observation;
    if (!describe(command, *queue, args...)) {
      if (returned == nullptr && own != nullptr) next<&cl_icd_dispatch::clReleaseEvent>(own);
      return result;
    }
    if (wants_arguments() && command.kind == CommandKind::kCopy)
      command.arguments = keep_arguments(event::ArgumentsOf::kOpenClCall, function, given.words, given.kCount);
    if constexpr ((std::is_same_v<A, const cl_event*> || ...))
      if (std::get<const cl_event*&>(std::tie(args...)) != nullptr) queue->joins.store(true, std::memory_order_relaxed);
    if (returned != nullptr) next<&cl_icd_dispatch::clRetainEvent>(command.event);
    if (command.kind == CommandKind::kCopy && (command.flags & event::kCopyAsynchronous) == 0) {
      add_complete(*queue, command);
      collect_after_wait(*queue);
    } else {
      add(*queue, command);
    }
    return result;
  }

 private:
  static cl_int code_of(const R& result, A&... args) {
    if constexpr (std::is_same_v<R, cl_int>)
      return result;
    else
      return *std::get<cl_int*&>(std::tie(args...));
  }
  template <typename Forward>
  __attribute__((noinline)) static R forward_held(const ClQueue& queue, Observation*& observation, Forward& forward,
                                                  A... args) {
    HeldCommand held(queue, args...);
    const R result = forward(args...);
    const bool good = code_of(result, args...) == CL_SUCCESS;
    observation = held.let_go(good ? *std::get<cl_event*&>(std::tie(args...)) : nullptr);
    return result;
  }
  // clEnqueueCommandBufferKHR takes a list of queues; the first argument of all others is the queue.
  template <typename... B>
  static cl_command_queue queue_argument(cl_command_queue queue, B...) {
    return queue;
  }
  template <typename... B>
  static cl_command_queue queue_argument(cl_uint count, cl_command_queue* queues, cl_command_buffer_khr buffer, B...) {
    return count != 0 && queues != nullptr ? queues[0] : queue_of_command_buffer(buffer);
  }
  static bool succeeded(const R& result) {
    if constexpr (std::is_same_v<R, cl_int>)
      return result == CL_SUCCESS;
    else
      return result != nullptr;
  }
};

void install_enqueue(cl_icd_dispatch& hooks);

}  // namespace tacho::capture::opencl
