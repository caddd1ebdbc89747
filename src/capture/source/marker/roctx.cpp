// ROCTx's C functions, for programs that are linked to libroctx64.so or librocprofiler-sdk-roctx.so: a preloaded
// libtacho.so comes first in symbol lookup. Programs that dlopen those libraries find the stand-ins of roctx_library.c.
// Signatures and return values as documented for ROCTx; markers appear in domain "ROCTx".
#include "capture/source/marker/roctx.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "capture/source/marker/marker.h"
#include "tape/writer.h"

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

namespace tacho::capture::roctx {
namespace {

using tape::intern;

// Number of the domain's name, which holds for one attach (a forked child inherits its parent's definitions).
uint32_t domain() {
  static constinit std::atomic<uint64_t> known{0};
  const uint64_t attach = uint64_t{tape::late_session()} << 32;
  const uint64_t there = known.load(std::memory_order_relaxed);
  if (__builtin_expect(there > attach && there - attach < uint64_t{1} << 32, 1)) return static_cast<uint32_t>(there);
  const uint32_t number = intern("ROCTx");
  known.store(attach | number, std::memory_order_relaxed);
  return number;
}

marker::Marker make(const char* message) {
  return {.text = marker::clip(message), .domain = domain()};
}

// Names of devices and streams become properties of the process: their numbers are the runtime's, not ours.
int name_object(const char* kind, unsigned long long object, const char* name) {
  if (!marker::ready()) return 0;
  char key[64];
  const int size = snprintf(key, sizeof key, "roctx.%s.%llx", kind, object);
  tape::define_property(event::Table::kProcess, 0, {key, static_cast<size_t>(size)}, marker::clip(name));
  return 0;
}

}  // namespace

void mark(const char* message) {
  if (marker::ready()) marker::mark(make(message));
}
int push(const char* message) {
  return marker::ready() ? marker::push(make(message)) : -1;
}
int pop() {
  return marker::ready() ? marker::pop(domain()) : -1;
}
uint64_t start(const char* message) {
  return marker::ready() ? marker::start(make(message)) : 0;
}
void stop(uint64_t range) {
  marker::stop(range);
}
int pause() {
  if (!marker::ready()) return -1;
  marker::pause();
  return 0;
}
int resume() {
  if (!marker::ready()) return -1;
  marker::resume();
  return 0;
}
int name_thread(const char* name) {
  if (marker::ready()) marker::name_thread(0, marker::clip(name));
  return 0;
}
int name_agent(const char* name, const void* agent) {
  uint64_t handle = 0;
  if (agent != nullptr) handle = *static_cast<const uint64_t*>(agent);
  return name_object("hsa_agent", handle, name);
}
int name_device(const char* name, int device) {
  return name_object("hip_device", static_cast<unsigned>(device), name);
}
int name_stream(const char* name, const void* stream) {
  return name_object("hip_stream", reinterpret_cast<uintptr_t>(stream), name);
}

}  // namespace tacho::capture::roctx

namespace roctx = tacho::capture::roctx;

TACHO_EXPORT uint32_t roctx_version_major() {
  return 4;
}
TACHO_EXPORT uint32_t roctx_version_minor() {
  return 1;
}

TACHO_EXPORT void roctxMarkA(const char* message) {
  roctx::mark(message);
}
/// Level of the new range on this thread, from 0; negative when there is no profiler.
TACHO_EXPORT int roctxRangePushA(const char* message) {
  return roctx::push(message);
}
/// Level of the range that ends, from 0; negative without one.
TACHO_EXPORT int roctxRangePop() {
  return roctx::pop();
}
TACHO_EXPORT uint64_t roctxRangeStartA(const char* message) {
  return roctx::start(message);
}
TACHO_EXPORT void roctxRangeStop(uint64_t range) {
  roctx::stop(range);
}

/// 0 = done. Recording is paused for the whole run whatever the thread asked for.
TACHO_EXPORT int roctxProfilerPause(uint64_t) {
  return roctx::pause();
}
TACHO_EXPORT int roctxProfilerResume(uint64_t) {
  return roctx::resume();
}
TACHO_EXPORT int roctxGetThreadId(uint64_t* tid) {
  if (tid == nullptr) return -1;
  *tid = static_cast<uint64_t>(syscall(SYS_gettid));
  return 0;
}
TACHO_EXPORT int roctxNameOsThread(const char* name) {
  return roctx::name_thread(name);
}
TACHO_EXPORT int roctxNameHsaAgent(const char* name, const void* agent) {
  return roctx::name_agent(name, agent);
}
TACHO_EXPORT int roctxNameHipDevice(const char* name, int device) {
  return roctx::name_device(name, device);
}
TACHO_EXPORT int roctxNameHipStream(const char* name, const void* stream) {
  return roctx::name_stream(name, stream);
}
