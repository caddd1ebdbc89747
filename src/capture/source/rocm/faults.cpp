// Handles a GPU's fatal errors (rocm.h): HIP then prints its line and aborts the program. tacho first collects the work
// that has completed and adds a sentence to the trace. The program's own handlers run as without tacho.
#include <stdio.h>
#include <string.h>

#include "capture/source/rocm/rocm.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

namespace sig = hsa::signature;

struct Handler {
  std::atomic<sig::EventHandler*> theirs;
  void* data;
};
constexpr uint32_t kMostHandlers = 16;
constinit Handler g_handlers[kMostHandlers] = {};
constinit std::atomic<uint32_t> g_handler_count{0};
enum Watching : uint32_t { kNotYet, kWatching, kRefused };
constinit std::atomic<uint32_t> g_watching{kNotYet};
constinit std::atomic<bool> g_event_noted{false};

uint32_t index_of(hsa::Agent agent) {
  for (uint32_t at = 0; at < device_count(); ++at)
    if (device_at(at).agent == agent) return at;
  return 0;
}

void note_event(const hsa::HsaEvent& event) {
  if (!active() || g_event_noted.exchange(true)) return;
  collect(false);
  char line[256];
  if (event.type == hsa::kEventMemoryFault)
    snprintf(line, sizeof line,
             "GPU %u could not access memory at address %#llx and stopped: the kernel "
             "that did so, and those in flight, are not in the trace",
             index_of(event.fault.agent), static_cast<unsigned long long>(event.fault.address));
  else if (event.type == hsa::kEventException)
    snprintf(line, sizeof line, "GPU %u was reset: kernels and copies in flight then are not in the trace",
             index_of(event.exception.agent));
  else
    return;
  tape::note(event::NoteSeverity::kError, line);
}

// The runtime considers an event handled when one handler succeeds, and ends the program otherwise. Our handler calls
// all of the program's.
hsa::Status on_event(const hsa::HsaEvent* event, void*) {
  if (event != nullptr) note_event(*event);
  hsa::Status status = hsa::kError;
  for (uint32_t at = 0; at < kMostHandlers && at < g_handler_count.load(std::memory_order_acquire); ++at)
    if (sig::EventHandler* const theirs = g_handlers[at].theirs.load(std::memory_order_acquire))
      if (theirs(event, g_handlers[at].data) == hsa::kSuccess) status = hsa::kSuccess;
  return status;
}

}  // namespace

void note_queue_error(const HsaDevice* device, hsa::Status status, uint64_t object) {
  if (!active()) return;
  const char* text = nullptr;
  call<sig::StatusText>(g_runtime.core.hsa_status_string, status, &text);
  if (text == nullptr) text = "unknown error";
  char name[384];
  kernel_name(object, name, sizeof name);
  char line[640];
  snprintf(line, sizeof line,
           "a queue of GPU %u died%s%s (%.*s): its kernels in flight are not in "
           "the trace, those that had completed are",
           device != nullptr ? index_of(device->agent) : 0, name[0] != '\0' ? " while it ran " : "", name,
           static_cast<int>(strcspn(text, ":")), text);
  tape::note(event::NoteSeverity::kError, line);
}

void watch_events() {
  uint32_t expected = kNotYet;
  if (g_runtime.amd.hsa_amd_register_system_event_handler == nullptr ||
      !g_watching.compare_exchange_strong(expected, kWatching))
    return;
  if (call<sig::RegisterEvents>(g_runtime.amd.hsa_amd_register_system_event_handler, &on_event,
                                static_cast<void*>(nullptr)) != hsa::kSuccess)
    g_watching.store(kRefused);
}

hsa::Status register_events(sig::EventHandler* handler, void* data) {
  if (handler == nullptr || g_watching.load() == kRefused)
    return call<sig::RegisterEvents>(g_runtime.amd.hsa_amd_register_system_event_handler, handler, data);
  watch_events();
  const uint32_t at = g_handler_count.fetch_add(1, std::memory_order_acq_rel);
  if (at >= kMostHandlers) return hsa::kError;
  g_handlers[at].data = data;
  g_handlers[at].theirs.store(handler, std::memory_order_release);
  return hsa::kSuccess;
}

}  // namespace tacho::capture::rocm
