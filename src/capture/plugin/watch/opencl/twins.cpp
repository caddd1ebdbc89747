// Queues of tacho's beside those of the program (twins.h), and who may put something into which of them when.
#include "capture/plugin/watch/opencl/twins.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/room/slab.h"

namespace tacho::capture::watch::cl {

constinit HandleMap g_queues;

namespace {

constinit Slab<WatchedQueue> g_queue_slab;
constinit HandleMap g_twins;                 // a twin -> the program's queue, also while only events know the twin
constinit std::atomic<uint32_t> g_ended{0};  // queues that their twins' events keep
constexpr uint32_t kWindow = 0x80000000;
constinit const char g_shared = 0;  // an owner that no thread is
const void* const kShared = &g_shared;

long membarrier(int command) {
  return syscall(SYS_membarrier, command, 0, 0);
}

cl_uint references_of(cl_context context) {
  cl_uint count = 0;
  g_next.clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, nullptr);
  return count;
}
cl_uint references_of(cl_device_id device) {
  cl_uint count = 0;
  g_next.clGetDeviceInfo(device, CL_DEVICE_REFERENCE_COUNT, sizeof count, &count, nullptr);
  return count;
}
cl_uint references_of(cl_command_queue queue) {
  cl_uint count = 0;
  g_next.clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, nullptr);
  return count;
}

cl_command_queue make_twin(cl_command_queue handle, WatchedQueue& queue) {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  if (g_next.clGetCommandQueueInfo(handle, CL_QUEUE_CONTEXT, sizeof(cl_context), &context, nullptr) != CL_SUCCESS ||
      g_next.clGetCommandQueueInfo(handle, CL_QUEUE_DEVICE, sizeof(cl_device_id), &device, nullptr) != CL_SUCCESS)
    return nullptr;
  const cl_uint of_context = references_of(context), of_device = references_of(device);
  cl_command_queue twin = nullptr;
  cl_int code = CL_SUCCESS;
  if (queue.by_list) {
    ProfilingList list;
    if (!list.make(queue.words != 0 ? queue.asked : nullptr)) return nullptr;
    twin = g_next.clCreateCommandQueueWithProperties(context, device, list.words(), &code);
  } else {
    twin = g_next.clCreateCommandQueue(context, device, queue.properties | CL_QUEUE_PROFILING_ENABLE, &code);
  }
  if (twin == nullptr) return nullptr;
  queue.context = context;
  queue.device = device;
  queue.context_references = references_of(context) > of_context ? 1 : 0;
  queue.device_references = references_of(device) > of_device ? 1 : 0;
  forget_queue(twin);  // one that had this handle before
  {
    const Guard guard(g_own->objects);
    g_twins.set(twin, handle);
  }
  queue.twin.store(twin, std::memory_order_release);
  return twin;
}

}  // namespace

WatchedQueue* make_known(cl_command_queue handle) {
  if (WatchedQueue* const known = known_queue(handle)) return known;
  WatchedQueue* const queue = g_queue_slab.take();
  if (queue != nullptr) g_queues.set(handle, queue);
  return queue;
}

void forget_queue(cl_command_queue handle) {
  const Guard guard(g_own->objects);
  if (void* const queue = g_queues.erase(handle)) g_queue_slab.give(static_cast<WatchedQueue*>(queue));
  if (g_twins.find(handle) != nullptr) g_twins.erase(handle);
}

void forget_all_queues() {
  g_queues.for_each([](const void*, void* queue) { g_queue_slab.give(static_cast<WatchedQueue*>(queue)); });
  g_queues.clear();
}

// Who is inside

void Inside::enter() {
  const void* owner = nullptr;
  if (queue_->owner.compare_exchange_strong(owner, &t_watching, std::memory_order_seq_cst) && enter_as_owner()) return;
  if (owner != kShared && queue_->owner.exchange(kShared, std::memory_order_seq_cst) != kShared) {
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)
      queue_->closed.store(true, std::memory_order_relaxed);
    else
      queue_->fenced.store(true, std::memory_order_release);
  }
  constexpr int64_t kPatience = 1'000'000'000;
  int64_t begin = 0;
  for (uint32_t turns = 0;; ++turns) {
    const bool own = queue_->window.load(std::memory_order_relaxed) == &t_watching;
    if (own || (queue_->inside.load(std::memory_order_relaxed) & kWindow) == 0) {
      if ((queue_->inside.fetch_add(1, std::memory_order_seq_cst) & kWindow) == 0 || own) return;
      queue_->inside.fetch_sub(1, std::memory_order_relaxed);
    }
    if (turns < 100) {
      __builtin_ia32_pause();
      continue;
    }
    // A thread that hangs in the runtime holds up no other one for long.
    if (turns == 100) begin = read_clock(CLOCK_MONOTONIC);
    if (read_clock(CLOCK_MONOTONIC) - begin > kPatience) break;
    sched_yield();
  }
  queue_->closed.store(true, std::memory_order_relaxed);
  queue_->inside.fetch_add(1, std::memory_order_relaxed);
}

