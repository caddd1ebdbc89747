// Loading of vendors' libraries (library.h).
#include "vendor/library.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "base/format.h"

namespace tacho::vendor {

std::unique_ptr<Library> Library::open(const char* variable, std::initializer_list<const char*> names,
                                       std::vector<std::string>& problems) {
  if (const char* const chosen = getenv(variable); chosen != nullptr) {
    if (*chosen == '\0') return nullptr;
    if (void* const handle = dlopen(chosen, RTLD_NOW | RTLD_LOCAL))
      return std::unique_ptr<Library>(new Library(handle));
    problems.push_back(fmt::format("{}={}: {}", variable, chosen, dlerror()));
    return nullptr;
  }
  for (const char* name : names)
    if (void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return std::unique_ptr<Library>(new Library(handle));
  return nullptr;
}

Library::~Library() {
  dlclose(handle_);
}

void* Library::symbol(const char* name) const {
  return dlsym(handle_, name);
}

}  // namespace tacho::vendor
