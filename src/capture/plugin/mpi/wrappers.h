// The functions that stand in for MPI's: each calls what the program would have called and records what it did.
#pragma once

#include <cstddef>

namespace tacho::capture::mpi {

/// By number in kCalls. `real`: what the wrapper calls.
void* wrapper_of(size_t number);
void set_real(size_t number, void* real);
void* real_of(size_t number);

}  // namespace tacho::capture::mpi
