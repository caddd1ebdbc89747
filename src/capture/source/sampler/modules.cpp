// Modules, as the loader lists them (modules.h). A library that goes is described before dlclose() takes it away, and
// its end is the moment before that. Who opens libraries is seen by what follows: a program asks a library that it
// loads for a function (capture/source/mpi/watch.cpp), and closes it one day.
#include "capture/source/sampler/modules.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
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
constexpr uint32_t kMostModules = 16'384, kSlots = 2 * kMostModules;
constinit Known* g_known = nullptr;      // mapped; under g_lock, as all up to g_gone
constinit uint32_t* g_places = nullptr;  // kSlots: 1 + the place of a module in g_known, by hash; 0 = free
constinit uint32_t g_count = 0;
constinit uint32_t g_seen = 0;                 // objects at the last look: the loader puts new ones behind them
constinit uint64_t g_gone = 0;                 // objects unloaded, at the last look
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

struct Changes {
  uint64_t loaded, gone;
};

int count_changes(dl_phdr_info* info, size_t size, void* data) {
  if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
    *static_cast<Changes*>(data) = {info->dlpi_adds, info->dlpi_subs};
  return 1;
}

// The slot of a module, or a free one.
uint32_t* place_of(uint64_t start, uint32_t path) {
  uint64_t slot = ((start >> 12) + path) * 0x9e3779b97f4a7c15ULL >> 32;
  for (;; ++slot) {
    uint32_t* const place = &g_places[slot % kSlots];
    if (*place == 0 || (g_known[*place - 1].start == start && g_known[*place - 1].path == path)) return place;
  }
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
  uint32_t known;  // objects that are as they were at the last look
  uint32_t seen = 0;
};

int see(dl_phdr_info* info, size_t, void* data) {
  auto& look = *static_cast<Look*>(data);
  if (look.seen++ < look.known) return 0;
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
    uint32_t* const place = place_of(start, name);
    if (*place != 0) {
      g_known[*place - 1].there = true;
      continue;
    }
    if (g_count == kMostModules) continue;
    Known& known = g_known[g_count++];
    *place = g_count;
    known = {start, start + part.p_memsz, name, true};
    struct stat file {};
    const bool found = *path == '/' && stat(path, &file) == 0;
    define(known, part.p_offset, look.state, look.time, found ? &file : nullptr);
  }
  return 0;
}

// `time`: before which what is gone was there.
void forget_those_gone(uint64_t time) {
  for (uint32_t i = 0; i < g_count;)
    if (!g_known[i].there) {
      define(g_known[i], 0, event::ModuleState::kClosed, time, nullptr);
      g_known[i] = g_known[--g_count];
    } else {
      ++i;
    }
  memset(g_places, 0, kSlots * sizeof *g_places);
  for (uint32_t i = 0; i < g_count; ++i) *place_of(g_known[i].start, g_known[i].path) = i + 1;
}

// `time`: as above. A program may load thousands of libraries: those that were there are passed over unless one is
// gone.
void look(event::ModuleState state, uint64_t time) {
  if (!lock()) return;
  Changes changes{};
  dl_iterate_phdr(count_changes, &changes);
  g_changes.store(changes.loaded + changes.gone, std::memory_order_relaxed);
  const bool some_gone = changes.gone != g_gone;
  if (some_gone)
    for (uint32_t i = 0; i < g_count; ++i) g_known[i].there = false;
  Look look{state, host_ticks(), some_gone ? 0 : g_seen};
  dl_iterate_phdr(see, &look);
  g_seen = look.seen;
  g_gone = changes.gone;
  if (some_gone) forget_those_gone(time);
  g_lock.store(0, std::memory_order_release);
}

bool changed() {
  Changes changes{};
  dl_iterate_phdr(count_changes, &changes);
  return changes.loaded + changes.gone != g_changes.load(std::memory_order_relaxed);
}

bool looks() {
  return g_started.load(std::memory_order_acquire) && tape::permitted(tape::kCallRegister | tape::kCallSample);
}

}  // namespace

void start_modules() {
  g_known = static_cast<Known*>(map_pages(kMostModules * sizeof(Known)));
  g_places = static_cast<uint32_t*>(map_pages(kSlots * sizeof *g_places));
  if (g_known == nullptr || g_places == nullptr) return;
  look(event::ModuleState::kKnown, 0);
  g_started.store(true, std::memory_order_release);
}

void forget_modules() {
  g_started.store(false, std::memory_order_release);
  if (g_known != nullptr) munmap(g_known, kMostModules * sizeof(Known));
  if (g_places != nullptr) munmap(g_places, kSlots * sizeof *g_places);
  g_known = nullptr;
  g_places = nullptr;
  g_count = 0;
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
