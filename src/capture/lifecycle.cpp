// The begin and end of a process and of its threads (lifecycle.h).
#include "capture/lifecycle.h"

#include <errno.h>
#include <sys/prctl.h>

#include <cstring>

#include "capture/capture.h"
#include "capture/source/mpi/watch.h"
#include "capture/source/sampler/sampler.h"
#include "tape/permitted.h"
#include "tape/writer.h"

namespace tacho::capture {

namespace {
// In its own frame, which has been popped when the first sample comes: it is larger than the piece of stack that
// samples keep.
[[gnu::noinline]] bool sampler_asked_for() {
  char memory[tape::kConfigBytes];
  event::ConfigurationView configuration;
  return tape::peek_configuration(memory, configuration) && configuration.sampler != event::Sampler::kOff;
}
}  // namespace

void before_main(const void* stack_end, const void* main) {
  tape::set_preloaded();
  mpi::watch();
  // Without a sampler a process attaches when it first has something to record.
  if (sampler_asked_for() && start()) sampler::start_process(stack_end, main);
}

void thread_begins(const void* routine) {
  sampler::begin_thread(routine);
}

namespace {
// The kernel's name for the thread, if it differs from the program's.
void describe_thread() {
  char name[16] = {};
  if (!tape::permitted(tape::kCallName)) return;
  if (prctl(PR_GET_NAME, name, 0, 0, 0) != 0 || name[0] == '\0') return;
  if (strncmp(name, program_invocation_short_name, sizeof name - 1) == 0) return;
  event::ThreadRecord record{};
  record.header = {event::RecordKind::kThread, 0, sizeof record, tape::t_state.thread_index};
  record.tid = tape::t_state.tid;
  record.name = tape::intern(name);
  tape::define(&record.header);
}
}  // namespace

void thread_ends() {
  if (tape::t_state.hidden >= tape::kHiddenForGood) return;
  // Only of threads that recorded something in this process image.
  const tape::ThreadState& state = tape::t_state;
  if (state.generation != 0 && state.generation == tape::process_generation() && state.block != nullptr)
    describe_thread();
  sampler::end_thread();
  tape::flush_thread();
}

void process_ends() {
  sampler::end_process();
}

}  // namespace tacho::capture
