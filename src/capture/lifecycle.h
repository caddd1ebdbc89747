// What libtacho.so does when a preloaded process and its threads begin and end. preload.cpp calls it.
#pragma once

namespace tacho::capture {

/// Runs before the program's constructors and main. Starts the sampler if the configuration asks for one. `stack_end`:
/// above the outermost frame of the main thread.
void before_main(const void* stack_end);
/// Run on a new thread of a traced process, before its function, and when it ends (also by pthread_exit or
/// cancellation).
void thread_begins();
void thread_ends();

}  // namespace tacho::capture
