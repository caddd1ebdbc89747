// A tool of HSA's (HSA_TOOLS_LIB) that puts a function of its own into the runtime's tables.
#include <cstdint>

namespace {
struct Table {
  uint64_t version[2];
  void* entries[8];  // hsa_init, hsa_shut_down, hsa_system_get_info, ...
};
struct Tables {
  uint64_t version[2];
  Table* core;
};
using SystemInfo = uint32_t(uint32_t, void*);
SystemInfo* g_next = nullptr;
uint32_t system_info(uint32_t what, void* out) {
  return g_next(what, out);
}
}  // namespace

extern "C" bool OnLoad(Tables* tables, uint64_t, uint64_t, const char* const*) {
  void*& entry = tables->core->entries[2];
  g_next = reinterpret_cast<SystemInfo*>(entry);
  entry = reinterpret_cast<void*>(&system_info);
  return true;
}
extern "C" void OnUnload() {}
