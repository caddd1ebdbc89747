// How tacho leaves CUPTI in a program that ran before it came. Idle, with nothing enabled and nobody subscribed, CUPTI
// still makes the program's calls longer. Finalised (cuptiFinalize) it does not. But a CUDA graph that was launched
// while kinds of records were on, and launched again while they were off, fails at its next launch after that, and the
// program with it (seen with CUPTI 13.0 and driver 580). So CUPTI is finalised only if tacho has followed all calls of
// graphs since CUPTI was initialised and there was none, and not if the configuration asks to leave it idle. Whether
// another tool initialised it is told by its number of a first call: CUPTI counts the calls that it tells of, from 1 on
// in a process and since it was finalised. Nor is it finalised where that could keep the program's calls waiting for
// the device (session.cpp).
#pragma once

#include "capture/source/cuda/cupti_api.h"

namespace tacho::capture::cuda {

/// CUPTI is initialised, and `subscriber` is there. Follows the calls of graphs, unless the configuration asks to
/// leave CUPTI idle. Call right after subscribing.
void begin_to_follow_graphs(const Cupti& cupti, abi::Subscriber subscriber);

/// In a callback: notes the call if it is one of a graph's.
void see_graph_call(int domain, uint32_t id);

/// Gives the subscriber back and leaves CUPTI idle or finalised; the trace says which, and why. All kinds are off and
/// all records handed over. `unsafe`: why the session must not finalise it, or null. Not for a client among
/// several (own_subscriber.h), of which nothing stays.
void leave_cupti(const Cupti& cupti, abi::Subscriber subscriber, const char* unsafe);

/// The same where another profiler uses CUPTI, before or after tacho: gives the subscriber back, if there is one, and
/// finalises nothing.
void leave_cupti_to_others(const Cupti& cupti, abi::Subscriber subscriber);

}  // namespace tacho::capture::cuda
