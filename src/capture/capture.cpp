// Start of libtacho.so in a target (capture.h).
#include "capture/capture.h"

#include <cstring>

#include "capture/source/sampler/sampler.h"
#include "tape/writer.h"

namespace tacho::capture {

bool start() {
  return tape::attach();
}

void before_main(const void* stack_end) {
  // Without a sampler a process attaches when it first has something to record.
  char sampler[16];
  if (!tape::peek_config("sampler", sampler, sizeof sampler) || strcmp(sampler, "off") == 0) return;
  if (start()) sampler::start_process(stack_end);
}

void thread_begins() {
  sampler::begin_thread();
}

void thread_ends() {
  sampler::end_thread();
  tape::flush_thread();
}

}  // namespace tacho::capture
