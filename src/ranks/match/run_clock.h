// The clock of one run of a job against those of the others.
#pragma once

#include <cstdint>
#include <span>

#include "ranks/read/clock_fit.h"

namespace tacho::ranks {

/// A run's clock against that of the first run that it shares collectives with, and so on to run 0.
struct RunClock {
  ClockFit fit;          // against `against`
  uint32_t against = 0;  // an earlier run; its own number if nothing relates it to one
  double residual = 0;   // ns, of the whole chain
  int64_t typical = 0;   // ns: the median of its lead over run 0
  bool related = false;
  bool by_messages = false;  // not by collectives
  bool numbered = false;     // by MPI's collectives and messages, whose numbers the traces hold
};

/// A run's time (clock_shift added) on run 0's clock.
int64_t common_time(std::span<const RunClock> clocks, uint32_t run, int64_t time);

}  // namespace tacho::ranks
