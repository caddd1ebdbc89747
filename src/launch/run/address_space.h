// How much address space the target and tacho have (ulimit -v), and what that leaves for the pool.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "launch/recording.h"
#include "launch/signals.h"

namespace tacho::launch {

struct Room {
  uint64_t pool_max;     ///< bytes
  std::string sentence;  ///< for the user: the reduced setting; "" if none
};
/// The room for a pool. Fails where tacho itself has too little.
Result<Room> address_space(const Recording& recording, const TargetLimits& limits);

}  // namespace tacho::launch
