// Finding, reading and writing runtimes' tables (tables.h).
#include "capture/source/opencl/tables.h"

#include <CL/cl_ext.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/room/loaded.h"
#include "tape/attach_block.h"

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;

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

// Functions of loaded libraries that give the platforms of one runtime, without the loader.
using GetPlatforms = cl_int(CL_API_CALL*)(cl_uint, cl_platform_id*, cl_uint*);
using GetFunction = void*(CL_API_CALL*)(const char*);
struct Runtimes {
  GetPlatforms platforms[kMostTables];
  GetFunction functions[kMostTables];
  size_t count;
  bool loader;
};
int see(dl_phdr_info* info, size_t, void* data) {
  auto& found = *static_cast<Runtimes*>(data);
  if (exported_by(*info, tape::kAttachEntry) != nullptr) return 0;
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

const char* read_table(cl_platform_id platform, HookedTable& into) {
  auto* const table = *reinterpret_cast<cl_icd_dispatch* const*>(platform);
  if (table == nullptr || rights_of(table) < 0) return "";
  char version[128] = {};
  if (table->clGetPlatformInfo == nullptr || !is_code(reinterpret_cast<void*>(table->clGetPlatformInfo)) ||
      table->clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version - 1, version, nullptr) != CL_SUCCESS)
    return "";
  into = {table, slots_of_version(version), {}};
  memcpy(static_cast<void*>(&into.own), table, into.slots * sizeof(void*));
  for (size_t i = 0; i < into.slots; ++i)
    if (void* const function = slots_of(into.own)[i]; function != nullptr && !is_code(function))
      return "its table of functions is not as the loader's interface says";
  return nullptr;
}

bool write_table(cl_icd_dispatch* table, size_t count, void* (*value)(size_t slot, void* now, void* data), void* data) {
  const int rights = rights_of(table);
  if (rights < 0) return false;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(table) & ~(page - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(table) + sizeof *table + page - 1) & ~(page - 1);
  const bool closed = (rights & PROT_WRITE) == 0;
  if (closed && mprotect(reinterpret_cast<void*>(begin), end - begin, rights | PROT_WRITE) != 0) return false;
  auto** const slots = reinterpret_cast<void**>(table);
  for (size_t i = 0; i < count; ++i) {
    void* const wanted = value(i, slots[i], data);
    if (slots[i] != wanted) __atomic_store_n(&slots[i], wanted, __ATOMIC_RELEASE);
  }
  if (closed) mprotect(reinterpret_cast<void*>(begin), end - begin, rights);
  return true;
}

bool over_platforms(void (*body)(cl_platform_id platform, void* data), void* data) {
  Runtimes found{};
  dl_iterate_phdr(see, &found);
  for (size_t i = 0; i < found.count; ++i) {
    GetPlatforms get = found.platforms[i];
    if (get == nullptr) get = reinterpret_cast<GetPlatforms>(found.functions[i]("clIcdGetPlatformIDsKHR"));
    cl_platform_id platforms[8] = {};
    cl_uint count = 0;
    if (get == nullptr || get(8, platforms, &count) != CL_SUCCESS) continue;
    for (cl_uint at = 0; at < count && at < 8; ++at) body(platforms[at], data);
  }
  return found.count == 0 || found.loader;
}

}  // namespace tacho::capture::opencl
