// The filter of kernels by name (kernel_filter.h).
#include "capture/kernel_filter.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "event/left_out.h"
#include "tape/writer.h"

namespace tacho::capture {
namespace {

struct Filter {
  bool include_set, exclude_set;
  regex_t include, exclude;
};
constinit Filter g_filter = {};
constinit bool g_read = false;
constinit uint32_t g_read_in = 0;                                   // tape::late_session()
constinit std::atomic<uint32_t> g_told[event::kLeftOutNames] = {};  // strings

bool compile(std::string_view key, std::string_view text, regex_t& expression) {
  if (text.empty()) return false;
  char pattern[1024];
  if (text.size() < sizeof pattern) {
    memcpy(pattern, text.data(), text.size());
    pattern[text.size()] = '\0';
    if (regcomp(&expression, pattern, REG_EXTENDED | REG_NOSUB) == 0) return true;
  }
  char sentence[1200];
  const int size = snprintf(sentence, sizeof sentence, "%.*s is not a valid regular expression and was ignored: %.*s",
                            static_cast<int>(key.size()), key.data(),
                            static_cast<int>(text.size() < 900 ? text.size() : 900), text.data());
  tape::note(event::NoteSeverity::kError, {sentence, static_cast<size_t>(size)});
  return false;
}

}  // namespace

void read_kernel_filter() {
  if (g_read && g_read_in == tape::late_session()) return;
  if (g_filter.include_set) regfree(&g_filter.include);
  if (g_filter.exclude_set) regfree(&g_filter.exclude);
  for (std::atomic<uint32_t>& told : g_told) told.store(0, std::memory_order_relaxed);
  g_read = true;
  g_read_in = tape::late_session();
  g_filter.include_set = compile("kernel_include", tape::configuration().kernel_include, g_filter.include);
  g_filter.exclude_set = compile("kernel_exclude", tape::configuration().kernel_exclude, g_filter.exclude);
}

bool kernel_included(std::string_view name) {
  if (!g_filter.include_set && !g_filter.exclude_set) return true;
  char text[4096];
  const size_t size = name.size() < sizeof text ? name.size() : sizeof text - 1;
  memcpy(text, name.data(), size);
  text[size] = '\0';
  if (g_filter.include_set && regexec(&g_filter.include, text, 0, nullptr, 0) != 0) return false;
  return !g_filter.exclude_set || regexec(&g_filter.exclude, text, 0, nullptr, 0) != 0;
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
