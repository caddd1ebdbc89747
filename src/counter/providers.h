// The factories of the providers; provider.cpp lists them.
#pragma once

#include <memory>

#include "counter/provider.h"

namespace tacho::counter {

std::unique_ptr<Provider> make_virtual_provider();
std::unique_ptr<Provider> make_cpu_provider();
/// Plans passes of AMD GPUs; has no devices.
std::unique_ptr<Provider> make_amd_provider();

}  // namespace tacho::counter
