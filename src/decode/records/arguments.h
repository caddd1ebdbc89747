// Arguments of calls and kernels as text, from what targets recorded of them (ArgumentsRecord).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "event/records.h"

namespace tacho::decode {

/// "command_queue=0x5581, blocking_read=1, offset=0, size=4096": the parameters of an OpenCL function, a 64-bit word each.
/// Where an error code goes is left out. Empty for a function that is not known.
std::string opencl_call_text(uint16_t function, std::span<const uint64_t> words);

/// "0: buffer 0x5581 of 4096 B, 1: 7, 2: 256 B local": what clSetKernelArg set, by index. Values of 4 and 8 bytes are shown
/// as integers, as floating-point numbers where only these are plausible, else as bytes: OpenCL tells no types.
std::string kernel_arguments_text(std::span<const event::KernelArgument> arguments);

/// "0x5581", "NULL".
std::string pointer_text(uint64_t value);

}  // namespace tacho::decode
