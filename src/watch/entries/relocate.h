// The first instructions of a function, moved to another place so that a jump has room in theirs. The instructions are
// read with Capstone; what cannot be moved is refused with a reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacho::watch {

inline constexpr size_t kJumpBytes = 5;  ///< of jmp rel32

struct MovedHead {
  std::vector<uint8_t> code;  ///< the instructions at their new place, and a jump to those behind them
  size_t at = 0;              ///< where the jump belongs: behind an endbr64, which stays
  size_t taken = 0;           ///< bytes of the function that were moved, from its beginning
};

/// Moves whole instructions of the function at address `from`, whose bytes begin with `code`, to address `to`, until
/// kJumpBytes are free. Operands that are relative to the instruction mean what they meant. An endbr64 is copied.
/// Refused: functions that are shorter, short jumps, loops back into what is moved, instructions that Capstone does not
/// know, and what would be farther away than 2 GiB.
Result<MovedHead> move_head(std::span<const uint8_t> code, uint64_t from, uint64_t to);

/// A jump from `from` to `to`, kJumpBytes; nothing if it is farther than 2 GiB.
Result<std::vector<uint8_t>> jump(uint64_t from, uint64_t to);
/// A jump to any address, which needs no endbr64 there.
std::vector<uint8_t> far_jump(uint64_t to);

}  // namespace tacho::watch
