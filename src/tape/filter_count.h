// How many filters of system calls (seccomp) the process has, for both sides of the pool. Makes no call that the loader
// has not made before: openat, read, close.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tacho::tape {

/// The number in a line of /proc/PID/status that begins with `key` ("Seccomp:"); `otherwise` when there is none.
inline uint32_t number_in_status(std::string_view status, std::string_view key, uint32_t otherwise) {
  const size_t line = status.find(key);
  if (line == std::string_view::npos) return otherwise;
  uint32_t number = 0;
  for (size_t at = line + key.size(); at < status.size() && status[at] != '\n'; ++at)
    if (status[at] >= '0' && status[at] <= '9') number = number * 10 + static_cast<uint32_t>(status[at] - '0');
  return number;
}

/// 0 also if /proc does not say. Before Linux 5.9 only whether there is any: 1.
inline uint32_t filters_of_process() {
  const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[4096];
  const ssize_t size = read(file, text, sizeof text);
  close(file);
  const std::string_view status(text, size > 0 ? static_cast<size_t>(size) : 0);
  const bool any = number_in_status(status, "\nSeccomp:", 0) != 0;
  return any ? number_in_status(status, "\nSeccomp_filters:", 1) : 0;
}

}  // namespace tacho::tape
