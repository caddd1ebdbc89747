// Which injections lead events of markers and collectives to a library, beside those of a vendor's compute API.
#pragma once

#include "vendor/vendor.h"

namespace tacho::vendor {

/// Whether what the injection's source tells needs nothing of the compute API: `tacho watch --keep` takes those alone.
bool tells_events(const Injection& way);

}  // namespace tacho::vendor
