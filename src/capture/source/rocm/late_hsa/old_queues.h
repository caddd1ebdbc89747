// HSA queues that a program had made before tacho attached to it. The GPU may read a packet as soon as it is written,
// so that tacho changes nothing in these queues: it reads the packets when the program rings the queue's doorbell, and
// the times of a dispatch from the completion signal that the program gave it. A dispatch without one has no times.
#pragma once

#include <cstdint>

#include "vendor/amd/hsa.h"

namespace tacho::capture::rocm {

namespace hsa = vendor::hsa;

/// Puts functions that see doorbells and what becomes of signals in the place of the runtime's.
void put_signal_functions(hsa::CoreTable& core);
/// Takes up dispatches from here on. `anew`: tacho has attached once more, else it goes on within its stay.
void begin_old_queues(bool anew);
/// Takes up no further dispatch.
void close_old_queues();
/// Counts the dispatches whose times have not come, and gives up what was remembered. The queues are as before.
void end_old_queues();
/// At the end of tacho's stay: says in the trace what was seen.
void tell_old_queues();
/// Reads what has been written and what has completed since. Returns how many dispatches have not completed.
uint64_t look_at_old_queues();
/// Before the program destroys the queue.
void forget_old_queue(hsa::Queue* queue);
/// The program gives its signal to other work: a dispatch's times are not in it any more.
void forget_completion(hsa::Signal signal);
/// Other work has left its times in the program's signal; `end`: of these.
void completion_used(hsa::Signal signal, uint64_t end);

}  // namespace tacho::capture::rocm
