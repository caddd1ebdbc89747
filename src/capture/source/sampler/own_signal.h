// The signal by which sampling interrupts threads: its number, its handler, and how both stay out of the program's way.
#pragma once

#include <signal.h>

#include <cstddef>

namespace tacho::capture::sampler {

using SignalHandler = void (*)(int, siginfo_t*, void*);

/// The signal that belongs to us, 0 while not sampling. The program must not see it (signals.cpp).
int own_signal();
/// A real-time signal that the program does not use; 0 if it uses all.
int free_signal();
/// From here on `signal` is ours: `handler` handles it, and the calling thread lets it through. False if the kernel
/// refuses. Call once.
bool take_signal(int signal, SignalHandler handler);

/// libc's sigaction, not ours.
/// After take_signal() and once no timer is left: the signal is as it was, and none of it is on its way to a thread.
void give_signal_back();
int real_sigaction(int number, const struct sigaction* action, struct sigaction* previous);
/// `set` without our signal, in `without` if it has to be changed.
const sigset_t* less(const sigset_t* set, sigset_t& without);
/// Lets our signal through on the calling thread.
void unblock_own_signal();

/// A thread gets an alternate stack of `bytes` bytes. The kernel kills a program whose alternate stack overflows, so
/// from then on
/// - our handler runs on the threads' own stacks if those bytes are too few for a signal's frame and our handler;
/// - the program's handlers on alternate stacks block our signal if they are too few for theirs and ours together.
void alternate_stack(size_t bytes);
/// Our signal may interrupt the program's handlers on alternate stacks.
bool samples_on_alternate_stacks();

}  // namespace tacho::capture::sampler
