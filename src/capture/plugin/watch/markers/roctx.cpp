// ROCTx's ranges and marks under `tacho watch`: each is kept, and then ROCTx's own function is called, where there is
// one. Programs that are linked to ROCTx find these first because libtacho-watch.so is preloaded; those that ask dlsym
// get them from there.
#include "capture/plugin/watch/markers/roctx.h"

#include <dlfcn.h>
#include <string.h>

#include <atomic>

#include "capture/plugin/watch/hooks.h"
#include "capture/room/handle_map.h"
#include "capture/room/lock.h"
#include "capture/source/marker/marker.h"
#include "tape/writer.h"

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

namespace tacho::capture::watch {
namespace {

constexpr const char* kLibraries[] = {"libroctx64.so.4", "libroctx64.so", "librocprofiler-sdk-roctx.so.1",
                                      "librocprofiler-sdk-roctx.so"};

// ROCTx's own function, wherever it is loaded.
void* search(const char* name) {
  if (void* const next = real_dlsym(RTLD_NEXT, name)) return next;
  for (const char* const file : kLibraries) {
    void* const library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* const found = real_dlsym(library, name);
    dlclose(library);
    if (found != nullptr) return found;
  }
  return nullptr;
}
template <typename Signature>
Signature* own_of(std::atomic<void*>& kept, const char* name) {
  void* found = kept.load(std::memory_order_relaxed);
  if (__builtin_expect(found == nullptr, 0)) {
    found = search(name);
    kept.store(found != nullptr ? found : &kept, std::memory_order_relaxed);
  }
  return found == &kept ? nullptr : reinterpret_cast<Signature*>(found);
}
#define TACHO_ROCTX_OWN(name, ...)                   \
  static constinit std::atomic<void*> kept{nullptr}; \
  auto* const own = tacho::capture::watch::own_of<__VA_ARGS__>(kept, #name)

uint32_t domain() {
  static constinit std::atomic<uint32_t> number{0};
  uint32_t known = number.load(std::memory_order_relaxed);
  if (__builtin_expect(known == 0, 0)) number.store(known = tape::intern("ROCTx"), std::memory_order_relaxed);
  return known;
}
marker::Marker make(const char* message) {
  return {.text = marker::clip(message), .domain = domain()};
}

// ROCTx's numbers of open ranges -> ours.
constinit HandleMap g_ranges;
constinit LockWord g_lock{0};

const void* key_of(uint64_t range) {
  return reinterpret_cast<const void*>(static_cast<uintptr_t>(range));
}

}  // namespace
}  // namespace tacho::capture::watch

namespace watch = tacho::capture::watch;
namespace marker = tacho::capture::marker;

TACHO_EXPORT void roctxMarkA(const char* message) {
  if (marker::ready()) marker::mark(watch::make(message));
  TACHO_ROCTX_OWN(roctxMarkA, void(const char*));
  if (own != nullptr) own(message);
}
TACHO_EXPORT int roctxRangePushA(const char* message) {
  const int level = marker::ready() ? marker::push(watch::make(message)) : -1;
  TACHO_ROCTX_OWN(roctxRangePushA, int(const char*));
  return own != nullptr ? own(message) : level;
}
TACHO_EXPORT int roctxRangePop() {
  const int level = marker::ready() ? marker::pop(watch::domain()) : -1;
  TACHO_ROCTX_OWN(roctxRangePop, int());
  return own != nullptr ? own() : level;
}
TACHO_EXPORT uint64_t roctxRangeStartA(const char* message) {
  const uint64_t range = marker::ready() ? marker::start(watch::make(message)) : 0;
  TACHO_ROCTX_OWN(roctxRangeStartA, uint64_t(const char*));
  if (own == nullptr) return range;
  const uint64_t theirs = own(message);
  if (range != 0 && theirs != 0) {
    const tacho::capture::Guard guard(watch::g_lock);
    watch::g_ranges.set(watch::key_of(theirs), reinterpret_cast<void*>(static_cast<uintptr_t>(range)));
  }
  return theirs;
}
TACHO_EXPORT void roctxRangeStop(uint64_t range) {
  TACHO_ROCTX_OWN(roctxRangeStop, void(uint64_t));
  if (own == nullptr) return marker::stop(range);
  void* ours = nullptr;
  if (range != 0 && marker::ready()) {
    const tacho::capture::Guard guard(watch::g_lock);
    ours = watch::g_ranges.erase(watch::key_of(range));
  }
  marker::stop(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(ours)));
  own(range);
}

namespace tacho::capture::watch {
namespace {

struct RoctxHook {
  const char* name;
  void* function;
};
const RoctxHook kRoctxHooks[] = {{"roctxMarkA", reinterpret_cast<void*>(&roctxMarkA)},
                                 {"roctxRangePushA", reinterpret_cast<void*>(&roctxRangePushA)},
                                 {"roctxRangePop", reinterpret_cast<void*>(&roctxRangePop)},
                                 {"roctxRangeStartA", reinterpret_cast<void*>(&roctxRangeStartA)},
                                 {"roctxRangeStop", reinterpret_cast<void*>(&roctxRangeStop)}};

}  // namespace

void* hooked_roctx_symbol(const char* symbol, void* found) {
  if (keeps())
    for (const RoctxHook& each : kRoctxHooks)
      if (strcmp(symbol, each.name) == 0) return each.function;
  return found;
}

size_t roctx_hooks(SlotHook* into, size_t room) {
  size_t count = 0;
  for (const RoctxHook& each : kRoctxHooks) {
    void* found = nullptr;
    for (const char* const file : kLibraries) {
      void* const library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
      if (library == nullptr) continue;
      void* const there = real_dlsym(library, each.name);
      dlclose(library);
      // A hook calls the first library's function, and each counts its own levels.
      if (found != nullptr && there != nullptr && there != found) return 0;
      if (there != nullptr) found = there;
    }
    if (found != nullptr && count < room) into[count++] = {found, each.function, each.name};
  }
  return count;
}

void forget_roctx_ranges() {
  const Guard guard(g_lock);
  g_ranges.clear();
}

}  // namespace tacho::capture::watch
