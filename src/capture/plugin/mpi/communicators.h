// Communicators by their handles: an id that is the same on all of their ranks, found without a message, the ranks of
// MPI_COMM_WORLD behind their own, and how many collectives they have had.
#pragma once

#include <atomic>
#include <cstdint>

#include "capture/plugin/mpi/library.h"

namespace tacho::capture::mpi {

struct Communicator {
  Word handle;
  uint64_t id;  // 0 = unknown
  uint32_t number, origin;
  int size, rank;
  int peers;         // ranks that messages can go to: of an intercommunicator those of the other group
  const int* world;  // of each of `peers`; nullptr: rank r is rank r of MPI_COMM_WORLD
  std::atomic<uint32_t> next_sequence;
  int holders;         // its handle, and windows
  Communicator* next;  // of those that wait to be freed

  /// event::kNoPeer if there is none.
  int32_t world_rank(int own) const {
    if (own < 0 || own >= peers) return event::kNoPeer;
    return world == nullptr ? own : world[own];
  }
  /// Ranks to which tacho has come late have counted from different collectives on: unknown.
  uint32_t take_sequence() {
    return g_host->late ? event::kNoSequence : next_sequence.fetch_add(1, std::memory_order_relaxed);
  }
};

/// nullptr for a null handle, and when there is no room for one more. One that is not known yet is taken in.
Communicator* find_communicator(Word handle);
/// Takes in a communicator that the call `origin` has made. `parent`: its collective number `sequence` made the new
/// one; nullptr: only the new one's own ranks took part. `between`: its id cannot be determined.
void add_communicator(Word handle, uint32_t origin, const Communicator* parent, uint32_t sequence, bool between);
/// Before the program frees it.
void forget_communicator(Word handle);
/// A window outlives the handle of the communicator that it was made of: until release_communicator() it stays.
Communicator* hold_communicator(Word handle);
void release_communicator(Communicator* held);
/// All of them, when a recording begins in a program that runs already: it may have freed some, and made others of
/// their handles, while nobody looked.
void forget_communicators();
/// The program has named it.
void rename_communicator(Word handle);

}  // namespace tacho::capture::mpi
