// Why a run recorded nothing although it could have.
#pragma once

#include <string>

#include "launch/recording.h"
#include "tape/layout.h"

namespace tacho::launch {

/// "recording never began: ..." with what it waited for, and what came instead; "" if recording was on at some time.
/// `seconds`: how long the program ran.
std::string never_began(const Recording& recording, const tape::PoolHeader& header, double seconds);

}  // namespace tacho::launch
