// What NCCL tells its profiler plugin (plugin.cpp), and the two functions that take it: those of mark.cpp in
// libtacho.so, those of plugin/watch/markers/collectives.cpp in libtacho-watch.so.
#pragma once

#include <cstdint>

namespace tacho::capture::nccl {

struct Told {
  const char *operation, *type, *algorithm, *protocol;
  uint64_t communicator, sequence, count;
  int ranks;  ///< 0 = unknown
  int rank;
};

/// The calling process has become a rank of a communicator.
void joined(uint64_t communicator, int ranks, int rank);
/// It has called a collective, and its kernel is launched.
void called(const Told& told);

}  // namespace tacho::capture::nccl
