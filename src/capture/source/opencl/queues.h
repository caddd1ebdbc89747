// Command queues, and the enqueued commands whose times are not written yet.
//
// Every traced command has an event: the program's, which tacho retains once more, or one of tacho's. A description of
// the command waits in a list of its queue until the event is complete. Then tacho reads the profiling times, writes
// the record and releases the event. Three places do this and never wait: threads that enqueue, in batches; calls and
// callbacks from which the program learns that commands are complete, before it does; and tacho's flush thread, once a
// flush period.
#pragma once

#include "capture/source/opencl/core.h"
#include "capture/source/opencl/objects/devices.h"

namespace tacho::capture::opencl {

enum class CommandKind : uint8_t { kDone, kDispatch, kDispatchWide, kCopy, kFill, kSync };

struct WideShape {
  WideShape* next_free;
  uint64_t grid[3], group[3], offset[3];
};

/// When the host saw a command begin and end (host ticks, 0 = not yet), on a queue that gives no profiling times.
struct Observation {
  Observation* next_free;
  std::atomic<uint64_t> began, ended;
  std::atomic<uint32_t> users;  // the command and the callbacks that are to come
};

/// A command in flight. `value` and `flags` go into the record's header unchanged.
struct ClCommand {
  cl_event event;
  uint64_t correlation;
  uint64_t host_start, host_end;  // of the call that enqueued it
  uint32_t value;
  uint32_t ordinal;
  CommandKind kind;
  uint8_t flags;
  uint16_t arguments;  // of keep_arguments()
  uint32_t pattern_bytes;
  Observation* observation;  // nullptr: the runtime has its times
  union {
    struct {
      uint32_t grid[3], group[3];
    } shape;
    WideShape* wide;
    struct {
      uint64_t bytes, pattern;
    } data;
  };
};

struct CommandChunk {
  static constexpr uint32_t kCommands = 64;
  std::atomic<CommandChunk*> next;
  std::atomic<uint32_t> count;  // published
  uint32_t first;               // all commands before it are done
  ClCommand commands[kCommands];
};

struct ClQueue {
  std::atomic<uint32_t> references;  // the program's; 0 = retired
  uint32_t number;
  uint32_t index;  // in the list of queues; chooses the locks
  cl_command_queue handle;
  ClDevice* device;
  uint64_t context;
  std::atomic<uint64_t> properties;  // as the program asked
  bool forced;                       // profiling is on: tacho enabled it or the program asked for it
  bool adopted;                      // made before tacho attached: its properties are the program's own
  bool observed;                     // profiling is off: the host's clock says when commands begin and end
  std::atomic<bool> defined;
  std::atomic<bool> in_use;
  std::atomic<bool> joins;  // some of its commands waited for events, perhaps of other queues
  uint8_t array_words;      // of `array`, with the closing 0; 0 = the program gave none
  event::DeviceClock clock;
  cl_queue_properties array[15];

  // for enqueueing, under the append lock
  CommandChunk* tail;
  uint32_t since_poll, since_scan;
  // for collecting, under the drain lock
  std::atomic<CommandChunk*> head;
  std::atomic<uint64_t> appended, collected;
  uint64_t best_pair_uncertainty;  // of the pairs written since `pair_window`
  uint64_t pair_window;
  double ns_per_tick;  // of the host's ticks, measured when the queue was described
};

/// nullptr when the queue's commands cannot be traced.
ClQueue* queue_of(cl_command_queue handle);
/// Also of queues whose commands cannot be traced, and of those that the program gave up.
ClQueue* known_queue(cl_command_queue handle);
/// The program gave the queue up: its events may live on and be asked for profiling times that the program never
/// wanted.
bool given_up(const ClQueue& queue);
/// The program must not see profiling times of the queue: it did not ask, and the runtime would have refused.
bool hides_profiling(const ClQueue* queue);
ClQueue* queue_created(cl_command_queue handle, cl_context context, cl_device_id device, uint64_t asked, bool forced,
                       const cl_queue_properties* array);
void queue_retained(cl_command_queue handle);
/// Collects completed commands; forgets the queue with the program's last reference.
void queue_released(cl_command_queue handle);

/// Asks the runtime to tell when the command of `event` begins and ends; nullptr if it does not.
Observation* observe(cl_event event);

/// Takes over `command` (and one reference of its event).
void add(ClQueue& queue, const ClCommand& command);
/// As add(), for a command that is already complete: writes it at once.
void add_complete(ClQueue& queue, const ClCommand& command);
/// Writes at most `limit` completed commands; stops at the first incomplete one unless `all`.
void collect(ClQueue& queue, bool all, uint32_t limit);
/// Call after a call that waited for commands of the queue, before the program learns that it has ended. Writes
/// completed commands to the pool, also from the queues of the context whose commands this one waited for.
void collect_after_wait(ClQueue& queue);
/// collect_after_wait() for all queues of a context.
void collect_context(uint64_t context);
void collect_all_queues();
/// Before the program waits for the queue: the flush thread helps if many commands are in flight.
void prepare_wait(const ClQueue& queue);
/// True while tacho holds a reference to `event`.
bool holds(cl_event event);

WideShape* take_wide();
/// Whether a trigger concerns the run's first launch: count_launch() looks one launch ahead, so that something has to
/// come before it.
inline bool first_launch_triggers() {
  const tape::PoolHeader* const pool = tape::writer_internal::g_pool.load(std::memory_order_relaxed);
  return pool->start_launch == 1 || pool->stop_launch == 1;
}
/// Opens or closes recording before the first launch of the run, if this is it.
void before_first_launch();
/// Counts a launch (for triggers and checks) and returns its ordinal.
uint32_t count_launch();
void count_filtered();

/// Describes the queue in the trace, once. `first` may be null.
void define_queue(ClQueue& queue, const ClCommand* first);
/// Before the first queue.
void start_queues();
/// Begins anew in a pool that tacho has attached to: with no queue known.
void forget_queues();
/// Ends the flush thread and writes what is complete within a moment. What is still in flight is counted as lost, and
/// its events are given back.
void leave_queues();
/// Registers the exit handler. Call once, after the runtime has initialised.
void watch_exit();

}  // namespace tacho::capture::opencl
