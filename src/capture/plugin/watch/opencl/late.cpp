// Hooks in the dispatch tables of OpenCL's runtimes (opencl.h).
#include <link.h>

#include "capture/plugin/watch/opencl/opencl.h"
#include "capture/plugin/watch/sums.h"
#include "capture/room/loaded.h"
#include "tape/attach_block.h"

namespace tacho::capture::watch {
namespace {

using D = cl_icd_dispatch;
using opencl::HookedTable, opencl::kMostTables, opencl::slots_of;

// Tables that have hooks, and, behind them, those of earlier stays: another tacho may have kept our hooks in one.
constinit HookedTable g_tables[kMostTables] = {};
constinit size_t g_table_count = 0;  // that have hooks
constinit const D* g_hooks = nullptr;
constinit D g_first_below = {};  // what was below the hooks when they were made

// Of a function whose first parameter is an object of the runtime that is meant.
const D& functions_of(const void* object) {
  if (object != nullptr)
    for (const HookedTable& each : g_tables)
      if (*static_cast<const D* const*>(object) == each.table) return each.own;
  return g_tables[0].own;
}
template <auto Member, typename F>
struct Route;
template <auto Member, typename R, typename O, typename... A>
struct Route<Member, R (*)(O, A...)> {
  static R CL_API_CALL call(O object, A... parameters) { return (functions_of(object).*Member)(object, parameters...); }
};
cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event* events) {
  const D& functions = functions_of(count != 0 && events != nullptr ? events[0] : nullptr);
  return functions.clWaitForEvents(count, events);
}

// With several runtimes, what the hooks call is that of the object's.
void tell_runtimes_apart() {
  D& below = opencl_below();
#define TACHO_ROUTE(name) \
  if (below.name != nullptr) below.name = Route<&D::name, decltype(D::name)>::call
  TACHO_ROUTE(clEnqueueNDRangeKernel);
  TACHO_ROUTE(clEnqueueTask);
  TACHO_ROUTE(clEnqueueNativeKernel);
  TACHO_ROUTE(clEnqueueReadBuffer);
  TACHO_ROUTE(clEnqueueWriteBuffer);
  TACHO_ROUTE(clEnqueueReadBufferRect);
  TACHO_ROUTE(clEnqueueWriteBufferRect);
  TACHO_ROUTE(clEnqueueCopyBuffer);
  TACHO_ROUTE(clEnqueueCopyBufferRect);
  TACHO_ROUTE(clEnqueueReadImage);
  TACHO_ROUTE(clEnqueueWriteImage);
  TACHO_ROUTE(clEnqueueCopyImage);
  TACHO_ROUTE(clEnqueueCopyImageToBuffer);
  TACHO_ROUTE(clEnqueueCopyBufferToImage);
  TACHO_ROUTE(clEnqueueFillBuffer);
  TACHO_ROUTE(clEnqueueFillImage);
  TACHO_ROUTE(clEnqueueMigrateMemObjects);
  TACHO_ROUTE(clEnqueueMapBuffer);
  TACHO_ROUTE(clEnqueueMapImage);
  TACHO_ROUTE(clEnqueueUnmapMemObject);
  TACHO_ROUTE(clEnqueueSVMMemcpy);
  TACHO_ROUTE(clEnqueueSVMMemFill);
  TACHO_ROUTE(clFinish);
  TACHO_ROUTE(clCreateCommandQueue);
  TACHO_ROUTE(clCreateCommandQueueWithProperties);
  TACHO_ROUTE(clReleaseCommandQueue);
  TACHO_ROUTE(clReleaseContext);
  TACHO_ROUTE(clGetCommandQueueInfo);
  TACHO_ROUTE(clGetEventProfilingInfo);
  TACHO_ROUTE(clGetEventInfo);
  TACHO_ROUTE(clRetainEvent);
  TACHO_ROUTE(clReleaseEvent);
  TACHO_ROUTE(clGetContextInfo);
  TACHO_ROUTE(clGetKernelInfo);
  TACHO_ROUTE(clGetImageInfo);
  TACHO_ROUTE(clGetMemObjectInfo);
  TACHO_ROUTE(clCreateKernel);
  TACHO_ROUTE(clCreateKernelsInProgram);
  TACHO_ROUTE(clCloneKernel);
  TACHO_ROUTE(clCreateBuffer);
  TACHO_ROUTE(clCreateBufferWithProperties);
  TACHO_ROUTE(clCreateImage);
  TACHO_ROUTE(clCreateImageWithProperties);
  TACHO_ROUTE(clCreateImage2D);
  TACHO_ROUTE(clCreateImage3D);
  TACHO_ROUTE(clSVMAlloc);
  TACHO_ROUTE(clGetExtensionFunctionAddressForPlatform);
#undef TACHO_ROUTE
  if (below.clWaitForEvents != nullptr) below.clWaitForEvents = wait_for_events;
}

// Whether the slot's function has a hook. Calls of those have an object of a runtime, so that they come by its table.
bool is_hooked(size_t slot) {
  constexpr size_t kByName = offsetof(D, clGetExtensionFunctionAddress) / sizeof(void*);
  return slot != kByName && slots_of(*g_hooks)[slot] != slots_of(g_first_below)[slot];
}

// Whether another tacho records the program: a function of libtacho.so is in the table.
bool is_recorded(const HookedTable& table) {
  struct Search {
    const void* function;
    bool found;
  } search{reinterpret_cast<const void*>(table.own.clEnqueueNDRangeKernel), false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        if (exported_by(*info, tape::kAttachEntry) == nullptr) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          wanted.found = wanted.found || (part.p_type == PT_LOAD && reinterpret_cast<uintptr_t>(wanted.function) -
                                                                            (info->dlpi_addr + part.p_vaddr) <
                                                                        part.p_memsz);
        }
        return 1;
      },
      &search);
  return search.found;
}

