// Debuggers as the program to record: they stop at the sampler's signal.
#pragma once

#include <string>
#include <vector>

#include "event/configuration.h"

namespace tacho::cli {

/// What to tell the user before `command` starts; empty unless it is a debugger under the sampler that uses a signal.
std::string debugger_sentence(const std::vector<std::string>& command, event::Sampler sampler);

}  // namespace tacho::cli
