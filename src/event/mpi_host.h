// Between libtacho.so and libtacho-mpi.so (capture/plugin/mpi): the functions that each gives the other. Both are of
// one build.
#pragma once

#include <cstdint>

#include "event/records.h"

namespace tacho::capture {

/// A call of MPI while it runs.
struct MpiCall {
  uint64_t start, correlation, outer;
};

struct MpiHost {
  uint64_t size;  // of this struct: another build's library is refused
  /// False: nothing is recorded now. Else fills in `call`, which end() takes.
  bool (*begin)(MpiCall& call);
  uint64_t (*now)();  // host time
  /// Records the call. `end`: host time, 0 = it will not return. `value`: event::api_value.
  void (*end)(const MpiCall& call, uint64_t end, uint32_t value);
  void (*drop)(const MpiCall& call);  // instead of end(): it is not recorded after all
  void (*message)(const event::MessageRecord& record);
  /// `record`'s texts are given apart, nullptr = none.
  void (*communicator)(event::CommunicatorRecord record, const char* name, const char* members);
  void (*property)(const char* key, const char* text);  // of the process
  void (*warn)(const char* sentence);
  void (*flush)();  // hands over the thread's records
  bool late;        // MPI runs already: see MpiLibrary::begin
};

/// The functions of libtacho-mpi.so.
struct MpiLibrary {
  uint64_t size;
  /// Binds the calls of all objects that are loaded now. Call again when more are.
  void (*bind)();
  /// The result that dlsym should return after finding `found` under `name`.
  void* (*symbol)(void* found, const char* name);

  // In a program that runs already, where tacho may come and leave any number of times. For one thread at a time.
  /// A recording begins: communicators, requests and their numbers of an earlier one are forgotten.
  void (*begin)();
  /// Leads the words by which the program calls MPI to the wrappers. Call again when more objects are loaded. False:
  /// the words cannot be looked at.
  bool (*lead)();
  /// Gives the words back as they were.
  void (*lead_back)();
};
/// nullptr: this MPI cannot be recorded. `mpi`: a handle of the library that has MPI's functions.
using StartMpi = const MpiLibrary*(const MpiHost* host, void* mpi);
inline constexpr const char* kStartMpi = "tacho_mpi_start";
inline constexpr const char* kMpiLibrary = "libtacho-mpi.so";

}  // namespace tacho::capture
