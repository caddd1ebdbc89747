// Call-stack sampling inside a target: a timer per thread, whose signal's handler copies registers, a slice
// of the stack and the Python frames into the pool. Configuration: sampler=timer, sample_hz (default 100),
// sample_clock=cpu|wall (default cpu), sample_stack=BYTES of stack per sample at most (default 16384).
//
// CPU time advances in steps of the kernel's tick: with CONFIG_HZ=250 no thread gives more than 250 samples a
// second; each says how much time it stands for, so that shares stay right.
#pragma once

#include <cstdint>

namespace tacho::capture::sampler {

/// Starts sampling of this process if its configuration asks for it; the caller is the main thread.
/// `stack_end`: above the main thread's outermost frame.
void start_process(const void* stack_end);
/// At the begin and end of every other thread.
void begin_thread();
void end_thread();

/// The signal that belongs to us, 0 while not sampling. The program must not see it (signals.cpp).
int own_signal();

}  // namespace tacho::capture::sampler