// What lies below our hooks that are in the table still, from an earlier stay.
void replace_hooks(HookedTable& table, const D& below) {
  if (g_hooks == nullptr) return;
  auto** const slots = reinterpret_cast<void**>(&table.own);
  for (size_t i = 0; i < table.slots; ++i)
    if (is_hooked(i) && slots[i] == slots_of(*g_hooks)[i]) slots[i] = slots_of(below)[i];
}

const char* hook(cl_platform_id platform) {
  const auto* const table = *reinterpret_cast<const D* const*>(platform);
  for (size_t i = 0; i < g_table_count; ++i)
    if (g_tables[i].table == table) return nullptr;
  if (g_table_count == kMostTables) return "the program has more than eight OpenCL runtimes";
  HookedTable found{};
  if (const char* const why = opencl::read_table(platform, found)) return *why != '\0' ? why : nullptr;
  if (is_recorded(found)) return "tacho attach records it; watch it when that has ended";
  HookedTable& hooked = g_tables[g_table_count];
  for (HookedTable& earlier : g_tables) {
    if (earlier.table != table) continue;
    replace_hooks(found, earlier.own);
    earlier = hooked;
    break;
  }
  hooked = found;
  if (g_table_count == 0) {
    g_hooks = opencl_hooks_above(hooked.own);
    if (g_hooks == nullptr) return nullptr;  // they are there as a layer
    g_first_below = hooked.own;
  }
  ++g_table_count;
  if (g_table_count == 2) tell_runtimes_apart();
  const auto value = [&](size_t slot, void* now) {
    return now == nullptr || !is_hooked(slot) ? now : slots_of(*g_hooks)[slot];
  };
  if (opencl::write_slots(hooked.table, hooked.slots, value)) return nullptr;
  --g_table_count;
  return "an OpenCL runtime's table of functions cannot be written";
}

}  // namespace

const char* enter_opencl() {
  const char* why = nullptr;
  opencl::over_platforms(
      [](cl_platform_id platform, void* data) {
        const char* const refused = hook(platform);
        if (refused != nullptr) *static_cast<const char**>(data) = refused;
      },
      &why);
  return why;
}

void leave_opencl() {
  for (size_t i = 0; i < g_table_count; ++i) {
    const HookedTable& hooked = g_tables[i];
    opencl::write_slots(hooked.table, hooked.slots, [&](size_t slot, void* now) {
      // What another has put there meanwhile stays.
      return is_hooked(slot) && now == slots_of(*g_hooks)[slot] ? slots_of(hooked.own)[slot] : now;
    });
  }
  // Calls that are on their way still go by these tables' functions.
  g_table_count = 0;
}

}  // namespace tacho::capture::watch
