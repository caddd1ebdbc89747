// Names of API functions by the numbers that sources write. For vendors' own numbers (CUPTI callback ids) the target
// sends the names instead (NameRecord).
#pragma once

#include <cstdint>
#include <string_view>

#include "event/schema.h"

namespace tacho::event {

/// Number of the first function of HSA's table of AMD's extensions.
inline constexpr uint32_t kFirstHsaAmd = 501;
/// Name of function `number` of `domain`; empty when there is none.
std::string_view function_name(Domain domain, uint32_t number);
/// False for functions whose ApiRecord's result means nothing.
bool function_has_result(Domain domain, uint32_t number);

}  // namespace tacho::event
