// Modules, as the loader lists them (modules.h). A library that goes is described before dlclose() takes it away, and
// its end is the moment before that. Who opens libraries is seen by what follows: a program asks a library that it
// loads for a function (capture/source/mpi/watch.cpp), and closes it one day.
#include "capture/source/sampler/modules.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/room/next_symbol.h"
#include "capture/room/pages.h"
#include "event/records.h"
#include "tape/permitted.h"
#include "tape/writer.h"

namespace tacho::capture::sampler {
namespace {

struct Known {
  uint64_t start, end;
  uint32_t path;  // string
  bool there;
};
constexpr uint32_t kMostModules = 16'384;
constinit Known* g_known = nullptr;  // mapped; under g_lock
constinit uint32_t g_count = 0;
constinit std::atomic<uint64_t> g_changes{0};  // objects loaded and unloaded, at the last look
constinit std::atomic<uint64_t> g_lock{0};     // the generation of the process that holds it; 0 = free
constinit std::atomic<bool> g_started{false};

// False when another thread looks. A forked child takes over a lock that its parent's other thread held.
bool lock() {
  const uint64_t own = tape::process_generation();
  uint64_t holder = 0;
  if (own == 0) return false;
  if (g_lock.compare_exchange_strong(holder, own, std::memory_order_acquire)) return true;
  return holder != own && g_lock.compare_exchange_strong(holder, own, std::memory_order_acquire);
}

int count_changes(dl_phdr_info* info, size_t size, void* data) {
  if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
    *static_cast<uint64_t*>(data) = info->dlpi_adds + info->dlpi_subs;
  return 1;
}

void define(const Known& known, uint64_t offset, event::ModuleState state, uint64_t time, const struct stat* file) {
  event::ModuleRecord record{};
  record.header = {event::RecordKind::kModule, 0, sizeof record, 0};
  record.start = known.start;
  record.end = known.end;
  record.offset = offset;
  record.path = known.path;
  record.state = state;
  record.time = time;
  if (file != nullptr) {
    record.device = file->st_dev;
    record.inode = file->st_ino;
    record.modified = static_cast<int64_t>(file->st_mtim.tv_sec) * 1'000'000'000 + file->st_mtim.tv_nsec;
  }
  tape::define(&record.header);
}

struct Look {
  event::ModuleState state;
  uint64_t time;
};

int see(dl_phdr_info* info, size_t, void* data) {
  const auto& look = *static_cast<const Look*>(data);
  char self[4096];
  const char* path = info->dlpi_name;
  if (path == nullptr || *path == '\0') {
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size <= 0) return 0;
    self[size] = '\0';
    path = self;
  } else if (strncmp(path, "linux-vdso", 10) == 0) {
    path = "[vdso]";
  } else if (*path != '/') {
    // As the program named it, from its folder of that moment. Where that is no file now, /proc tells its place.
    const ssize_t size = readlink("/proc/self/cwd", self, sizeof self - 1);
    if (strncmp(path, "./", 2) == 0) path += 2;
    if (size <= 0 || static_cast<size_t>(size) + strlen(path) + 2 > sizeof self) return 0;
    self[size] = '/';
    strcpy(self + size + 1, path);
    path = self;
    struct stat file {};
    if (stat(path, &file) != 0) return 0;
  }
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const uint64_t start = info->dlpi_addr + part.p_vaddr;
    const uint32_t name = tape::intern(path);
    uint32_t at = 0;
    while (at < g_count && (g_known[at].start != start || g_known[at].path != name)) ++at;
    if (at < g_count) {
      g_known[at].there = true;
      continue;
    }
    if (g_count == kMostModules) continue;
    Known& known = g_known[g_count++];
    known = {start, start + part.p_memsz, name, true};
    struct stat file {};
    const bool found = *path == '/' && stat(path, &file) == 0;
    define(known, part.p_offset, look.state, look.time, found ? &file : nullptr);
  }
  return 0;
}

// `time`: before which what is gone was there.
void look(event::ModuleState state, uint64_t time) {
  if (!lock()) return;
  for (uint32_t i = 0; i < g_count; ++i) g_known[i].there = false;
  uint64_t changes = 0;
  dl_iterate_phdr(count_changes, &changes);
  g_changes.store(changes, std::memory_order_relaxed);
  Look look{state, host_ticks()};
  dl_iterate_phdr(see, &look);
  for (uint32_t i = 0; i < g_count;)
    if (!g_known[i].there) {
      define(g_known[i], 0, event::ModuleState::kClosed, time, nullptr);
      g_known[i] = g_known[--g_count];
    } else {
      ++i;
    }
  g_lock.store(0, std::memory_order_release);
}

bool changed() {
  uint64_t changes = 0;
  dl_iterate_phdr(count_changes, &changes);
  return changes != g_changes.load(std::memory_order_relaxed);
}

bool looks() {
  return g_started.load(std::memory_order_acquire) && tape::permitted(tape::kCallRegister | tape::kCallSample);
}

}  // namespace

void start_modules() {
  g_known = static_cast<Known*>(map_pages(kMostModules * sizeof(Known)));
  if (g_known == nullptr) return;
  look(event::ModuleState::kKnown, 0);
  g_started.store(true, std::memory_order_release);
}

void look_for_modules() {
  if (looks() && changed()) look(event::ModuleState::kOpened, host_ticks());
}

}  // namespace tacho::capture::sampler

extern "C" __attribute__((visibility("default"))) int dlclose(void* handle) {
  using namespace tacho;
  TACHO_NEXT(dlclose, int(void*));
  if (!capture::sampler::looks()) return next(handle);
  capture::sampler::look_for_modules();
  const uint64_t before = host_ticks();
  const int result = next(handle);
  if (capture::sampler::changed()) capture::sampler::look(event::ModuleState::kOpened, before);
  return result;
}
