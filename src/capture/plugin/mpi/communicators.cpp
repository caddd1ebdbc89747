// Communicators (communicators.h).
#include "capture/plugin/mpi/communicators.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/room/lock.h"

namespace tacho::capture::mpi {
namespace {

// Open addressing; a handle that was freed leaves kGone, which a later one may take.
constexpr size_t kSlots = 4096;
constexpr Word kFree = 0, kGone = 3;
struct Slot {
  std::atomic<Word> handle;
  std::atomic<Communicator*> communicator;
};
constinit Slot g_slots[kSlots] = {};
constinit LockWord g_locked{0};
constinit Communicator* g_waiting = nullptr;  // under the lock, as are these
constinit uint32_t g_next_number = 1;
constinit struct {
  uint64_t members;
  uint32_t count;
} g_made_apart[512] = {};  // communicators that only their own ranks made, by a hash of these

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdULL;
  return hash ^ hash >> 33;
}
// Traces keep ids as signed numbers, and 0 says that there is none.
uint64_t as_id(uint64_t hash) {
  return (hash >> 1) | 1;
}

size_t place_of(Word handle) {
  return (handle * 0x9e3779b97f4a7c15ULL >> 40) % kSlots;
}

Communicator* look_up(Word handle) {
  for (size_t i = 0, at = place_of(handle); i < kSlots; ++i, at = (at + 1) % kSlots) {
    const Word there = g_slots[at].handle.load(std::memory_order_acquire);
    if (there == handle) return g_slots[at].communicator.load(std::memory_order_acquire);
    if (there == kFree) return nullptr;
  }
  return nullptr;
}

// "[0-3, 6]"; nullptr when it is too long for a string of a trace. The caller frees it.
char* members_text(const int* ranks, int count) {
  constexpr size_t kMost = 60'000;
  auto* const text = static_cast<char*>(malloc(kMost));
  if (text == nullptr) return nullptr;
  size_t at = 0;
  text[at++] = '[';
  for (int i = 0; i < count;) {
    int k = i;
    while (k + 1 < count && ranks[k + 1] == ranks[k] + 1) ++k;
    if (at + 32 > kMost) {
      free(text);
      return nullptr;
    }
    if (i != 0) at += static_cast<size_t>(snprintf(text + at, 3, ", "));
    at += static_cast<size_t>(k > i ? snprintf(text + at, 28, "%d-%d", ranks[i], ranks[k])
                                    : snprintf(text + at, 28, "%d", ranks[i]));
    i = k + 1;
  }
  text[at++] = ']';
  text[at] = '\0';
  return text;
}

void define(const Communicator& communicator, const int* members) {
  char name[256] = {};
  int length = 0;
  g_mpi.comm_get_name(communicator.handle, name, &length);
  // Open MPI names those that the program does not: "MPI COMMUNICATOR 3 SPLIT FROM 0".
  if (strncmp(name, "MPI COMMUNICATOR ", 17) == 0) name[0] = '\0';
  char* const list = members != nullptr ? members_text(members, communicator.size) : nullptr;
  event::CommunicatorRecord record{};
  record.header.value = communicator.number;
  record.id = communicator.id;
  record.size = static_cast<uint32_t>(communicator.size);
  record.origin = communicator.origin;
  g_host->communicator(record, name, list);
  free(list);
}

// The ranks of a group as MPI_COMM_WORLD numbers them; nullptr without memory. The caller frees it.
int* world_ranks(Word group, int& count) {
  Word world = 0;
  g_mpi.group_size(group, &count);
  auto* const ranks = static_cast<int*>(malloc(2 * static_cast<size_t>(count < 1 ? 1 : count) * sizeof(int)));
  if (ranks == nullptr) return nullptr;
  for (int i = 0; i < count; ++i) ranks[count + i] = i;
  g_mpi.comm_group(g_mpi.world, &world);
  g_mpi.group_translate_ranks(group, count, ranks + count, world, ranks);
  g_mpi.group_free(&world);
  for (int i = 0; i < count; ++i)
    if (ranks[i] < 0) ranks[i] = event::kNoPeer;  // of another world: a spawned process
  return ranks;
}

// MPI_COMM_WORLD is another one in processes that MPI_Comm_spawn has started.
uint64_t world_id() {
  Word parent = g_mpi.no_communicator;
  g_mpi.comm_get_parent(&parent);
  if (g_mpi.handle(parent) == g_mpi.no_communicator) return as_id(2);
  uint64_t hash = 0x57;
  for (const char* const variable : {"PMIX_NAMESPACE", "PMI_JOBID"})
    if (const char* at = getenv(variable))
      for (; *at != '\0'; ++at) hash = mixed(hash, static_cast<unsigned char>(*at));
  return as_id(hash);
}

enum class Known : uint8_t { kNothing, kParent, kApart, kBetween };

Communicator* take_in(Word handle, uint32_t origin, Known known, const Communicator* parent, uint32_t sequence) {
  const Guard lock(g_locked);
  if (known == Known::kNothing)
    if (Communicator* const there = look_up(handle)) return there;
  auto* const fresh = static_cast<Communicator*>(calloc(1, sizeof(Communicator)));
  if (fresh == nullptr) return nullptr;
  int between = 0;
  fresh->handle = handle;
  fresh->holders = 1;
  fresh->number = g_next_number++;
  fresh->origin = origin;
  g_mpi.comm_size(handle, &fresh->size);
  g_mpi.comm_rank(handle, &fresh->rank);
  g_mpi.comm_test_inter(handle, &between);
  Word group = 0;
  int count = 0;
  g_mpi.comm_group(handle, &group);
  int* const members = world_ranks(group, count);
  g_mpi.group_free(&group);
  fresh->peers = fresh->size;
  fresh->world = members;
  if (between != 0) {
    g_mpi.comm_remote_group(handle, &group);
    fresh->world = world_ranks(group, fresh->peers);
    g_mpi.group_free(&group);
  }
  if (handle == g_mpi.world) {
    fresh->id = world_id();
  } else if (handle == g_mpi.self) {
    fresh->id = mixed(as_id(3), members != nullptr ? static_cast<uint64_t>(members[0]) : 0) >> 1 | 1;
  } else if (between == 0 && members != nullptr && count > 0 && known == Known::kParent && parent->id != 0 &&
             sequence != event::kNoSequence) {
    int least = members[0];
    for (int i = 1; i < count; ++i)
      if (members[i] < least) least = members[i];
    fresh->id = as_id(mixed(mixed(parent->id, sequence), static_cast<uint64_t>(least)));
  } else if (between == 0 && members != nullptr && known == Known::kApart && !g_host->late) {
    uint64_t hash = origin;
    for (int i = 0; i < count; ++i) hash = mixed(hash, static_cast<uint64_t>(members[i]));
    for (auto& entry : g_made_apart)
      if (entry.count == 0 || entry.members == hash) {
        entry.members = hash;
        fresh->id = as_id(mixed(hash, entry.count++));
        break;
      }
  }
  define(*fresh, members);
  if (between != 0) free(members);
  if (fresh->world == nullptr) fresh->peers = 0;

  Slot* to = nullptr;
  for (size_t i = 0, at = place_of(handle); i < kSlots; ++i, at = (at + 1) % kSlots) {
    const Word there = g_slots[at].handle.load(std::memory_order_relaxed);
    if (there == handle) {  // freed in a way that tacho does not see, and taken again
      to = &g_slots[at];
      break;
    }
    if (there == kGone && to == nullptr) to = &g_slots[at];
    if (there == kFree) {
      if (to == nullptr) to = &g_slots[at];
      break;
    }
  }
  if (to == nullptr) return nullptr;
  to->communicator.store(fresh, std::memory_order_release);
  to->handle.store(handle, std::memory_order_release);
  return fresh;
}

// With the lock held.
void let_go(Communicator* communicator) {
  if (--communicator->holders > 0) return;
  free(const_cast<int*>(communicator->world));
  free(communicator);
}

}  // namespace

