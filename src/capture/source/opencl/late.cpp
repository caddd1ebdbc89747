// Writes tacho's functions into the dispatch tables of runtimes (late.h).
#include "capture/source/opencl/late.h"

#include <stdio.h>

#include "capture/room/loaded.h"
#include "capture/source/opencl/queues.h"
#include "capture/source/opencl/tables.h"
#include "capture/source/opencl/vendor.h"

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;

constinit HookedTable g_tables[kMostTables] = {};
constinit size_t g_table_count = 0;
constinit const cl_icd_dispatch* g_hooks_here = nullptr;
constinit size_t g_seen_tables = 0;  // tables that could not be hooked, already told

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
  HookedTable& hooked = g_tables[g_table_count];
  if (const char* const why = read_table(platform, hooked)) {
    if (*why != '\0') tell_not_hooked(why);
    return;
  }
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
  const auto value = [&](size_t i, void*) -> void* {
    void* const own = slots_of(hooked.own)[i];
    return own == nullptr || (!first && !names_its_runtime(i)) ? own : slots_of(*g_hooks_here)[i];
  };
  if (!write_slots(table, hooked.slots, value)) return tell_not_hooked("its table of functions cannot be written");
  ++g_table_count;
}

}  // namespace

void start_late() {
  const bool loader = over_platforms([](cl_platform_id platform, void*) { hook(platform); }, nullptr);
  if (!loader && g_seen_tables++ == 0)
    tell_not_hooked("the program calls it without the ICD loader (libOpenCL.so), whose tables tacho uses; start it "
                    "with tacho trace");
}

namespace {
void take_hooks_out() {
  g_seen_tables = 0;
  for (size_t i = 0; i < g_table_count; ++i) {
    const HookedTable& hooked = g_tables[i];
    write_slots(hooked.table, hooked.slots, [&](size_t slot, void* now) {
      // What another has put there meanwhile stays.
      return now == slots_of(*g_hooks_here)[slot] ? slots_of(hooked.own)[slot] : now;
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
