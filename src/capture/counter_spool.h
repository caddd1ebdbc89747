// The target's side of a spool (event/spool/spool.h): the folder that tacho names, its config and its state. Sources
// that
// count use it instead of the pool.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/room/files.h"
#include "event/spool/launch_filter.h"
#include "event/spool/spool.h"

namespace tacho::capture::counter {

/// The settings of every counting source.
struct CounterSpool {
  char folder[1024] = {};
  pid_t pid = 0;         ///< that read it
  uint32_t process = 0;  ///< running number of the process in the run
  spool::SpoolState* state = nullptr;
  spool::LaunchFilter filter;

  /// Maps the state and reads the config; `setting` gets each line that is not about the filter, its texts stay. False
  /// when something is missing or has another layout.
  bool read(const char* folder, void (*setting)(const char* key, const char* value));
  /// True if a kernel (mangled name) passes the filter.
  bool name_passes(const char* name) const;
  /// True if the launch with this index, which is made now, passes: also, whether the program lets recording be on.
  bool launch_passes(uint64_t index) const;
};

}  // namespace tacho::capture::counter
