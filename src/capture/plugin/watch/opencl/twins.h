// Queues of OpenCL programs under `tacho watch`, and those that tacho puts beside them.
//
// A queue stays as the program asked for it, because profiling costs each of its commands, and 1 of N is timed. An
// operation that is to be timed goes into a queue of tacho's beside it, a twin: the same context, device and
// properties, and profiling.
//
//   program's queue   ... before, marker ─┐               ┌─► marker, after ...
//   twin                                  └─► operation ──┘
//
// So what is in the program's queue still ends in order, as long as nothing comes between the two markers (Detour).
// A barrier would do as the second marker, but PoCL makes each later command wait for the last barrier once more.
// Queues out of order have profiling themselves: a marker there would wait for everything. So have those of GPUs and
// accelerators, those of runtimes older than OpenCL 1.2, and those that a program makes when it uses command buffers,
// which cannot be taken elsewhere.
#pragma once

#include <utility>

#include "capture/plugin/watch/opencl/own.h"
#include "capture/room/handle_map.h"
#include "capture/room/lines.h"

namespace tacho::capture::watch::cl {

/// How operations in a queue are timed.
enum class Timing : uint32_t {
  kNot,
  kItself,  ///< it has profiling
  kBeside,  ///< in its twin
};

/// A queue that tacho knows.
struct WatchedQueue {
  Timing timing;
  bool forced;   ///< it has profiling that the program did not ask for
  bool ordered;  ///< its operations end in order
  bool by_list;  ///< it was made from a list of properties
  cl_command_queue_properties properties;
  uint32_t words;
  cl_queue_properties asked[32];  ///< the list as the program gave it

  // Its twin.
  std::atomic<cl_command_queue> twin;
  cl_context context;
  cl_device_id device;
  cl_uint context_references, device_references;  ///< that the twin has of them
  std::atomic<bool> closed;                       ///< no operation goes beside it any more
  std::atomic<uint32_t> retained;                 ///< references of the program beyond the first
  std::atomic<bool> ended;  ///< the program has released it, and events of the twin are still about

  // Which threads put something into it (Inside).
  std::atomic<const void*> owner;      ///< the only one so far, or kShared
  std::atomic<uint32_t> owner_inside;  ///< written by the owner alone
  std::atomic<bool> fenced;            ///< every thread knows that it is shared
  std::atomic<uint32_t> inside;        ///< others; kWindow: there is a detour
  std::atomic<const void*> window;     ///< the thread whose it is
};

extern constinit HandleMap g_queues;  ///< cl_command_queue -> WatchedQueue
/// nullptr: tacho does not know it.
inline WatchedQueue* known_queue(cl_command_queue handle) {
  return static_cast<WatchedQueue*>(g_queues.find(handle));
}
/// What tacho knows of the queue: all zero when it is new to it. nullptr without memory. Under the lock of objects.
WatchedQueue* make_known(cl_command_queue handle);
/// The handle means no queue that tacho knows.
void forget_queue(cl_command_queue handle);
/// So do all handles. Under the lock of objects.
void forget_all_queues();

/// Lets Inside have barriers of all threads. Soon is best: with several threads that takes the kernel milliseconds.
void use_barriers();

/// While this lives, the calling thread puts something into the queue, and no other takes a detour. The first thread
/// that uses a queue does so without a locked instruction.
class Inside {
 public:
  TACHO_RUN_OFTEN explicit Inside(WatchedQueue* queue)
      : queue_(queue != nullptr && queue->timing == Timing::kBeside ? queue : nullptr) {
    if (queue_ != nullptr && !enter_as_owner()) enter();
  }
  TACHO_RUN_OFTEN ~Inside() {
    if (queue_ == nullptr) return;
    if (owns_)
      count_owner(-1);
    else
      queue_->inside.fetch_sub(1, std::memory_order_release);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  bool owns() const { return owns_; }

 private:
  TACHO_RUN_OFTEN bool enter_as_owner() {
    if (queue_->owner.load(std::memory_order_relaxed) != &t_watching) return false;
    count_owner(1);
    // Who makes it shared waits for a barrier of all threads in between (membarrier).
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (__builtin_expect(queue_->owner.load(std::memory_order_relaxed) == &t_watching, 1)) return owns_ = true;
    count_owner(-1);
    return false;
  }
  TACHO_RUN_OFTEN void count_owner(int by) {
    std::atomic<uint32_t>& count = queue_->owner_inside;
    count.store(count.load(std::memory_order_relaxed) + static_cast<uint32_t>(by), std::memory_order_release);
  }
  TACHO_RUN_SELDOM void enter();

  WatchedQueue* queue_;
  bool owns_ = false;
};

/// The way of an operation through a queue's twin and back. From its beginning until join(), no other thread's command
/// comes between: it waits in Inside.
class Detour {
 public:
  /// `waits`, `list`: what the operation is to wait for. While another thread is inside for long, there is no way.
  Detour(cl_command_queue handle, WatchedQueue& queue, const Inside& inside, cl_uint waits, const cl_event* list);
  ~Detour();
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;
  /// False: the operation must go into the program's queue.
  bool is_open() const { return before_ != nullptr; }
  cl_command_queue twin() const { return twin_; }
  /// What the operation in the twin waits for: all that was in the program's queue, and `list`.
  const cl_event* before() const { return &before_; }
  /// The operation with this event is in the twin: what comes after it in the program's queue waits for it.
  void join(cl_event event);
  /// There is no operation in the twin, or join() is done.
  void close();
  /// After join(): the markers' events, a reference of each.
  cl_event take_before() { return std::exchange(before_, nullptr); }
  cl_event take_after() { return std::exchange(after_, nullptr); }

 private:
  bool begin(const Inside& inside);
  bool wait_for_others(const Inside& inside);

  cl_command_queue handle_;
  WatchedQueue& queue_;
  bool open_ = false;
  cl_command_queue twin_ = nullptr;
  cl_event before_ = nullptr, after_ = nullptr;
};

/// A list of properties as the program gave it, with profiling.
class ProfilingList {
 public:
  /// False when it is too long.
  bool make(const cl_queue_properties* asked);
  const cl_queue_properties* words() const { return list_; }
  /// What the program asked for.
  cl_command_queue_properties properties() const { return properties_; }

 private:
  static constexpr uint32_t kMostAsked = 29;
  cl_queue_properties list_[32];
  cl_command_queue_properties properties_ = 0;
};

/// The program's queue beside this one; nullptr: it is no twin.
cl_command_queue queue_beside(cl_command_queue twin);
/// References that the queue would have without its twin: those of events.
cl_uint more_references(const WatchedQueue& queue);
/// References that twins have of a context and of a device.
cl_uint twins_of(cl_context context);
cl_uint twins_of(cl_device_id device);
/// The program releases its last reference of a queue. True if tacho keeps that reference: as long as the runtime says
/// that events know the twin, they would know the queue without tacho.
bool release_twin(cl_command_queue handle, WatchedQueue& queue);
/// Releases queues and twins whose events have gone meanwhile.
void release_ended();

}  // namespace tacho::capture::watch::cl
