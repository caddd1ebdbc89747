// What libtacho.so does when a preloaded process and its threads begin and end. preload.cpp calls it.
#pragma once

namespace tacho::capture {

/// Runs before the program's constructors and main. Starts the sampler if the configuration asks for one. `stack_end`:
/// above the outermost frame of the main thread. `main`: the program's function.
void before_main(const void* stack_end, const void* main);
/// Run on a new thread of a traced process, before its function `routine`, and when it ends (also by pthread_exit or
/// cancellation).
void thread_begins(const void* routine);
void thread_ends();
/// Run when the process ends by _exit; on other ways the sampler's own destructor does it.
void process_ends();

}  // namespace tacho::capture
