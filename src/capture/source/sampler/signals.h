// Wraps the program's signal calls while tacho owns a signal.
#pragma once

#include <signal.h>

namespace tacho::capture::sampler {

/// libc's sigaction, not ours.
int real_sigaction(int number, const struct sigaction* action, struct sigaction* previous);
/// `set` without our signal, in `without` if it has to be changed.
const sigset_t* less(const sigset_t* set, sigset_t& without);
/// Lets the signal through on the calling thread.
void unblock(int number);

}  // namespace tacho::capture::sampler
