// Writes tacho's functions into the dispatch tables of runtimes (late.h).
#include "capture/source/opencl/late.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/room/loaded.h"
#include "capture/source/opencl/queues.h"
#include "capture/source/opencl/vendor.h"

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;

constexpr size_t kMostTables = 8;
struct HookedTable {
  cl_icd_dispatch* table;
  size_t slots;
  cl_icd_dispatch own;  // what was there
};
constinit HookedTable g_tables[kMostTables] = {};
constinit size_t g_table_count = 0;
constinit const cl_icd_dispatch* g_hooks_here = nullptr;
constinit size_t g_seen_tables = 0;  // tables that could not be hooked, already told

void* const* slots_of(const cl_icd_dispatch& table) {
  return reinterpret_cast<void* const*>(&table);
}

// How many slots a table has: the loader's interface has grown with each version of OpenCL.
size_t slots_of_version(const char* version) {
  unsigned major = 0, minor = 0;
  if (sscanf(version, "OpenCL %u.%u", &major, &minor) != 2) return 0;
  const unsigned number = major * 10 + minor;
  const size_t end = number >= 30   ? sizeof(D)
                     : number >= 22 ? offsetof(D, clCreateBufferWithProperties)
                     : number >= 21 ? offsetof(D, clSetProgramReleaseCallback)
                     : number >= 20 ? offsetof(D, clCloneKernel)
                     : number >= 12 ? offsetof(D, clCreateCommandQueueWithProperties)
                     : number >= 11 ? offsetof(D, clCreateSubDevices)
                                    : offsetof(D, clSetEventCallback);
  return end / sizeof(void*);
}

template <typename F>
struct BeginsWithObject;
template <typename R>
struct BeginsWithObject<R (*)()> : std::false_type {};
template <typename R, typename A, typename... B>
struct BeginsWithObject<R (*)(A, B...)> : std::bool_constant<kIsObject<A>> {};

// True of functions whose first parameter is an object, which tells the runtime that is meant.
bool names_its_runtime(size_t slot) {
  switch (slot + 1) {
#define TACHO_CL_FUNCTION(number, name, count, parameters) \
  case number:                                             \
    return BeginsWithObject<FunctionOf<&D::name>>::value;
#include "event/functions/functions_opencl.def"
    default:
      return false;
  }
}

// Writes slots of a table; `value(i)` is the new content of slot i, or what is there. False if its pages do not let it.
template <typename Value>
bool write_slots(cl_icd_dispatch* table, size_t count, Value value) {
  const int rights = rights_of(table);
  if (rights < 0) return false;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(table) & ~(page - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(table) + sizeof *table + page - 1) & ~(page - 1);
  const bool closed = (rights & PROT_WRITE) == 0;
  if (closed && mprotect(reinterpret_cast<void*>(begin), end - begin, rights | PROT_WRITE) != 0) return false;
  auto** const slots = reinterpret_cast<void**>(table);
  for (size_t i = 0; i < count; ++i) {
    void* const wanted = value(i);
    if (slots[i] != wanted) __atomic_store_n(&slots[i], wanted, __ATOMIC_RELEASE);
  }
  if (closed) mprotect(reinterpret_cast<void*>(begin), end - begin, rights);
  return true;
}

void tell_not_hooked(const char* why) {
  char line[256];
  snprintf(line, sizeof line, "an OpenCL runtime of the program is not recorded: %s", why);
  tape::note(event::NoteSeverity::kWarning, line);
}

