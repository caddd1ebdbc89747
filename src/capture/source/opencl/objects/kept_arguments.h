// The arguments of commands, kept until their rows are written.
#pragma once

#include <cstdint>

#include "event/records.h"

namespace tacho::capture::opencl {

/// Keeps `count` words; a number for ClCommand::arguments, 0 when there is no room.
uint16_t keep_arguments(event::ArgumentsOf of, uint32_t value, const void* words, uint32_t count);
/// Writes the arguments kept under this number and forgets them.
void write_kept_arguments(uint16_t number, uint64_t correlation);

}  // namespace tacho::capture::opencl
