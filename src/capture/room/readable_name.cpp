// Demangling by the program's own C++ runtime (readable_name.h).
#include "capture/room/readable_name.h"

#include <dlfcn.h>

namespace tacho::capture {
namespace {

using Demangle = char* (*)(const char*, char*, size_t*, int*);
constinit Demangle g_demangle = nullptr;

}  // namespace

void find_demangler() {
  if (g_demangle != nullptr) return;
  void* found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  if (found == nullptr)
    if (void* const library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL); library != nullptr)
      found = dlsym(library, "__cxa_demangle");
  g_demangle = reinterpret_cast<Demangle>(found);
}

char* readable_name(const char* name) {
  if (g_demangle == nullptr || name[0] != '_' || name[1] != 'Z') return nullptr;
  return g_demangle(name, nullptr, nullptr, nullptr);
}

}  // namespace tacho::capture
