// The target's side of a spool (event/spool/spool.h): the folder that tacho names, its config and its state. Sources
// that
// count use it instead of the pool.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/room/files.h"
#include "event/spool/spool.h"

namespace tacho::capture::counter {

/// The settings of every counting source.
struct CounterSpool {
  static constexpr size_t kMaxFilters = 256;
  char folder[1024] = {};
  pid_t pid = 0;         ///< that read it
  uint32_t process = 0;  ///< running number of the process in the run
  spool::SpoolState* state = nullptr;
  const char* kernels[kMaxFilters] = {};
  size_t kernel_count = 0;
  uint64_t dispatches[kMaxFilters][2] = {};
  size_t dispatch_count = 0;

  /// Maps the state and reads the config; `setting` gets each line that is not about the filter, its texts stay. False
  /// when something is missing or has another layout.
  bool read(const char* folder, void (*setting)(const char* key, const char* value));
  /// True if a kernel (mangled name), or the launch with this index, passes the filters.
  bool name_passes(const char* name) const;
  bool index_passes(uint64_t index) const;
};

}  // namespace tacho::capture::counter
