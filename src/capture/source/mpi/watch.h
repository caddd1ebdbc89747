// Finds out whether the process uses MPI, and only then loads libtacho-mpi.so.
#pragma once

namespace tacho::capture::mpi {

/// Looks at the objects that are loaded now, and from here on at those that come later. Call before main, of processes
/// that may be traced.
void watch();

}  // namespace tacho::capture::mpi
