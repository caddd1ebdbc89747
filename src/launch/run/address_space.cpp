// Limits of address space (address_space.h).
#include "launch/run/address_space.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>

#include "base/format.h"

namespace tacho::launch {
namespace {

std::string human_size(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

}  // namespace

Result<Room> address_space(const Recording& recording, const TargetLimits& limits) {
  // Threads, buffers of rows and of names, and libraries that are loaded late.
  constexpr uint64_t kOwnNeeds = 160ull << 20;
  constexpr uint64_t kLeastPool = 1ull << 20;
  // The target has more to do with its memory than to hold a pool.
  constexpr uint64_t kShare = 8;
  Room room{recording.pool_max, {}};
  const rlim_t of_target = limits.target_space(), own = limits.own_space();
  if (of_target != RLIM_INFINITY) {
    room.pool_max = std::min<uint64_t>(room.pool_max, std::max<uint64_t>(of_target / kShare, kLeastPool));
    if (room.pool_max < recording.pool_max)
      room.sentence =
          fmt::format("the address space is limited to {} (ulimit -v): the pool has at most {} "
                      "instead of {}, and more events may be lost in bursts",
                      human_size(static_cast<double>(of_target)), human_size(static_cast<double>(room.pool_max)),
                      human_size(static_cast<double>(recording.pool_max)));
  }
  if (own == RLIM_INFINITY) return room;
  // A thread's stack and heap take 72 MiB and more of it by default.
  mallopt(M_ARENA_MAX, 1);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_setstacksize(&attributes, 1 << 20);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
  }
  const uint64_t needed = kOwnNeeds + room.pool_max;
  void* const held = mmap(nullptr, needed, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (held == MAP_FAILED)
    return fail("the address space is limited to {} (ulimit -v), and tacho needs {} "
                "more than it has: raise the limit, also the hard one",
                human_size(static_cast<double>(own)), human_size(static_cast<double>(needed)));
  munmap(held, needed);
  return room;
}

}  // namespace tacho::launch
