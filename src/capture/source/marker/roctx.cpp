// ROCTx's C functions, for programs that are linked to libroctx64.so or librocprofiler-sdk-roctx.so: a preloaded
// libtacho.so comes first in symbol lookup. Programs that dlopen those libraries find the stand-ins of roctx_library.c.
// Signatures and return values as documented for ROCTx; markers appear in domain "ROCTx".
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>

#include "capture/source/marker/marker.h"
#include "tape/writer.h"

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

namespace marker = tacho::capture::marker;
using tacho::tape::intern;

// Number of the domain's name, per process image (a forked child inherits its parent's definitions).
uint32_t domain() {
  static std::atomic<uint32_t> number{0};
  uint32_t known = number.load(std::memory_order_relaxed);
  if (__builtin_expect(known == 0, 0)) {
    known = intern("ROCTx");
    number.store(known, std::memory_order_relaxed);
  }
  return known;
}

marker::Marker make(const char* message) {
  return {.text = marker::clip(message), .domain = domain()};
}

// Names of devices and streams become properties of the process: their numbers are the runtime's, not ours.
int name_object(const char* kind, unsigned long long object, const char* name) {
  if (!marker::ready()) return 0;
  char key[64];
  const int size = snprintf(key, sizeof key, "roctx.%s.%llx", kind, object);
  tacho::tape::define_property(tacho::event::Table::kProcess, 0, {key, static_cast<size_t>(size)}, marker::clip(name));
  return 0;
}

}  // namespace

TACHO_EXPORT uint32_t roctx_version_major() {
  return 4;
}
TACHO_EXPORT uint32_t roctx_version_minor() {
  return 1;
}

TACHO_EXPORT void roctxMarkA(const char* message) {
  if (marker::ready()) marker::mark(make(message));
}
/// Level of the new range on this thread, from 0; negative when there is no profiler.
TACHO_EXPORT int roctxRangePushA(const char* message) {
  return marker::ready() ? marker::push(make(message)) : -1;
}
/// Level of the range that ends, from 0; negative without one.
TACHO_EXPORT int roctxRangePop() {
  return marker::ready() ? marker::pop(domain()) : -1;
}
TACHO_EXPORT uint64_t roctxRangeStartA(const char* message) {
  return marker::ready() ? marker::start(make(message)) : 0;
}
TACHO_EXPORT void roctxRangeStop(uint64_t range) {
  marker::stop(range);
}

/// 0 = done. Recording is paused for the whole run whatever the thread asked for.
TACHO_EXPORT int roctxProfilerPause(uint64_t) {
  if (!marker::ready()) return -1;
  marker::pause();
  return 0;
}
TACHO_EXPORT int roctxProfilerResume(uint64_t) {
  if (!marker::ready()) return -1;
  marker::resume();
  return 0;
}
TACHO_EXPORT int roctxGetThreadId(uint64_t* tid) {
  if (tid == nullptr) return -1;
  *tid = static_cast<uint64_t>(syscall(SYS_gettid));
  return 0;
}
TACHO_EXPORT int roctxNameOsThread(const char* name) {
  if (marker::ready()) marker::name_thread(0, marker::clip(name));
  return 0;
}
TACHO_EXPORT int roctxNameHsaAgent(const char* name, const void* agent) {
  uint64_t handle = 0;
  if (agent != nullptr) handle = *static_cast<const uint64_t*>(agent);
  return name_object("hsa_agent", handle, name);
}
TACHO_EXPORT int roctxNameHipDevice(const char* name, int device) {
  return name_object("hip_device", static_cast<unsigned>(device), name);
}
TACHO_EXPORT int roctxNameHipStream(const char* name, const void* stream) {
  return name_object("hip_stream", reinterpret_cast<uintptr_t>(stream), name);
}
