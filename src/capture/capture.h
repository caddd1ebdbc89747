// Functions that all sources of libtacho.so share.
#pragma once

namespace tacho::capture {

/// Attaches to the pool (tape::attach). Every entry point through which a source is loaded calls it: an API layer, a
/// driver that injects libtacho.so, preloading. Idempotent and thread-safe; false if this process is not traced.
bool start();

// Called by preload.cpp.

/// Runs before the program's constructors and main. Starts the sampler if the configuration asks for one. `stack_end`:
/// above the outermost frame of the main thread.
void before_main(const void* stack_end);
/// Run on a new thread of a traced process, before its function, and when it ends (also by pthread_exit or
/// cancellation).
void thread_begins();
void thread_ends();

}  // namespace tacho::capture
