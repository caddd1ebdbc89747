// Start of libtacho.so in a target (capture.h).
#include "capture/capture.h"

#include "tape/writer.h"

namespace tacho::capture {

bool start() { return tape::attach(); }

}  // namespace tacho::capture
