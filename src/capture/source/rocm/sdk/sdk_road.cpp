// Which road a process takes (sdk.h). HIP and HSA are built with AMD's rocprofiler-register: each calls
// rocprofiler_register_library_api_table(), which is interposed here. That is the moment to look for rocprofiler-sdk
// beside the runtime that calls, before anything is loaded.
//
//   called by            found          then
//   HIP, HSA, ...        the SDK        it is loaded, and registration goes on: it finds rocprofiler_configure (sdk_session.cpp).
//                                       The HSA runtime then loads no HSA_TOOLS_LIB.
//                        no SDK         registration is told that there are no tools: the HSA runtime loads HSA_TOOLS_LIB,
//                                       which is libtacho.so (session.cpp). Were it to go on, it would end the program:
// it aborts
//                                       where it finds a tool and no SDK.
//   nobody               -              a runtime built without registration, or one that loads HSA_TOOLS_LIB before it
//                                       registers: HSA_TOOLS_LIB, and registration that comes later is told that there
// are no tools
//
// A forked child of a process on the SDK's road takes the other one (sdk_session.cpp).
//
// Why two roads? On the bed a launch takes 4.7 us on HSA's and 22.8 us on the SDK's (bench/rocm.py). HSA's goes when
// the SDK's takes less than 1.5 times as long, or when every ROCm that AMD supports has no HSA_TOOLS_LIB.
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "capture/capture.h"
#include "capture/source/rocm/counting.h"
#include "capture/source/rocm/replay/replay_memory.h"
#include "capture/source/rocm/rocm.h"
#include "capture/source/rocm/sdk/sdk.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

constinit std::atomic<Road> g_road{Road::kUndecided};
constinit std::atomic<uint32_t> g_road_lock{0};
constinit bool g_traced = false, g_counted = false;

constexpr const char* kNames[] = {"librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0"};

