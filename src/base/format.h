// The one include of {fmt}: Debian packages only its headers and a shared library, so fmt.cpp compiles it
// once into tacho_base and everybody else includes the light core.
#pragma once

#include <fmt/format.h>
