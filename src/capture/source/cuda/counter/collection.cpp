// Reading what tacho wants collected (collection.h).
#include "capture/source/cuda/counter/collection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/nvidia/permission.h"

namespace tacho::capture::counter {

constinit Collection g_collection{};

namespace {

void take_setting(const char* key, const char* value) {
  Collection& c = g_collection;
  const auto is = [&](const char* name) { return strcmp(key, name) == 0; };
  if (is("metric") && c.metric_count < Collection::kMaxMetrics)
    c.metrics[c.metric_count++] = value;
  else if (is("mode"))
    c.mode = strcmp(value, "application") == 0 ? Mode::kApplication
             : strcmp(value, "multiplex") == 0 ? Mode::kMultiplex
             : strcmp(value, "sampling") == 0  ? Mode::kSampling
                                               : Mode::kKernel;
  else if (is("pass"))
    c.pass = strtoull(value, nullptr, 10);
  else if (is("passes"))
    c.passes = strtoull(value, nullptr, 10);
  else if (is("replayer"))
    c.by_cupti = strcmp(value, "cupti") == 0;
  else if (is("cache"))
    c.empty_cache = strcmp(value, "all") == 0;
  else if (is("by"))
    c.by_name = strcmp(value, "kernel") == 0;
}

}  // namespace

bool read_collection(const char* folder) {
  Collection& c = g_collection;
  if (!c.read(folder, take_setting)) return false;
  char path[1152];
  snprintf(path, sizeof path, "%.1000s/counter.config", c.folder);
  return c.mode == Mode::kSampling || (c.metric_count != 0 && c.passes != 0 && read_file(path, c.config));
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
  else if (result == cuda::abi::kHardwareBusy)
    snprintf(line, sizeof line, "the GPU of process %d cannot be counted on: %s", static_cast<int>(g_collection.pid),
             vendor::kCountersHeld);
  else
    snprintf(line, sizeof line, "counters are no longer collected in process %d: CUPTI cannot %s (%s)",
             static_cast<int>(g_collection.pid), what, text_of(result));
  cuda::say_warning(line);
}

}  // namespace tacho::capture::counter