Communicator* find_communicator(Word handle) {
  handle = g_mpi.handle(handle);
  if (handle == g_mpi.no_communicator) return nullptr;
  if (Communicator* const there = look_up(handle)) return there;
  return take_in(handle, 0, Known::kNothing, nullptr, 0);
}

void add_communicator(Word handle, uint32_t origin, const Communicator* parent, uint32_t sequence, bool between) {
  handle = g_mpi.handle(handle);
  if (handle == g_mpi.no_communicator) return;
  take_in(handle, origin,
          between             ? Known::kBetween
          : parent != nullptr ? Known::kParent
                              : Known::kApart,
          parent, sequence);
}

void forget_communicator(Word handle) {
  handle = g_mpi.handle(handle);
  const Guard lock(g_locked);
  for (size_t i = 0, at = place_of(handle); i < kSlots; ++i, at = (at + 1) % kSlots) {
    const Word there = g_slots[at].handle.load(std::memory_order_relaxed);
    if (there == kFree) return;
    if (there != handle) continue;
    Communicator* const gone = g_slots[at].communicator.load(std::memory_order_relaxed);
    g_slots[at].handle.store(kGone, std::memory_order_release);
    let_go(gone);
    return;
  }
}

Communicator* hold_communicator(Word handle) {
  Communicator* const known = find_communicator(handle);
  if (known == nullptr) return nullptr;
  const Guard lock(g_locked);
  ++known->holders;
  return known;
}

void release_communicator(Communicator* held) {
  const Guard lock(g_locked);
  let_go(held);
}

void forget_communicators() {
  const Guard lock(g_locked);
  // Threads may have been about to use those of the recording before when it ended; they no longer do.
  while (g_waiting != nullptr) {
    Communicator* const gone = g_waiting;
    g_waiting = gone->next;
    free(const_cast<int*>(gone->world));
    free(gone);
  }
  for (Slot& slot : g_slots) {
    const Word handle = slot.handle.exchange(kFree, std::memory_order_acq_rel);
    if (handle == kFree || handle == kGone) continue;
    Communicator* const gone = slot.communicator.load(std::memory_order_relaxed);
    if (--gone->holders > 0) continue;
    gone->next = g_waiting;
    g_waiting = gone;
  }
  memset(g_made_apart, 0, sizeof g_made_apart);
}

void rename_communicator(Word handle) {
  Communicator* const known = find_communicator(handle);
  if (known == nullptr) return;
  const Guard lock(g_locked);
  Word group = 0;
  int count = 0;
  g_mpi.comm_group(known->handle, &group);
  int* const members = world_ranks(group, count);
  g_mpi.group_free(&group);
  define(*known, members);
  free(members);
}

}  // namespace tacho::capture::mpi