const char* base_name(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Finding the library

struct Loaded {
  char first[PATH_MAX];
  uint32_t count;
};
int see_loaded(dl_phdr_info* info, size_t, void* data) {
  auto& loaded = *static_cast<Loaded*>(data);
  if (info->dlpi_name == nullptr || strncmp(base_name(info->dlpi_name), "librocprofiler-sdk.so", 21) != 0) return 0;
  if (loaded.count++ == 0) snprintf(loaded.first, sizeof loaded.first, "%s", info->dlpi_name);
  return 0;
}

// HIP 7 and rocprofiler-sdk 1.x belong together, HIP 6 and 0.x. 0 = unknown.
int hip_major(const char* library) {
  const char* const name = base_name(library);
  const char* const number = strstr(name, ".so.");
  return strncmp(name, "libamdhip64", 11) == 0 && number != nullptr ? atoi(number + 4) : 0;
}

struct Search {
  int major;  // of HIP, 0 = unknown
  char path[PATH_MAX];
};

bool look_in(Search& search, const char* folder, size_t length) {
  if (length == 0 || length > sizeof search.path - 32) return false;
  const bool old = search.major != 0 && search.major < 7;
  for (const bool second : {false, true}) {
    if (second && search.major != 0) break;
    memcpy(search.path, folder, length);
    snprintf(search.path + length, sizeof search.path - length, "/%s", kNames[old != second]);
    if (access(search.path, R_OK) == 0) return true;
  }
  return false;
}
bool look_beside(Search& search, const char* library) {
  const char* const slash = strrchr(library, '/');
  return slash != nullptr && look_in(search, library, static_cast<size_t>(slash - library));
}

// Loads the library for the runtime that registers: one that is loaded already, the one beside the runtime, the one of
// ROCM_PATH or /opt/rocm, or the one that the loader finds. Returns its handle, in the global scope.
void* load_sdk(const char* runtime, const char* registration) {
  Loaded loaded{};
  dl_iterate_phdr(see_loaded, &loaded);
  if (loaded.count > 1)
    tape::note(event::NoteSeverity::kWarning,
               "two rocprofiler-sdk libraries are loaded in this process: tacho uses the one that was loaded first");
  constexpr int kHow = RTLD_LAZY | RTLD_GLOBAL;
  if (loaded.count != 0) return dlopen(loaded.first, kHow);
  Search search{hip_major(runtime), {}};
  const char* const rocm = getenv("ROCM_PATH");
  char lib[PATH_MAX] = "/opt/rocm/lib";
  bool found = look_beside(search, runtime) || (registration != nullptr && look_beside(search, registration));
  if (!found && rocm != nullptr) {
    const int length = snprintf(lib, sizeof lib, "%s/lib", rocm);
    found = length > 0 && static_cast<size_t>(length) < sizeof lib && look_in(search, lib, static_cast<size_t>(length));
  }
  if (!found) found = look_in(search, "/opt/rocm/lib", strlen("/opt/rocm/lib"));
  const bool old = search.major != 0 && search.major < 7;
  void* handle = dlopen(found ? search.path : kNames[old], kHow);
  if (handle == nullptr && !found && search.major == 0) handle = dlopen(kNames[!old], kHow);
  if (handle == nullptr && found) {
    char line[PATH_MAX + 1024];
    const char* const why = dlerror();
    snprintf(line, sizeof line,
             "rocprofiler-sdk cannot be loaded (%s): tacho traces through HSA's interface for tools instead",
             why != nullptr ? why : search.path);
    tape::note(event::NoteSeverity::kWarning, line);
  }
  return handle;
}

// Registration

sdk::Register* next_register(const void* caller) {
  constexpr const char* kName = "rocprofiler_register_library_api_table";
  void* found = nullptr;
  Dl_info at{};
  // The caller's own: a process may have several runtimes, each with its registration.
  if (dladdr(caller, &at) != 0 && at.dli_fname != nullptr)
    if (void* const handle = dlopen(at.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      found = dlsym(handle, kName);
      dlclose(handle);
    }
  if (found == nullptr) found = dlsym(RTLD_NEXT, kName);
  Dl_info self{}, other{};
  if (found != nullptr && dladdr(reinterpret_cast<void*>(&next_register), &self) != 0 && dladdr(found, &other) != 0 &&
      self.dli_fbase == other.dli_fbase)
    found = dlsym(RTLD_NEXT, kName);
  return reinterpret_cast<sdk::Register*>(found);
}

bool is_set(const char* name) {
  const char* const value = getenv(name);
  return value != nullptr && value[0] != '\0';
}
// Another tool waits for registration, which then is none of tacho's business.
bool others_wait() {
  const char* const force = getenv("ROCPROFILER_REGISTER_FORCE_LOAD");
  const bool forced = force != nullptr && (strcmp(force, "1") == 0 || strcasecmp(force, "on") == 0 ||
                                           strcasecmp(force, "true") == 0 || strcasecmp(force, "yes") == 0);
  return forced || is_set("ROCP_TOOL_LIBRARIES") || is_set("ROCPROFILER_REGISTER_LIBRARY") ||
         dlsym(RTLD_NEXT, "rocprofiler_configure") != nullptr;
}

// Once for a process, with the first library that registers.
Road choose_road(const char* runtime, const char* registration) {
  const Guard lock(g_road_lock);
  const Road taken = g_road.load(std::memory_order_acquire);
  if (taken != Road::kUndecided) return taken;
  Road chosen = Road::kHsa;
  g_traced = capture::start() && tape::configuration().counter_folder.empty();
  g_counted = counting::wanted();
  if (g_counted) {
    if (is_set("ROCPROFILER_REGISTER_LIBRARY") || load_sdk(runtime, registration) != nullptr) chosen = Road::kSdk;
  } else if (g_traced && tape::configuration().amd_source != event::AmdSource::kHsa && !only_opencl()) {
    // Where somebody named a library to registration, that one is loaded.
    if (is_set("ROCPROFILER_REGISTER_LIBRARY") || load_sdk(runtime, registration) != nullptr)
      chosen = Road::kSdk;
    else if (tape::configuration().amd_source == event::AmdSource::kSdk)
      tape::note(event::NoteSeverity::kWarning,
                 "there is no librocprofiler-sdk.so beside the program's ROCm, in ROCM_PATH or in /opt/rocm: tacho "
                 "traces through HSA's interface for tools instead; install the "
                 "package rocprofiler-sdk for --amd-source sdk");
  }
  g_road.store(chosen, std::memory_order_release);
  return chosen;
}

}  // namespace

Road road() {
  return g_road.load(std::memory_order_acquire);
}

bool take_sdk_road(const char* library) {
  const Guard lock(g_road_lock);
  const Road taken = g_road.load(std::memory_order_acquire);
  if (taken != Road::kUndecided) return taken == Road::kSdk;
  // A tool of the program's own started the library before HIP was loaded.
  static_cast<void>(library);
  g_traced = capture::start() && tape::configuration().counter_folder.empty();
  const bool take = g_traced && tape::configuration().amd_source != event::AmdSource::kHsa;
  if (take) g_road.store(Road::kSdk, std::memory_order_release);
  return take;
}

bool take_hsa_road() {
  const Guard lock(g_road_lock);
  const Road taken = g_road.load(std::memory_order_acquire);
  if (taken != Road::kUndecided) return taken == Road::kHsa;
  g_traced = true;
  g_road.store(Road::kHsa, std::memory_order_release);
  return true;
}

void leave_sdk_road(const char* why) {
  g_road.store(Road::kHsa, std::memory_order_release);
  if (why != nullptr) tape::note(event::NoteSeverity::kWarning, why);
}

}  // namespace tacho::capture::rocm

