// Starts tacho's own threads in a target so that the program does not notice them.
#pragma once

namespace tacho::capture {

/// Starts `function` on a detached thread with a small stack and every signal blocked, so that the program's handlers
/// never run on it. False when the system gives no thread; the caller then warns of what is lost.
bool start_own_thread(void* (*function)(void*));

}  // namespace tacho::capture
