// Finding and loading CUPTI (cupti_api.h). A machine often has several copies (the toolkit's, one in each Python wheel
// that brings CUDA); only the one that belongs to the runtime in use sees this process's CUDA calls reliably.
#include "capture/source/cuda/cupti_api.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

namespace tacho::capture::cuda {
namespace {

constexpr const char* kSonames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so.14",
                                    "libcupti.so"};

bool resolve(Cupti& cupti, void* library) {
  bool complete = true;
#define TACHO_CUPTI_RESOLVE(member, symbol, required, parameters)                   \
  cupti.member = reinterpret_cast<decltype(cupti.member)>(dlsym(library, #symbol)); \
  if (required && cupti.member == nullptr) complete = false;
  TACHO_CUPTI_FUNCTIONS(TACHO_CUPTI_RESOLVE)
#undef TACHO_CUPTI_RESOLVE
  if (!complete) return false;
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(cupti.get_version), &info) != 0 && info.dli_fname != nullptr)
    snprintf(cupti.path, sizeof cupti.path, "%s", info.dli_fname);
  return true;
}

struct Attempts {
  char* text;
  size_t capacity, used;
  void add(const char* what) {
    const int size = snprintf(text + used, capacity - used, "%s%s", used == 0 ? "" : ", ", what);
    if (size > 0) used = used + static_cast<size_t>(size) < capacity ? used + static_cast<size_t>(size) : capacity - 1;
  }
};

bool load_file(Cupti& cupti, const char* path) {
  if (access(path, R_OK) != 0) return false;
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  if (resolve(cupti, library)) return true;
  dlclose(library);
  return false;
}

bool load_from_folder(Cupti& cupti, const char* folder) {
  char path[768];
  for (const char* soname : kSonames) {
    const int size = snprintf(path, sizeof path, "%s/%s", folder, soname);
    if (size > 0 && static_cast<size_t>(size) < sizeof path && load_file(cupti, path)) return true;
  }
  return false;
}

// Folders in which a CUPTI lies relative to the folder of a libcudart or another library of a CUDA installation.
constexpr const char* kBeside[] = {"", "/../../cuda_cupti/lib", "/../extras/CUPTI/lib64",
                                   "/../../../extras/CUPTI/lib64"};

struct RuntimeFolders {
  char folder[8][512];
  int count;
};

int collect_runtime(dl_phdr_info* info, size_t, void* data) {
  auto* const found = static_cast<RuntimeFolders*>(data);
  const char* const path = info->dlpi_name;
  if (path == nullptr || *path != '/') return 0;
  const char* const slash = strrchr(path, '/');
  const char* const file = slash + 1;
  if (strncmp(file, "libcudart.so", 12) != 0 && strncmp(file, "libcublas.so", 12) != 0 &&
      strncmp(file, "libnvrtc.so", 11) != 0 && strncmp(file, "libcudnn.so", 11) != 0)
    return 0;
  const auto length = static_cast<size_t>(slash - path);
  if (found->count < 8 && length < sizeof found->folder[0]) {
    memcpy(found->folder[found->count], path, length);
    found->folder[found->count][length] = '\0';
    ++found->count;
  }
  return 0;
}

}  // namespace

bool load_cupti(Cupti& cupti, char* tried, size_t tried_capacity) {
  tried[0] = '\0';
  Attempts attempts{tried, tried_capacity, 0};
  cupti.found_by = "already in the process";
  for (const char* soname : kSonames) {
    void* const library = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == nullptr) continue;
    if (resolve(cupti, library)) return true;
    dlclose(library);
  }
  cupti.found_by = "beside the CUDA runtime in use";
  RuntimeFolders folders{};
  dl_iterate_phdr(collect_runtime, &folders);
  char path[768];
  for (int i = 0; i < folders.count; ++i)
    for (const char* beside : kBeside) {
      snprintf(path, sizeof path, "%s%s", folders.folder[i], beside);
      if (load_from_folder(cupti, path)) return true;
    }
  if (folders.count != 0) attempts.add(folders.folder[0]);
  cupti.found_by = "in CUDA_HOME";
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* const home = getenv(variable);
    if (home == nullptr || *home == '\0') continue;
    for (const char* part : {"/extras/CUPTI/lib64", "/lib64", "/targets/x86_64-linux/lib"}) {
      snprintf(path, sizeof path, "%s%s", home, part);
      if (load_from_folder(cupti, path)) return true;
    }
    snprintf(path, sizeof path, "%s=%s", variable, home);
    attempts.add(path);
  }
  cupti.found_by = "of the system";
  for (const char* soname : kSonames) {
    void* const library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    if (resolve(cupti, library)) return true;
    dlclose(library);
  }
  attempts.add("the loader's path");
  for (const char* folder :
       {"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib",
        "/opt/cuda/extras/CUPTI/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"})
    if (load_from_folder(cupti, folder)) return true;
  attempts.add("/usr/local/cuda");
  return false;
}

void* find_in_loaded_cupti(const char* symbol) {
  for (const char* soname : kSonames) {
    void* const library = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* const found = dlsym(library, symbol);
    dlclose(library);
    if (found != nullptr) return found;
  }
  return nullptr;
}

void* find_in_driver(const char* symbol) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const found = dlsym(library, symbol);
  dlclose(library);
  return found;
}

}  // namespace tacho::capture::cuda