// For HIP, HSA, RCCL and the like (rocprofiler-register.h).
extern "C" __attribute__((visibility("default"))) int rocprofiler_register_library_api_table(
    const char* name, uint32_t (*import)(), uint32_t version, void** tables, uint64_t count, uint64_t* id) {
  using namespace tacho::capture::rocm;
  const void* const caller = __builtin_return_address(0);
  sdk::Register* const next = next_register(caller);
  if (next == nullptr) return sdk::kNoTools;
  Dl_info runtime{}, registration{};
  const bool known = dladdr(caller, &runtime) != 0 && runtime.dli_fname != nullptr;
  if (dladdr(reinterpret_cast<void*>(next), &registration) == 0) registration.dli_fname = nullptr;
  const Road chosen = choose_road(known ? runtime.dli_fname : "", registration.dli_fname);
  if (chosen != Road::kSdk && !others_wait()) return sdk::kNoTools;
  const bool of_hsa = name != nullptr && strcmp(name, "hsa") == 0;
  if (g_counted && of_hsa && tables != nullptr) replay::take_tables(static_cast<hsa::Tables*>(*tables));
  if (of_hsa && tables != nullptr) note_own_queues(static_cast<hsa::Tables*>(*tables));
  const int result = next(name, import, version, tables, count, id);
  if (result == sdk::kRegistered && (g_counted || sdk_active())) {
    watch_hip_end();
    if (of_hsa && tables != nullptr) {
      watch_queue_ends(static_cast<hsa::Tables*>(*tables));
      keep_cooperative_queues(static_cast<hsa::Tables*>(*tables), g_counted);
    }
  }
  if (g_counted) return result;  // counting.cpp
  if (chosen == Road::kSdk && (!sdk_active() || (of_hsa && result != sdk::kRegistered))) {
    if (road() == Road::kSdk)
      leave_sdk_road(
          "rocprofiler-sdk did not start tacho as its tool: tacho traces through HSA's interface for tools instead");
    if (!others_wait()) return sdk::kNoTools;
  }
  // A runtime that loads tools before it registers has loaded tacho by now.
  if (of_hsa && result == sdk::kRegistered && road() == Road::kHsa && g_traced && !active())
    tacho::tape::note(
        tacho::event::NoteSeverity::kWarning,
        "another tool uses rocprofiler-sdk in this program, and the HSA runtime then loads no other tools: AMD's "
        "kernels and copies are not in this trace; leave the tool out, or trace with --amd-source sdk");
  return result;
}
