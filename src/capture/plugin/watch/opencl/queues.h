// Hooks of what makes and releases queues, and of what the program is told of them and of events.
#pragma once

#include "capture/plugin/watch/opencl/twins.h"

namespace tacho::capture::watch::cl {

/// In a program that ran before tacho came: whether the runtime tells times of what is in the queue.
bool has_times(cl_command_queue handle);
/// Keeps what a queue that tacho has not seen made belongs to.
void keep_late_queue(cl_command_queue handle);
/// The program has asked for functions of command buffers.
void note_command_buffers();
/// Forgets what it knows of queues in programs that ran before tacho came, whose handles may mean others now. `all`:
/// those that it has seen made, too.
void forget_queues(bool all);
/// Puts what the program is told of queues and events, and what makes and releases them, among the hooks. `layer`: of
/// the ICD loader, where queues have twins.
void install_queues(D& hooks, bool layer);

}  // namespace tacho::capture::watch::cl
