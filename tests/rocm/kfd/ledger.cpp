// The ledger of the bed's actions: one line a packet, appended to the file in TACHO_KFD_LEDGER before the packet's
// completion can be seen. Times are CLOCK_MONOTONIC_RAW ns.
//
//   PID kernel GPU QUEUE NAME GRID_X GRID_Y GRID_Z GROUP_X GROUP_Y GROUP_Z LDS SCRATCH START END host|timed
//   PID barrier GPU QUEUE START END
//   PID copy GPU QUEUE BYTES START END
//   PID fill GPU QUEUE BYTES START END
//   PID count GPU QUEUE BLOCK EVENT XCC SE INSTANCE VALUE     (pm4.cpp)
#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "driver.h"

namespace kfd {

void log(const char* format, ...) {
  static const char* const path = getenv("TACHO_KFD_LEDGER");
  if (path == nullptr) return;
  static const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  char line[1024];
  int size = snprintf(line, sizeof line, "%d ", static_cast<int>(getpid()));
  va_list values;
  va_start(values, format);
  size += vsnprintf(line + size, sizeof line - static_cast<size_t>(size) - 1, format, values);
  va_end(values);
  if (static_cast<size_t>(size) > sizeof line - 2) size = sizeof line - 2;
  line[size++] = '\n';
  if (write(file, line, static_cast<size_t>(size)) != size) abort();  // a ledger with holes proves nothing
}

}  // namespace kfd
