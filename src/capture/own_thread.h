// Threads of tacho's own in a target: what each of them needs so that the program does not notice it.
#pragma once

namespace tacho::capture {

/// Starts `function` on a detached thread with a small stack and every signal blocked, so that the program's handlers
/// never run on it. False when the system gives no thread; the caller says what is lost by that.
bool start_own_thread(void* (*function)(void*));

}  // namespace tacho::capture
