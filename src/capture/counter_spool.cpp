// Reading a spool's config and state (counter_spool.h).
#include "capture/counter_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/room/readable_name.h"
#include "event/spool/spool_layout.h"
#include "tape/writer.h"

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
  static constinit MappedBytes s_filter{};  // the lines below are cut at their ends
  if (!s_filter.reserve(s_text.count + 1)) return false;
  memcpy(s_filter.data, s_text.data, s_text.count);
  filter = spool::LaunchFilter({reinterpret_cast<const char*>(s_filter.data), s_text.count});
  for (char* line = reinterpret_cast<char*>(s_text.data); line != nullptr && *line != '\0';) {
    char* const end = strchr(line, '\n');
    if (end != nullptr) *end = '\0';
    if (char* const value = strchr(line, '='); value != nullptr) {
      *value = '\0';
      setting(line, value + 1);
    }
    line = end != nullptr ? end + 1 : nullptr;
  }
  if (filter.by_kernel()) find_demangler();
  return true;
}

bool CounterSpool::name_passes(const char* name) const {
  if (!filter.by_kernel()) return true;
  char* const readable = readable_name(name);
  const bool passes = filter.kernel(name, readable != nullptr ? readable : "");
  free(readable);
  return passes;
}

bool CounterSpool::launch_passes(uint64_t index) const {
  return filter.launch(index) && (!filter.by_regions() || tape::enabled(tape::source_bit::kCounter));
}

}  // namespace tacho::capture::counter
