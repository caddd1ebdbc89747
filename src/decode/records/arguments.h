// Arguments of calls and kernels as text, from what targets recorded of them (ArgumentsRecord).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "event/records.h"
#include "vendor/call_parameters.h"

namespace tacho::decode {

/// "command_queue=0x5581, blocking_read=1, offset=0, size=4096": the parameters of an OpenCL function, a 64-bit word
/// each. Where an error code goes is left out. Empty for a function that is unknown.
std::string opencl_call_text(uint16_t function, std::span<const uint64_t> words);

/// "0: buffer 0x5581 of 4096 B, 1: 7, 2: 256 B local": the values that clSetKernelArg set, by index. Values of 4 and 8
/// bytes are shown as integers, as floating-point numbers if only these are plausible, else as bytes: OpenCL does not
/// reveal types.
std::string kernel_arguments_text(std::span<const event::KernelArgument> arguments);

/// "dst=0x7f10, src=0x7ffc, count=4096, kind=host to device": the structure of parameters of a vendor's call. Empty for
/// too few bytes.
std::string call_structure_text(const vendor::CallParameters& call, std::span<const std::byte> structure);

/// The same for the words in which the parameters of a HIP function were handed over (vendor::amd::word_of()); of those
/// that are not there the text is left out.
std::string hip_call_text(std::string_view function, std::span<const uint64_t> words);

/// "0x5581", "NULL".
std::string pointer_text(uint64_t value);

}  // namespace tacho::decode
