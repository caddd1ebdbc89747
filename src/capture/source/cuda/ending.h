// How tacho leaves CUPTI in a program that ran before it came. Idle, with nothing enabled and nobody subscribed, CUPTI
// still makes the program's calls longer. Finalised (cuptiFinalize) it does not, but a CUDA graph that was launched
// while it was there fails at its next launch, and the program with it (seen with CUPTI 13.0 and driver 580). So CUPTI
// is finalised only if that was asked, and if tacho has followed all calls of graphs since CUPTI was initialised and
// there was none.
#pragma once

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::cuda {

/// CUPTI is initialised, and `subscriber` is there. Follows the calls of graphs if the configuration asks to finalise.
/// Call right after subscribing.
void begin_to_follow_graphs(const Cupti& cupti, abi::Subscriber subscriber);

/// In a callback: notes the call if it is one of a graph's.
void see_graph_call(int domain, uint32_t id);

/// Gives the subscriber back and leaves CUPTI idle or finalised; the trace says which, and why. All kinds are off and
/// all records handed over. `busy`: a thread of tacho's is still inside CUPTI. Not for a client among several
/// (own_subscriber.h), of which nothing stays.
void leave_cupti(const Cupti& cupti, abi::Subscriber subscriber, bool busy);

/// The same where another profiler uses CUPTI, before or after tacho: gives the subscriber back, if there is one, and
/// finalises nothing.
void leave_cupti_to_others(const Cupti& cupti, abi::Subscriber subscriber);

}  // namespace tacho::capture::cuda
