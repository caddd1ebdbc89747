// The collection that tacho asked of this process (the spool's config), and the state that its parts share.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "capture/counter_spool.h"
#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::counter {

enum class Mode { kKernel, kApplication, kMultiplex, kSampling };

struct Collection : CounterSpool {
  static constexpr size_t kMaxMetrics = 4096;
  Mode mode = Mode::kKernel;
  size_t pass = 0, passes = 1;  ///< `pass`: in application replay, the pass of this run of the program
  bool empty_cache = false;     ///< empty the L2 before each measured launch
  bool by_cupti = false;        ///< use CUPTI's own kernel replay
  bool by_name = false;         ///< multiplexing groups launches by kernel alone
  cuda::Cupti cupti{};
  MappedBytes config{};  ///< CUPTI's config image
  const char* metrics[kMaxMetrics] = {};
  size_t metric_count = 0;
  std::atomic<bool> on{false};
};
extern constinit Collection g_collection;

/// Reads the spool's config and state; false when something is missing or has another layout.
bool read_collection(const char* folder);

/// CUPTI's text for a result.
const char* text_of(int result);
/// Stops collecting and tells the user why; the program goes on.
void give_up(const char* what, int result);

}  // namespace tacho::capture::counter
