// What calls of the vendors' APIs tell about device work when they return (TACHO_CALL_ROLE of vendors.def).
#pragma once

#include <string_view>

#include "event/call_role.h"

namespace tacho::vendor {

/// Of a call without an error. The name may end in a version: "cuMemcpyDtoH_v2", "cudaStreamSynchronize_ptsz".
event::CallRole call_role(std::string_view function);

}  // namespace tacho::vendor
