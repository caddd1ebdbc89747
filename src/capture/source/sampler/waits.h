// Wraps the program's waiting calls while its threads are sampled, so that a sampling signal ends none of them.
#pragma once

#include <signal.h>
#include <ucontext.h>

namespace tacho::capture::sampler {

/// In the handler of the sampling signal: remembers if it has ended a wait of the interrupted thread. Signals are then
/// blocked until the thread waits again.
void note_interruption(ucontext_t* context);

}  // namespace tacho::capture::sampler
