// A call of the driver's that tacho makes itself, so that CUPTI calls back on a thread that tacho knows and between two
// calls of the program's.
#pragma once

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::cuda {

/// What tacho does in the callbacks of its own call, at the call's begin and at its end. False: the subscriber is gone.
using InOwnCall = bool (*)(const abi::CallbackData& call);

/// Calls cuDriverGetVersion, and `what` in its callbacks. False if this driver or CUPTI has no such callback. For one
/// thread at a time.
bool make_own_call(const Cupti& cupti, abi::Subscriber subscriber, InOwnCall what);

/// CUPTI's number of cuDriverGetVersion among the driver's functions, 0 = unknown; and a plain call of it.
uint32_t number_of_own_function(const Cupti& cupti);
void call_own_function();

/// True if the callback is one of tacho's own call, and dealt with. Call first in a callback.
bool see_own_call(const abi::CallbackData& call);

}  // namespace tacho::capture::cuda
