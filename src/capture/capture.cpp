// Start of libtacho.so in a target (capture.h).
#include "capture/capture.h"

#include "capture/source/sampler/counts.h"
#include "tape/writer.h"

namespace tacho::capture {

bool start() {
  if (!tape::attach()) return false;
  sampler::start_counts();
  return true;
}

}  // namespace tacho::capture
