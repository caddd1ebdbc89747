// The collection that tacho asked of this process (the spool's config), and the state that its parts share.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <atomic>

#include "capture/source/cuda/cupti_api.h"
#include "event/spool.h"

namespace tacho::capture::counter {

enum class Mode { kKernel, kApplication, kMultiplex, kSampling };

/// Mapped memory that only grows; needs no C++ run time in the program.
struct Bytes {
  uint8_t* data = nullptr;
  size_t size = 0, used = 0;

  bool reserve(size_t want);
};

struct Collection {
  static constexpr size_t kMaxMetrics = 4096, kMaxFilters = 256;
  Mode mode = Mode::kKernel;
  size_t pass = 0, passes = 1;  ///< `pass`: in application replay, the pass of this run of the program
  bool empty_cache = false;     ///< empty the L2 before each measured launch
  bool by_cupti = false;        ///< use CUPTI's own kernel replay
  bool by_name = false;         ///< multiplexing tells launches apart by their kernel alone
  char folder[1024] = {};
  pid_t pid = 0;
  uint32_t process = 0;  ///< running number of the process in the run
  spool::SpoolState* state = nullptr;
  cuda::Cupti cupti{};
  Bytes config{};  ///< CUPTI's config image
  const char* metrics[kMaxMetrics] = {};
  size_t metric_count = 0;
  const char* kernels[kMaxFilters] = {};
  size_t kernel_count = 0;
  uint64_t dispatches[kMaxFilters][2] = {};
  size_t dispatch_count = 0;
  std::atomic<bool> on{false};
};
extern constinit Collection g_collection;

/// Reads the spool's config and state; false when something is missing or has another layout.
bool read_collection(const char* folder);
/// True if a kernel (mangled name), or the launch with this index, passes the filters.
bool name_passes(const char* name);
bool index_passes(uint64_t index);

bool read_file(const char* path, Bytes& into);
bool write_all(int file, const uint8_t* data, size_t size);

/// CUPTI's text for a result.
const char* text_of(int result);
/// Stops collecting and tells the user why; the program goes on.
void give_up(const char* what, int result);

}  // namespace tacho::capture::counter
