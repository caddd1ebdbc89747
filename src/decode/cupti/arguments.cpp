// Formatting of CUDA's arguments (arguments.h).
#include "decode/cupti/arguments.h"

#include "decode/records/arguments.h"
#include "vendor/nvidia/call_parameters.h"

namespace tacho::decode {

std::string cuda_call_text(std::string_view function, std::span<const std::byte> parameters) {
  const vendor::CallParameters* const call = vendor::nvidia::find_call_parameters(function);
  return call != nullptr ? call_structure_text(*call, parameters) : std::string();
}

}  // namespace tacho::decode
