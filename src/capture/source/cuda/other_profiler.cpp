// Asking PyTorch's profiler for its state, and seeing its calls of CUPTI (other_profiler.h).
#include "capture/source/cuda/other_profiler.h"

#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

#include "capture/room/loaded.h"
#include "capture/room/slots.h"

namespace tacho::capture::cuda {
namespace {

// The state
// libkineto::api() returns an object that holds, among its first words, a pointer to the profiler's proxy once there is
// one. The proxy's virtual functions begin with two destructors, init, isInitialized and isActive; init and isActive
// are exported, too, so that both the pointer and the order prove themselves. isActive() reads an atomic variable,
// which says so from the end of a window's preparation until its records are read; before isInitialized() it may not be
// called.

constexpr const char* kApi = "_ZN9libkineto3apiEv";
constexpr const char* kInit = "_ZN9libkineto21ActivityProfilerProxy4initEv";
constexpr const char* kIsActive = "_ZN9libkineto21ActivityProfilerProxy8isActiveEv";
constexpr size_t kWordsOfApi = 4, kFunctions = 5, kPlaceOfInit = 2, kPlaceOfIsInitialized = 3, kPlaceOfIsActive = 4;

struct Kineto {
  void *api, *init, *is_active;
  size_t found;
};
bool has_kineto(const dl_phdr_info& object) {
  return exported_by(object, kApi) != nullptr && exported_by(object, kIsActive) != nullptr;
}
int see_kineto(dl_phdr_info* object, size_t, void* data) {
  auto& kineto = *static_cast<Kineto*>(data);
  if (!has_kineto(*object)) return 0;
  ++kineto.found;
  kineto.api = exported_by(*object, kApi);
  kineto.init = exported_by(*object, kInit);
  kineto.is_active = exported_by(*object, kIsActive);
  return 0;
}

// What is there may be no address: a wrong one must not end the program.
bool read_words(const void* from, void** into, size_t count) {
  iovec here{into, count * sizeof *into}, there{const_cast<void*>(from), count * sizeof *into};
  return from != nullptr && process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(here.iov_len);
}

// Calls

// symbol, parameters and arguments of the functions by which a client begins to use CUPTI's records, changes what it
// records and how, or takes it away
#define TACHO_TAKING_OVER(F)                                               \
  F(cuptiSubscribe, (void* a, void* b, void* c), (a, b, c))                \
  F(cuptiSubscribe_v2, (void* a, void* b, void* c, void* d), (a, b, c, d)) \
  F(cuptiActivityRegisterCallbacks, (void* a, void* b), (a, b))            \
  F(cuptiActivityRegisterTimestampCallback, (void* a), (a))                \
  F(cuptiActivitySetAttribute, (int a, void* b, void* c), (a, b, c))       \
  F(cuptiActivityEnable, (int a), (a))                                     \
  F(cuptiActivityEnableContext, (void* a, int b), (a, b))                  \
  F(cuptiActivityDisable, (int a), (a))                                    \
  F(cuptiActivityDisableContext, (void* a, int b), (a, b))                 \
  F(cuptiFinalize, (), ())

constinit std::atomic<void (*)(const char*)> g_before{nullptr};
constinit std::atomic<uint64_t> g_calls{0};

void see_call(const char* function) {
  g_calls.fetch_add(1, std::memory_order_relaxed);
  if (const auto before = g_before.load(std::memory_order_acquire); before != nullptr) before(function);
}

#define TACHO_HOOK(symbol, parameters, arguments)                           \
  constinit std::atomic<abi::Result(*) parameters> g_own_##symbol{nullptr}; \
  abi::Result hook_##symbol parameters {                                    \
    see_call(#symbol);                                                      \
    return g_own_##symbol.load(std::memory_order_relaxed) arguments;        \
  }
TACHO_TAKING_OVER(TACHO_HOOK)
#undef TACHO_HOOK

constexpr size_t kHooks = 0
#define TACHO_COUNT(symbol, parameters, arguments) +1
    TACHO_TAKING_OVER(TACHO_COUNT)
#undef TACHO_COUNT
    ;
static_assert(kHooks <= kMostSlotHooks);
constinit SlotHook g_hooks[kHooks] = {};
constinit size_t g_hook_count = 0;

// The CUPTI whose functions tacho calls. Of two in a process it is not known whose a name is.
struct Owner {
  const void* function;
  size_t copies;
  dl_phdr_info object;
};
bool has_cupti(const dl_phdr_info& object) {
  return exported_by(object, "cuptiActivityRegisterCallbacks") != nullptr &&
         exported_by(object, "cuptiGetVersion") != nullptr;
}
int see_owner(dl_phdr_info* object, size_t, void* data) {
  auto& owner = *static_cast<Owner*>(data);
  if (!has_cupti(*object)) return 0;
  ++owner.copies;
  if (exported_by(*object, "cuptiGetVersion") == owner.function) owner.object = *object;
  return 0;
}

// False where that is not the process's only CUPTI.
bool list_hooks(const Cupti& cupti) {
  Owner owner{reinterpret_cast<const void*>(cupti.get_version), 0, {}};
  dl_iterate_phdr(see_owner, &owner);
  if (owner.copies != 1 || owner.object.dlpi_phnum == 0) return false;
  g_hook_count = 0;
#define TACHO_ADD(symbol, parameters, arguments)                                                         \
  if (void* const found = exported_by(owner.object, #symbol); found != nullptr) {                        \
    g_own_##symbol.store(reinterpret_cast<abi::Result(*) parameters>(found), std::memory_order_relaxed); \
    g_hooks[g_hook_count++] = {found, reinterpret_cast<void*>(hook_##symbol), #symbol};                  \
  }
  TACHO_TAKING_OVER(TACHO_ADD)
#undef TACHO_ADD
  return true;
}

bool is_cupti(const dl_phdr_info& object, const char*) {
  return has_cupti(object);
}
bool is_cupti_or_kineto(const dl_phdr_info& object, const char*) {
  return has_cupti(object) || has_kineto(object);
}
bool is_no_kineto(const dl_phdr_info& object, const char*) {
  return !has_kineto(object);
}
constexpr SlotRules kEverywhere = {is_cupti, nullptr};
constexpr SlotRules kOthers = {is_cupti_or_kineto, nullptr};
constexpr SlotRules kKineto = {is_no_kineto, nullptr};

// Kineto registers its buffers at each window's begin. A kineto that calls another CUPTI, one that is part of PyTorch's
// library, has no word for that.
constinit bool g_watching = false;
constinit bool g_linked = false;  // for ever: PyTorch's library is never unloaded
bool kineto_is_linked() {
  for (size_t i = 0; i < g_hook_count && !g_linked; ++i)
    if (strcmp(g_hooks[i].symbol, "cuptiActivityRegisterCallbacks") == 0)
      g_linked = count_slots(&g_hooks[i], 1, kKineto).led != 0;
  return g_linked;
}

constinit SlotRules g_rules = kKineto;

}  // namespace

OtherProfiler ask_other_profiler(const Cupti& cupti) {
  Kineto kineto{};
  dl_iterate_phdr(see_kineto, &kineto);
  if (kineto.found == 0 || !list_hooks(cupti) || !kineto_is_linked()) return OtherProfiler::kNone;
  if (kineto.found > 1 || kineto.init == nullptr) return OtherProfiler::kUnknown;
  using Api = void* (*)();
  void* words[kWordsOfApi] = {};
  if (!read_words(reinterpret_cast<Api>(kineto.api)(), words, kWordsOfApi)) return OtherProfiler::kUnknown;
  for (void* const proxy : words) {
    void* functions[kFunctions] = {};
    void* table = nullptr;
    if (!read_words(proxy, &table, 1) || !read_words(table, functions, kFunctions)) continue;
    if (functions[kPlaceOfInit] != kineto.init || functions[kPlaceOfIsActive] != kineto.is_active) continue;
    using Ask = bool (*)(void*);
    if (!is_code(functions[kPlaceOfIsInitialized])) return OtherProfiler::kUnknown;
    if (!reinterpret_cast<Ask>(functions[kPlaceOfIsInitialized])(proxy)) return OtherProfiler::kNone;
    return reinterpret_cast<Ask>(kineto.is_active)(proxy) ? OtherProfiler::kRecords : OtherProfiler::kIdle;
  }
  // Before its first use the second word is no pointer yet. In another layout it may be any.
  constexpr size_t kPlaceOfProxy = 1;
  return words[kPlaceOfProxy] == nullptr ? OtherProfiler::kNone : OtherProfiler::kUnknown;
}

bool let_other_finalize() {
  const char* const tears_down = getenv("TEARDOWN_CUPTI");
  if (tears_down == nullptr || strcmp(tears_down, "1") != 0) return false;
  void* function = nullptr;
  const auto see = [](dl_phdr_info* object, size_t, void* data) {
    auto* const found = static_cast<void**>(data);
    if (*found == nullptr) *found = exported_by(*object, "cudaRuntimeGetVersion");
    return 0;
  };
  dl_iterate_phdr(see, &function);
  if (function == nullptr) return false;
  int version = 0;
  reinterpret_cast<int (*)(int*)>(function)(&version);
  return true;
}

bool others_hold_cupti(const Cupti& cupti) {
  if (!list_hooks(cupti)) return true;
  const SlotCount held = count_slots(g_hooks, g_hook_count, kOthers);
  return !held.looked || held.led != 0;
}

bool watch_other_profiler(const Cupti& cupti, void (*before)(const char* function), bool everywhere) {
  if (!list_hooks(cupti) || !kineto_is_linked()) return false;
  g_watching = true;
  g_rules = everywhere ? kEverywhere : kKineto;
  g_before.store(before, std::memory_order_release);
  const SlotCount led = lead_slots(g_hooks, g_hook_count, g_rules);
  if (led.looked && led.refused == 0) return true;
  stop_watching();
  return false;
}

uint64_t calls_of_others() {
  return g_calls.load(std::memory_order_relaxed);
}

void stop_watching() {
  if (!g_watching) return;
  g_watching = false;
  g_before.store(nullptr, std::memory_order_release);
  lead_back(g_hooks, g_hook_count, g_rules);
}

}  // namespace tacho::capture::cuda
