// The decoder's facts about a traced process, complete once it has ended.
#pragma once

#include <cstdint>
#include <string>

#include "event/schema.h"

namespace tacho::decode {

/// Facts about a traced process, for the summary and for checks.
struct ProcessFacts {
  int64_t row = 0;  // of table process
  uint32_t pid = 0;
  std::string name;             // of its executable's file
  int64_t start = 0;            // CLOCK_MONOTONIC_RAW ns at which it attached, or this image of it did
  double hook_ns = 0;           // measured cost of one hook
  int64_t hooks = 0;            // records that hooks wrote (calls, markers)
  bool preloaded = false;       // libtacho.so came through LD_PRELOAD
  int64_t untimed_threads = 0;  // the sampler got no timer for them
  int64_t sampled_ns = 0;       // time that its call stacks represent
  uint64_t attached = 0;        // bits (1 << Domain) of the APIs whose calls a source saw
  bool sees(event::Domain domain) const { return (attached >> static_cast<uint32_t>(domain) & 1) != 0; }
};

}  // namespace tacho::decode
