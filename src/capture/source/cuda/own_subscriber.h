// CUPTI beside other clients. From CUDA 13.3 on, with driver 610 or later, several clients record at once if each has a
// subscriber and uses the functions that take it (those with _v2). Facts: NVIDIA's CUPTI documentation 13.3 to 13.5,
// and the clients of JAX and PyTorch, which declare the same functions.
#pragma once

#include <cstdint>

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::cuda {

/// Makes tacho such a client: `cupti`'s functions without a subscriber then do what those with one do for `subscriber`,
/// whose callback is `callback`. False, and nothing changed, where CUPTI or the driver (major version, 0 = unknown) is
/// older, where a client of the older functions is there, or where CUPTI does not answer all that tacho needs.
bool take_own_subscriber(Cupti& cupti, uint32_t version, unsigned driver, abi::Callback callback,
                         abi::Subscriber& subscriber);
/// True from take_own_subscriber() on: clients of the functions with _v2 may record, too.
bool has_own_subscriber();
/// For the end of a session: forgets the subscriber, which the caller has given back to CUPTI.
void forget_own_subscriber();

}  // namespace tacho::capture::cuda
