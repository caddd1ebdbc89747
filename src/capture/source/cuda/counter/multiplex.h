// Iteration multiplexing: nothing runs twice. Switching passes costs 1 to 45 ms and a launch in a session 1 ms (H200),
// so a pass lasts for a batch of launches. CUPTI combines the k-th range of every pass, so the k-th launches must be
// alike. The first pass of a cycle therefore defines a sequence of shapes; every later pass waits for the first shape
// of the sequence and ends where the launches diverge from it. After a cycle, launches go unmeasured for as long as its
// switches took. Every context has its own cycles.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/source/cuda/counter/session.h"

namespace tacho::capture::counter::multiplex {

/// Returns the session that measures the launch as its next range, or nullptr if the launch goes unmeasured. Launches
/// that CUPTI may combine have the same `shape`, which is never 0.
CounterSession* begin_launch(void* context, uint64_t shape);
/// True in the first pass of a cycle: its launch describes the range, later launches are samples of it.
bool defines_range(const CounterSession& session);
/// Notes the offset of such a launch's record in the session's records.
void note_record(CounterSession& session, size_t offset);
/// The launch is over; it took `inside` ticks of raw_now().
void end_launch(CounterSession& session, int64_t inside);
/// Ends the running pass before a launch that must not be in it.
void interrupt(CounterSession& session);
/// Drops the cycle's results. CUPTI would continue with the next pass in the session's object, so this makes a new
/// object.
void abandon(CounterSession& session);

}  // namespace tacho::capture::counter::multiplex
