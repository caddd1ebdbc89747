// How much work a benchmark's run is to have, found by running it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/result.h"
#include "roofline/backend.h"

namespace tacho::roofline {

/// Scales `count`, a multiple of `step` of at most `most`, until a run takes about `target` ns. `run` runs with the
/// present count. Fails if a hundred times the work and more takes no longer, twice in a row: such a device does not
/// execute kernels, or its clock does not see them, and ever larger counts would only occupy the host, which computes
/// the results for comparison.
template <typename Run>
Status scale_work(double target, uint32_t step, double most, uint32_t& count, Run run) {
  double last_time = 0, last_count = 0;
  int unchanged = 0;
  for (int round = 0; round < 8; ++round) {
    TACHO_ASSIGN(const Benchmark::Sample sample, run());
    const double factor = target / std::max(sample.duration, 1.0);
    if (round > 0 && factor < 1.5 && factor > 0.67) break;
    if (round > 0 && count >= 100 * last_count && sample.duration < 2 * last_time) {
      if (++unchanged == 2)
        return fail("a kernel with 100 times the work takes no longer, so the device "
                    "does not execute it or its clock does not see it");
    } else {
      unchanged = 0;
    }
    last_time = sample.duration;
    last_count = count;
    const double wanted = std::clamp(count * factor, static_cast<double>(step), most);
    count = std::max(step, static_cast<uint32_t>(wanted) / step * step);
  }
  return {};
}

}  // namespace tacho::roofline