// The platform's runtime, hooked now or before.
void hook(cl_platform_id platform) {
  auto* const table = *reinterpret_cast<cl_icd_dispatch* const*>(platform);
  if (table == nullptr || rights_of(table) < 0) return;
  for (size_t i = 0; i < g_table_count; ++i)
    if (g_tables[i].table == table) return;
  if (g_table_count == kMostTables) return tell_not_hooked("the program has more than eight of them");
  char version[128] = {};
  if (table->clGetPlatformInfo == nullptr || !is_code(reinterpret_cast<void*>(table->clGetPlatformInfo)) ||
      table->clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version - 1, version, nullptr) != CL_SUCCESS)
    return;
  HookedTable& hooked = g_tables[g_table_count];
  hooked = {table, slots_of_version(version), {}};
  memcpy(static_cast<void*>(&hooked.own), table, hooked.slots * sizeof(void*));
  for (size_t i = 0; i < hooked.slots; ++i)
    if (void* const function = slots_of(hooked.own)[i]; function != nullptr && !is_code(function))
      return tell_not_hooked("its table of functions is not as the loader's interface says");
  const bool first = g_hooks_here == nullptr;
  if (first) g_hooks_here = hooks_for(hooked.own);
  if (g_hooks_here == nullptr) return;
  ClVendor* const vendor = vendor_of(platform);
  if (vendor == nullptr) return tell_not_hooked("the program has too many of them");
  if (!first) {
    // g_next is the first runtime's: calls on objects of this one take its own functions.
    // By numbers of functions, which are their slots' plus one.
    for (size_t i = 0; i < hooked.slots && i + 1 < sizeof vendor->own / sizeof *vendor->own; ++i) {
      vendor->loops[i + 1] = true;
      if (vendor->own[i + 1] == nullptr) vendor->own[i + 1] = slots_of(hooked.own)[i];
    }
    g_detours.store(true, std::memory_order_release);
  }
  const auto value = [&](size_t i) -> void* {
    void* const own = slots_of(hooked.own)[i];
    return own == nullptr || (!first && !names_its_runtime(i)) ? own : slots_of(*g_hooks_here)[i];
  };
  if (!write_slots(table, hooked.slots, value)) return tell_not_hooked("its table of functions cannot be written");
  ++g_table_count;
}

// Functions of loaded libraries that give the platforms of one runtime, without the loader.
using GetPlatforms = cl_int(CL_API_CALL*)(cl_uint, cl_platform_id*, cl_uint*);
using GetFunction = void*(CL_API_CALL*)(const char*);
struct Runtimes {
  GetPlatforms platforms[kMostTables];
  GetFunction functions[kMostTables];
  size_t count;
  bool loader;
  const void* self;
};
int see(dl_phdr_info* info, size_t, void* data) {
  auto& found = *static_cast<Runtimes*>(data);
  if (exported_by(*info, "tacho_attach_enter") != nullptr) return 0;
  void* const platforms = exported_by(*info, "clIcdGetPlatformIDsKHR");
  void* const functions = exported_by(*info, "clGetExtensionFunctionAddress");
  // The loader has no functions of a runtime's own.
  const char* const name = info->dlpi_name != nullptr ? info->dlpi_name : "";
  const char* const slash = strrchr(name, '/');
  if (strncmp(slash != nullptr ? slash + 1 : name, "libOpenCL.so", 12) == 0) {
    found.loader = true;
    return 0;
  }
  if ((platforms == nullptr && functions == nullptr) || found.count == kMostTables) return 0;
  found.platforms[found.count] = reinterpret_cast<GetPlatforms>(platforms);
  found.functions[found.count++] = reinterpret_cast<GetFunction>(functions);
  return 0;
}

}  // namespace

void start_late() {
  Runtimes found{};
  dl_iterate_phdr(see, &found);
  for (size_t i = 0; i < found.count; ++i) {
    GetPlatforms get = found.platforms[i];
    if (get == nullptr) get = reinterpret_cast<GetPlatforms>(found.functions[i]("clIcdGetPlatformIDsKHR"));
    cl_platform_id platforms[8] = {};
    cl_uint count = 0;
    if (get == nullptr || get(8, platforms, &count) != CL_SUCCESS) continue;
    for (cl_uint at = 0; at < count && at < 8; ++at) hook(platforms[at]);
  }
  if (found.count != 0 && !found.loader && g_seen_tables++ == 0)
    tell_not_hooked("the program calls it without the ICD loader (libOpenCL.so), whose tables tacho uses; start it "
                    "with tacho trace");
}

namespace {
void take_hooks_out() {
  g_seen_tables = 0;
  for (size_t i = 0; i < g_table_count; ++i) {
    const HookedTable& hooked = g_tables[i];
    const auto* const now = slots_of(*hooked.table);
    if (rights_of(hooked.table) < 0) continue;  // its library is gone
    write_slots(hooked.table, hooked.slots, [&](size_t slot) {
      // What another has put there meanwhile stays.
      return now[slot] == slots_of(*g_hooks_here)[slot] ? slots_of(hooked.own)[slot] : now[slot];
    });
  }
}
}  // namespace

void leave_late() {
  take_hooks_out();
  if (g_hooks_here != nullptr) leave_queues();
  g_table_count = 0;
  g_hooks_here = nullptr;
}

void leave_in_child() {
  take_hooks_out();
  g_table_count = 0;
  g_hooks_here = nullptr;
}

}  // namespace tacho::capture::opencl
