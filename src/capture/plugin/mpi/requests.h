// The operations behind MPI's requests, from the call that makes one to the call that completes it, on whatever thread.
// Sends are recorded when they are begun and are not kept here, unless their request is persistent.
#pragma once

#include <cstdint>

#include "capture/plugin/mpi/library.h"

namespace tacho::capture::mpi {

struct MpiRequest {
  enum class Kind : uint8_t { kReceive, kSend, kCollective, kCommunicator, kFileRead, kFileWrite, kWindow };
  Kind kind;
  bool persistent;
  bool active;  // of a persistent one: MPI_Start has begun it
  uint16_t function;
  uint32_t communicator;  // number
  uint32_t sequence;      // of a collective
  int32_t tag;
  int32_t peer;             // as MPI_COMM_WORLD numbers ranks; of a receive from anybody kNoPeer
  uint64_t begun;           // host time
  uint64_t sent, received;  // of a receive: the room that it has
  Word handle;              // of the communicator: where a receive's source is a rank of. kCommunicator: see wrappers
  Word place;               // kCommunicator: where the program gets it; kWindow: its Communicator
};

/// Keeps `request` for `handle`. If the table has no room, the operation that it completes is not recorded.
void keep_request(Word handle, const MpiRequest& request);
/// A copy; false if it is unknown.
bool see_request(Word handle, MpiRequest& request);
/// False if it is unknown.
bool known_request(Word handle);
/// Takes it out, unless it is persistent; then it is inactive from here on. False if it is unknown or not active.
bool complete_request(Word handle, MpiRequest& request);
/// MPI_Start: false if it is unknown; else a copy.
bool start_request(Word handle, uint64_t begun, MpiRequest& request);
void forget_request(Word handle);
/// All of them; communicators of windows are released.
void forget_requests();

}  // namespace tacho::capture::mpi
