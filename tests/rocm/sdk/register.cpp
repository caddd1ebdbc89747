// Registers the tables of AMD's HIP and HSA with AMD's librocprofiler-register, as ROCm's own builds of them do;
// Debian's are built without. To be preloaded, and named in HSA_TOOLS_LIB. HSA hands its table to tools; HIP has none
// to hand out, so this library has one with the addresses of HIP's exported functions, and replaces each function by a
// jump through it (tables.py makes both from the header of the bed's HIP).
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

struct HipTable {
  void** entries;            // the first is the table's size in bytes
  const char* const* names;  // of the entries; nullptr at the first
  size_t count;
};
extern "C" {
extern const HipTable tacho_hip_runtime, tacho_hip_compiler;
extern const uint32_t tacho_hip_version;  // 10000 major + 100 minor + patch
}

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

TACHO_EXPORT uint32_t rocprofiler_register_import_hip() {
  return tacho_hip_version;
}
TACHO_EXPORT uint32_t rocprofiler_register_import_hip_compiler() {
  return tacho_hip_version;
}
TACHO_EXPORT uint32_t rocprofiler_register_import_hsa() {
  return 11800;
}

namespace {

struct Identifier {
  uint64_t handle;
};
using Import = uint32_t();
using Register = int(const char* name, Import* import, uint32_t version, void** tables, uint64_t count, Identifier* id);

void hand_over(const char* name, Import* import, void* table) {
  // As a library linked to it would: a preloaded function of that name comes first.
  dlopen("librocprofiler-register.so.0", RTLD_NOW | RTLD_GLOBAL);
  auto* const call = reinterpret_cast<Register*>(dlsym(RTLD_DEFAULT, "rocprofiler_register_library_api_table"));
  if (call == nullptr) {
    fprintf(stderr, "tests/rocm/sdk/register.cpp: no librocprofiler-register.so.0: %s\n", dlerror());
    abort();
  }
  void* tables[1] = {table};
  Identifier id{};
  const int result = call(name, import, import(), tables, 1, &id);
  if (getenv("TACHO_BED_REGISTER") != nullptr) fprintf(stderr, "registered %s: %d\n", name, result);
}

void fill(const HipTable& table) {
  table.entries[0] = reinterpret_cast<void*>(table.count * sizeof(void*));
  for (size_t at = 1; at < table.count; ++at) table.entries[at] = dlsym(RTLD_NEXT, table.names[at]);
}

// Before the program's first HIP call, and before HIP registers the program's kernels.
__attribute__((constructor)) void begin() {
  if (dlsym(RTLD_NEXT, "hipMalloc") == nullptr) return;
  fill(tacho_hip_compiler);
  fill(tacho_hip_runtime);
  hand_over("hip_compiler", rocprofiler_register_import_hip_compiler, tacho_hip_compiler.entries);
  hand_over("hip", rocprofiler_register_import_hip, tacho_hip_runtime.entries);
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) void tacho_no_such_function() {
  fputs("tests/rocm/sdk/register.cpp: a HIP function that this HIP does not have was called\n", stderr);
  abort();
}

// HSA's interface for tools. False would unload the library.
TACHO_EXPORT bool OnLoad(void* table, uint64_t, uint64_t, const char* const*) {
  hand_over("hsa", rocprofiler_register_import_hsa, table);
  return true;
}
TACHO_EXPORT void OnUnload() {}
