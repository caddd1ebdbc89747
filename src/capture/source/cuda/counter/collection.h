// What tacho wants collected in this process, and what all parts of collecting it share.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <atomic>

#include "capture/source/cuda/cupti_api.h"
#include "event/spool.h"

namespace tacho::capture::counter {

enum class Mode { kKernel, kApplication, kMultiplex, kSampling };

/// Memory that only grows, by mapping, so that the program needs no C++ run time for it.
struct Bytes {
  uint8_t* data = nullptr;
  size_t size = 0, used = 0;

  bool reserve(size_t want);
};

struct Collection {
  static constexpr size_t kMaxMetrics = 4096, kMaxFilters = 256;
  Mode mode = Mode::kKernel;
  size_t pass = 0, passes = 1;  ///< pass: of application replay, the one that this run of the program is for
  bool empty_cache = false;     ///< the L2 before each measured launch
  bool by_cupti = false;        ///< CUPTI's own kernel replay is wanted
  bool by_name = false;         ///< multiplexing tells launches apart by their kernel alone
  char folder[1024] = {};
  pid_t pid = 0;
  uint32_t process = 0;  ///< running number of the process among those of the run
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

/// Reads the spool; false when something is missing or of another layout.
bool read_collection(const char* folder);
/// Whether a kernel (mangled name), or the launch with this index, passes the filters.
bool name_passes(const char* name);
bool index_passes(uint64_t index);

bool read_file(const char* path, Bytes& into);
bool write_all(int file, const uint8_t* data, size_t size);

/// CUPTI's own words for a result.
const char* text_of(int result);
/// Ends collecting and tells the user why; the program goes on.
void give_up(const char* what, int result);

}  // namespace tacho::capture::counter
