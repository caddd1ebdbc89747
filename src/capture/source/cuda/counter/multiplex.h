// Iteration multiplexing: nothing runs twice. Switching passes costs 1 to 45 ms, a launch in a session 1 ms (H200), so a pass
// is held for a batch of launches. CUPTI combines the k-th range of every pass, so the k-th launches must be alike: the
// first pass of a cycle defines the sequence of shapes, every later pass waits for the first shape of it and ends where the
// launches go another way. After a cycle as many launches go unmeasured as its switches would have lasted. Every context has
// cycles of its own.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/source/cuda/counter/session.h"

namespace tacho::capture::counter::multiplex {

/// The session that the launch is measured in, as its next range; nullptr: it goes unmeasured. `shape` is not 0 and the
/// same for launches that may be combined.
Session* begin_launch(void* context, uint64_t shape);
/// True in the first pass of a cycle: a range goes by the launch of that pass, the others are its samples.
bool defines_range(const Session& session);
/// Where the record of such a launch lies in the session's records.
void note_record(Session& session, size_t offset);
/// The launch is over, after so many ticks of raw_now().
void end_launch(Session& session, int64_t inside);
/// A launch comes that must not be in the running pass.
void interrupt(Session& session);
/// What the cycle has so far is lost. CUPTI goes on with the next pass in the session's object: it has to be made anew.
void abandon(Session& session);

}  // namespace tacho::capture::counter::multiplex
