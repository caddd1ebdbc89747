// The filter of kernels by name (kernel_filter.h).
#include "capture/kernel_filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "base/text/name_filter.h"
#include "capture/room/readable_name.h"
#include "event/left_out.h"
#include "tape/writer.h"

namespace tacho::capture {
namespace {

constinit NameFilter g_filter = {};
constinit bool g_read = false;
constinit uint32_t g_read_in = 0;                                   // tape::late_session()
constinit std::atomic<uint32_t> g_told[event::kLeftOutNames] = {};  // strings

void set(std::string_view key, NameFilter::Side side, std::string_view text) {
  char pattern[1024];
  const bool fits = text.size() < sizeof pattern;
  memcpy(pattern, text.data(), fits ? text.size() : 0);
  pattern[fits ? text.size() : 0] = '\0';
  if (fits && g_filter.set(side, pattern)) return;
  char sentence[1200];
  const int size = snprintf(sentence, sizeof sentence, "%.*s is not a valid regular expression and was ignored: %.*s",
                            static_cast<int>(key.size()), key.data(),
                            static_cast<int>(text.size() < 900 ? text.size() : 900), text.data());
  tape::note(event::NoteSeverity::kError, {sentence, static_cast<size_t>(size)});
}

}  // namespace

void read_kernel_filter() {
  if (g_read && g_read_in == tape::late_session()) return;
  for (std::atomic<uint32_t>& told : g_told) told.store(0, std::memory_order_relaxed);
  g_read = true;
  g_read_in = tape::late_session();
  g_filter.clear();
  set("kernel_include", NameFilter::Side::kInclude, tape::configuration().kernel_include);
  set("kernel_exclude", NameFilter::Side::kExclude, tape::configuration().kernel_exclude);
  if (g_filter.given()) find_demangler();
}

bool kernel_included(std::string_view name) {
  if (!g_filter.given()) return true;
  char text[4096];
  const size_t size = name.size() < sizeof text ? name.size() : sizeof text - 1;
  memcpy(text, name.data(), size);
  text[size] = '\0';
  char* const readable = readable_name(text);
  const bool wanted = g_filter.wants(text, readable);
  free(readable);
  return wanted;
}

void tell_left_out(std::string_view name) {
  const uint32_t text = tape::intern(name);
  for (size_t i = 0; i < event::kLeftOutNames; ++i) {
    uint32_t there = 0;
    if (!g_told[i].compare_exchange_strong(there, text, std::memory_order_relaxed)) {
      if (there == text) return;
      continue;
    }
    char key[48];
    snprintf(key, sizeof key, "%s%zu", event::kLeftOutKernel, i);
    return tape::define_property(event::Table::kProcess, 0, key, name);
  }
}

}  // namespace tacho::capture
