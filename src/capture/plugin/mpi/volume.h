// How many bytes a collective moves, from its parameters.
#pragma once

#include <cstdint>

#include "capture/plugin/mpi/communicators.h"
#include "capture/plugin/mpi/roles.h"

namespace tacho::capture::mpi {

inline constexpr uint64_t kUnknownBytes = ~uint64_t{0};

/// The bytes that this rank gives and gets. With MPI_IN_PLACE its own contribution still counts. kUnknownBytes: the
/// call does not say.
struct Bytes {
  uint64_t sent = kUnknownBytes, received = kUnknownBytes;
};
/// `given`: the parameters of a call that has succeeded.
Bytes bytes_of_collective(const Role& role, const Word* given, const Communicator& communicator);
/// Of `count` elements of a data type.
uint64_t bytes_of(Word count, Word type, bool large);

}  // namespace tacho::capture::mpi
