// NVTX and ROCTx late (late.h). NVTX 3 has tables in the images of the program (nvtx_late.h). NVTX 2 and ROCTx are
// libraries: words of the program that hold the addresses of their functions lead to tacho's while it stays
// (capture/room/slots.h). ROCTx's functions are called all the same: what they return is theirs, since a program
// compares levels and numbers from before and after.
#include "capture/source/marker/late.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

#include <atomic>
#include <utility>

#include "capture/room/handle_map.h"
#include "capture/room/loaded.h"
#include "capture/room/lock.h"
#include "capture/room/slots.h"
#include "capture/source/marker/marker.h"
#include "capture/source/marker/nvtx.h"
#include "capture/source/marker/nvtx_late.h"
#include "capture/source/marker/roctx.h"
#include "tape/attach_block.h"
#include "tape/writer.h"

namespace tacho::capture::marker {
namespace {

// ROCTx, for each of the libraries that have it: libroctx64.so and librocprofiler-sdk-roctx.so

struct Roctx {
  void (*mark)(const char*);
  int (*push)(const char*);
  int (*pop)();
  uint64_t (*start)(const char*);
  void (*stop)(uint64_t);
  int (*pause)(uint64_t);
  int (*resume)(uint64_t);
  int (*name_thread)(const char*);
  int (*name_agent)(const char*, const void*);
  int (*name_device)(const char*, int);
  int (*name_stream)(const char*, const void*);
};
constexpr size_t kLibraries = 4;
constinit Roctx g_roctx[kLibraries] = {};
constinit uintptr_t g_library[kLibraries] = {};  // where they are loaded
constinit size_t g_libraries = 0;

// The library's number of a range -> tacho's
constinit HandleMap g_ranges[kLibraries];
constinit LockWord g_ranges_lock{0};

const void* as_handle(uint64_t range) {
  return reinterpret_cast<const void*>(range + 1);  // 0 is a number, too
}

// A library may lack the later ones of the functions; those are not led to tacho then.
template <size_t L>
struct Late {
  static void mark(const char* message) {
    roctx::mark(message);
    g_roctx[L].mark(message);
  }
  static int push(const char* message) {
    roctx::push(message);
    return g_roctx[L].push(message);
  }
  static int pop() {
    roctx::pop();
    return g_roctx[L].pop();
  }
  static uint64_t start(const char* message) {
    const uint64_t own = g_roctx[L].start(message), range = roctx::start(message);
    if (range != 0) {
      const Guard lock(g_ranges_lock);
      g_ranges[L].set(as_handle(own), reinterpret_cast<void*>(range));
    }
    return own;
  }
  static void stop(uint64_t own) {
    void* range;
    {
      const Guard lock(g_ranges_lock);
      range = g_ranges[L].erase(as_handle(own));
    }
    if (range != nullptr) roctx::stop(reinterpret_cast<uint64_t>(range));
    g_roctx[L].stop(own);
  }
  static int pause(uint64_t thread) {
    roctx::pause();
    return g_roctx[L].pause(thread);
  }
  static int resume(uint64_t thread) {
    roctx::resume();
    return g_roctx[L].resume(thread);
  }
  static int name_thread(const char* name) {
    roctx::name_thread(name);
    return g_roctx[L].name_thread(name);
  }
  static int name_agent(const char* name, const void* agent) {
    roctx::name_agent(name, agent);
    return g_roctx[L].name_agent(name, agent);
  }
  static int name_device(const char* name, int device) {
    roctx::name_device(name, device);
    return g_roctx[L].name_device(name, device);
  }
  static int name_stream(const char* name, const void* stream) {
    roctx::name_stream(name, stream);
    return g_roctx[L].name_stream(name, stream);
  }
};

// Words that lead to tacho

constexpr size_t kMostHooks = kLibraries * (11 + nvtx::kHooks);
static_assert(kMostHooks <= kMostSlotHooks);
constinit SlotHook g_hooks[kMostHooks] = {};
constinit size_t g_hook_count = 0;

void add_hook(void* found, void* hook, const char* symbol) {
  if (found == nullptr || g_hook_count == kMostHooks) return;
  // Of two libraries that have it others are linked to the first.
  bool first = true;
  for (size_t i = 0; i < g_hook_count; ++i)
    if (g_hooks[i].symbol != nullptr && strcmp(g_hooks[i].symbol, symbol) == 0) first = false;
  g_hooks[g_hook_count++] = {found, hook, first ? symbol : nullptr};
}

template <typename F>
void add_roctx(const dl_phdr_info& object, const char* symbol, F*& real, F* hook) {
  void* const found = exported_by(object, symbol);
  real = reinterpret_cast<F*>(found);
  add_hook(found, reinterpret_cast<void*>(hook), symbol);
}
template <size_t L>
void add_library(const dl_phdr_info& object) {
  Roctx& real = g_roctx[L];
  add_roctx(object, "roctxMarkA", real.mark, Late<L>::mark);
  add_roctx(object, "roctxRangePushA", real.push, Late<L>::push);
  add_roctx(object, "roctxRangePop", real.pop, Late<L>::pop);
  add_roctx(object, "roctxRangeStartA", real.start, Late<L>::start);
  add_roctx(object, "roctxRangeStop", real.stop, Late<L>::stop);
  add_roctx(object, "roctxProfilerPause", real.pause, Late<L>::pause);
  add_roctx(object, "roctxProfilerResume", real.resume, Late<L>::resume);
  add_roctx(object, "roctxNameOsThread", real.name_thread, Late<L>::name_thread);
  add_roctx(object, "roctxNameHsaAgent", real.name_agent, Late<L>::name_agent);
  add_roctx(object, "roctxNameHipDevice", real.name_device, Late<L>::name_device);
  add_roctx(object, "roctxNameHipStream", real.name_stream, Late<L>::name_stream);
}
template <size_t... L>
void add_library_as(size_t number, const dl_phdr_info& object, std::index_sequence<L...>) {
  (void)((L == number && (add_library<L>(object), true)) || ...);
}

// NVTX 2 (libnvToolsExt.so)
void add_nvtx(const dl_phdr_info& object) {
  nvtx::Hook hooks[nvtx::kHooks];
  nvtx::list_hooks(hooks);
  for (const nvtx::Hook& hook : hooks)
    add_hook(exported_by(object, hook.name), reinterpret_cast<void*>(hook.function), hook.name);
}

bool has_markers(const dl_phdr_info& object) {
  return exported_by(object, "roctxRangePushA") != nullptr || exported_by(object, "nvtxRangePushA") != nullptr;
}

// A library keeps its number for ever: a thread of the program may be in one of its functions at any time.
int see_library(dl_phdr_info* object, size_t, void*) {
  if (exported_by(*object, tape::kAttachEntry) != nullptr) return 0;  // libtacho.so has these itself
  if (exported_by(*object, "roctxRangePushA") != nullptr) {
    size_t number = 0;
    while (number < g_libraries && g_library[number] != object->dlpi_addr) ++number;
    if (number < kLibraries) {
      g_library[number] = object->dlpi_addr;
      if (number == g_libraries) ++g_libraries;
      add_library_as(number, *object, std::make_index_sequence<kLibraries>());
    }
  } else if (exported_by(*object, "nvtxRangePushA") != nullptr && !nvtx::has_table(*object)) {
    add_nvtx(*object);
  }
  return 0;
}

bool keeps_its_words(const dl_phdr_info& object, const char*) {
  return has_markers(object);
}
constexpr SlotRules kRules = {keeps_its_words, nullptr};

constinit uint32_t g_started_in = 0;  // tape::late_session()
constinit bool g_told_of_others = false;

void begin() {
  g_started_in = tape::late_session();
  g_told_of_others = false;
  forget_triggers();
  nvtx::forget_names();
  const Guard lock(g_ranges_lock);
  for (HandleMap& ranges : g_ranges) ranges.clear();
}

void tell(const nvtx::LateTables& tables, const SlotCount& words) {
  if (!tables.looked || !words.looked)
    tape::note(event::NoteSeverity::kWarning,
               "markers through NVTX and ROCTx are not in this trace: the program's words that lead to them cannot be "
               "looked at (/proc is not there, or there is no memory)");
  if (tables.of_others != 0 && !g_told_of_others)
    tape::note(event::NoteSeverity::kWarning,
               "another tool takes markers that the program sets through NVTX: those are not in this trace");
  g_told_of_others = g_told_of_others || tables.of_others != 0;
}

}  // namespace

void start_late() {
  if (g_started_in != tape::late_session()) begin();
  const nvtx::LateTables tables = nvtx::lead_tables();
  g_hook_count = 0;  // where a library has gone, there may be another's functions
  dl_iterate_phdr(see_library, nullptr);
  SlotCount words;
  if (g_hook_count != 0) words = lead_slots(g_hooks, g_hook_count, kRules);
  tell(tables, words);
}

void leave_late() {
  nvtx::lead_tables_back();
  if (g_hook_count != 0) lead_back(g_hooks, g_hook_count, kRules);
  if (const uint64_t unknown = nvtx::take_unknown_texts(); unknown != 0) {
    char line[256];
    snprintf(line, sizeof line,
             "%llu markers came with a text that the program had registered with NVTX before tacho attached, which "
             "NVTX does not keep",
             static_cast<unsigned long long>(unknown));
    tape::note(event::NoteSeverity::kInfo, line);
  }
}

void leave_late_in_child() {}

}  // namespace tacho::capture::marker
