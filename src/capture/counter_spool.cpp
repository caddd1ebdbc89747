// Reading a spool's config and state (counter_spool.h).
#include "capture/counter_spool.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/spool/spool_layout.h"

namespace tacho::capture::counter {

namespace {

spool::SpoolState* map_state(const char* folder) {
  char path[1152];
  snprintf(path, sizeof path, "%.1000s/state", folder);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const map = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  auto* const state = map == MAP_FAILED ? nullptr : static_cast<spool::SpoolState*>(map);
  return state != nullptr && state->layout.load(std::memory_order_relaxed) == spool::kSpoolLayout ? state : nullptr;
}

using Demangle = char* (*)(const char*, char*, size_t*, int*);

Demangle demangler() {
  void* found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  if (found == nullptr)
    if (void* const library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL); library != nullptr)
      found = dlsym(library, "__cxa_demangle");
  return reinterpret_cast<Demangle>(found);
}
constinit Demangle g_demangle = nullptr;

}  // namespace

bool CounterSpool::read(const char* where, void (*setting)(const char* key, const char* value)) {
  snprintf(folder, sizeof folder, "%s", where);
  pid = getpid();
  state = map_state(folder);
  if (state == nullptr) return false;
  char path[1152];
  static constinit MappedBytes s_text{};
  snprintf(path, sizeof path, "%.1000s/config", folder);
  if (!read_file(path, s_text)) return false;
  s_text.data[s_text.count] = '\0';
  for (char* line = reinterpret_cast<char*>(s_text.data); line != nullptr && *line != '\0';) {
    char* const end = strchr(line, '\n');
    if (end != nullptr) *end = '\0';
    if (char* const value = strchr(line, '='); value != nullptr) {
      *value = '\0';
      if (strcmp(line, "kernel") == 0) {
        if (kernel_count < kMaxFilters) kernels[kernel_count++] = value + 1;
      } else if (strcmp(line, "dispatch") == 0) {
        if (dispatch_count < kMaxFilters) {
          char* colon = nullptr;
          dispatches[dispatch_count][0] = strtoull(value + 1, &colon, 10);
          dispatches[dispatch_count][1] = colon != nullptr && *colon == ':' ? strtoull(colon + 1, nullptr, 10) : 0;
          ++dispatch_count;
        }
      } else {
        setting(line, value + 1);
      }
    }
    line = end != nullptr ? end + 1 : nullptr;
  }
  if (kernel_count != 0) g_demangle = demangler();
  return true;
}

bool CounterSpool::name_passes(const char* name) const {
  if (kernel_count == 0) return true;
  char* const readable = g_demangle != nullptr ? g_demangle(name, nullptr, nullptr, nullptr) : nullptr;
  bool passes = false;
  for (size_t i = 0; i < kernel_count && !passes; ++i)
    passes = strstr(name, kernels[i]) != nullptr || (readable != nullptr && strstr(readable, kernels[i]) != nullptr);
  free(readable);
  return passes;
}

bool CounterSpool::index_passes(uint64_t index) const {
  bool passes = dispatch_count == 0;
  for (size_t i = 0; i < dispatch_count && !passes; ++i)
    passes = index >= dispatches[i][0] && index <= dispatches[i][1];
  return passes;
}

}  // namespace tacho::capture::counter
