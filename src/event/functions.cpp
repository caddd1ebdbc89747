// Function names by domain (functions.h).
#include "event/functions.h"

#include "event/functions_opencl.h"

namespace tacho::event {

std::string_view function_name(Domain domain, uint32_t number) {
  if (domain == Domain::kOpenCL) return opencl::function_name(static_cast<uint16_t>(number));
  return {};
}

bool function_has_result(Domain domain, uint32_t number) {
  return domain != Domain::kOpenCL || opencl::has_result(static_cast<uint16_t>(number));
}

}  // namespace tacho::event
