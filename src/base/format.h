// The only include of {fmt}. Debian packages only its headers and a shared library, so fmt.cpp compiles it once into
// tacho_base and all other files include the light core.
#pragma once

#include <fmt/format.h>
