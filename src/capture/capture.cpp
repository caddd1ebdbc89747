// Start of libtacho.so in a target (capture.h).
#include "capture/capture.h"

#include "tape/writer.h"

namespace tacho::capture {

bool start() { return tape::attach(); }

void before_main() {}

void thread_begins() {}

void thread_ends() { tape::flush_thread(); }

}  // namespace tacho::capture
