// Reading what tacho wants collected (collection.h).
#include "capture/source/cuda/counter/collection.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/spool_layout.h"
#include "vendor/nvidia/permission.h"

namespace tacho::capture::counter {

constinit Collection g_collection{};

namespace {

bool read_lines() {
  Collection& c = g_collection;
  char path[1152];
  static constinit Bytes s_text{};
  snprintf(path, sizeof path, "%.1000s/config", c.folder);
  if (!read_file(path, s_text)) return false;
  s_text.data[s_text.used] = '\0';
  for (char* line = reinterpret_cast<char*>(s_text.data); line != nullptr && *line != '\0';) {
    char* const end = strchr(line, '\n');
    if (end != nullptr) *end = '\0';
    const auto value = [&](const char* key) -> const char* {
      const size_t length = strlen(key);
      return strncmp(line, key, length) == 0 && line[length] == '=' ? line + length + 1 : nullptr;
    };
    if (const char* metric = value("metric"); metric != nullptr && c.metric_count < Collection::kMaxMetrics)
      c.metrics[c.metric_count++] = metric;
    else if (const char* kernel = value("kernel");
             kernel != nullptr && c.kernel_count < Collection::kMaxFilters)
      c.kernels[c.kernel_count++] = kernel;
    else if (const char* range = value("dispatch");
             range != nullptr && c.dispatch_count < Collection::kMaxFilters) {
      char* colon = nullptr;
      c.dispatches[c.dispatch_count][0] = strtoull(range, &colon, 10);
      c.dispatches[c.dispatch_count][1] =
          colon != nullptr && *colon == ':' ? strtoull(colon + 1, nullptr, 10) : 0;
      ++c.dispatch_count;
    } else if (const char* mode = value("mode"); mode != nullptr)
      c.mode = strcmp(mode, "application") == 0 ? Mode::kApplication
               : strcmp(mode, "multiplex") == 0 ? Mode::kMultiplex
               : strcmp(mode, "sampling") == 0  ? Mode::kSampling
                                                : Mode::kKernel;
    else if (const char* pass = value("pass"); pass != nullptr)
      c.pass = strtoull(pass, nullptr, 10);
    else if (const char* passes = value("passes"); passes != nullptr)
      c.passes = strtoull(passes, nullptr, 10);
    else if (const char* replayer = value("replayer"); replayer != nullptr)
      c.by_cupti = strcmp(replayer, "cupti") == 0;
    else if (const char* cache = value("cache"); cache != nullptr)
      c.empty_cache = strcmp(cache, "all") == 0;
    else if (const char* by = value("by"); by != nullptr)
      c.by_name = strcmp(by, "kernel") == 0;
    line = end != nullptr ? end + 1 : nullptr;
  }
  snprintf(path, sizeof path, "%.1000s/counter.config", c.folder);
  return c.mode == Mode::kSampling || (c.metric_count != 0 && c.passes != 0 && read_file(path, c.config));
}

bool map_state() {
  char path[1152];
  snprintf(path, sizeof path, "%.1000s/state", g_collection.folder);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  void* const map = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (map == MAP_FAILED) return false;
  g_collection.state = static_cast<spool::SpoolState*>(map);
  return g_collection.state->layout.load(std::memory_order_relaxed) == spool::kSpoolLayout;
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

bool Bytes::reserve(size_t want) {
  if (want <= size) return true;
  void* const fresh = mmap(nullptr, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return false;
  if (used != 0) memcpy(fresh, data, used);
  if (data != nullptr) munmap(data, size);
  data = static_cast<uint8_t*>(fresh);
  size = want;
  return true;
}

bool read_collection(const char* folder) {
  snprintf(g_collection.folder, sizeof g_collection.folder, "%s", folder);
  g_collection.pid = getpid();
  if (!map_state() || !read_lines()) return false;
  if (g_collection.kernel_count != 0) g_demangle = demangler();
  return true;
}

bool name_passes(const char* name) {
  if (g_collection.kernel_count == 0) return true;
  char* const readable = g_demangle != nullptr ? g_demangle(name, nullptr, nullptr, nullptr) : nullptr;
  bool passes = false;
  for (size_t i = 0; i < g_collection.kernel_count && !passes; ++i) {
    const char* const wanted = g_collection.kernels[i];
    passes = strstr(name, wanted) != nullptr || (readable != nullptr && strstr(readable, wanted) != nullptr);
  }
  free(readable);
  return passes;
}

bool index_passes(uint64_t index) {
  bool passes = g_collection.dispatch_count == 0;
  for (size_t i = 0; i < g_collection.dispatch_count && !passes; ++i)
    passes = index >= g_collection.dispatches[i][0] && index <= g_collection.dispatches[i][1];
  return passes;
}

bool read_file(const char* path, Bytes& into) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat about;
  bool good = fstat(file, &about) == 0 && into.reserve(static_cast<size_t>(about.st_size) + 1);
  into.used = 0;
  while (good && into.used < static_cast<size_t>(about.st_size)) {
    const ssize_t got = read(file, into.data + into.used, static_cast<size_t>(about.st_size) - into.used);
    if (got < 0 && errno == EINTR) continue;
    good = got > 0;
    if (good) into.used += static_cast<size_t>(got);
  }
  close(file);
  return good;
}

bool write_all(int file, const uint8_t* data, size_t size) {
  while (size != 0) {
    const ssize_t written = write(file, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

const char* text_of(int result) {
  const char* text = nullptr;
  const auto ask = g_collection.cupti.get_result_string;
  return ask == nullptr || ask(result, &text) != 0 || text == nullptr ? "unknown error" : text;
}

void give_up(const char* what, int result) {
  if (!g_collection.on.exchange(false)) return;
  char line[640];
  if (result == cuda::abi::kInsufficientPrivileges)
    snprintf(line, sizeof line, "%s", vendor::kCountersRefused);
  else
    snprintf(line, sizeof line, "counters are no longer collected in process %d: CUPTI cannot %s (%s)",
             static_cast<int>(g_collection.pid), what, text_of(result));
  cuda::say_warning(line);
}

}  // namespace tacho::capture::counter
