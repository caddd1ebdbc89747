// Call-stack sampling inside a target: a timer per thread, whose signal's handler copies registers, a slice of the
// stack and the Python frames into the pool. Configuration: sampler=timer, sample_hz (default 100),
// sample_clock=cpu|wall (default cpu), sample_stack=BYTES of stack per sample at most (default 16384).
//
// CPU time advances in steps of the kernel's tick: with CONFIG_HZ=250 no thread gives more than 250 samples a second.
// Each sample says how much time it stands for, by the thread's own clock, so shares stay right; the time of a process
// that no sample stands for is told when it ends (cpu_time.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tacho::capture::sampler {

/// Starts sampling of this process if its configuration asks for it; the caller is the main thread. `stack_end`: above
/// the main thread's outermost frame. `main`: the program's function.
void start_process(const void* stack_end, const void* main);
/// In a program that already runs: starts sampling of its threads if the configuration asks for it. And ends it: no
/// timer, no signal and no handler of tacho's is left.
void start_late();
void leave_late();
/// At the begin and end of every other thread. `routine`: the function with which it begins.
void begin_thread(const void* routine);
void end_thread();
/// When the process ends: tells the CPU time that no sample stands for.
void end_process();

/// Set while launching calls are to leave their Python stack (configuration: launch_stacks, with a sampler).
extern std::atomic<bool> g_launch_stacks;
void record_launch_stack(uint64_t correlation);
/// At a call that launches device work, before it: which line of Python it comes from. Costs one load when switched
/// off, about a microsecond in a Python thread.
inline void launch_stack(uint64_t correlation) {
  if (__builtin_expect(g_launch_stacks.load(std::memory_order_relaxed), 0)) record_launch_stack(correlation);
}

void record_memory_stack();
/// Before a record of memory: the Python stack of what the record tells, under the same conditions.
inline void memory_stack() {
  if (__builtin_expect(g_launch_stacks.load(std::memory_order_relaxed), 0)) record_memory_stack();
}

void record_allocation_stack(uint64_t correlation, uint64_t time, bool record_follows);
/// Where a call that allocates comes from, under the same conditions: its Python stack, or where no Python runs its
/// native one. `correlation`: the call's, and that of the allocation's row. `time`: host ticks, not behind the
/// allocation's beginning. `record_follows`: the thread writes the record of memory next.
inline void allocation_stack(uint64_t correlation, uint64_t time, bool record_follows) {
  if (__builtin_expect(g_launch_stacks.load(std::memory_order_relaxed), 0))
    record_allocation_stack(correlation, time, record_follows);
}

/// Ends sampling of this process for good: no timer goes off after it, and none is made.
void stop();

}  // namespace tacho::capture::sampler
