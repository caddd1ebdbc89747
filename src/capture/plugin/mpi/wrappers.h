// The functions that replace MPI's: each calls the function that the program would have called and records the call.
#pragma once

#include <cstddef>

namespace tacho::capture::mpi {

/// By number in kCalls. `real`: the function that the wrapper calls.
void* wrapper_of(size_t number);
void set_real(size_t number, void* real);
void* real_of(size_t number);

}  // namespace tacho::capture::mpi
