// Arguments of CUDA's calls as text, from the structures of parameters that CUPTI hands to callbacks.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tacho::decode {

/// "dst=0x7f10, src=0x7ffc, count=4096, kind=host to device": the structure of parameters of a CUDA call, which CUPTI
/// calls `function`. Empty for an unknown one (vendor/nvidia/call_parameters.h) or for too few bytes.
std::string cuda_call_text(std::string_view function, std::span<const std::byte> parameters);

}  // namespace tacho::decode