void use_barriers() {
  static std::atomic<bool> done{false};
  if (!done.exchange(true, std::memory_order_relaxed)) membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

// The way through the twin

Detour::Detour(cl_command_queue handle, WatchedQueue& queue, const Inside& inside, cl_uint waits, const cl_event* list)
    : handle_(handle), queue_(queue) {
  cl_event before = nullptr;
  if (begin(inside) && g_next.clEnqueueMarkerWithWaitList(handle, waits, list, &before) == CL_SUCCESS) before_ = before;
  // What another queue waits for must have been submitted.
  if (before_ != nullptr) g_next.clFlush(handle);
}

// Those who are inside are so for a microsecond, if they do not block: no longer than some of these is waited for them.
bool Detour::wait_for_others(const Inside& inside) {
  const uint32_t alone = kWindow | (inside.owns() ? 0 : 1);
  for (uint32_t turns = 0; turns < 200; ++turns) {
    // The owner itself may be inside twice, in a function that the runtime calls.
    const uint32_t owner = queue_.owner_inside.load(std::memory_order_acquire);
    const bool known = inside.owns() ? owner == 1 : owner == 0 && queue_.fenced.load(std::memory_order_acquire);
    if (known && queue_.inside.load(std::memory_order_acquire) == alone) return true;
    __builtin_ia32_pause();
  }
  return false;
}

bool Detour::begin(const Inside& inside) {
  if (queue_.closed.load(std::memory_order_relaxed) || !g_own->made.load(std::memory_order_relaxed)) return false;
  if ((queue_.inside.fetch_or(kWindow, std::memory_order_seq_cst) & kWindow) != 0) return false;
  open_ = true;
  queue_.window.store(&t_watching, std::memory_order_relaxed);
  if (!wait_for_others(inside)) return false;
  twin_ = queue_.twin.load(std::memory_order_acquire);
  if (twin_ == nullptr) twin_ = make_twin(handle_, queue_);
  if (twin_ == nullptr) queue_.closed.store(true, std::memory_order_relaxed);
  return twin_ != nullptr;
}

void Detour::join(cl_event event) {
  g_next.clFlush(twin_);
  // Without memory for the marker nothing else keeps the order.
  if (event == nullptr || g_next.clEnqueueMarkerWithWaitList(handle_, 1, &event, &after_) != CL_SUCCESS)
    g_next.clFinish(twin_);
  close();
}

Detour::~Detour() {
  close();
  if (before_ != nullptr) g_next.clReleaseEvent(before_);
  if (after_ != nullptr) g_next.clReleaseEvent(after_);
}

void Detour::close() {
  if (!open_) return;
  open_ = false;
  queue_.window.store(nullptr, std::memory_order_relaxed);
  queue_.inside.fetch_and(~kWindow, std::memory_order_release);
}

// What the program sees

bool ProfilingList::make(const cl_queue_properties* asked) {
  uint32_t words = 0;
  bool found = false;
  for (; asked != nullptr && asked[words] != 0; words += 2) {
    if (words + 5 > kMostAsked) return false;
    list_[words] = asked[words];
    list_[words + 1] = asked[words + 1];
    if (asked[words] != CL_QUEUE_PROPERTIES) continue;
    properties_ = asked[words + 1];
    list_[words + 1] |= CL_QUEUE_PROFILING_ENABLE;
    found = true;
  }
  if (!found) {
    list_[words++] = CL_QUEUE_PROPERTIES;
    list_[words++] = CL_QUEUE_PROFILING_ENABLE;
  }
  list_[words] = 0;
  return true;
}

cl_command_queue queue_beside(cl_command_queue twin) {
  return static_cast<cl_command_queue>(g_twins.find(twin));
}

cl_uint more_references(const WatchedQueue& queue) {
  cl_command_queue const twin = queue.twin.load(std::memory_order_acquire);
  const cl_uint all = twin != nullptr ? references_of(twin) : 0;
  return all > 1 ? all - 1 : 0;
}

cl_uint twins_of(cl_context context) {
  cl_uint count = 0;
  const Guard guard(g_own->objects);
  g_queues.for_each([&](const void*, void* value) {
    const auto* const queue = static_cast<const WatchedQueue*>(value);
    if (queue->twin.load(std::memory_order_relaxed) != nullptr && queue->context == context)
      count += queue->context_references;
  });
  return count;
}
cl_uint twins_of(cl_device_id device) {
  cl_uint count = 0;
  const Guard guard(g_own->objects);
  g_queues.for_each([&](const void*, void* value) {
    const auto* const queue = static_cast<const WatchedQueue*>(value);
    if (queue->twin.load(std::memory_order_relaxed) != nullptr && queue->device == device)
      count += queue->device_references;
  });
  return count;
}

bool release_twin(cl_command_queue handle, WatchedQueue& queue) {
  // Events may still lead to the queue: it gets no other twin.
  queue.closed.store(true, std::memory_order_relaxed);
  cl_command_queue const twin = queue.twin.load(std::memory_order_acquire);
  if (twin == nullptr) return false;
  if (references_of(twin) > 1) {
    queue.ended.store(true, std::memory_order_relaxed);
    g_ended.fetch_add(1, std::memory_order_relaxed);
    g_next.clFlush(handle);
    return true;
  }
  queue.twin.store(nullptr, std::memory_order_relaxed);
  g_next.clReleaseCommandQueue(twin);
  return false;
}

void release_ended() {
  while (g_ended.load(std::memory_order_relaxed) != 0) {
    struct {
      cl_command_queue queue, twin;
    } found{};
    {
      const Guard guard(g_own->objects);
      g_queues.for_each([&](const void* handle, void* value) {
        auto* const queue = static_cast<WatchedQueue*>(value);
        cl_command_queue const twin = queue->twin.load(std::memory_order_relaxed);
        if (found.queue != nullptr || !queue->ended.load(std::memory_order_relaxed) || references_of(twin) > 1) return;
        found.queue = static_cast<cl_command_queue>(const_cast<void*>(handle));
        found.twin = twin;
        queue->twin.store(nullptr, std::memory_order_relaxed);
        queue->ended.store(false, std::memory_order_relaxed);
        g_ended.fetch_sub(1, std::memory_order_relaxed);
      });
    }
    if (found.queue == nullptr) return;
    // The runtime may call the program now.
    g_next.clReleaseCommandQueue(found.twin);
    g_next.clReleaseCommandQueue(found.queue);
  }
}

}  // namespace tacho::capture::watch::cl
