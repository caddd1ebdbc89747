// Finds out whether the process uses MPI, and only then loads libtacho-mpi.so.
#pragma once

namespace tacho::capture::mpi {

/// Looks at the objects that are loaded now, and from here on at those that come later. Call before main, of processes
/// that may be traced.
void watch();

/// In a program that was running when tacho attached: leads its calls of MPI to libtacho-mpi.so, again whenever it has
/// loaded libraries since.
void start_late();
/// Gives the words back that lead to it.
void leave_late();
/// A forked child must not call MPI, and has nothing taken out.
void leave_late_in_child();

}  // namespace tacho::capture::mpi
