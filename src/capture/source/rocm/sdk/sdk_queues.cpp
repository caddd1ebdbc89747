// Cooperative queues beside rocprofiler-sdk (sdk.h). The HSA runtime has one for each GPU, which it shares out. The
// library puts an intercept queue around it as around every other, and the program dies with SIGSEGV as HIP's end takes
// the runtime down, with any tool that asks for kernels (seen with 1.0.0 over ROCr 7.2.4). So the library does not get
// to see these queues: the runtime makes and destroys them, as in a program without tools.
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "capture/source/rocm/rocm.h"
#include "capture/source/rocm/sdk/sdk.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

namespace sig = hsa::signature;

constexpr size_t kMostCooperative = 64;  // one for each GPU

// The runtime's own, and the library's.
constinit std::atomic<void*> g_own_create{nullptr}, g_own_destroy{nullptr};
constinit std::atomic<void*> g_library_create{nullptr}, g_library_destroy{nullptr};
constinit std::atomic<hsa::Queue*> g_cooperative[kMostCooperative] = {};
constinit std::atomic<bool> g_cooperative_counts{false};  // this run counts
constinit std::atomic<bool> g_cooperative_said{false};    // in such a run

void say_cooperative() {
  if (!g_cooperative_counts.load()) return note_cooperative_launches();
  if (g_cooperative_said.exchange(true)) return;
  constexpr std::string_view kLine =
      "tacho: the program launches kernels cooperatively: these are not measured, because the HSA runtime does not let "
      "its cooperative queue be watched\n";
  static_cast<void>(!::write(STDERR_FILENO, kLine.data(), kLine.size()));
}

// It stays among them when it is destroyed: the runtime gives it out again.
void remember_cooperative(hsa::Queue* queue) {
  for (std::atomic<hsa::Queue*>& slot : g_cooperative) {
    hsa::Queue* known = nullptr;
    if (slot.compare_exchange_strong(known, queue) || known == queue) return;
  }
}
// Another queue, where a cooperative one was in an earlier life of the runtime.
void forget_cooperative(hsa::Queue* queue) {
  for (std::atomic<hsa::Queue*>& slot : g_cooperative) {
    hsa::Queue* known = queue;
    slot.compare_exchange_strong(known, nullptr);
  }
}
bool is_cooperative(const hsa::Queue* queue) {
  bool found = false;
  for (const std::atomic<hsa::Queue*>& slot : g_cooperative) found = found || slot.load() == queue;
  return found && queue != nullptr;
}

hsa::Status create_queue_beside(hsa::Agent agent, uint32_t size, uint32_t type,
                                void (*callback)(hsa::Status, hsa::Queue*, void*), void* data, uint32_t private_bytes,
                                uint32_t group_bytes, hsa::Queue** queue) {
  const bool cooperative = (type & hsa::kCooperativeQueue) != 0;
  const hsa::Status status = call<sig::QueueCreate>(cooperative ? g_own_create.load() : g_library_create.load(), agent,
                                                    size, type, callback, data, private_bytes, group_bytes, queue);
  if (status != hsa::kSuccess || queue == nullptr) return status;
  if (!cooperative) {
    forget_cooperative(*queue);
    return status;
  }
  remember_cooperative(*queue);
  say_cooperative();
  return status;
}

hsa::Status destroy_queue_beside(hsa::Queue* queue) {
  return call<sig::QueueDestroy>(is_cooperative(queue) ? g_own_destroy.load() : g_library_destroy.load(), queue);
}

bool has_queues(const hsa::Tables* tables) {
  return tables != nullptr && tables->core != nullptr && TACHO_HSA_HAS(*tables->core, hsa_queue_create) &&
         TACHO_HSA_HAS(*tables->core, hsa_queue_destroy);
}

}  // namespace

void note_own_queues(const hsa::Tables* tables) {
  void* nothing = nullptr;
  if (!has_queues(tables) || !g_own_create.compare_exchange_strong(nothing, tables->core->hsa_queue_create)) return;
  g_own_destroy.store(tables->core->hsa_queue_destroy);
}

void keep_cooperative_queues(hsa::Tables* tables, bool counts) {
  if (!has_queues(tables) || g_own_destroy.load() == nullptr || tables->core->hsa_queue_create == g_own_create.load())
    return;
  void* nothing = nullptr;
  if (!g_library_create.compare_exchange_strong(nothing, tables->core->hsa_queue_create)) return;
  g_library_destroy.store(tables->core->hsa_queue_destroy);
  g_cooperative_counts.store(counts);
  tables->core->hsa_queue_create = reinterpret_cast<void*>(create_queue_beside);
  tables->core->hsa_queue_destroy = reinterpret_cast<void*>(destroy_queue_beside);
}

}  // namespace tacho::capture::rocm
