// How many bytes a collective moves, from its parameters.
#pragma once

#include <cstdint>

#include "capture/plugin/mpi/communicators.h"
#include "capture/plugin/mpi/roles.h"

namespace tacho::capture::mpi {

inline constexpr uint64_t kUnknownBytes = ~uint64_t{0};

/// What this rank gives and gets; with MPI_IN_PLACE what it gives of its own counts all the same. kUnknownBytes: not
/// told.
struct Bytes {
  uint64_t sent = kUnknownBytes, received = kUnknownBytes;
};
/// `given`: the parameters of a call that has succeeded.
Bytes bytes_of_collective(const Role& role, const Word* given, const Communicator& communicator);
/// Of `count` elements of a data type.
uint64_t bytes_of(Word count, Word type, bool large);

}  // namespace tacho::capture::mpi
