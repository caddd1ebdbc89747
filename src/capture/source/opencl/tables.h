// The dispatch tables of OpenCL runtimes: every object of a runtime begins with a pointer to its table of functions,
// through which the ICD loader calls it. A running program's calls are seen by writing into these tables.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl_icd.h>
#include <stddef.h>

namespace tacho::capture::opencl {

constexpr size_t kMostTables = 8;

/// One runtime's table, and what was in it.
struct HookedTable {
  cl_icd_dispatch* table;
  size_t slots;
  cl_icd_dispatch own;
};

inline void* const* slots_of(const cl_icd_dispatch& table) {
  return reinterpret_cast<void* const*>(&table);
}

/// Reads the platform's table. nullptr, or why it cannot be hooked; an empty sentence where nothing needs to be said.
const char* read_table(cl_platform_id platform, HookedTable& into);

/// Opens the pages of `table`, puts `value(i, now)` into slot i where it differs from what is there now, and closes
/// them. False if the pages do not let it, or are gone.
bool write_table(cl_icd_dispatch* table, size_t count, void* (*value)(size_t slot, void* now, void* data), void* data);
template <typename Value>
bool write_slots(cl_icd_dispatch* table, size_t count, Value value) {
  return write_table(
      table, count, [](size_t slot, void* now, void* data) { return (*static_cast<Value*>(data))(slot, now); }, &value);
}

/// Calls body(platform) for the platforms of all runtimes that are loaded. False if there are runtimes without the ICD
/// loader, whose tables nobody uses.
bool over_platforms(void (*body)(cl_platform_id platform, void* data), void* data);

}  // namespace tacho::capture::opencl
