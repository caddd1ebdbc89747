// Times on the common clock (run_clock.h).
#include "ranks/match/run_clock.h"

namespace tacho::ranks {

int64_t common_time(std::span<const RunClock> clocks, uint32_t run, int64_t time) {
  while (run < clocks.size() && clocks[run].against != run) {
    time = clocks[run].fit.aligned(time);
    run = clocks[run].against;
  }
  return time;
}

}  // namespace tacho::ranks
