// What every source of libtacho.so shares.
#pragma once

namespace tacho::capture {

/// Attaches to the pool (tape::attach) and lets the sources that need a start do it: called by every entry
/// point through which a source is loaded (an API layer, a driver that injects libtacho.so, preloading).
/// Idempotent, thread-safe; false when this process is not traced.
bool start();

// Called by what is preloaded (preload.cpp).

/// Before the program's constructors and main. Starts what must see the whole run, if the configuration asks
/// for such. `stack_end`: above the outermost frame of the main thread.
void before_main(const void* stack_end);
/// On a new thread of a traced process, before its function, and when it ends (also by pthread_exit or
/// cancellation).
void thread_begins();
void thread_ends();

}  // namespace tacho::capture
