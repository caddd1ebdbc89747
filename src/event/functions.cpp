// Function names by domain (functions.h).
#include "event/functions.h"

namespace tacho::event {

std::string_view function_name(Domain, uint32_t) { return {}; }

}  // namespace tacho::event
