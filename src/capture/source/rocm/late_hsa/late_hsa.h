// HSA without HIP in a program that was running when tacho attached to it. tacho's functions go into the runtime's
// tables, as in programs that it starts (session.cpp), and out again.
//
//   late_hsa.cpp    the source's life
//   hsa_tables.cpp  where the tables are
//   old_queues.cpp  queues that the program had made before
#pragma once

namespace tacho::capture::rocm {

/// The program has a HSA runtime loaded, and no HIP.
void start_late_hsa();
void look_at_late_hsa();
void leave_late_hsa();
void leave_late_hsa_in_child();
/// True while the source has something to do with this process: HIP then comes too late to be recorded by its tracer.
bool hsa_is_recorded_late();

}  // namespace tacho::capture::rocm
